// SPDX-License-Identifier: Apache-2.0
#include "core/network/dtype.h"

#include <array>

namespace memscape {

namespace {

struct Spelling
{
    DType type;
    std::string_view name; ///< PyTorch
    std::string_view brief;
    std::string_view other;
    std::string_view stored; ///< safetensors
};

constexpr std::array<Spelling, 12> spellings{{
    {DType::Float64, "float64", "fp64", "double", "F64"},
    {DType::Float32, "float32", "fp32", "float", "F32"},
    {DType::Float16, "float16", "fp16", "half", "F16"},
    {DType::BFloat16, "bfloat16", "bf16", "bfloat", "BF16"},
    {DType::Float8E4M3, "float8_e4m3fn", "fp8", "float8", "F8_E4M3"},
    {DType::Float8E5M2, "float8_e5m2", "fp8_e5m2", "bf8", "F8_E5M2"},
    {DType::Int64, "int64", "i64", "long", "I64"},
    {DType::Int32, "int32", "i32", "int", "I32"},
    {DType::Int16, "int16", "i16", "short", "I16"},
    {DType::Int8, "int8", "i8", "char", "I8"},
    {DType::UInt8, "uint8", "u8", "byte", "U8"},
    {DType::Bool, "bool", "b8", "boolean", "BOOL"},
}};

} // namespace

std::string_view dtypeText(DType type)
{
    return spellings[std::size_t(type)].name;
}

std::optional<DType> dtypeFromText(std::string_view text)
{
    if (text.starts_with("torch."))
        text.remove_prefix(6);
    for (const Spelling& known : spellings)
        if (text == known.name || text == known.brief || text == known.other || text == known.stored)
            return known.type;
    return std::nullopt;
}

} // namespace memscape
