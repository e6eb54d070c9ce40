// SPDX-License-Identifier: Apache-2.0
// The decoder that students write: RMSNorm, rotary positions by cos and sin on half-pairs and a
// concatenation, SwiGLU, causal attention by einsum, no biases, untied head. Norm, softmax,
// activation and loss are each PyTorch's fused function or written out operator by operator
// (BuildOptions::writtenOut).
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// A language model on `options.batch` sequences of `options.sequence` tokens.
Result<Graph> fromScratchDecoder(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape
