// SPDX-License-Identifier: Apache-2.0
// What a product in FP8 costs beside itself: its operands are scaled and cast, each in two orders, since FP8's tensor
// cores read both along the sum (Hopper's wgmma: K-major operands alone), and the sum of a product, of its input's
// gradient and of its weight's gradient runs along different dimensions. B for each element of a bf16 tensor:
//
//                        delayed (Transformer Engine)         tensorwise (torchao, dynamic)
//     an input           read 2, write 1 + 1             4    for its maximum 2, read 2, write 1 + 1            6
//     a weight           the same, once a step           4    for its maximum 2, twice read 2 and write 1       8
//     a gradient         the same                        4    as an input                                       6
//
// Delayed scaling takes the scale from earlier maxima and keeps this one's on the way; dynamic scaling must have read
// all of a tensor before it casts any of it, so that torch.compile fuses its casts, but not the maximum. Transformer
// Engine's norms write their results in FP8 at once, a byte less than bf16, of which the other order is made: 1 B.
// Its current scaling reads a tensor twice, too (its documentation, FP8 Delayed Scaling), weights once a step; norms
// write bf16 and find the maximum on the way (its pull request 2013): 4 B. Products that read the same input share its
// cast.
//
// Sequence parallelism casts the part that a rank has, and gathers FP8: inputs forward, gradients backward
// (transformer_engine/pytorch/module/layernorm_linear.py; torchtitan, docs/float8.md); what came is turned into the
// other order, a byte read and written. What is scattered is bf16.
// Sources: pytorch/ao, torchao/testing/training/roofline_utils.py @0598012, get_tensor_memory_traffic_ovhd_s, without
// fusion; Transformer Engine's LayerNormLinear and cast_transpose kernels, and is_first_microbatch of its modules.
//
// A linear layer of a network in FP8 is a product that follows the cast of its input (NetworkBuilder::fp8Copy); the
// head and attention's products are none.
//
// Left out: scales by rows or blocks, FP8 gathers of FSDP, which cast pieces of the weights, and what L2 holds.
#pragma once

#include "core/network/graph.h"
#include "core/training/plan.h"

namespace memscape {

/// What an operator's casts move besides.
struct Fp8Casts
{
    double bytes = 0, kernels = 0;
};

/// Whether the operator at this place multiplies in FP8.
bool isInFp8(const Graph& graph, std::size_t op, const Plan& plan);
/// Of a product in FP8 of a step that trains, the cast that the network records before it among them.
Fp8Casts fp8CastsForward(const Graph& graph, std::size_t product, const Plan& plan);
Fp8Casts fp8CastsBackward(const Graph& graph, std::size_t product, const Plan& plan);
/// Of a collective's bytes those that it moves, forward or backward: half of what is gathered as operands in FP8.
double sharedAs(const Graph& graph, std::size_t collective, const Plan& plan, bool isBackward);

} // namespace memscape
