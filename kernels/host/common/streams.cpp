// SPDX-License-Identifier: Apache-2.0
// How many bytes a second does a core move when it reads or writes them in order? Four operations, each
// in versions from naive to best:
//
//   v1  one 8-byte word a turn: teaches that the core, not the memory, can be the limit
//   v2  one vector a turn (SSE2, AVX2, AVX-512, chosen when the program runs): fewer instructions,
//       but each turn waits for the accumulator of the last
//   v3  four vectors a turn, each with its own accumulator: enough independent loads in flight
//   v4  four vectors a turn stored past the caches (non-temporal), for write, copy and triad: teaches
//       what write-allocate costs, since an ordinary store first reads the line that it overwrites
//
// Bytes are counted as the program names them (STREAM's convention): copy counts what it reads and what
// it writes, triad three arrays; the line that write-allocate fetches is not counted, so a copy at the
// memory's limit shows two thirds of it in v3 and all of it in v4.
//
// Left out: hardware prefetcher settings, other sizes of pages, streams of several arrays in one loop.
#include "kernels/host/common/streams.h"

#include "kernels/host/common/permutation.h"

#include <cstring>

#include <fmt/format.h>

namespace memscape::host {

// --- Reference: words one by one, sums in integers, triad in doubles that are whole numbers -------

namespace {

std::uint64_t referenceRead(const std::vector<std::uint64_t>& a, std::size_t words)
{
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words; ++i)
        sum ^= a[i];
    return sum;
}

/// What a[i] must be afterwards.
std::uint64_t referenceWord(Operation operation, std::uint64_t b, std::uint64_t c)
{
    if (operation == Operation::Write)
        return streamFill;
    if (operation == Operation::Copy)
        return b;
    double x = 0, y = 0;
    std::memcpy(&x, &b, sizeof(x));
    std::memcpy(&y, &c, sizeof(y));
    const double sum = x + 3.0 * y; // whole numbers below 2^53: exact with and without fused multiply
    std::uint64_t word = 0;
    std::memcpy(&word, &sum, sizeof(word));
    return word;
}

// --- Kernels --------------------------------------------------------------------------------------

using Double = double __attribute__((aligned(1), may_alias));

std::uint64_t read_v1(const StreamSlice& s, std::size_t repeats)
{
    std::uint64_t sum = 0;
    for (; repeats > 0; --repeats) {
        for (std::size_t i = 0; i < s.bytes; i += 8) {
            sum ^= *reinterpret_cast<const Word*>(s.a + i);
            asm("" : "+r"(sum)); // keeps it one word a turn
        }
        memoryBarrier();
    }
    return sum;
}

std::uint64_t write_v1(const StreamSlice& s, std::size_t repeats)
{
    for (; repeats > 0; --repeats) {
        for (std::size_t i = 0; i < s.bytes; i += 8) {
            *reinterpret_cast<Word*>(s.a + i) = streamFill;
            memoryBarrier(); // else it becomes a call of memset
        }
    }
    return 0;
}

std::uint64_t copy_v1(const StreamSlice& s, std::size_t repeats)
{
    for (; repeats > 0; --repeats) {
        for (std::size_t i = 0; i < s.bytes; i += 8) {
            *reinterpret_cast<Word*>(s.a + i) = *reinterpret_cast<const Word*>(s.b + i);
            memoryBarrier(); // else it becomes a call of memcpy
        }
    }
    return 0;
}

std::uint64_t triad_v1(const StreamSlice& s, std::size_t repeats)
{
    for (; repeats > 0; --repeats) {
        for (std::size_t i = 0; i < s.bytes; i += 8) {
            *reinterpret_cast<Double*>(s.a + i) =
                *reinterpret_cast<const Double*>(s.b + i) + 3.0 * *reinterpret_cast<const Double*>(s.c + i);
            memoryBarrier();
        }
    }
    return 0;
}

/// v2 and v3 of read: `InFlight` vectors a turn.
template <typename W, int InFlight> MEMSCAPE_INLINE std::uint64_t readWide(const StreamSlice& s, std::size_t repeats)
{
    using V = typename W::Words;
    constexpr std::size_t step = sizeof(V) * InFlight;
    const std::size_t whole = s.bytes / step * step;
    V sums[InFlight] = {};
    std::uint64_t rest = 0;
    for (; repeats > 0; --repeats) {
        for (std::size_t i = 0; i < whole; i += step) {
#pragma GCC unroll 4
            for (int k = 0; k < InFlight; ++k)
                sums[k] ^= *reinterpret_cast<const V*>(s.a + i + k * sizeof(V));
        }
        for (std::size_t i = whole; i < s.bytes; i += 8)
            rest ^= *reinterpret_cast<const Word*>(s.a + i);
        memoryBarrier();
    }
    for (int k = 0; k < InFlight; ++k) {
        for (std::size_t lane = 0; lane < sizeof(V) / 8; ++lane)
            rest ^= sums[k][lane];
    }
    return rest;
}

// A store past the caches. A macro, because a function template over V would lose its alignment.
#if defined(__clang__)
#define MEMSCAPE_STORE_PAST(to, value) __builtin_nontemporal_store(value, to)
#elif MEMSCAPE_X86
#define MEMSCAPE_STORE_PAST(to, value)                                                                                 \
    if constexpr (sizeof(value) == 16)                                                                                 \
        asm volatile("movntdq %1, %0" : "=m"(*(to)) : "x"(value));                                                     \
    else if constexpr (sizeof(value) == 32)                                                                            \
        asm volatile("vmovntdq %1, %0" : "=m"(*(to)) : "x"(value));                                                    \
    else                                                                                                               \
        asm volatile("vmovntdq %1, %0" : "=m"(*(to)) : "v"(value))
#else
#define MEMSCAPE_STORE_PAST(to, value) *(to) = (value)
#endif

/// v2 to v4 of the operations that store. Slices start on a line where `Past` is set.
template <typename W, int InFlight, Operation operation, bool Past>
MEMSCAPE_INLINE std::uint64_t storeWide(const StreamSlice& s, std::size_t repeats)
{
    using V = typename W::Words;
    using D = typename W::Doubles;
    constexpr std::size_t step = sizeof(V) * InFlight;
    const std::size_t whole = s.bytes / step * step;
    const V fill = V{} + streamFill;
    for (; repeats > 0; --repeats) {
        for (std::size_t i = 0; i < whole; i += step) {
#pragma GCC unroll 4
            for (int k = 0; k < InFlight; ++k) {
                const std::size_t at = i + k * sizeof(V);
                if constexpr (operation == Operation::Triad) {
                    D* const to = reinterpret_cast<D*>(s.a + at);
                    const D sum = *reinterpret_cast<const D*>(s.b + at) + 3.0 * *reinterpret_cast<const D*>(s.c + at);
                    if constexpr (Past) {
                        MEMSCAPE_STORE_PAST(to, sum);
                    } else {
                        *to = sum;
                    }
                } else {
                    V* const to = reinterpret_cast<V*>(s.a + at);
                    V value = fill;
                    if constexpr (operation == Operation::Copy)
                        value = *reinterpret_cast<const V*>(s.b + at);
                    if constexpr (Past) {
                        MEMSCAPE_STORE_PAST(to, value);
                    } else {
                        *to = value;
                    }
                }
            }
            memoryBarrier();
        }
        StreamSlice rest = s;
        rest.a += whole;
        rest.b = s.b ? s.b + whole : nullptr;
        rest.c = s.c ? s.c + whole : nullptr;
        rest.bytes -= whole;
        if constexpr (operation == Operation::Write)
            write_v1(rest, 1);
        else if constexpr (operation == Operation::Copy)
            copy_v1(rest, 1);
        else
            triad_v1(rest, 1);
    }
#if MEMSCAPE_X86
    if constexpr (Past)
        asm volatile("sfence" ::: "memory");
#endif
    return 0;
}

template <typename W, int InFlight, Operation operation, bool Past>
MEMSCAPE_INLINE std::uint64_t streamWide(const StreamSlice& s, std::size_t repeats)
{
    if constexpr (operation == Operation::Read)
        return readWide<W, InFlight>(s, repeats);
    else
        return storeWide<W, InFlight, operation, Past>(s, repeats);
}

// --- Launchers: one instance per vector width, each compiled for its instruction set --------------

template <int InFlight, Operation operation, bool Past>
std::uint64_t stream16(const StreamSlice& s, std::size_t repeats)
{
    return streamWide<Simd16, InFlight, operation, Past>(s, repeats);
}

#if MEMSCAPE_X86
template <int InFlight, Operation operation, bool Past>
MEMSCAPE_AVX2 std::uint64_t stream32(const StreamSlice& s, std::size_t repeats)
{
    return streamWide<Simd32, InFlight, operation, Past>(s, repeats);
}

template <int InFlight, Operation operation, bool Past>
MEMSCAPE_AVX512 std::uint64_t stream64(const StreamSlice& s, std::size_t repeats)
{
    return streamWide<Simd64, InFlight, operation, Past>(s, repeats);
}
#endif

template <int InFlight, Operation operation, bool Past> StreamFunction functionFor(Isa isa)
{
#if MEMSCAPE_X86
    if (isa == Isa::Bytes64)
        return stream64<InFlight, operation, Past>;
    if (isa == Isa::Bytes32)
        return stream32<InFlight, operation, Past>;
#endif
    return isa == Isa::Bytes16 ? stream16<InFlight, operation, Past> : nullptr;
}

template <Operation operation> std::vector<StreamKernel> kernelsOf(StreamFunction naive)
{
    std::vector<StreamKernel> kernels{{operation, 1, Isa::Scalar, naive}};
    for (const Isa isa : {Isa::Bytes16, Isa::Bytes32, Isa::Bytes64}) {
        if (!hasIsa(isa))
            continue;
        kernels.push_back({operation, 2, isa, functionFor<1, operation, false>(isa)});
        kernels.push_back({operation, 3, isa, functionFor<4, operation, false>(isa)});
        if (operation != Operation::Read && MEMSCAPE_X86)
            kernels.push_back({operation, 4, isa, functionFor<4, operation, true>(isa)});
    }
    return kernels;
}

} // namespace

