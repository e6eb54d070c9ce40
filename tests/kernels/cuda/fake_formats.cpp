// SPDX-License-Identifier: Apache-2.0
// Number formats on the GPU of the tests' own making: matrices that are filled, conversions, and, when a
// test asks for it, a library that multiplies in every format. Written from the formats' definitions, apart
// from core/precision.
#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/common/cublas_lt.h"
#include "kernels/cuda/kernels.h"
#include "kernels/programs/common/half.h"
#include "tests/kernels/cuda/fake_gpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace memscape::cuda {

constexpr std::uint64_t filledElements = 1U << 20; ///< the elements of larger matrices are not looked at

// Formats: small matrices are really filled; conversions by the definitions of half.h, and of FP8 by
// looking for the nearest of all its numbers.
cudaError_t launchOperands(void* to, int bytes, const void* table, std::uint64_t count, std::uint64_t seed,
                           cudaStream_t)
{
    const auto width = std::size_t(bytes);
    for (std::uint64_t i = 0; i < count && count <= filledElements && fakeError() == cudaSuccess; ++i)
        std::memcpy(static_cast<char*>(to) + i * width, static_cast<const char*>(table) + operandPlace(seed, i) * width,
                    width);
    return fakeQueue("operands", fakeVariant(bytes));
}

static float fp8ByDefinition(ShortFormat format, int bits)
{
    const int mantissaBits = format == ShortFormat::E4M3 ? 3 : 2, bias = format == ShortFormat::E4M3 ? 7 : 15;
    const int exponent = (bits & 0x7f) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
    const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
    if (format == ShortFormat::E4M3 ? (bits & 0x7f) == 0x7f : exponent == 31 && mantissa != 0)
        return std::nanf("");
    if (format == ShortFormat::E5M2 && exponent == 31)
        return sign * INFINITY;
    const int implicit = exponent == 0 ? 0 : 1 << mantissaBits;
    return sign * std::ldexp(float(implicit + mantissa), std::max(exponent, 1) - bias - mantissaBits);
}

static float fp8ToFloat(ShortFormat format, std::uint16_t bits)
{
    using Table = std::array<float, 256>;
    static const auto tableOf = [](ShortFormat of) {
        Table table;
        for (int i = 0; i < 256; ++i)
            table[std::size_t(i)] = fp8ByDefinition(of, i);
        return table;
    };
    static const Table e4m3 = tableOf(ShortFormat::E4M3), e5m2 = tableOf(ShortFormat::E5M2);
    return (format == ShortFormat::E4M3 ? e4m3 : e5m2)[bits & 0xff];
}

static std::uint16_t floatToFp8(ShortFormat format, float value, bool saturates)
{
    const int last = format == ShortFormat::E4M3 ? 0x7e : 0x7b; // the largest finite number
    const std::uint16_t sign = std::signbit(value) ? 0x80 : 0;
    if (std::isnan(value))
        return std::uint16_t(sign | 0x7f);
    const double size = std::fabs(double(value));
    const double largest = double(fp8ToFloat(format, std::uint16_t(last)));
    const double near = std::min(size, largest); // far beyond it all differences are the same double
    int nearest = 0;
    for (int bits = 0; bits <= last; ++bits) {
        const double best = std::fabs(near - double(fp8ToFloat(format, std::uint16_t(nearest))));
        const double here = std::fabs(near - double(fp8ToFloat(format, std::uint16_t(bits))));
        if (here < best || (here == best && bits % 2 == 0))
            nearest = bits;
    }
    const double step = largest - double(fp8ToFloat(format, std::uint16_t(last - 1)));
    const bool isBeyond = format == ShortFormat::E4M3 ? size > largest + step / 2 : size >= largest + step / 2;
    return std::uint16_t(sign | (isBeyond && !saturates ? last + 1 : nearest));
}

cudaError_t launchNarrow(ShortFormat format, const float* from, std::uint16_t* bits, std::uint64_t count,
                         bool saturates, cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && fakeError() == cudaSuccess; ++i)
        bits[i] = format == ShortFormat::Float16 ? floatToFloat16(from[i])
            : format == ShortFormat::Bfloat16    ? floatToBfloat16(from[i])
                                                 : floatToFp8(format, from[i], saturates);
    if (fakeGpu().wrongKernel)
        bits[0] ^= 1;
    return fakeQueue("narrow", fakeVariant(format));
}
cudaError_t launchWiden(ShortFormat format, const std::uint16_t* bits, float* to, std::uint64_t count, cudaStream_t)
{
    for (std::uint64_t i = 0; i < count && fakeError() == cudaSuccess; ++i)
        to[i] = format == ShortFormat::Float16 ? float16ToFloat(bits[i])
            : format == ShortFormat::Bfloat16  ? bfloat16ToFloat(bits[i])
                                               : fp8ToFloat(format, bits[i]);
    return fakeQueue("widen", fakeVariant(format));
}

// ---- the library ------------------------------------------------------------------------------

// Never NVIDIA's: it would take the fake's memory for a GPU's.
struct CublasLt::Plans
{ };
CublasLt::CublasLt() = default;
CublasLt::~CublasLt() = default;
std::unique_ptr<CublasLt> CublasLt::open()
{
    if (!fakeGpu().hasLibrary)
        return nullptr;
    std::unique_ptr<CublasLt> blas(new CublasLt);
    blas->m_name = "a library of the test's own";
    return blas;
}

Json CublasLt::record() const
{
    return {{"file", "/a/folder/libcublasLt.so.13"}, {"version", "13.0.2"}};
}
std::string CublasLt::passedOver()
{
    return fakeGpu().libraryPassedOver ? "MEMSCAPE_CUBLASLT names /nowhere: it does not exist" : "";
}
std::string CublasLt::whyMissing()
{
    return "libcublasLt was not found";
}

