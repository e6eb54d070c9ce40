// SPDX-License-Identifier: Apache-2.0
// What every language model begins and ends with: token indices, the matrix that makes logits of hidden states, and the
// loss over the vocabulary, as one of core/network/build_options.h's forms computes it. transformers before 4.45
// made `logits = logits.float()` of them before anything else; before 4.50 the loss of a decoder took
// `logits[..., :-1, :].contiguous()`, as large as all of them.
#pragma once

#include "core/network/builder.h"

#include <functional>

namespace memscape {

/// Input `name` (B, S) of Int64; a prompt that is learned is not among them.
Variable tokenInput(NetworkBuilder& b, std::string_view name = "tokens");

/// The matrix (V, H) between hidden states and logits.
struct LanguageHead
{
    Variable tied;                                ///< that of the embedding, or
    std::string_view module = {};                 ///< the name of a linear layer with
    std::int64_t vocabulary = 0;                  ///< so many rows
    bool hasBias = false;                         ///< and a bias
    std::function<Variable(Variable)> after = {}; ///< what happens to the logits: a cap
    bool isCausal = false;                        ///< a library's decoder, which older versions ran otherwise
    bool isLitGpts = false;                       ///< whose loss is LitGPT's
};

/// Ends in the logits of hidden states (B, S, H), or, when the options ask for a loss, in the mean cross-entropy of
/// every token. Errors: network.loss where the form of the loss does not take such a head.
Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable hidden, const LanguageHead& head);

/// The same for a model that makes its logits itself: in the library's form alone.
Result<Graph> finishLanguageModel(NetworkBuilder& b, Variable logits, bool isCausal = false);

/// The same for a classifier's logits (B, classes) and one label each.
Result<Graph> finishClassifier(NetworkBuilder& b, Variable logits);

} // namespace memscape
