// SPDX-License-Identifier: Apache-2.0
// float16 as the compiler or the processor converts it: the reference of our own conversions. g++ and newer clangs have
// _Float16; clang 14 on x86 has none, so there the processor's F16C instructions do it.
#pragma once

#include <cstdint>
#include <cstring>

#ifndef __FLT16_MAX__
#include <immintrin.h>
#endif

namespace memscape::test {

#ifdef __FLT16_MAX__
inline float compilersFloat(std::uint16_t bits)
{
    _Float16 half;
    std::memcpy(&half, &bits, sizeof half);
    return float(half);
}

inline std::uint16_t compilersHalf(float value)
{
    const auto half = static_cast<_Float16>(value);
    std::uint16_t bits;
    std::memcpy(&bits, &half, sizeof bits);
    return bits;
}
#else
__attribute__((target("f16c"))) inline float compilersFloat(std::uint16_t bits)
{
    return _cvtsh_ss(bits);
}

__attribute__((target("f16c"))) inline std::uint16_t compilersHalf(float value)
{
    return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}
#endif

} // namespace memscape::test
