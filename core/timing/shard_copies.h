// SPDX-License-Identifier: Apache-2.0
// What data parallelism reads and writes in a device's own memory to bring gradients and weights into and out of its
// collectives. In bytes of an element, g of a gradient as backward makes it, r as it is reduced:
//
//   DDP        gradients divided into their bucket, and back out of it where they are no views of it     2 g, 4 g
//   FSDP 1     views' gradients joined to a flat one (2 g), converted where r is not g (g + r), divided
//              by about √N before they are summed (2 r)
//   FSDP 2     gradients into the reduce-scatter's input (g + r), divided there in fp16 alone (2 r); weights out of the
//              gather's buffer (2 g), each time that they are gathered
//   DeepSpeed  gradients into the reduce bucket and divided there (4 g); stage 3 joins the pieces once more (2 g) and
//              weights behind each gather (2 g)
//
// DDP does it behind the last micro-batch alone, DeepSpeed's stage 1 too, the others behind each. Sources:
// PyTorch 2.15, csrc/distributed/c10d/reducer.cpp (mark_variable_ready_dense, finalize_bucket_dense), distributed/fsdp/
// _runtime_utils.py (_reduce_grad, _div_if_needed), _flat_param.py (views of the flat parameter: SplitBackward),
// _fully_shard/_fsdp_collectives.py (chunk_cat_mixed_dtype, split_with_sizes_copy, _get_gradient_divide_factors);
// DeepSpeed 0.19.8, runtime/zero/stage_1_and_2.py (average_tensor), stage3.py (__avg_scatter_grads),
// partition_parameters.py (AllGatherCoalescedHandle), comm/coalesced_collectives.py (reduce_scatter_coalesced).
//
// Some of it runs in streams beside the passes. It is added up as if it did not: both read and write the same DRAM.
// Left out: that DeepSpeed joins no piece of a gradient alone in its bucket; a rank's own piece, N times less; ZeRO's
// paper and Megatron, whose gradients lie in the buffer that is reduced.
#pragma once

#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

namespace memscape {

struct ShardCopies
{
    double gathered = 0; ///< B in a step, of weights behind their gathers, forward and backward
    double reduced = 0;  ///< B in a step, of gradients before and behind their reduction
};
ShardCopies shardCopies(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape
