// SPDX-License-Identifier: Apache-2.0
// What does it cost to read a tensor through a view, and to copy it so that it lies as it is read? The
// copy is a transposition of two of its loops: the one that is fastest in the target and the one that
// is fastest in the storage.
//
//   v1  element by element, in the order of the target: every line of the storage is fetched once for
//       each of its elements, unless a cache keeps it for a whole run of the target
//   v2  in square tiles whose lines fit the nearest cache together: each line is fetched once
//   v3  tiles of 16 × 8 elements turned in registers: a vector load or store for every 8 elements
//       (4-byte elements on processors with AVX2; others as v2 with the inner loop along the storage)
//   v4  as v3, and whole lines are stored past the caches: the target's lines are not fetched first
//
// When both loops are the same (a slice of rows) the runs are copied as they are, in every version.
// Left out: several threads, 1- and 2-byte elements turned in registers.
#include "kernels/host/layout/layout_kernels.h"

#include "core/timing/layout_time_host.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#if MEMSCAPE_X86
#include <immintrin.h>
#endif

namespace memscape::host {

namespace {

struct Bytes16
{
    std::uint64_t low, high;
};

/// What sums add up in: of the element's own size, so that neighbours add up in vectors.
template <typename T> using SumOf = std::conditional_t<sizeof(T) == 16, std::uint64_t, T>;

template <typename T> SumOf<T> bitsOf(const T& value)
{
    if constexpr (sizeof(T) == 16)
        return value.low + value.high;
    else
        return value;
}

/// Calls run(first element of the storage, first element of the target) for every combination of the
/// loops that are not in `own`, the target in order of the walk.
template <typename Run> void eachRun(const TensorWalk& walk, const std::vector<std::size_t>& own, Run&& run)
{
    std::vector<WalkLoop> loops;
    std::vector<std::int64_t> steps; // of the target, elements
    std::int64_t step = 1;
    for (std::size_t i = 0; i < walk.loops.size(); ++i) {
        if (std::ranges::find(own, i) == own.end()) {
            loops.push_back(walk.loops[i]);
            steps.push_back(step);
        }
        step *= walk.loops[i].count;
    }
    std::vector<std::int64_t> index(loops.size());
    std::int64_t from = walk.offset, to = 0;
    for (bool isDone = walk.elements == 0; !isDone;) {
        run(from, to);
        isDone = true;
        for (std::size_t i = 0; i < loops.size(); ++i) {
            from += loops[i].stride;
            to += steps[i];
            if (++index[i] < loops[i].count) {
                isDone = false;
                break;
            }
            from -= loops[i].stride * loops[i].count;
            to -= steps[i] * loops[i].count;
            index[i] = 0;
        }
    }
}

WalkLoop loopOr(const TensorWalk& walk, std::size_t i)
{
    return i < walk.loops.size() ? walk.loops[i] : WalkLoop{1, 0};
}

/// 64 bytes a turn, each with a sum of its own: the additions do not wait for each other.
template <typename T> MEMSCAPE_INLINE SumOf<T> sumOfNeighbours(const T* run, std::int64_t count)
{
    using Sum = SumOf<T>;
    constexpr std::int64_t lanes = 64 / std::int64_t(sizeof(T));
    Sum parts[std::size_t(lanes)] = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        for (std::int64_t k = 0; k < lanes; ++k)
            parts[k] = Sum(parts[k] + bitsOf(run[i + k]));
    }
    Sum sum = 0;
    for (; i < count; ++i)
        sum = Sum(sum + bitsOf(run[i]));
    for (const Sum part : parts)
        sum = Sum(sum + part);
    return sum;
}

template <typename T> std::uint64_t readAs(const TensorWalk& walk, const std::byte* storage)
{
    const T* base = reinterpret_cast<const T*>(storage);
    const WalkLoop inner = loopOr(walk, 0), outer = loopOr(walk, 1);
    using Sum = SumOf<T>;
    Sum sum = 0;
    eachRun(walk, {0, 1}, [&](std::int64_t from, std::int64_t) {
        for (std::int64_t j = 0; j < outer.count; ++j) {
            const T* run = base + from + j * outer.stride;
            if (inner.stride == 1) {
                sum = Sum(sum + sumOfNeighbours(run, inner.count));
                continue;
            }
            Sum parts[4] = {};
            std::int64_t i = 0;
            for (; i + 4 <= inner.count; i += 4) {
                for (int k = 0; k < 4; ++k)
                    parts[k] = Sum(parts[k] + bitsOf(run[(i + k) * inner.stride]));
            }
            for (; i < inner.count; ++i)
                parts[0] = Sum(parts[0] + bitsOf(run[i * inner.stride]));
            sum = Sum(sum + parts[0] + parts[1] + parts[2] + parts[3]);
        }
    });
    return sum;
}

template <typename T> void copy_v1(const TensorWalk& walk, const std::byte* storage, std::byte* target)
{
    const T* base = reinterpret_cast<const T*>(storage);
    T* out = reinterpret_cast<T*>(target);
    const WalkLoop inner = loopOr(walk, 0), outer = loopOr(walk, 1);
    eachRun(walk, {0, 1}, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t j = 0; j < outer.count; ++j) {
            const T* run = base + from + j * outer.stride;
            T* row = out + to + j * inner.count;
            if (inner.stride == 1) {
                std::memcpy(row, run, std::size_t(inner.count) * sizeof(T));
                continue;
            }
            for (std::int64_t i = 0; i < inner.count; ++i)
                row[i] = run[i * inner.stride];
        }
    });
}

