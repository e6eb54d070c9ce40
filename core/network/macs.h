// SPDX-License-Identifier: Apache-2.0
// Multiply-adds of one forward pass: every matrix of the inventory once per token that passes
// through it, every convolution once per output position, and attention's two products (scores,
// context), which multiply all pairs of positions, masked or not, as eager kernels do. One
// multiply-add is two floating-point operations.
//
// Left out: norms, activations, softmax, biases and pooling: below a percent.
#pragma once

#include "core/network/inventory.h"

namespace memscape {

/// `sequence` counts tokens (of each stack of an encoder-decoder); pictures and MLP chains have
/// their own size and ignore it. Errors: those of inventory(), model.size beyond 2^62, model.range
/// for a batch or sequence below 1.
Result<std::int64_t> forwardMacs(const ModelDescription& model, std::int64_t batch, std::int64_t sequence);

} // namespace memscape
