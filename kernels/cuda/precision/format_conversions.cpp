// SPDX-License-Identifier: Apache-2.0
// Floats narrowed to 16 and 8 bits and back by the GPU's own instructions (formats.cu).
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/precision/format_product.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

std::optional<ShortFormat> shortFormat(Format format)
{
    switch (format) {
    case Format::Fp16: return ShortFormat::Float16;
    case Format::Bf16: return ShortFormat::Bfloat16;
    case Format::Fp8E4M3: return ShortFormat::E4M3;
    case Format::Fp8E5M2: return ShortFormat::E5M2;
    default: return {};
    }
}

/// Floats to bits and back on the GPU.
Result<std::vector<std::uint16_t>> narrowed(GpuSession& session, ShortFormat format, const std::vector<float>& values,
                                            bool saturates)
{
    MEMSCAPE_TRY(from, session.allocateExtra(values.size() * sizeof(float)));
    MEMSCAPE_TRY(to, session.allocateExtra(values.size() * sizeof(std::uint16_t)));
    std::vector<std::uint16_t> bits(values.size());
    auto* device = reinterpret_cast<std::uint16_t*>(to.get());
    MEMSCAPE_CHECK(session.upload(from.get(), values.data(), values.size() * sizeof(float), "copying numbers"));
    MEMSCAPE_CHECK(cudaResult(launchNarrow(format, reinterpret_cast<const float*>(from.get()), device, values.size(),
                                           saturates, session.stream()),
                              "converting numbers"));
    MEMSCAPE_CHECK(session.download(bits.data(), device, bits.size() * sizeof(std::uint16_t), "converting numbers"));
    return bits;
}

Result<std::vector<float>> widened(GpuSession& session, ShortFormat format, const std::vector<std::uint16_t>& bits)
{
    MEMSCAPE_TRY(from, session.allocateExtra(bits.size() * sizeof(std::uint16_t)));
    MEMSCAPE_TRY(to, session.allocateExtra(bits.size() * sizeof(float)));
    std::vector<float> values(bits.size());
    auto* device = reinterpret_cast<float*>(to.get());
    MEMSCAPE_CHECK(session.upload(from.get(), bits.data(), bits.size() * sizeof(std::uint16_t), "copying numbers"));
    MEMSCAPE_CHECK(cudaResult(
        launchWiden(format, reinterpret_cast<const std::uint16_t*>(from.get()), device, bits.size(), session.stream()),
        "converting numbers"));
    MEMSCAPE_CHECK(session.download(values.data(), device, values.size() * sizeof(float), "converting numbers"));
    return values;
}

} // namespace

Result<Check> checkConversions(GpuSession& session, Format format)
{
    const auto which = shortFormat(format);
    const NumberFormat& numbers = numberFormat(format);
    if (!which)
        return fail("format.unknown", fmt::format("a GPU converts {} by other means", numbers.label));
    Check check;
    // Every sign and exponent of a float, with mantissas all over.
    std::vector<float> values;
    for (std::uint32_t i = 0; i < (1U << 20); ++i)
        values.push_back(std::bit_cast<float>(mixed(i)));
    const bool saturates = numbers.bytes == 1;
    const Conversion how{Rounding::NearestEven, saturates ? Overflow::Saturate : Overflow::Special, 0};
    MEMSCAPE_TRY(bits, narrowed(session, *which, values, saturates));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t expected = encode(numbers, double(values[i]), how);
        const bool isNan = std::isnan(values[i]); // its payload does not matter
        check.require(i, isNan ? std::isnan(decode(numbers, bits[i])) : bits[i] == expected,
                      fmt::format("{} is narrowed to {:#x}, not {:#x}", values[i], bits[i], expected));
    }
    std::vector<std::uint16_t> all;
    for (std::uint32_t pattern = 0; pattern < (1U << numbers.bits()); ++pattern)
        all.push_back(std::uint16_t(pattern));
    MEMSCAPE_TRY(wide, widened(session, *which, all));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double expected = decode(numbers, all[i]);
        check.require(i, std::isnan(expected) ? std::isnan(wide[i]) : double(wide[i]) == expected,
                      fmt::format("bits {:#x} are widened to {}, not {}", all[i], wide[i], expected));
    }
    return check;
}

std::optional<double> gpuStored(GpuSession& session, Format format, double value)
{
    const auto which = shortFormat(format);
    if (!which)
        return {};
    const auto bits = narrowed(session, *which, {float(value)}, false);
    const auto wide = bits ? widened(session, *which, *bits) : tl::unexpected(bits.error());
    return wide ? std::optional(double(wide->front())) : std::nullopt;
}

} // namespace memscape::cuda
