// SPDX-License-Identifier: Apache-2.0
// GPT-2 (Radford et al. 2019) as nanoGPT and minGPT write it: pre-norm blocks, one qkv projection,
// learned positions, the output layer tied to the token embedding.
#pragma once

#include "core/network/builder.h"

namespace memscape {

struct Gpt2Shape
{
    std::int64_t hidden = 768;
    std::int64_t heads = 12;
    std::int64_t layers = 12;
    std::int64_t feedForward = 0; ///< 0: four times hidden
    std::int64_t vocabulary = 50257;
    std::int64_t positions = 1024;
    bool isTied = true;
    OperatorKind activation = OperatorKind::Gelu;
    bool isActivationComposite = false; ///< Hugging Face's NewGELUActivation, operator by operator
    std::int64_t headWidth = 0;         ///< 0: hidden / heads
};

/// One block on x (B, S, hidden).
Variable gpt2Block(NetworkBuilder& b, const Gpt2Shape& shape, const Variable& x);

/// A language model on `options.batch` sequences. Errors: network.shape when hidden is no multiple
/// of the heads or the sequence is longer than the positions.
Result<Graph> gpt2(const Gpt2Shape& shape, const BuildOptions& options);

} // namespace memscape