/// Elements of a tile's side: two lines of the storage.
template <typename T> constexpr std::int64_t tileSide()
{
    return std::clamp<std::int64_t>(64 / std::int64_t(sizeof(T)), 8, 32);
}

template <typename T>
MEMSCAPE_INLINE void turnEdges(const CopyPlane& plane, const T* in, T* out, std::int64_t aBegin, std::int64_t aEnd,
                               std::int64_t bBegin, std::int64_t bEnd)
{
    for (std::int64_t b = bBegin; b < bEnd; ++b) {
        for (std::int64_t a = aBegin; a < aEnd; ++a)
            out[b * plane.bTo + a] = in[b * plane.bFrom + a * plane.aFrom];
    }
}

/// block(plane, in, out) turns one whole block of `aSide` × `bSide`; what is left over goes element by
/// element.
template <typename T, typename Block>
MEMSCAPE_INLINE void turnPlanes(const TensorWalk& walk, const std::byte* storage, std::byte* target, std::int64_t aSide,
                                std::int64_t bSide, Block&& block)
{
    const CopyPlane plane = copyPlane(walk);
    if (plane.b == 0)
        return copy_v1<T>(walk, storage, target);
    const T* base = reinterpret_cast<const T*>(storage);
    T* first = reinterpret_cast<T*>(target);
    const std::int64_t aWhole = plane.aCount / aSide * aSide, bWhole = plane.bCount / bSide * bSide;
    eachRun(walk, {0, plane.b}, [&](std::int64_t from, std::int64_t to) {
        const T* in = base + from;
        T* out = first + to;
        for (std::int64_t a = 0; a < aWhole; a += aSide) {
            for (std::int64_t b = 0; b < bWhole; b += bSide)
                block(plane, in + a * plane.aFrom + b * plane.bFrom, out + a + b * plane.bTo);
        }
        turnEdges(plane, in, out, aWhole, plane.aCount, 0, bWhole);
        turnEdges(plane, in, out, 0, plane.aCount, bWhole, plane.bCount);
    });
}

template <typename T> void copy_v2(const TensorWalk& walk, const std::byte* storage, std::byte* target)
{
    constexpr std::int64_t side = tileSide<T>();
    turnPlanes<T>(walk, storage, target, side, side, [](const CopyPlane& plane, const T* in, T* out) {
        for (std::int64_t b = 0; b < side; ++b) {
            for (std::int64_t a = 0; a < side; ++a)
                out[b * plane.bTo + a] = in[b * plane.bFrom + a * plane.aFrom];
        }
    });
}

/// A tile is first gathered along the storage into a little array that lies as the target does.
template <typename T> void copy_v3(const TensorWalk& walk, const std::byte* storage, std::byte* target)
{
    constexpr std::int64_t side = tileSide<T>();
    turnPlanes<T>(walk, storage, target, side, side, [](const CopyPlane& plane, const T* in, T* out) {
        T tile[std::size_t(side * side)];
        for (std::int64_t a = 0; a < side; ++a) {
            for (std::int64_t b = 0; b < side; ++b)
                tile[b * side + a] = in[b * plane.bFrom + a * plane.aFrom];
        }
        for (std::int64_t b = 0; b < side; ++b)
            std::memcpy(out + b * plane.bTo, tile + b * side, sizeof(T) * std::size_t(side));
    });
}

#if MEMSCAPE_X86
/// rows[k] becomes column k: 8 × 8 floats in eight registers.
MEMSCAPE_AVX2 MEMSCAPE_INLINE void turn8(__m256 (&rows)[8])
{
    __m256 pairs[8], quads[8];
    for (int k = 0; k < 4; ++k) {
        pairs[2 * k] = _mm256_unpacklo_ps(rows[2 * k], rows[2 * k + 1]);
        pairs[2 * k + 1] = _mm256_unpackhi_ps(rows[2 * k], rows[2 * k + 1]);
    }
    for (int half = 0; half < 2; ++half) {
        const __m256* from = pairs + 4 * half;
        __m256* to = quads + 4 * half;
        to[0] = _mm256_shuffle_ps(from[0], from[2], 0x44);
        to[1] = _mm256_shuffle_ps(from[0], from[2], 0xee);
        to[2] = _mm256_shuffle_ps(from[1], from[3], 0x44);
        to[3] = _mm256_shuffle_ps(from[1], from[3], 0xee);
    }
    for (int k = 0; k < 4; ++k) {
        rows[k] = _mm256_permute2f128_ps(quads[k], quads[k + 4], 0x20);
        rows[k + 4] = _mm256_permute2f128_ps(quads[k], quads[k + 4], 0x31);
    }
}

