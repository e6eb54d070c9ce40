// SPDX-License-Identifier: Apache-2.0
// What each device keeps under data parallelism (ZeRO stages 0 to 3, FSDP), and the buffers for it.
// N is the data-parallel degree; a piece is ceil(n / N) elements, the last one padded.
//
//             weights   gradients   optimizer   source
//   stage 0   n         n           n           DistributedDataParallel
//   stage 1   n         n           n / N       Rajbhandari et al. 2020 (ZeRO), P_os
//   stage 2   n         n / N       n / N       P_os+g
//   stage 3   n / N     n / N       n / N       P_os+g+p; FSDP's full shard
//
// Whose code it is decides the rest (Plan::shardedBy):
//   FSDP 2      cuts each parameter along its first dimension, ceil(rows / N) rows; its stage 2 keeps weights
//               whole from forward to backward, not between steps. Mixed precision shards fp32 weights and
//               gathers half copies
//   FSDP 1      the same with flat parameters: a unit is cut as one
//   DeepSpeed   stage 3 keeps parameters of up to 1e5 elements whole, lays its gradients' pieces and a reduce bucket of
//               5e8 elements out once and keeps them. Stages 1 and 2 have the bucket from the first gradient on (two
//               where reductions run beside backward), and copy what of it is theirs into one block: all of each
//               parameter that the partition begins or ends in. That is counted for the rank that has it soonest: the
//               last one, of stage 1 (which reduces behind backward unless the two overlap) the first. On one device,
//               too, where it is said that DeepSpeed runs
// When weights are whole: layer_units.h, fsdp_units.h, deepspeed_weights.h. Sources: PyTorch 2.15,
// torch/distributed/fsdp; DeepSpeed 0.19.8, runtime/zero/{config,stage_1_and_2,stage3}.py. DDP's reducer keeps buckets
// that hold a second copy of all gradients unless gradients are views of the buckets (25 MiB each, the first 1 MiB).
// One replica is not sharded; under DeepSpeed it has the buckets and flat partitions all the same.
//
// N counts the ranks of context parallelism, too; under HSDP the groups that keep the same shards divide it
// (Plan::shards). Experts that ranks share are divided over fewer: those that have the same ones.
//
// FSDP gathers and reduces in streams of their own, whose blocks CUDA's allocator uses for nothing else
// (fsdp_units.h).
//
// Left out: NCCL's own buffers, padding of FSDP 1 to 16 bytes.
#pragma once

#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

namespace memscape {

/// ceil(elements / degree): the padded share of one device, and the count of blocks of a size.
std::int64_t piece(std::int64_t elements, std::int64_t degree);

/// What one device keeps of a parameter that is cut over all of them.
std::int64_t shareElements(const ParameterTensor& parameter, const Plan& plan);
/// DeepSpeed's stage 3 never gives it back: a small one.
bool isPersistent(const ParameterTensor& parameter, const Plan& plan);

/// Elements of one parameter that one device keeps.
std::int64_t weightElements(const ParameterTensor& parameter, const Plan& plan);
std::int64_t gradientElements(const ParameterTensor& parameter, const Plan& plan);

/// Bytes of one parameter's gradient on one device between backward and update; 0 when the host has it or
/// the update has already been.
std::int64_t keptGradientBytes(const ParameterTensor& parameter, const Plan& plan);

/// Of weightBytes, what each device has whole and keeps when weights are offloaded: the scales and tables of a frozen
/// matrix in NF4 or int8, which bitsandbytes holds in the module (Linear4bit.quant_state), where neither FSDP 1 nor
/// DeepSpeed sees them. FSDP 2 shards torchao's NF4Tensor with its scales. 0 where nothing is sharded.
std::int64_t scaleBytes(const ParameterTensor& parameter, const Plan& plan);

/// Bytes of one parameter's weights on one device between steps; as they are stored beside adapters.
std::int64_t weightBytes(const ParameterTensor& parameter, const Plan& plan);

/// FSDP gathers it once for forward and backward: stage 2 all, stage 3 what lies outside of units. A few norms that a
/// wrapping by size leaves outside are not counted.
bool isGatheredOnce(const ParameterTensor& parameter, const Plan& plan);

/// Bytes of a parameter's whole weight as other devices send it: half under FSDP's mixed precision, NF4 where it is so.
std::int64_t wholeWeightBytes(const ParameterTensor& parameter, const Plan& plan);

/// What a module's parameters need while it runs on pieces of them: all of them, gathered (a frozen matrix under QLoRA
/// in NF4); FSDP 2 with the padding of its pieces. 0 otherwise.
std::int64_t gatheredBytes(const ParameterTensor& parameter, const Plan& plan);
std::int64_t gatheredBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan);

/// Bytes that stay of DeepSpeed's stages 1 and 2 when a bucket is reduced: one block for all gradients of the rank that
/// has it soonest. `trained`: elements of the trained parameters, in order.
std::int64_t partitionGradientBytes(const std::vector<std::int64_t>& trained, const Plan& plan);

/// DDP's buckets or a ZeRO reduce bucket: in the paper the largest that the trained parameters fill. They live through
/// the whole step, those of DeepSpeed's stages 1 and 2 through backward. 0 for FSDP, one replica (but DeepSpeed's) and
/// outside of training.
std::int64_t reduceBufferBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan);

/// DeepSpeed's stages 1 and 2 with the optimizer on the host: a gradient is averaged in a buffer as large as the
/// largest one, which is there from the beginning; the host has another, pinned (stage_1_and_2.py,
/// temp_grad_buffer_for_gpu_offload and _for_cpu_offload).
std::int64_t offloadBufferBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape
