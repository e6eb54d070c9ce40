// SPDX-License-Identifier: Apache-2.0
// What does it cost to touch every s-th element? A load of 4 bytes fetches a line of 64, so from a stride of 16 floats
// on, every element fetches a line of its own.
//
//   strided     v1  one element a turn into one accumulator: teaches that the loop can be the limit
//               v2  eight elements a turn, eight accumulators: independent loads, the memory is the limit
//   random      v1  one element a turn at a hashed index (no list of indices that would cost traffic)
//               v2  eight a turn: the addresses are known early, so many misses are under way at once;
//                   this is what separates a gather (bandwidth of misses) from a pointer chase (latency)
//   contiguous  v1  the strided v1 with stride 1, which is what a compiler must do when it may not assume
//               v2  the strided v2 with stride 1
//               v3  wide vectors, four in flight: what a compiler makes of a loop over neighbours
//
// A structure of arrays is contiguous, an array of structures is strided by the structure, a misaligned
// walk is contiguous from an odd start (its vectors then straddle lines).
//
// Everything is exact: reads fold into an exclusive or, writes store a fixed byte, copies move bits;
// stride_check.cpp holds the reference.
//
// Left out: gather and scatter instructions (no faster than scalar loads on today's x86), software
// prefetch, non-temporal stores (streams.cpp has them).
#include "kernels/host/stride/stride_kernels.h"

#include "kernels/host/common/permutation.h"

#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace memscape::host {