MEMSCAPE_AVX2 MEMSCAPE_INLINE void load8(const CopyPlane& plane, const float* in, __m256 (&rows)[8])
{
    for (int a = 0; a < 8; ++a)
        rows[a] = _mm256_loadu_ps(in + a * plane.aFrom);
    turn8(rows);
}

/// 16 elements of the target at once: a whole line.
template <bool isPastCaches>
MEMSCAPE_AVX2 void turnBlocks16(const CopyPlane& plane, const float* in, float* out, std::int64_t blocks)
{
    for (std::int64_t i = 0; i < blocks; ++i) {
        __m256 left[8], right[8];
        load8(plane, in + i * 8, left);
        load8(plane, in + i * 8 + 8 * plane.aFrom, right);
        for (int b = 0; b < 8; ++b) {
            float* row = out + (i * 8 + b) * plane.bTo;
            if (isPastCaches) {
                _mm256_stream_ps(row, left[b]);
                _mm256_stream_ps(row + 8, right[b]);
            } else {
                _mm256_storeu_ps(row, left[b]);
                _mm256_storeu_ps(row + 8, right[b]);
            }
        }
    }
}

template <bool isPastCaches>
MEMSCAPE_AVX2 void turnFloats(const TensorWalk& walk, const std::byte* storage, std::byte* target)
{
    const CopyPlane plane = copyPlane(walk);
    const bool isAligned = reinterpret_cast<std::uintptr_t>(target) % 64 == 0 && plane.aCount % 16 == 0;
    if (plane.b == 0)
        return copy_v1<std::uint32_t>(walk, storage, target);
    if (plane.bFrom != 1 || (isPastCaches && !isAligned))
        return isPastCaches && plane.bFrom == 1 ? turnFloats<false>(walk, storage, target)
                                                : copy_v3<std::uint32_t>(walk, storage, target);
    const float* base = reinterpret_cast<const float*>(storage);
    float* first = reinterpret_cast<float*>(target);
    constexpr std::int64_t aSide = 16; // a line of the target
    const std::int64_t aWhole = plane.aCount / aSide * aSide, bWhole = plane.bCount / 8 * 8;
    eachRun(walk, {0, plane.b}, [&](std::int64_t from, std::int64_t to) {
        const float* in = base + from;
        float* out = first + to;
        // Stripes of lines of the storage: the other half of each waits in the nearest cache.
        constexpr std::int64_t stripe = 64;
        for (std::int64_t b = 0; b < bWhole; b += stripe) {
            const std::int64_t blocks = std::min(stripe, bWhole - b) / 8;
            for (std::int64_t a = 0; a < aWhole; a += aSide) {
                turnBlocks16<isPastCaches>(plane, in + a * plane.aFrom + b, out + a + b * plane.bTo, blocks);
            }
        }
        turnEdges(plane, in, out, aWhole, plane.aCount, 0, bWhole);
        turnEdges(plane, in, out, 0, plane.aCount, bWhole, plane.bCount);
    });
    if (isPastCaches)
        _mm_sfence();
}
#endif

template <typename T> std::vector<CopyKernel> kernelsOf()
{
    constexpr int bytes = int(sizeof(T));
    std::vector<CopyKernel> kernels{
        {1, Isa::Scalar, bytes, "element by element, in the order of the target", &copy_v1<T>},
        {2, Isa::Scalar, bytes, "in tiles whose lines fit the nearest cache together", &copy_v2<T>},
        {3, Isa::Scalar, bytes, "tiles gathered along the storage, written in rows", &copy_v3<T>}};
#if MEMSCAPE_X86
    if (bytes == 4 && hasIsa(Isa::Bytes32)) {
        kernels[2] = {3, Isa::Bytes32, bytes, "tiles turned in registers, a line of the target at once",
                      &turnFloats<false>};
        kernels.push_back({4, Isa::Bytes32, bytes, "and whole lines stored past the caches", &turnFloats<true>});
    }
#endif
    return kernels;
}

template <typename Call> auto withItem(int itemBytes, Call&& call)
{
    switch (itemBytes) {
    case 1: return call(std::uint8_t());
    case 2: return call(std::uint16_t());
    case 8: return call(std::uint64_t());
    case 16: return call(Bytes16());
    default: return call(std::uint32_t());
    }
}

} // namespace

std::uint64_t readWalk(const TensorWalk& walk, const std::byte* storage)
{
    return withItem(int(walk.itemBytes), [&](auto item) { return readAs<decltype(item)>(walk, storage); });
}

std::string CopyKernel::name() const
{
    return fmt::format("copy of a view {} B v{} {}", itemBytes, version, isaText(isa));
}

std::vector<CopyKernel> copyKernels(int itemBytes)
{
    return withItem(itemBytes, [](auto item) { return kernelsOf<decltype(item)>(); });
}

CopyKernel copyKernel(int itemBytes, int version)
{
    const auto kernels = copyKernels(itemBytes);
    const auto wanted = std::size_t(version == 0 ? copyVersions : version);
    return kernels[std::min(wanted, kernels.size()) - 1];
}

} // namespace memscape::host
