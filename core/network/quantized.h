// SPDX-License-Identifier: Apache-2.0
// Bytes of weights that bitsandbytes and AutoGPTQ store in 4 or 8 bits.
//
// NF4 (Dettmers et al. 2023): half a byte per element and one absmax per block of 64, as fp32, or with double
// quantization as a byte, with one fp32 scale per 256 of those: 4 + 8/64 + 32/(64 × 256) = 4.127 bits. And per tensor
// the table of 16 fp32 codes; with double quantization an fp32 offset of the scales and their table of 256 codes,
// which bitsandbytes copies for each tensor since 0.45.
//
// LLM.int8 (Dettmers et al. 2022): a byte per element and an fp32 absmax (SCB) per row. Left out: columns of outliers,
// which depend on the data.
//
// GPTQ: half a byte per element; per group of inputs and output an fp16 scale and half a byte of offset; an int32 per
// input that names its group (the buffers of AutoGPTQ's QuantLinear).
#pragma once

#include <cstdint>

namespace memscape {

/// How the frozen matrices of layers are stored.
enum class BaseForm : std::uint8_t { AsWeights, Int8, NormalFloat4, NormalFloat4Double, Gptq };

constexpr bool isQuantizedForm(BaseForm form)
{
    return form != BaseForm::AsWeights;
}

constexpr bool isNormalFloat(BaseForm form)
{
    return form == BaseForm::NormalFloat4 || form == BaseForm::NormalFloat4Double;
}

/// B of a tensor in NF4 with double quantization, or without.
std::int64_t normalFloatBytes(std::int64_t elements, bool isDouble = true);

/// B of a matrix of `columns` inputs in 4 bits; 0 for a group: all inputs share a scale.
std::int64_t gptqBytes(std::int64_t rows, std::int64_t columns, std::int64_t group = 128);

/// B of a matrix in a quantized form; rows are outputs.
std::int64_t quantizedBytes(BaseForm form, std::int64_t rows, std::int64_t columns);

} // namespace memscape
