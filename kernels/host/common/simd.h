// SPDX-License-Identifier: Apache-2.0
// Vectors of 16, 32 and 64 bytes and the choice among them at run time. A kernel template is written
// once over a vector type and instantiated inside a function that carries the instruction set as a
// target attribute, so the program itself still runs on any x86-64; on other machines the 16-byte
// vectors of the compiler (NEON) are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#if defined(__x86_64__)
#define MEMSCAPE_X86 1
#define MEMSCAPE_AVX2 __attribute__((target("avx2")))
#define MEMSCAPE_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw")))
#else
#define MEMSCAPE_X86 0
#endif
/// Templates over vectors must be inlined into the function that carries the target.
#define MEMSCAPE_INLINE [[gnu::always_inline]] inline

namespace memscape::host {

enum class Isa { Scalar, Bytes16, Bytes32, Bytes64 };

/// The widest that this processor runs.
Isa widestIsa();
bool hasIsa(Isa isa);
std::string isaText(Isa isa); ///< "scalar", "SSE2", "AVX2", "AVX-512", "NEON"

/// A vector width. Its types may be loaded from any address and alias anything, as memory is here;
/// they hang off a structure because a template argument would lose those attributes.
struct Simd16
{
    using Words = std::uint64_t __attribute__((vector_size(16), aligned(1), may_alias));
    using Doubles = double __attribute__((vector_size(16), aligned(1), may_alias));
    using Floats = float __attribute__((vector_size(16), aligned(1), may_alias));
    using Ints = std::int32_t __attribute__((vector_size(16), aligned(1), may_alias));
};
struct Simd32
{
    using Words = std::uint64_t __attribute__((vector_size(32), aligned(1), may_alias));
    using Doubles = double __attribute__((vector_size(32), aligned(1), may_alias));
    using Floats = float __attribute__((vector_size(32), aligned(1), may_alias));
    using Ints = std::int32_t __attribute__((vector_size(32), aligned(1), may_alias));
};
struct Simd64
{
    using Words = std::uint64_t __attribute__((vector_size(64), aligned(1), may_alias));
    using Doubles = double __attribute__((vector_size(64), aligned(1), may_alias));
    using Floats = float __attribute__((vector_size(64), aligned(1), may_alias));
    using Ints = std::int32_t __attribute__((vector_size(64), aligned(1), may_alias));
};
using Word = std::uint64_t __attribute__((aligned(1), may_alias));

/// Nothing before it is forgotten and nothing after it is known; no instruction.
MEMSCAPE_INLINE void memoryBarrier()
{
    asm volatile("" ::: "memory");
}

} // namespace memscape::host
