// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, with the names that PyTorch and safetensors give them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace memscape {

enum class DType : std::uint8_t {
    Float64,
    Float32,
    Float16,
    BFloat16,
    Float8E4M3,
    Float8E5M2,
    Int64,
    Int32,
    Int16,
    Int8,
    UInt8,
    Bool,
};

constexpr std::int64_t elementBytes(DType type)
{
    switch (type) {
    case DType::Float64:
    case DType::Int64: return 8;
    case DType::Float32:
    case DType::Int32: return 4;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Int16: return 2;
    default: return 1;
    }
}

constexpr bool isFloating(DType type)
{
    return type <= DType::Float8E5M2;
}

/// "float32", "bfloat16", "float8_e4m3fn", "int64": what `str(tensor.dtype)` says after "torch.".
std::string_view dtypeText(DType type);

/// Reads PyTorch's name, its short form ("bf16", "half", "fp32") or the safetensors name ("BF16",
/// "F8_E4M3"); nothing for any other text.
std::optional<DType> dtypeFromText(std::string_view text);

} // namespace memscape
