// SPDX-License-Identifier: Apache-2.0
// Deterministic random numbers: the same seed gives the same addresses on every machine and
// compiler, so a random pattern can be named in a record and drawn again. The generator is
// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
#pragma once

#include <cstdint>

namespace memscape {

class SplitMix64
{
public:
    explicit SplitMix64(std::uint64_t seed)
        : m_state(seed)
    { }

    std::uint64_t next()
    {
        m_state += 0x9e3779b97f4a7c15u; // 2^64 / golden ratio, odd
        std::uint64_t z = m_state;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /// Uniform in [0, bound), bound > 0, without modulo bias: values past the last whole multiple
    /// of `bound` are drawn again.
    std::uint64_t below(std::uint64_t bound)
    {
        const std::uint64_t biased = (0 - bound) % bound; // 2^64 mod bound
        std::uint64_t value = next();
        while (value < biased)
            value = next();
        return value % bound;
    }

private:
    std::uint64_t m_state;
};

} // namespace memscape
