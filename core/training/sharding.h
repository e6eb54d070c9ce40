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
// Buffers: DDP's reducer keeps buckets that hold a second copy of all gradients unless gradients
// are views of the buckets (25 MiB each, the first 1 MiB); ZeRO's reduce buckets hold 5e8 elements
// or fewer (DeepSpeed's default), in the gradients' precision; stage 3 gathers the whole weights of
// a module before it runs and frees them behind it.
//
// Left out: NCCL's own buffers, prefetching of the next module's weights, hybrid sharding.
#pragma once

#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

namespace memscape {

/// ceil(elements / degree): the padded share of one device, and the count of blocks of a size.
std::int64_t piece(std::int64_t elements, std::int64_t degree);

/// Elements of one parameter that one device keeps.
std::int64_t weightElements(const ParameterTensor& parameter, const Plan& plan);
std::int64_t gradientElements(const ParameterTensor& parameter, const Plan& plan);

/// Bytes of one parameter's gradient on one device between backward and update; 0 when the host has it.
std::int64_t keptGradientBytes(const ParameterTensor& parameter, const Plan& plan);

/// Bytes of one parameter's weights on one device between steps; NF4 for a frozen matrix under
/// QLoRA.
std::int64_t weightBytes(const ParameterTensor& parameter, const Plan& plan);

/// What a module's parameters need while it runs under stage 3: all of them, gathered. 0 otherwise.
std::int64_t gatheredBytes(const ParameterTensor& parameter, const Plan& plan);
std::int64_t gatheredBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan);

/// Buffers that live through the whole step: DDP's buckets, or a ZeRO reduce bucket (the largest
/// that the trained parameters fill). 0 for one replica and outside of training.
std::int64_t reduceBufferBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan);

} // namespace memscape
