// SPDX-License-Identifier: Apache-2.0
// Sixteen bytes that are compared with one byte at once, and moved as the front of a queue is: the metadata of a set of
// a simulated cache (packed_sets.h).
//
// x86-64 always has SSE2. The other form works on two words; a byte is found equal there by the
// carry trick of "Determine if a word has a byte equal to n" (S. E. Anderson, Bit Twiddling Hacks),
// which may wrongly report a byte above an equal one: so do fingerprints, and the caller compares
// lines.
#pragma once

#include <array>
#include <cstdint>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace memscape {

/// In two words, byte 0 lowest: on any machine.
class FingerprintWords
{
public:
    /// Bit i: byte i may equal `print`. Every equal byte is reported.
    unsigned equalTo(std::uint64_t print) const
    {
        return bitsOf(m_low ^ print * everyByte) | bitsOf(m_high ^ print * everyByte) << 8;
    }
    /// `print` in front of all, the last one lost.
    FingerprintWords pushed(std::uint64_t print) const { return {m_low << 8 | print, m_high << 8 | m_low >> 56}; }
    /// The byte at `position` moved to the front, where it is `print`; those before it one back.
    FingerprintWords moved(std::uint64_t print, unsigned position) const
    {
        const FingerprintWords all = pushed(print);
        const unsigned shift = (position & 7) * 8;
        const std::uint64_t upTo = (std::uint64_t(256) << shift) - 1; // 256 << 56 is 0
        if (position < 8)
            return {(m_low & ~upTo) | (all.m_low & upTo), m_high};
        return {all.m_low, (m_high & ~upTo) | (all.m_high & upTo)};
    }

    FingerprintWords() = default;
    static FingerprintWords load(const std::uint64_t* words) { return {words[0], words[1]}; }
    void store(std::uint64_t* words) const
    {
        words[0] = m_low;
        words[1] = m_high;
    }

private:
    FingerprintWords(std::uint64_t low, std::uint64_t high)
        : m_low(low)
        , m_high(high)
    { }
    static constexpr std::uint64_t everyByte = 0x0101010101010101;

    static unsigned bitsOf(std::uint64_t difference)
    {
        const std::uint64_t zeros = (difference - everyByte) & ~difference & everyByte << 7;
        return unsigned((zeros >> 7) * 0x0102040810204080 >> 56);
    }

    std::uint64_t m_low = 0, m_high = 0;
};

#ifdef __SSE2__
/// The same in one register.
class FingerprintRegister
{
public:
    unsigned equalTo(std::uint64_t print) const
    {
        const __m128i all = _mm_set1_epi32(int(std::uint32_t(print) * 0x01010101u));
        return unsigned(_mm_movemask_epi8(_mm_cmpeq_epi8(m_bytes, all)));
    }
    FingerprintRegister pushed(std::uint64_t print) const
    {
        return {_mm_or_si128(_mm_slli_si128(m_bytes, 1), _mm_cvtsi64_si128(std::int64_t(print)))};
    }
    FingerprintRegister moved(std::uint64_t print, unsigned position) const
    {
        static constexpr std::array<std::uint8_t, 32> upTo = {255, 255, 255, 255, 255, 255, 255, 255,
                                                              255, 255, 255, 255, 255, 255, 255, 255};
        const __m128i mask = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&upTo[15 - position]));
        const __m128i changed = _mm_xor_si128(m_bytes, pushed(print).m_bytes);
        return {_mm_xor_si128(m_bytes, _mm_and_si128(changed, mask))};
    }

    FingerprintRegister() = default;
    static FingerprintRegister load(const std::uint64_t* words) ///< two, at a multiple of 16 bytes
    {
        return {_mm_load_si128(reinterpret_cast<const __m128i*>(words))};
    }
    void store(std::uint64_t* words) const { _mm_store_si128(reinterpret_cast<__m128i*>(words), m_bytes); }

private:
    FingerprintRegister(__m128i bytes)
        : m_bytes(bytes)
    { }
    __m128i m_bytes = _mm_setzero_si128();
};
using Fingerprints = FingerprintRegister;
#else
using Fingerprints = FingerprintWords;
#endif

} // namespace memscape
