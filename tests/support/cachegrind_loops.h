// SPDX-License-Identifier: Apache-2.0
// The loops that the cache simulator is compared with cachegrind on, written once for both sides: a
// loop asks a Memory for its reads and writes. Real memory does them (cachegrind_loops.cpp, run
// under Valgrind), a recording one passes the same addresses on to the simulator.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace memscape::loops {

/// Where the program's three arrays begin.
struct Arrays
{
    std::uint64_t a = 0, b = 0, c = 0;
};

inline constexpr std::uint64_t arrayBytes = std::uint64_t(48) << 20;

/// A 1024 × 1024 matrix of floats, along its rows.
template <typename Memory> void rows(Memory& memory, Arrays at)
{
    for (std::uint64_t row = 0; row < 1024; ++row)
        for (std::uint64_t column = 0; column < 1024; ++column)
            memory.template read<float>(at.a + (row * 1024 + column) * 4);
}

/// The same matrix along its columns: 4 KiB between neighbours.
template <typename Memory> void columns(Memory& memory, Arrays at)
{
    for (std::uint64_t column = 0; column < 1024; ++column)
        for (std::uint64_t row = 0; row < 1024; ++row)
            memory.template read<float>(at.a + (row * 1024 + column) * 4);
}

/// Two passes over 40 MiB, a double every 72 bytes from byte 4 on: some lie across two lines.
template <typename Memory> void strided(Memory& memory, Arrays at)
{
    for (int pass = 0; pass < 2; ++pass)
        for (std::uint64_t byte = 4; byte + 8 <= std::uint64_t(40) << 20; byte += 72)
            memory.template read<double>(at.a + byte);
}

/// b[i] = c[index[i]] with random indices into 4 MiB; the index array is filled first.
template <typename Memory> void gather(Memory& memory, Arrays at)
{
    const std::uint64_t count = 1 << 18, elements = 1 << 20;
    const auto index = [](std::uint64_t i) {
        std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        return std::uint32_t((z ^ (z >> 29)) % elements);
    };
    for (std::uint64_t i = 0; i < count; ++i)
        memory.write(at.a + i * 4, index(i));
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint32_t chosen = memory.read(at.a + i * 4, index(i));
        memory.write(at.b + i * 4, memory.template read<float>(at.c + std::uint64_t(chosen) * 4));
    }
}

/// b = a over 8 MiB of doubles.
template <typename Memory> void copy(Memory& memory, Arrays at)
{
    for (std::uint64_t i = 0; i < 1 << 20; ++i)
        memory.write(at.b + i * 8, memory.template read<double>(at.a + i * 8));
}

/// a = b + 3 c over 4 MiB of doubles each.
template <typename Memory> void triad(Memory& memory, Arrays at)
{
    for (std::uint64_t i = 0; i < 1 << 19; ++i) {
        const double b = memory.template read<double>(at.b + i * 8);
        memory.write(at.a + i * 8, b + 3 * memory.template read<double>(at.c + i * 8));
    }
}

/// b = transposed a, 512 × 512 doubles: rows 4 KiB apart fall into few sets.
template <typename Memory> void transpose(Memory& memory, Arrays at)
{
    for (std::uint64_t row = 0; row < 512; ++row)
        for (std::uint64_t column = 0; column < 512; ++column)
            memory.write(at.b + (column * 512 + row) * 8,
                         memory.template read<double>(at.a + (row * 512 + column) * 8));
}

/// x += 1 in 2^17 structures of six floats, twice.
template <typename Memory> void field(Memory& memory, Arrays at)
{
    for (int pass = 0; pass < 2; ++pass)
        for (std::uint64_t i = 0; i < 1 << 17; ++i) {
            const std::uint64_t x = at.a + i * 24 + 8;
            memory.write(x, memory.template read<float>(x) + 1);
        }
}

/// c = a · b for 160 × 160 floats, in blocks of 20 columns, the three matrices side by side. One
/// level of blocking only: with more, variables no longer fit into registers, and a variable on the
/// stack is one more line that cachegrind sees.
template <typename Memory> void product(Memory& memory, Arrays at)
{
    constexpr std::uint64_t row = 160 * 4, block = 20 * 4, matrix = 160 * row; // bytes
    const std::uint64_t base = at.a;
    for (std::uint64_t column = 0; column < row; column += block)
        for (std::uint64_t start = 0; start < matrix; start += row)
            for (std::uint64_t x = column; x < column + block; x += 4) {
                float sum = 0;
                for (std::uint64_t k = 0; k < row; k += 4)
                    sum += memory.template read<float>(base + start + k)
                        * memory.template read<float>(base + matrix + k * (row / 4) + x);
                memory.write(base + 2 * matrix + start + x, sum);
            }
}

/// b = the mean of a's four neighbours, inside 700 × 700 floats.
template <typename Memory> void stencil(Memory& memory, Arrays at)
{
    const std::uint64_t n = 700;
    for (std::uint64_t row = 1; row < n - 1; ++row)
        for (std::uint64_t column = 1; column < n - 1; ++column) {
            const std::uint64_t here = at.a + (row * n + column) * 4;
            const float above = memory.template read<float>(here - n * 4);
            const float left = memory.template read<float>(here - 4);
            const float right = memory.template read<float>(here + 4);
            const float below = memory.template read<float>(here + n * 4);
            memory.write(at.b + (row * n + column) * 4, (above + left + right + below) / 4);
        }
}

template <typename Memory> struct Loop
{
    std::string_view name;
    void (*run)(Memory&, Arrays);
};

template <typename Memory> constexpr std::array<Loop<Memory>, 10> all()
{
    return {{{"rows", rows<Memory>},
             {"columns", columns<Memory>},
             {"strided", strided<Memory>},
             {"gather", gather<Memory>},
             {"copy", copy<Memory>},
             {"triad", triad<Memory>},
             {"transpose", transpose<Memory>},
             {"field", field<Memory>},
             {"product", product<Memory>},
             {"stencil", stencil<Memory>}}};
}

} // namespace memscape::loops
