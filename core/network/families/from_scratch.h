// SPDX-License-Identifier: Apache-2.0
// The decoder that students write themselves: RMSNorm, rotary positions, SwiGLU, eager causal
// attention, no biases, untied output. Each of norm, softmax, activation and loss is either one
// fused operator or written out (BuildOptions::writtenOut), as the reference of a well-known course
// (Stanford CS336, assignment "basics") writes it:
//   norm        x.float(), pow(2), mean, + eps, rsqrt, x · r, weight · x, back to the input's dtype
//   positions   pairs (even, odd) of each head: cos · x1 − sin · x2 and sin · x1 + cos · x2, stacked
//   attention   einsum / √d, where(mask, scores, −inf), softmax, einsum
//   softmax     max, subtract, exp, sum, quotient
//   activation  x · sigmoid(x)
//   loss        max, subtract, exp, sum, log, subtract; negated, gathered, averaged
// Linear layers are einsums with the weight. The tables of positions are a buffer; they are looked
// up, and the mask is built, in every layer. Logits are a variable of the training loop.
#pragma once

#include "core/network/builder.h"
#include "core/network/model.h"

namespace memscape {

/// A language model on `options.batch` sequences of `options.sequence` tokens.
Result<Graph> fromScratchDecoder(const ModelDescription& model, const BuildOptions& options);

} // namespace memscape
