// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/loading/loading_kernels.h"

#include "kernels/host/common/simd.h"
#include "kernels/host/precision/convert.h"
#include "kernels/host/transfer/transfer_kernels.h"
#include "kernels/programs/common/half.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace memscape::host {

namespace {

constexpr std::size_t loadingGroup = 128, loadingScaleCount = 64;
constexpr std::size_t rowBlock = 2048; ///< numbers that pass through floats at a time; whole groups

const std::array<float, loadingScaleCount>& loadingScales()
{
    static const std::array<float, loadingScaleCount> all = [] {
        std::array<float, loadingScaleCount> made{};
        for (std::size_t i = 0; i < loadingScaleCount; ++i)
            made[i] = 0x1p-7F * (1 + float(i) / loadingScaleCount);
        return made;
    }();
    return all;
}

MEMSCAPE_INLINE void bytesToFloats(const std::int8_t* from, float* to, std::size_t count, float scale)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        to[i] = float(from[i]) * scale;
}

MEMSCAPE_INLINE void halvesOfBytesToFloats(const std::uint8_t* from, float* to, std::size_t pairs, float scale)
{
#pragma GCC ivdep
    for (std::size_t i = 0; i < pairs; ++i) {
        to[2 * i] = float(int(from[i] & 15) - 8) * scale;
        to[2 * i + 1] = float(int(from[i] >> 4) - 8) * scale;
    }
}

/// `first`: index of the first number, at the beginning of a group. The last 4-bit number may be half of a byte.
MEMSCAPE_INLINE void dequantize(bool isByte, const std::byte* from, float* to, std::size_t first, std::size_t count)
{
    for (std::size_t at = 0; at < count; at += loadingGroup) {
        const std::size_t size = std::min(loadingGroup, count - at);
        const float scale = loadingScales()[(first + at) / loadingGroup % loadingScaleCount];
        if (isByte) {
            bytesToFloats(reinterpret_cast<const std::int8_t*>(from) + at, to + at, size, scale);
        } else {
            const auto* const row = reinterpret_cast<const std::uint8_t*>(from) + at / 2;
            halvesOfBytesToFloats(row, to + at, size / 2, scale);
            if (size % 2 != 0)
                to[at + size - 1] = float(int(row[size / 2] & 15) - 8) * scale;
        }
    }
}

void dequantizePlain(bool isByte, const std::byte* from, float* to, std::size_t first, std::size_t count)
{
    dequantize(isByte, from, to, first, count);
}

#if MEMSCAPE_X86
MEMSCAPE_AVX2 void dequantizeWide(bool isByte, const std::byte* from, float* to, std::size_t first, std::size_t count)
{
    dequantize(isByte, from, to, first, count);
}
#endif

using Dequantize = void (*)(bool, const std::byte*, float*, std::size_t, std::size_t);
Dequantize bestDequantize()
{
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes32))
        return dequantizeWide;
#endif
    return dequantizePlain;
}

DType loadingDtype(LoadingForm form)
{
    return form == LoadingForm::Float16 ? DType::Float16
        : form == LoadingForm::BFloat16 ? DType::BFloat16
                                        : DType::Float32;
}

DType loadingDtype(LoadingTarget target)
{
    return target == LoadingTarget::Float16 ? DType::Float16
        : target == LoadingTarget::BFloat16 ? DType::BFloat16
                                            : DType::Float32;
}

bool isQuantizedForm(LoadingForm form)
{
    return form == LoadingForm::Int8 || form == LoadingForm::Int4;
}

} // namespace

bool hasLoadingConversion(LoadingForm form, LoadingTarget target)
{
    return target == LoadingTarget::AsStored || form != LoadingForm::Other;
}

void convertLoaded(LoadingForm form, LoadingTarget target, const std::byte* from, std::byte* to, std::size_t elements)
{
    if (target == LoadingTarget::AsStored) {
        std::memcpy(to, from, elements);
        return;
    }
    const DType dtype = loadingDtype(target);
    const std::size_t size = std::size_t(elementBytes(dtype));
    if (form == LoadingForm::Float32)
        return narrowRow(reinterpret_cast<const float*>(from), dtype, to, elements);
    if (target == LoadingTarget::Float32 && !isQuantizedForm(form))
        return widenRow(from, loadingDtype(form), reinterpret_cast<float*>(to), elements);
    static const Dequantize dequantizeBest = bestDequantize();
    alignas(64) std::array<float, rowBlock> floats;
    const auto bits = std::size_t(loadingFormBits(form));
    for (std::size_t at = 0; at < elements; at += rowBlock) {
        const std::size_t count = std::min(rowBlock, elements - at);
        const std::byte* const row = from + at * bits / 8;
        auto* const target32 = reinterpret_cast<float*>(to + at * size);
        float* const wide = target == LoadingTarget::Float32 ? target32 : floats.data();
        if (isQuantizedForm(form))
            dequantizeBest(form == LoadingForm::Int8, row, wide, at, count);
        else
            widenRow(row, loadingDtype(form), wide, count);
        if (target != LoadingTarget::Float32)
            narrowRow(wide, dtype, to + at * size, count);
    }
}

float loadedNumber(LoadingForm form, const std::byte* from, std::size_t index)
{
    std::uint16_t half = 0;
    float whole = 0;
    switch (form) {
    case LoadingForm::Float32: std::memcpy(&whole, from + 4 * index, sizeof(whole)); return whole;
    case LoadingForm::BFloat16: std::memcpy(&half, from + 2 * index, sizeof(half)); return bfloat16ToFloat(half);
    case LoadingForm::Float16: std::memcpy(&half, from + 2 * index, sizeof(half)); return float16ToFloat(half);
    case LoadingForm::Int8:
        return float(std::int8_t(from[index])) * loadingScales()[index / loadingGroup % loadingScaleCount];
    case LoadingForm::Int4: {
        const int pair = int(from[index / 2]);
        return float((index % 2 == 0 ? pair & 15 : pair >> 4) - 8)
            * loadingScales()[index / loadingGroup % loadingScaleCount];
    }
    case LoadingForm::Other: break;
    }
    return std::nanf("");
}

Check checkLoadingConversions()
{
    Check check;
    std::vector<std::byte> stored(4 * 5000), made(4 * 5000);
    fillSource(stored.data(), 0, stored.size());
    for (const LoadingForm form :
         {LoadingForm::Float32, LoadingForm::BFloat16, LoadingForm::Float16, LoadingForm::Int8, LoadingForm::Int4}) {
        for (const LoadingTarget target : {LoadingTarget::Float32, LoadingTarget::BFloat16, LoadingTarget::Float16}) {
            for (const std::size_t count : {std::size_t(1), std::size_t(127), std::size_t(4999)}) {
                convertLoaded(form, target, stored.data(), made.data(), count);
                const LoadingForm to = target == LoadingTarget::Float32 ? LoadingForm::Float32
                    : target == LoadingTarget::BFloat16                 ? LoadingForm::BFloat16
                                                                        : LoadingForm::Float16;
                for (std::size_t i = 0; i < count; ++i) {
                    const float exact = loadedNumber(form, stored.data(), i);
                    const float rounded = target == LoadingTarget::Float32 ? exact
                        : target == LoadingTarget::BFloat16                ? bfloat16ToFloat(floatToBfloat16(exact))
                                                                           : float16ToFloat(floatToFloat16(exact));
                    const float found = loadedNumber(to, made.data(), i);
                    check.require(i, found == rounded || (std::isnan(found) && std::isnan(rounded)),
                                  "a converted number is another");
                }
            }
        }
    }
    return check;
}

} // namespace memscape::host