std::vector<StreamKernel> streamKernels(Operation operation)
{
    switch (operation) {
    case Operation::Read: return kernelsOf<Operation::Read>(read_v1);
    case Operation::Write: return kernelsOf<Operation::Write>(write_v1);
    case Operation::Copy: return kernelsOf<Operation::Copy>(copy_v1);
    case Operation::Triad: return kernelsOf<Operation::Triad>(triad_v1);
    }
    return {};
}

StreamKernel bestStream(Operation operation)
{
    StreamKernel best;
    for (const StreamKernel& kernel : streamKernels(operation)) {
        if (kernel.version <= 3)
            best = kernel;
    }
    return best;
}

std::string StreamKernel::name() const
{
    return fmt::format("stream {} v{} {}", operationText(operation), version, isaText(isa));
}

// --- Checks ---------------------------------------------------------------------------------------

Check checkStream(const StreamKernel& kernel)
{
    constexpr std::uint64_t poison = 0xdeadbeefdeadbeefu;
    constexpr std::size_t guard = 8; // words on both sides that must stay poisoned; one line
    Check check;
    std::uint64_t seed = 7;
    for (const std::size_t words : {1u, 2u, 3u, 7u, 8u, 31u, 32u, 33u, 100u, 1023u, 4096u}) {
        const std::size_t all = words + 2 * guard;
        // One line more, so that the arrays can start on a line as those of a measurement do.
        std::vector<std::uint64_t> memory(3 * (all + 16), poison);
        std::uint64_t* arrays[3];
        for (std::size_t k = 0; k < 3; ++k) {
            const auto address = reinterpret_cast<std::uintptr_t>(memory.data() + k * (all + 16));
            arrays[k] = reinterpret_cast<std::uint64_t*>((address + 63) / 64 * 64) + guard;
            for (std::size_t i = 0; k > 0 && i < words; ++i) {
                const auto whole = static_cast<double>(nextRandom(seed) >> 20);
                std::memcpy(&arrays[k][i], &whole, sizeof(whole));
            }
        }
        const bool reads = kernel.operation == Operation::Read;
        const StreamSlice slice{reinterpret_cast<std::byte*>(arrays[reads ? 1 : 0]),
                                reinterpret_cast<const std::byte*>(arrays[1]),
                                reinterpret_cast<const std::byte*>(arrays[2]), words * 8};
        const std::uint64_t sum = kernel.run(slice, 1);
        if (reads) {
            const std::vector<std::uint64_t> copy(arrays[1], arrays[1] + words);
            check.require(words, sum == referenceRead(copy, words), "wrong sum of what was read");
            continue;
        }
        for (std::size_t i = 0; i < words; ++i)
            check.require(i, arrays[0][i] == referenceWord(kernel.operation, arrays[1][i], arrays[2][i]),
                          "wrong word stored");
        for (std::size_t i = 0; i < guard; ++i)
            check.require(i, arrays[0][-1 - static_cast<std::ptrdiff_t>(i)] == poison && arrays[0][words + i] == poison,
                          "stored outside the array");
    }
    return check;
}

} // namespace memscape::host
