// SPDX-License-Identifier: Apache-2.0
// mma.sync in TF32, FP8, INT8 and FP64. Fragments are unpacked element by element as the ISA's pictures number
// them (a_i, b_i, c_i), and numbers read by their definitions, not by what the kernels use.
#include "tests/support/warp_emulator_block.h"

#include <bit>
#include <cmath>

namespace memscape::emulated {

using cuda::TensorFormat;

namespace {

double fp8(std::uint8_t bits, int mantissaBits, int bias)
{
    const int exponent = (bits & 0x7f) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
    const double sign = bits < 0x80 ? 1 : -1;
    return exponent == 0 ? sign * std::ldexp(mantissa, 1 - bias - mantissaBits)
                         : sign * std::ldexp(mantissa + (1 << mantissaBits), exponent - bias - mantissaBits);
}

/// Element `i` of a register.
double element(TensorFormat format, std::uint32_t word, int i)
{
    if (format == TensorFormat::Tf32) // tensor cores see the upper 19 bits
        return double(std::bit_cast<float>(word & ~0x1fffU));
    const auto bits = std::uint8_t(word >> (8 * i));
    if (format == TensorFormat::Int8)
        return double(std::int8_t(bits));
    return format == TensorFormat::E5M2 ? fp8(bits, 2, 15) : fp8(bits, 3, 7);
}

} // namespace

void Machine::multiplyFormat(TensorFormat format, void* d, const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1)
{
    Brought brought;
    brought.meeting = Meeting::MultiplyFormat;
    brought.format = format;
    brought.numbers = d;
    brought.a = a;
    brought.b[0] = b0;
    brought.b[1] = b1;
    m_block.meet(m_thread, brought);
}

void Machine::multiplyDoubles(double (&d)[2], double a, double b)
{
    Brought brought;
    brought.meeting = Meeting::MultiplyDoubles;
    brought.numbers = d;
    brought.left = a;
    brought.right = b;
    m_block.meet(m_thread, brought);
}

/// m16n8k8 of TF32, m16n8k32 of bytes. TF32: a_i at row g (+ 8 for odd i), column p (+ 4 from i = 2 on). Bytes:
/// a_i at row g (+ 8 for i in 4…7 and 12…15), column 4 p + i mod 4 (+ 16 from i = 8 on).
void Block::multiplyFormat(int warp)
{
    const TensorFormat format = m_threads[std::size_t(warp * lanes)].brought.format;
    const TensorFormat right = format == TensorFormat::E5M2 ? TensorFormat::E4M3 : format;
    const int perWord = format == TensorFormat::Tf32 ? 1 : 4, depth = 8 * perWord;
    double a[16][32], b[32][8];
    for (int lane = 0; lane < lanes; ++lane) {
        const Brought& in = m_threads[std::size_t(warp * lanes + lane)].brought;
        const int g = lane >> 2, p = lane & 3;
        for (int i = 0; i < 4 * perWord; ++i) {
            const bool isLower = perWord == 1 ? i % 2 == 1 : (i / 4) % 2 == 1;
            const bool isRight = perWord == 1 ? i >= 2 : i >= 8;
            a[g + (isLower ? 8 : 0)][p * perWord + i % perWord + (isRight ? depth / 2 : 0)] =
                element(format, in.a[i / perWord], i % perWord);
        }
        for (int i = 0; i < 2 * perWord; ++i)
            b[p * perWord + i % perWord + (i >= perWord ? depth / 2 : 0)][g] =
                element(right, in.b[i / perWord], i % perWord);
    }
    for (int lane = 0; lane < lanes; ++lane) {
        void* numbers = m_threads[std::size_t(warp * lanes + lane)].brought.numbers;
        for (int r = 0; r < 4; ++r) {
            double sum = 0;
            for (int k = 0; k < depth; ++k)
                sum += a[(lane >> 2) + (r < 2 ? 0 : 8)][k] * b[k][((lane & 3) << 1) + (r & 1)];
            if (format == TensorFormat::Int8)
                static_cast<std::int32_t*>(numbers)[r] += std::int32_t(sum);
            else
                static_cast<float*>(numbers)[r] = float(double(static_cast<float*>(numbers)[r]) + sum);
        }
    }
    m_count.products += format == TensorFormat::Int8 && launch.isTuring ? 4U : 1U;
}

/// m8n8k4: a_0 at row g, column p; b_0 at row p, column g; c_i at row g, column 2 p + i.
void Block::multiplyDoubles(int warp)
{
    double a[8][4], b[4][8];
    for (int lane = 0; lane < lanes; ++lane) {
        const Brought& in = m_threads[std::size_t(warp * lanes + lane)].brought;
        a[lane >> 2][lane & 3] = in.left;
        b[lane & 3][lane >> 2] = in.right;
    }
    for (int lane = 0; lane < lanes; ++lane) {
        auto* sums = static_cast<double*>(m_threads[std::size_t(warp * lanes + lane)].brought.numbers);
        for (int i = 0; i < 2; ++i) {
            for (int k = 0; k < 4; ++k)
                sums[i] += a[lane >> 2][k] * b[k][((lane & 3) << 1) + i];
        }
    }
    ++m_count.products;
}

} // namespace memscape::emulated
