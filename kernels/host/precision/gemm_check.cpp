// SPDX-License-Identifier: Apache-2.0
// A product in any format against sums in double of the rounded operands.
#include "kernels/host/precision/gemm.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <array>
#include <cstring>

namespace memscape::host {

namespace {

/// Numbers that the format holds exactly, as their bytes; INT8 from −127 to 127, others in ±1.
class Matrix
{
public:
    Matrix(Format format, std::int64_t rows, std::int64_t stride, std::uint64_t seed)
        : m_format(numberFormat(format))
        , m_bytes(std::size_t(rows * stride * m_format.bytes))
    {
        for (std::size_t i = 0; i < std::size_t(rows * stride); ++i) {
            const double scale = m_format.isInteger() ? 127 : 1;
            const std::uint64_t bits = encode(m_format, double(mlpUniform(seed, i)) * scale);
            m_values.push_back(decode(m_format, bits));
            std::memcpy(m_bytes.data() + i * std::size_t(m_format.bytes), &bits,
                        std::size_t(m_format.bytes)); // little-endian
        }
    }
    const void* data() const { return m_bytes.data(); }
    double operator[](std::int64_t i) const { return m_values[std::size_t(i)]; }

private:
    const NumberFormat& m_format;
    std::vector<std::byte> m_bytes;
    std::vector<double> m_values;
};

double elementOf(const std::byte* at, const GemmTask& task)
{
    if (task.operands == Format::Int8) {
        std::int32_t value = 0;
        std::memcpy(&value, at, 4);
        return value;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, at, std::size_t(numberFormat(task.result).bytes));
    return decode(numberFormat(task.result), bits);
}

/// Of one product; the tolerance of a short result is half its last place.
void compareGemm(Check& check, GemmPlan& plan, const GemmTask& task)
{
    const auto& [m, n, k] = task.shape;
    const Matrix a(task.operands, task.aTransposed ? k : m, task.aStride, 11);
    const Matrix b(task.operands, task.bTransposed ? n : k, task.bStride, 12);
    const auto width = std::size_t(resultBytes(task));
    std::vector<std::byte> c(std::size_t(m * task.cStride) * width, std::byte(0xff));
    plan.run(a.data(), b.data(), c.data());
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t l = 0; l < k; ++l)
                sum += a[task.aTransposed ? l * task.aStride + i : i * task.aStride + l]
                    * b[task.bTransposed ? j * task.bStride + l : l * task.bStride + j];
            const std::size_t at = std::size_t(i * task.cStride + j);
            check.compare(at, elementOf(c.data() + at * width, task), sum);
        }
        for (std::int64_t j = n; j < task.cStride; ++j) {
            const std::byte* guard = c.data() + std::size_t(i * task.cStride + j) * width;
            check.require(std::size_t(i * task.cStride + j),
                          std::all_of(guard, guard + width, [](std::byte byte) { return byte == std::byte(0xff); }),
                          "written right of the last column");
        }
    }
}

/// Half a last place of a result that is rounded once, and what sums in FP32 add.
Tolerance toleranceOf(Format operands, Format result)
{
    if (operands == Format::Int8)
        return Tolerance::exact();
    if (result == Format::Fp32)
        return {1e-4, 1e-5};
    return {1e-4, 1.02 * numberFormat(result).epsilon() / 2};
}

} // namespace

Check checkGemm(const GemmKernel& kernel, Format format)
{
    Check all;
    const bool isShort = format == Format::Fp16 || format == Format::Bf16;
    for (const Format result : {Format::Fp32, format}) {
        if (result != format && !isShort)
            continue;
        Check check(toleranceOf(format, result));
        for (const std::array<std::int64_t, 3>& size :
             {std::array<std::int64_t, 3>{1, 1, 1}, {7, 5, 3}, {33, 65, 130}, {64, 64, 64}}) {
            for (const int way : {0, 1, 2, 3}) {
                GemmTask task{{size[0], size[1], size[2]}, format, result};
                task.aTransposed = (way & 1) != 0;
                task.bTransposed = (way & 2) != 0;
                task.aStride = (task.aTransposed ? task.shape.m : task.shape.k) + 3;
                task.bStride = (task.bTransposed ? task.shape.k : task.shape.n) + 5;
                task.cStride = task.shape.n + 2;
                auto plan = kernel.plan(task);
                check.require(0, plan.has_value(), plan ? "" : plan.error().text());
                if (plan)
                    compareGemm(check, **plan, task);
            }
        }
        if (!check.passed() || result == format)
            return check;
        all = check;
    }
    return all;
}

} // namespace memscape::host
