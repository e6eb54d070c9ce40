// SPDX-License-Identifier: Apache-2.0
// The optimizer's part of a step: clipping, the update, zero_grad, as events. The temporaries and
// their lifetimes are those of torch/optim (PyTorch 2.x), line by line; n e is the size of a
// parameter:
//   loop        AdamW: sqrt(v), its quotient, and the previous parameter's quotient, which is still
//               bound: up to 3 n e. Lion: 3 n e + the previous update. SGD: nothing
//   foreach     AdamW: sqrt(v) of all parameters at once: the size of all of them
//   fused       nothing
//   written-out AdamW as a textbook writes it: new moments beside the old ones, up to 5 n e
// Muon orthogonalizes in bf16: per matrix a copy, two Gram matrices of the smaller side, a product.
// GaLore: the projected gradient, sqrt(v), the update, then two of the matrix's size; in 8 bits the projected gradient
// twice and three of the matrix's size (galore_torch/adamw8bit.py, 1.0). APOLLO: the same, norms, and two
// of the matrix's size. LOMO and AdaLomo: the gradient, the update and the weight in fp32.
// Mixed recipes copy half gradients to fp32 for the whole update (unless they are kept in fp32).
// DeepSpeed takes the norm of each gradient in fp64, clipping or not, and updates its flat partitions one by one (stage
// 3: sub-groups of 1e9 elements), each with a flat copy of its gradients, from which the fp32 one is made.
// Clipping makes a norm per tensor, and on CUDA a partial norm per tensor and 65536 elements of the
// largest.
//
// On a CPU numbers are tensors of 8 B, cast to the type of what they meet, the norms of clipping are made one by one,
// and PyTorch 1's foreach makes two copies of sqrt(v); its record_function, in which step and zero_grad run, makes
// tensors.
//
// In backward every parameter has an optimizer of its own (register_post_accumulate_grad_hook, torchtune's
// optimizer_in_bwd): the temporaries of one, and its gradient ends with it. LOMO is taken to do the same; its own hooks
// update a parameter when the next gradient comes.
//
// Left out: the steps, one of 200, in which GaLore and APOLLO make a projection anew (GaLore's by a singular value
// decomposition of each matrix in fp32); partial results of large reductions inside kernels, GradScaler's scalars, the
// time of a step on the host under offload (nothing happens on the device then).
#pragma once

#include "core/training/cpu_kernels.h"
#include "core/training/optimizer_state.h"

#include <string_view>

namespace memscape {

inline constexpr std::int64_t normChunk = 65536; ///< elements of a chunk of a multi-tensor kernel

inline constexpr std::string_view recordFunctionName = "record_function"; ///< of events of PyTorch 1

/// What `allocateOptimizer` made and the step may replace.
struct OptimizerBlocks
{
    std::vector<ParameterTensor> updated;              ///< what this device updates (optimizer_state.h)
    std::vector<BlockId> masters;                      ///< beside `updated`; noBlock without a master copy
    std::vector<Few<BlockId, mostStateTensors>> state; ///< beside `updated`
    std::vector<std::size_t> indices;                  ///< by parameter: in `updated`, when it is updated by itself
};

/// Allocates master weights and state (names "master", "exp_avg", …), as they are before a step
/// that is not the first. Nothing on the device with offload, outside of training, or without an
/// optimizer.
OptimizerBlocks allocateOptimizer(Trace& trace, const std::vector<ParameterTensor>& parameters, const Plan& plan);

/// torch.nn.utils.clip_grad_norm_ over the trained parameters; nothing when the plan doesn't clip.
/// Belongs to Phase::Optimizer, which the caller has entered.
void clipGradients(Trace& trace, const std::vector<ParameterTensor>& parameters, const Plan& plan);

/// optimizer.step(). Belongs to Phase::Optimizer, which the caller has entered.
void updateParameters(Trace& trace, const Plan& plan, OptimizerBlocks& blocks);

/// The same of one parameter, in backward: `index` of Graph::parameters. Nothing when it isn't trained.
void updateParameter(Trace& trace, const Plan& plan, OptimizerBlocks& blocks, std::size_t index);

/// optimizer.zero_grad(): frees the gradients (their entries become noBlock) or, without
/// set_to_none, leaves them filled with zeros. Enters Phase::ZeroGrad.
void zeroGradients(Trace& trace, const Plan& plan, std::vector<BlockId>& gradients);

} // namespace memscape
