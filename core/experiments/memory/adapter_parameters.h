// SPDX-License-Identifier: Apache-2.0
// The parameters of adapters, and what they make of a network: which layers get one, in which type everything beside
// them is kept, and what PEFT's prepare_model_for_kbit_training changes. The defaults are PEFT's: queries and values
// for LoRA, every linear layer for QLoRA, adapters in fp32 beside half weights, a quantized model prepared.
//
// Left out: FP4, GPTQ and HQQ bases; quantized bases beside other kinds than LoRA; prefixes through a projection; LoftQ
// and other ways to begin; several adapters at once.
#pragma once

#include "core/experiment/parameter.h"
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/build_options.h"

namespace memscape {

/// What follows `adapter` in the schema of `training-memory`.
std::vector<ParameterSpec> adapterSpecs();
/// Their keys, `adapter` first.
std::vector<std::string> adapterKeys();

/// Three of them, which served weights have, too.
ParameterSpec quantizedHeadSpec();
ParameterSpec computePrecisionSpec();
ParameterSpec bitsandbytesSpec();

/// Nothing where it is not said.
std::optional<DType> computePrecisionOf(const Parameters& parameters);
/// The base in 4 or 8 bits, or as the plan's weights.
BaseForm baseFormOf(const Parameters& parameters);
/// Of adapter=none that of LoRA.
AdapterKind adapterKindOf(const Parameters& parameters);
/// Before 0.44: what it keeps differs.
bool isOldBitsandbytes(const Parameters& parameters);
/// Whether prepare_model_for_kbit_training runs.
bool isPreparedForKbit(const Parameters& parameters);
/// "q_proj", "v_proj" of "q_proj, v_proj"; a word ("all-linear") is itself, "none" is nothing.
/// Errors: plan.lora at the key when a name is empty, too long or of other characters than those of Python's names.
Result<std::vector<std::string>> moduleNamesOf(const Parameters& parameters, const std::string& key);

/// Nothing without adapters. Changes the types that the network is recorded with: the base's own precision, or fp32 for
/// everything that is not quantized. Errors: plan.combination, plan.lora.
Result<std::optional<AdapterOptions>> adaptersOf(const Parameters& parameters, Precision precision, Numerics& numerics);

} // namespace memscape
