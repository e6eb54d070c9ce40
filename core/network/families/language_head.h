// SPDX-License-Identifier: Apache-2.0
// What every language model begins and ends with: token indices, the matrix that makes logits of hidden states, and the
// loss over the vocabulary, as one of core/network/build_options.h's forms computes it. Most of transformers' decoders
// made `logits = logits.float()` of them before anything else until 4.46, which left that to ForCausalLMLoss
// (transformers/loss/loss_utils.py); before 4.50 the loss of a decoder took `logits[..., :-1, :].contiguous()`, as
// large as all of them. Decoders older than LLaMA's came to that loss with 4.49, and kept the logits' type until then.
// T5 and Whisper give theirs to CrossEntropyLoss as they are, as did BERT until 5.24, whose ForMaskedLMLoss makes a
// float copy.
#pragma once

#include "core/network/builder.h"

#include <cstdint>
#include <functional>

namespace memscape {

/// Input `name` (B, S) of Int64; a prompt that is learned is not among them.
Variable tokenInput(NetworkBuilder& b, std::string_view name = "tokens");

/// What a library makes of logits before cross_entropy.
enum class LogitsRule : std::uint8_t {
    Loop,       ///< the training loop decides (BuildOptions::logitsInFloat)
    AsTheyAre,  ///< nothing: T5, Whisper
    Bert,       ///< an fp32 copy, from 5.24 on
    Decoder,    ///< fp32 copies, by version
    OldDecoder, ///< the same from 4.49 on; until then the copy without the last token's alone
};

/// The matrix (V, H) between hidden states and logits.
struct LanguageHead
{
    Variable tied;                                ///< that of the embedding, or
    std::string_view module = {};                 ///< the name of a linear layer with
    std::int64_t vocabulary = 0;                  ///< so many rows
    bool hasBias = false;                         ///< and a bias
    std::function<Variable(Variable)> after = {}; ///< what happens to the logits: a cap
    LogitsRule rule = LogitsRule::Loop;
    bool isLitGpts = false; ///< whose loss is LitGPT's
};

/// Ends in the logits of hidden states (B, S, H), or, when the options ask for a loss, in the mean cross-entropy of
/// every token. Errors: network.loss where the form of the loss does not take such a head.
Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable hidden, const LanguageHead& head);

/// The same for a model that makes its logits itself, (B, S, V) or rows (N, V): in the library's form alone. `targets`
/// are their labels, or an input of the step.
Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable logits, LogitsRule rule = LogitsRule::Loop,
                                  Variable targets = {});

/// The same for a classifier's logits (B, classes) and one label each.
Result<Graph> finishClassifier(NetworkBuilder& b, Variable logits);

} // namespace memscape