/// Which of its kernels it takes is the library's secret: one of its own for every shape.
static void loadFor(std::uint64_t shape)
{
    fakeLoad("the library's kernel", shape);
}

static Result<void> launched(cudaError_t error)
{
    if (error != cudaSuccess)
        return fail("run.failed", "the library refused");
    return {};
}
Result<void> CublasLt::launch(const ProductLaunch& launch, cudaStream_t stream, void* workspace,
                              std::uint64_t workspaceBytes)
{
    if (workspace != nullptr)
        fakeGpu().largestWorkspace = std::max(fakeGpu().largestWorkspace, workspaceBytes);
    loadFor(
        fakeVariant(launch.rows, launch.columns, launch.inner, launch.aTransposed, launch.bTransposed, workspaceBytes));
    return launched(launchProduct(launch, stream));
}
Result<void> CublasLt::launch(const TensorProductLaunch& launch, cudaStream_t stream, void* workspace)
{
    if (workspace != nullptr) // it may be written at any time
        std::memset(workspace, 0xff, formatWorkspace >> 10);
    if (fakeGpu().libraryLacksOdd && (launch.rows | launch.columns | launch.inner) % 2 != 0) {
        fakeFailure(cudaErrorNotSupported);
        return fail("run.failed", "the library has no such product");
    }
    loadFor(fakeVariant(launch.rows, launch.columns, launch.inner, launch.batch, launch.format, launch.aTransposed,
                        launch.bTransposed, workspace != nullptr));
    return ownProducts(stream)(launch);
}

template <typename T> static T wordAt(const void* data, std::uint64_t index)
{
    T word;
    std::memcpy(&word, static_cast<const char*>(data) + index * sizeof word, sizeof word);
    return word;
}

static double elementAt(Format format, const void* data, std::uint64_t index)
{
    switch (format) {
    case Format::Fp64: return wordAt<double>(data, index);
    case Format::Fp32:
    case Format::Tf32: return double(wordAt<float>(data, index));
    case Format::Fp16: return double(float16ToFloat(wordAt<std::uint16_t>(data, index)));
    case Format::Bf16: return double(bfloat16ToFloat(wordAt<std::uint16_t>(data, index)));
    case Format::Fp8E4M3: return double(fp8ToFloat(ShortFormat::E4M3, wordAt<std::uint8_t>(data, index)));
    case Format::Fp8E5M2: return double(fp8ToFloat(ShortFormat::E5M2, wordAt<std::uint8_t>(data, index)));
    case Format::Int8: break;
    }
    return double(wordAt<std::int8_t>(data, index));
}

static void storeAt(Format format, void* data, std::uint64_t index, double value)
{
    const auto put = [&](auto word) {
        std::memcpy(static_cast<char*>(data) + index * sizeof word, &word, sizeof word);
    };
    switch (format) {
    case Format::Fp64: return put(value);
    case Format::Fp32:
    case Format::Tf32: return put(float(value));
    case Format::Fp16: return put(floatToFloat16(float(value)));
    case Format::Bf16:
    case Format::Fp8E4M3:
    case Format::Fp8E5M2: return put(floatToBfloat16(float(value)));
    case Format::Int8: return put(std::int32_t(value));
    }
}

/// B lies as rows of the inner dimension for FP8 and INT8; of E5M2 it is E4M3.
static cudaError_t multiplied(const FormatProduct& w)
{
    const Format right = w.format == Format::Fp8E5M2 ? Format::Fp8E4M3 : w.format;
    const bool isByte = w.format == Format::Fp8E4M3 || w.format == Format::Fp8E5M2 || w.format == Format::Int8;
    const double terms = double(w.rows) * double(w.columns) * double(w.inner);
    for (std::uint64_t i = 0; i < w.rows && terms < 0x1p24; ++i) {
        for (std::uint64_t j = 0; j < w.columns; ++j) {
            double sum = 0;
            for (std::uint64_t l = 0; l < w.inner; ++l)
                sum += elementAt(w.format, w.a, i * w.inner + l)
                    * elementAt(right, w.b, isByte ? j * w.inner + l : l * w.columns + j);
            storeAt(w.format, w.c, i * w.columns + j, sum);
        }
    }
    const bool onCores = w.format != Format::Fp32 && w.format != Format::Fp64;
    return fakeLaunch("format product", fakeVariant(w.format),
                      2 * terms / (onCores ? fakeGpu().tensorFlopsPerSecond : fakeGpu().flopsPerSecond));
}

Result<void> CublasLt::launch(const FormatProduct& w, cudaStream_t)
{
    loadFor(fakeVariant(w.rows, w.columns, w.inner, w.format, w.workspace != nullptr));
    return launched(multiplied(w));
}

// ---- our own ----------------------------------------------------------------------------------

cudaError_t launchFormatProduct(const FormatProductLaunch& w, cudaStream_t)
{
    FormatProduct product;
    switch (w.format) {
    case TensorFormat::Fp64: product.format = Format::Fp64; break;
    case TensorFormat::Tf32: product.format = Format::Tf32; break;
    case TensorFormat::E4M3: product.format = Format::Fp8E4M3; break;
    case TensorFormat::E5M2: product.format = Format::Fp8E5M2; break;
    case TensorFormat::Int8: product.format = Format::Int8; break;
    }
    product.rows = std::uint64_t(w.rows);
    product.columns = std::uint64_t(w.columns);
    product.inner = std::uint64_t(w.inner);
    product.a = w.a;
    product.b = w.b;
    product.c = w.c;
    return multiplied(product);
}

} // namespace memscape::cuda
