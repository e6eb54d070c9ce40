// SPDX-License-Identifier: Apache-2.0
// Adapters: which matrices get them, their tensors, and what a quantized base takes.
//
// LoRA (Hu et al. 2021): y = W x + (alpha / r) B A x with A r × in and B out × r, r (in + out)
// trained elements for a matrix of in × out; everything else is frozen. Adapters are kept in fp32
// under autocast and in the weights' precision otherwise.
//
// NF4 with double quantization (Dettmers et al. 2023): half a byte per element, one absmax per
// block of 64 kept as a byte, one fp32 scale per 256 of those; 4 + 8/64 + 32/(64 × 256) = 4.127
// bits. And per tensor an fp32 offset of the scales and the tables of 16 and of 256 fp32 codes
// (bitsandbytes, which since 0.45 copies the second for each tensor, too).
//
// Left out: the base dequantized to half for each product is a temporary of the forward and the
// backward pass, so it belongs to the step; dropout on adapters.
#pragma once

#include "core/training/parameter_tensor.h"
#include "core/training/plan.h"

namespace memscape {

/// Whether a parameter gets an adapter: a matrix that the plan targets.
bool hasAdapter(const ParameterTensor& parameter, const LoraPlan& lora);

/// The base frozen, followed by the adapters `….lora_A.weight` (r × in), `….lora_B.weight` (out ×
/// r) of each targeted matrix. Errors: plan.lora when no parameter is targeted; plan.range when the
/// rank exceeds a targeted matrix's smaller side.
Result<std::vector<ParameterTensor>> withAdapters(const std::vector<ParameterTensor>& parameters, const LoraPlan& lora);

/// Whether a plan keeps this parameter in NF4: every frozen matrix of a layer (bitsandbytes
/// replaces linear layers, all but the output head).
bool isQuantized(const ParameterTensor& parameter, const Plan& plan);

/// Bytes of a tensor in NF4 with double quantization.
std::int64_t normalFloatBytes(std::int64_t elements);

} // namespace memscape
