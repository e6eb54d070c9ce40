// SPDX-License-Identifier: Apache-2.0
// Device helpers that all kernels share: whole-word loads and stores (a struct of 16 aligned bytes
// must become one 16-byte instruction, so it is said as uint4), timers, the sum of a block.
#pragma once

#include "kernels/cuda/common/plan.h"

namespace memscape::cuda {

template <typename Word> __device__ __forceinline__ Word load(const Word* at)
{
    return *at;
}
template <> __device__ __forceinline__ Word8 load<Word8>(const Word8* at)
{
    const uint2 v = *reinterpret_cast<const uint2*>(at);
    return Word8{v.x, v.y};
}
template <> __device__ __forceinline__ Word16 load<Word16>(const Word16* at)
{
    const uint4 v = *reinterpret_cast<const uint4*>(at);
    return Word16{v.x, v.y, v.z, v.w};
}

template <typename Word> __device__ __forceinline__ void store(Word* at, Word word)
{
    *at = word;
}
template <> __device__ __forceinline__ void store<Word8>(Word8* at, Word8 word)
{
    *reinterpret_cast<uint2*>(at) = make_uint2(word.a, word.b);
}
template <> __device__ __forceinline__ void store<Word16>(Word16* at, Word16 word)
{
    *reinterpret_cast<uint4*>(at) = make_uint4(word.a, word.b, word.c, word.d);
}

/// A type as a value, for withWord().
template <typename Word> struct WordTag
{
    using Type = Word;
};

/// visit(WordTag<Word>{}) for the word of so many bytes; `otherwise` when there is none.
template <typename Answer, typename Visit> Answer withWord(int bytes, Answer otherwise, const Visit& visit)
{
    switch (bytes) {
    case 1: return visit(WordTag<std::uint8_t>{});
    case 2: return visit(WordTag<std::uint16_t>{});
    case 4: return visit(WordTag<std::uint32_t>{});
    case 8: return visit(WordTag<Word8>{});
    case 16: return visit(WordTag<Word16>{});
    default: return otherwise;
    }
}

__device__ __forceinline__ unsigned long long globalTimer()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/// Where a reading kernel leaves what it read. Checked: every warp adds its part to `sum`. Timed: a
/// lane stores only if it holds `rare`, a value the compiler does not know, so it must keep the
/// loads.
struct Sink
{
    std::uint32_t* sum;
    std::uint32_t rare;
    bool checked;
};

__device__ __forceinline__ void keep(std::uint32_t value, const Sink& sink)
{
    if (sink.checked) {
        for (int distance = lanesPerWarp / 2; distance > 0; distance /= 2)
            value += __shfl_down_sync(0xffffffffU, value, distance);
        if (threadIdx.x % lanesPerWarp == 0)
            atomicAdd(sink.sum, value);
    } else if (value == sink.rare) {
        *sink.sum = value;
    }
}

/// The sink of a launch: `sum` null means timed; the stores that never happen then go to `spare`.
inline Sink sinkOf(std::uint32_t* sum, const void* spare)
{
    auto* never = static_cast<std::uint32_t*>(const_cast<void*>(spare));
    return Sink{sum != nullptr ? sum : never, 0x9d2c5681U, sum != nullptr};
}

} // namespace memscape::cuda
