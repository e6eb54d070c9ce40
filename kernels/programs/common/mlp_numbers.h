// SPDX-License-Identifier: Apache-2.0
// The numbers that a live MLP chain starts from, and how its arrays are distinguished: arithmetic that
// the host, a GPU and the reference share, bit for bit. C++17, no library of ours: nvcc reads this
// file too.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MEMSCAPE_EVERYWHERE __host__ __device__ constexpr
#else
#define MEMSCAPE_EVERYWHERE constexpr
#endif

namespace memscape {

/// Well-mixed 64 bits of a number (the finalizer of splitmix64).
MEMSCAPE_EVERYWHERE std::uint64_t mlpMixed(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// In [-1, 1): element `index` of the array with this seed; a multiple of 2⁻²³, exact in float.
MEMSCAPE_EVERYWHERE float mlpUniform(std::uint64_t seed, std::uint64_t index)
{
    const auto bits = static_cast<std::int32_t>(mlpMixed(index + seed * 0x9e3779b97f4a7c15u) >> 40);
    return static_cast<float>(bits - (1 << 23)) * (1.0F / (1 << 23));
}

inline constexpr std::uint64_t mlpInputSeed = 1, mlpTargetSeed = 2;
constexpr std::uint64_t mlpWeightSeed(int stage)
{
    return 2 * static_cast<std::uint64_t>(stage) + 3;
}
constexpr std::uint64_t mlpBiasSeed(int stage)
{
    return mlpWeightSeed(stage) + 1;
}
/// Of weights, see mlpWeightScale().
inline constexpr float mlpBiasScale = 0.1F;

/// The share of one element in the digest of an array.
MEMSCAPE_EVERYWHERE std::uint64_t mlpDigestOf(std::uint64_t index, std::uint32_t bits)
{
    return mlpMixed((index << 32 | bits) + 0x9e3779b97f4a7c15u * (index >> 32));
}

} // namespace memscape