namespace {

// --- Kernels --------------------------------------------------------------------------------------

// An element as the integer of its size; 16 bytes as a vector of two words. Elements may lie anywhere:
// pointers to these types are spelled out, because `auto*` would lose the alignment.
template <int bytes> struct Element;
template <> struct Element<1>
{
    using Type = std::uint8_t __attribute__((may_alias));
};
template <> struct Element<2>
{
    using Type = std::uint16_t __attribute__((aligned(1), may_alias));
};
template <> struct Element<4>
{
    using Type = std::uint32_t __attribute__((aligned(1), may_alias));
};
template <> struct Element<8>
{
    using Type = std::uint64_t __attribute__((aligned(1), may_alias));
};
template <> struct Element<16>
{
    using Type = Simd16::Words;
};

/// What reads fold into: a register as wide as the element, at least a word.
template <int bytes>
using Sum = std::conditional_t<bytes == 16, std::uint64_t __attribute__((vector_size(16))), std::uint64_t>;

template <int bytes> MEMSCAPE_INLINE void keepSum(Sum<bytes>& sum)
{
    // No instruction: it only keeps the compiler from making vectors of the scalar loops.
#if MEMSCAPE_X86
    if constexpr (bytes == 16)
        asm("" : "+x"(sum));
    else
        asm("" : "+r"(sum));
#else
    if constexpr (bytes == 16)
        asm("" : "+w"(sum));
    else
        asm("" : "+r"(sum));
#endif
}

template <int bytes> MEMSCAPE_INLINE std::uint64_t folded(const Sum<bytes>& sum)
{
    if constexpr (bytes == 16)
        return sum[0] ^ sum[1];
    else
        return sum;
}

template <int bytes> MEMSCAPE_INLINE std::size_t offsetOf(const StrideWork& work, std::size_t i, bool random)
{
    return (random ? randomElement(work.first + i, work.elements) : i * work.stride) * bytes;
}

/// Versions 1 (group = 1) and 2 (group = 8) of reading, strided or random.
template <int bytes, int group, bool random> std::uint64_t readElements(const StrideWork& work)
{
    using T = typename Element<bytes>::Type;
    Sum<bytes> sums[group] = {};
    const std::size_t whole = work.count / group * group;
    for (std::size_t i = 0; i < whole; i += group) {
#pragma GCC unroll 8
        for (int k = 0; k < group; ++k) {
            sums[k] ^= *reinterpret_cast<const T*>(work.source + offsetOf<bytes>(work, i + k, random));
            keepSum<bytes>(sums[k]);
        }
    }
    for (std::size_t i = whole; i < work.count; ++i)
        sums[0] ^= *reinterpret_cast<const T*>(work.source + offsetOf<bytes>(work, i, random));
    std::uint64_t sum = 0;
    for (int k = 0; k < group; ++k)
        sum ^= folded<bytes>(sums[k]);
    memoryBarrier();
    return sum;
}

/// The same for writing and copying.
template <int bytes, int group, bool random, bool copy> std::uint64_t storeElements(const StrideWork& work)
{
    using T = typename Element<bytes>::Type;
    T fill;
    std::memset(&fill, strideFill, sizeof(fill));
    const auto touch = [&](std::size_t i) {
        const std::size_t at = offsetOf<bytes>(work, i, random);
        T* const to = reinterpret_cast<T*>(work.target + at);
        if constexpr (copy)
            *to = *reinterpret_cast<const T*>(work.source + at);
        else
            *to = fill;
    };
    const std::size_t whole = work.count / group * group;
    for (std::size_t i = 0; i < whole; i += group) {
#pragma GCC unroll 8
        for (int k = 0; k < group; ++k)
            touch(i + k);
        memoryBarrier(); // else neighbours become a call of memset or memcpy
    }
    for (std::size_t i = whole; i < work.count; ++i) {
        touch(i);
        memoryBarrier();
    }
    return 0;
}

/// Version 3 of the contiguous walk: bytes are bytes, whatever the element.
template <int bytes, typename W> MEMSCAPE_INLINE std::uint64_t readNeighbours(const StrideWork& work)
{
    using V = typename W::Words;
    using T = typename Element<bytes>::Type;
    constexpr std::size_t step = 4 * sizeof(V);
    const std::size_t length = work.count * bytes;
    const std::size_t whole = length / step * step;
    V sums[4] = {};
    for (std::size_t i = 0; i < whole; i += step) {
#pragma GCC unroll 4
        for (std::size_t k = 0; k < 4; ++k)
            sums[k] ^= *reinterpret_cast<const V*>(work.source + i + k * sizeof(V));
    }
    V all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
    std::uint64_t sum = 0;
    for (std::size_t lane = 0; lane < sizeof(V) / 8; ++lane)
        sum ^= all[lane];
    // An exclusive or of words holds that of every narrower element in its parts.
    for (int width = 32; width >= 8 * bytes; width /= 2)
        sum = (sum ^ (sum >> width)) & ((std::uint64_t{1} << width) - 1);
    Sum<bytes> rest = {};
    for (std::size_t i = whole; i < length; i += bytes)
        rest ^= *reinterpret_cast<const T*>(work.source + i);
    memoryBarrier();
    return sum ^ folded<bytes>(rest);
}

template <int bytes, typename W, bool copy> MEMSCAPE_INLINE std::uint64_t storeNeighbours(const StrideWork& work)
{
    using V = typename W::Words;
    constexpr std::size_t step = 4 * sizeof(V);
    const std::size_t length = work.count * bytes;
    const std::size_t whole = length / step * step;
    V fill;
    std::memset(&fill, strideFill, sizeof(fill));
    for (std::size_t i = 0; i < whole; i += step) {
#pragma GCC unroll 4
        for (std::size_t k = 0; k < 4; ++k) {
            V* const to = reinterpret_cast<V*>(work.target + i + k * sizeof(V));
            if constexpr (copy)
                *to = *reinterpret_cast<const V*>(work.source + i + k * sizeof(V));
            else
                *to = fill;
        }
        memoryBarrier();
    }
    StrideWork rest = work;
    rest.stride = 1;
    rest.count = (length - whole) / bytes;
    rest.target += whole;
    if constexpr (copy)
        rest.source += whole;
    return storeElements<bytes, 1, false, copy>(rest);
}

// --- Launchers ------------------------------------------------------------------------------------

template <int bytes, typename W, Operation operation> MEMSCAPE_INLINE std::uint64_t neighbours(const StrideWork& work)
{
    if constexpr (operation == Operation::Read)
        return readNeighbours<bytes, W>(work);
    else
        return storeNeighbours<bytes, W, operation == Operation::Copy>(work);
}

template <int bytes, Operation operation> std::uint64_t neighbours16(const StrideWork& work)
{
    return neighbours<bytes, Simd16, operation>(work);
}

#if MEMSCAPE_X86
template <int bytes, Operation operation> MEMSCAPE_AVX2 std::uint64_t neighbours32(const StrideWork& work)
{
    return neighbours<bytes, Simd32, operation>(work);
}

template <int bytes, Operation operation> MEMSCAPE_AVX512 std::uint64_t neighbours64(const StrideWork& work)
{
    return neighbours<bytes, Simd64, operation>(work);
}
#endif

template <int bytes, int group, bool random, Operation operation> std::uint64_t elements(const StrideWork& work)
{
    if constexpr (operation == Operation::Read)
        return readElements<bytes, group, random>(work);
    else
        return storeElements<bytes, group, random, operation == Operation::Copy>(work);
}

template <int bytes, Operation operation> std::vector<StrideKernel> kernelsOf(StrideWalk walk)
{
    if (walk == StrideWalk::Random)
        return {{walk, operation, bytes, 1, Isa::Scalar, elements<bytes, 1, true, operation>},
                {walk, operation, bytes, 2, Isa::Scalar, elements<bytes, 8, true, operation>}};
    std::vector<StrideKernel> kernels{{walk, operation, bytes, 1, Isa::Scalar, elements<bytes, 1, false, operation>},
                                      {walk, operation, bytes, 2, Isa::Scalar, elements<bytes, 8, false, operation>}};
    if (walk == StrideWalk::Strided)
        return kernels;
    kernels.push_back({walk, operation, bytes, 3, Isa::Bytes16, neighbours16<bytes, operation>});
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes32))
        kernels.push_back({walk, operation, bytes, 3, Isa::Bytes32, neighbours32<bytes, operation>});
    if (hasIsa(Isa::Bytes64))
        kernels.push_back({walk, operation, bytes, 3, Isa::Bytes64, neighbours64<bytes, operation>});
#endif
    return kernels;
}

template <Operation operation> std::vector<StrideKernel> kernelsOf(StrideWalk walk, int elementBytes)
{
    switch (elementBytes) {
    case 1: return kernelsOf<1, operation>(walk);
    case 2: return kernelsOf<2, operation>(walk);
    case 4: return kernelsOf<4, operation>(walk);
    case 8: return kernelsOf<8, operation>(walk);
    case 16: return kernelsOf<16, operation>(walk);
    default: return {};
    }
}

} // namespace

std::vector<StrideKernel> strideKernels(StrideWalk walk, Operation operation, int elementBytes)
{
    switch (operation) {
    case Operation::Read: return kernelsOf<Operation::Read>(walk, elementBytes);
    case Operation::Write: return kernelsOf<Operation::Write>(walk, elementBytes);
    case Operation::Copy: return kernelsOf<Operation::Copy>(walk, elementBytes);
    case Operation::Triad: break;
    }
    return {};
}

StrideKernel bestStride(StrideWalk walk, Operation operation, int elementBytes)
{
    return strideKernels(walk, operation, elementBytes).back();
}

std::string StrideKernel::name() const
{
    static constexpr const char* walks[] = {"strided", "random", "contiguous"};
    return fmt::format("stride {} {} {} B v{} {}", walks[static_cast<int>(walk)], operationText(operation),
                       elementBytes, version, isaText(isa));
}

} // namespace memscape::host
