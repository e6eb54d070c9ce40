// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/transfer/transfer_kernels.h"

#include "kernels/host/common/permutation.h"
#include "kernels/host/common/simd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace memscape::host {

namespace {

std::uint32_t sourceWord(std::size_t i)
{
    std::uint64_t x = i * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return 0x3f000000u | std::uint32_t(x >> 41); // 23 bits below the exponent of 0.5
}

/// The sum of one block of vectors after its rounds: chains enough for two units of latency four, and twice as many
/// where registers are (a processor that issues two a clock reached three quarters of that with eight).
template <typename Simd> MEMSCAPE_INLINE float workWide(const std::byte* chunk, std::size_t bytes, unsigned rounds)
{
    using Floats = typename Simd::Floats;
    constexpr int chains = sizeof(Floats) == 64 ? 16 : 8;
    constexpr std::size_t lanes = sizeof(Floats) / sizeof(float), step = chains * sizeof(Floats);
    Floats sums = {};
    std::size_t at = 0;
    for (; at + step <= bytes; at += step) {
        Floats x[chains];
#pragma GCC unroll 16
        for (int k = 0; k < chains; ++k)
            x[k] = *reinterpret_cast<const Floats*>(chunk + at + std::size_t(k) * sizeof(Floats));
        for (unsigned round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
            for (int k = 0; k < chains; ++k)
                x[k] = x[k] * 0.5F + 0.25F;
        }
#pragma GCC unroll 16
        for (int k = 0; k < chains; ++k)
            sums += x[k];
    }
    float sum = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane)
        sum += sums[lane];
    for (; at + sizeof(float) <= bytes; at += sizeof(float)) {
        float x = 0;
        std::memcpy(&x, chunk + at, sizeof(x));
        for (unsigned round = 0; round < rounds; ++round)
            x = x * 0.5F + 0.25F;
        sum += x;
    }
    return sum;
}

float work16(const std::byte* chunk, std::size_t bytes, unsigned rounds)
{
    return workWide<Simd16>(chunk, bytes, rounds);
}
#if MEMSCAPE_X86
__attribute__((target("avx2,fma"))) float work32(const std::byte* chunk, std::size_t bytes, unsigned rounds)
{
    return workWide<Simd32>(chunk, bytes, rounds);
}
MEMSCAPE_AVX512 float work64(const std::byte* chunk, std::size_t bytes, unsigned rounds)
{
    return workWide<Simd64>(chunk, bytes, rounds);
}
#endif

std::vector<WorkFunction> workKernels()
{
    std::vector<WorkFunction> all{work16};
#if MEMSCAPE_X86
    if (hasIsa(Isa::Bytes32) && __builtin_cpu_supports("fma"))
        all.push_back(work32);
    if (hasIsa(Isa::Bytes64))
        all.push_back(work64);
#endif
    return all;
}

} // namespace

void fillSource(std::byte* to, std::size_t offset, std::size_t bytes)
{
    std::size_t at = 0;
    if (offset % sizeof(std::uint32_t) == 0) {
        for (; at + sizeof(std::uint32_t) <= bytes; at += sizeof(std::uint32_t)) {
            const std::uint32_t word = sourceWord((offset + at) / sizeof(word));
            std::memcpy(to + at, &word, sizeof(word));
        }
    }
    while (at < bytes) {
        const std::size_t skip = (offset + at) % sizeof(std::uint32_t);
        const std::uint32_t word = sourceWord((offset + at) / sizeof(word));
        const std::size_t count = std::min(sizeof(word) - skip, bytes - at);
        std::memcpy(to + at, reinterpret_cast<const char*>(&word) + skip, count);
        at += count;
    }
}

bool holdsSource(const std::byte* at, std::size_t offset, std::size_t bytes)
{
    std::byte expected[4096];
    for (std::size_t done = 0; done < bytes; done += sizeof(expected)) {
        const std::size_t count = std::min(sizeof(expected), bytes - done);
        fillSource(expected, offset + done, count);
        if (std::memcmp(at + done, expected, count) != 0)
            return false;
    }
    return true;
}

std::uint64_t byteSum(const std::byte* at, std::size_t bytes)
{
    std::uint64_t sum = 0;
    for (std::size_t done = 0; done < bytes; done += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, at + done, std::min(sizeof(word), bytes - done));
        sum = sum * 3 + word; // odd: the order counts
    }
    return sum;
}

WorkFunction workKernel()
{
    return workKernels().back();
}

Check checkTransferKernels()
{
    Check check({1e-3, 3e-6});
    for (const std::size_t bytes : {4u, 60u, 512u, 4100u}) {
        std::vector<std::byte> chunk(bytes);
        fillSource(chunk.data(), 12, bytes);
        for (const unsigned rounds : {0u, 1u, 16u}) {
            double expected = 0;
            for (std::size_t at = 0; at < bytes; at += sizeof(float)) {
                float x = 0;
                std::memcpy(&x, chunk.data() + at, sizeof(x));
                expected += 0.5 + (double(x) - 0.5) * std::pow(0.5, rounds);
            }
            for (const WorkFunction work : workKernels())
                check.compare(bytes, double(work(chunk.data(), bytes, rounds)), expected);
        }
        check.require(bytes, holdsSource(chunk.data(), 12, bytes), "the source is another when it is read");
        chunk[bytes / 2] ^= std::byte{1};
        check.require(bytes, !holdsSource(chunk.data(), 12, bytes), "a wrong byte is not noticed");
    }
    return check;
}

} // namespace memscape::host
