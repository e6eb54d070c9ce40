// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/precision/format_product.h"

#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/sampler.h"
#include "kernels/programs/common/mlp_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

constexpr std::uint64_t aSeed = 31, bSeed = 32;
constexpr std::int64_t calibratedSize = 8192; ///< what product_rates.h calls large

/// The format of B: no tensor core multiplies two matrices of E5M2.
Format rightFormat(Format format)
{
    return format == Format::Fp8E5M2 ? Format::Fp8E4M3 : format;
}

/// Numbers in ±1 (INT8: ±127) that the format holds, and their bytes as they lie in memory.
struct Table
{
    explicit Table(Format format)
    {
        const NumberFormat& numbers = numberFormat(format);
        const auto width = std::size_t(numbers.bytes);
        bytes.resize(operandTable * width);
        for (std::uint32_t i = 0; i < operandTable; ++i) {
            const double drawn = double(mlpUniform(41, i)) * (numbers.isInteger() ? 127 : 1);
            const double value = rounded(numbers, drawn);
            values.push_back(value);
            const std::uint64_t bits = format == Format::Tf32 // kept in a float's word
                ? std::bit_cast<std::uint32_t>(float(value))
                : encode(numbers, drawn);
            std::memcpy(bytes.data() + i * width, &bits, width); // little-endian
        }
    }
    double at(std::uint64_t seed, std::int64_t index) const { return values[operandPlace(seed, std::uint64_t(index))]; }

    std::vector<std::byte> bytes;
    std::vector<double> values;
};

Result<void> fillOperand(GpuSession& session, Format format, Buffer& matrix, std::int64_t count, std::uint64_t seed)
{
    const Table table(format);
    MEMSCAPE_TRY(device, session.allocateExtra(table.bytes.size()));
    MEMSCAPE_CHECK(
        session.upload(device.get(), table.bytes.data(), table.bytes.size(), "copying the operands' numbers"));
    MEMSCAPE_CHECK(cudaResult(launchOperands(matrix.get(), numberFormat(format).bytes, device.get(),
                                             std::uint64_t(count), seed, session.stream()),
                              "filling the matrices"));
    return session.synchronize("filling the matrices");
}

/// Refused before anything is allocated, unless the user forces it.
Result<void> checkFits(const GpuSession& session, const NumberFormat& numbers, const GemmShape& shape)
{
    const double bytes = gemmBytes(numbers, shape), free = double(session.freeBytes());
    if (session.isForced() || bytes <= shareOfMemory * free)
        return {};
    return fail("run.memory",
                fmt::format("the matrices take {}, and {} of the GPU's memory are available",
                            quantityText(bytes, Unit::Byte), quantityText(free, Unit::Byte)),
                "choose smaller m, n, k or a shorter format, or end what else uses this GPU");
}

bool libraryHas(Format format, double capability)
{
    switch (format) {
    case Format::Fp8E4M3:
    case Format::Fp8E5M2: return capability >= 8.9;
    case Format::Bf16:
    case Format::Tf32: return capability >= 8.0;
    case Format::Int8: return capability >= 7.5;
    case Format::Fp64:
    case Format::Fp32:
    case Format::Fp16: break;
    }
    return true;
}

/// The first compute capability with our own products in the format.
double ownProductsFrom(Format format)
{
    switch (format) {
    case Format::Fp32: return 0;
    case Format::Fp16:
    case Format::Int8: return 7.5;
    case Format::Fp8E4M3:
    case Format::Fp8E5M2: // newer compilers know them
        return CUDART_VERSION >= MEMSCAPE_CUDA_FP8 ? 8.9 : std::numeric_limits<double>::infinity();
    case Format::Fp64:
    case Format::Tf32:
    case Format::Bf16: break;
    }
    return 8.0;
}

const char* ownProduct(Format format, double capability)
{
    if (capability < ownProductsFrom(format))
        return nullptr;
    return format == Format::Fp32 ? "our product v2 in floats" : "our product on tensor cores (mma.sync)";
}

Result<void> launchFloats(GpuSession& session, const GemmShape& shape, const Buffer& a, const Buffer& b,
                          const Buffer& c)
{
    ProductLaunch w;
    w.rows = std::uint64_t(shape.m);
    w.columns = w.bStride = w.cStride = std::uint64_t(shape.n);
    w.inner = w.aStride = std::uint64_t(shape.k);
    w.a = reinterpret_cast<const float*>(a.get());
    w.b = reinterpret_cast<const float*>(b.get());
    w.c = reinterpret_cast<float*>(c.get());
    return cudaResult(launchProduct(w, session.stream()), "multiplying matrices");
}

Result<void> launchHalves(GpuSession& session, ElementFormat format, const GemmShape& shape, const Buffer& a,
                          const Buffer& b, const Buffer& c)
{
    TensorProductLaunch w;
    w.format = format;
    w.rows = int(shape.m);
    w.columns = int(shape.n);
    w.inner = int(shape.k);
    w.a = a.get();
    w.b = b.get();
    w.c = c.get();
    return cudaResult(launchTensorProduct(w, session.stream()), "multiplying matrices");
}

TensorFormat tensorFormat(Format format)
{
    switch (format) {
    case Format::Fp64: return TensorFormat::Fp64;
    case Format::Fp8E4M3: return TensorFormat::E4M3;
    case Format::Fp8E5M2: return TensorFormat::E5M2;
    case Format::Int8: return TensorFormat::Int8;
    case Format::Fp32:
    case Format::Tf32:
    case Format::Fp16:
    case Format::Bf16: break;
    }
    return TensorFormat::Tf32;
}

Result<void> launchOwn(GpuSession& session, Format format, const GemmShape& shape, const Buffer& a, const Buffer& b,
                       const Buffer& c)
{
    switch (format) {
    case Format::Fp32: return launchFloats(session, shape, a, b, c);
    case Format::Fp16: return launchHalves(session, ElementFormat::Float16, shape, a, b, c);
    case Format::Bf16: return launchHalves(session, ElementFormat::BFloat16, shape, a, b, c);
    default: break;
    }
    const FormatProductLaunch w{
        tensorFormat(format), int(shape.m), int(shape.n), int(shape.k), a.get(), b.get(), c.get()};
    return cudaResult(launchFormatProduct(w, session.stream()), "multiplying matrices");
}

double resultAt(Format format, const std::vector<std::byte>& bytes, std::size_t index)
{
    const auto width = std::size_t(resultBytes(numberFormat(format)));
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + index * width, width);
    if (format == Format::Int8)
        return double(std::int32_t(std::uint32_t(bits)));
    const bool isByte = numberFormat(format).bytes == 1;
    const Format stored = isByte ? Format::Bf16 : format == Format::Tf32 ? Format::Fp32 : format;
    return decode(numberFormat(stored), bits);
}

/// Half a last place of what is rounded once, and what sums in the hardware's order and width add.
Tolerance toleranceOf(Format format)
{
    switch (format) {
    case Format::Int8: return Tolerance::exact();
    case Format::Fp64: return {1e-12, 1e-12};
    case Format::Fp32:
    case Format::Tf32: return {1e-4, 1e-5};
    case Format::Fp16: return {1e-4, 1.02 * numberFormat(Format::Fp16).epsilon() / 2};
    case Format::Bf16: return {1e-4, 1.02 * numberFormat(Format::Bf16).epsilon() / 2};
    case Format::Fp8E4M3:
    case Format::Fp8E5M2: break; // Hopper adds products of FP8 with 14 bits
    }
    return {1e-2, 1.02 * numberFormat(Format::Bf16).epsilon() / 2};
}

void compareProduct(Check& check, Format format, const GemmShape& shape, const std::vector<std::byte>& found)
{
    const Table left(format), right(rightFormat(format));
    const bool bTransposed = bLiesTransposed(format);
    for (std::int64_t i = 0; i < shape.m; ++i) {
        for (std::int64_t j = 0; j < shape.n; ++j) {
            double sum = 0;
            for (std::int64_t l = 0; l < shape.k; ++l)
                sum +=
                    left.at(aSeed, i * shape.k + l) * right.at(bSeed, bTransposed ? j * shape.k + l : l * shape.n + j);
            const auto at = std::size_t(i * shape.n + j);
            check.compare(at, resultAt(format, found, at), sum);
        }
    }
}

} // namespace

Result<std::string> whoMultiplies(Format format, const CublasLt* blas, double capability)
{
    if (blas != nullptr && libraryHas(format, capability))
        return blas->name();
    if (const char* own = ownProduct(format, capability))
        return std::string(own);
    std::string known;
    for (const Format other : multipliedFormats(blas, capability))
        known += (known.empty() ? "" : ", ") + std::string(numberFormat(other).key);
    const NumberFormat& numbers = numberFormat(format);
    if (!libraryHas(format, capability))
        return fail("run.skipped",
                    fmt::format("a GPU of compute capability {:.1f} has no products in {}", capability, numbers.label),
                    "this one multiplies " + known, "format");
    return fail("run.skipped",
                fmt::format("products in {} need cuBLASLt on this GPU, and libcublasLt was not found", numbers.label),
                "install the CUDA toolkit's cuBLAS; without it this GPU multiplies " + known, "format");
}

std::vector<Format> multipliedFormats(const CublasLt* blas, double capability)
{
    std::vector<Format> formats;
    for (const NumberFormat& numbers : numberFormats()) {
        if ((blas != nullptr && libraryHas(numbers.format, capability))
            || ownProduct(numbers.format, capability) != nullptr)
            formats.push_back(numbers.format);
    }
    return formats;
}

Result<GpuProduct> GpuProduct::make(GpuSession& session, CublasLt* blas, Format format, const GemmShape& shape)
{
    const double capability = computeCapability();
    MEMSCAPE_TRY(who, whoMultiplies(format, blas, capability));
    GpuProduct made;
    made.m_format = format;
    made.m_shape = shape;
    made.m_who = std::move(who);
    made.m_blas = blas != nullptr && libraryHas(format, capability) ? blas : nullptr;
    const NumberFormat& numbers = numberFormat(format);
    MEMSCAPE_CHECK(checkFits(session, numbers, shape));
    const auto bytes = std::uint64_t(numbers.bytes);
    const double cells = double(shape.m) * double(shape.n); // every size is at most 2^20: exact
    MEMSCAPE_SET(made.m_a, session.allocate(std::uint64_t(shape.m) * std::uint64_t(shape.k) * bytes));
    MEMSCAPE_SET(made.m_b, session.allocate(std::uint64_t(shape.k) * std::uint64_t(shape.n) * bytes));
    MEMSCAPE_SET(made.m_c, session.allocate(std::uint64_t(cells) * std::uint64_t(resultBytes(numbers))));
    if (made.m_blas != nullptr)
        MEMSCAPE_SET(made.m_workspace, session.allocateExtra(formatWorkspace));
    MEMSCAPE_CHECK(fillOperand(session, format, made.m_a, shape.m * shape.k, aSeed));
    MEMSCAPE_CHECK(fillOperand(session, rightFormat(format), made.m_b, shape.k * shape.n, bSeed));
    return made;
}

Result<void> GpuProduct::launch(GpuSession& session)
{
    if (m_blas == nullptr)
        return launchOwn(session, m_format, m_shape, m_a, m_b, m_c);
    FormatProduct product;
    product.format = m_format;
    product.rows = std::uint64_t(m_shape.m);
    product.columns = std::uint64_t(m_shape.n);
    product.inner = std::uint64_t(m_shape.k);
    product.a = m_a.get();
    product.b = m_b.get();
    product.c = m_c.get();
    product.workspace = m_workspace.get();
    return m_blas->launch(product, session.stream());
}

Result<std::vector<std::byte>> GpuProduct::result(GpuSession& session) const
{
    const std::size_t bytes = std::size_t(m_shape.m * m_shape.n * resultBytes(numberFormat(m_format)));
    std::vector<std::byte> found(bytes);
    MEMSCAPE_CHECK(session.download(found.data(), m_c.get(), bytes, "multiplying matrices"));
    return found;
}

Result<Check> checkGpuProduct(GpuSession& session, CublasLt* blas, Format format)
{
    Check check(toleranceOf(format));
    std::vector<GemmShape> shapes{{16, 32, 16}, {64, 96, 128}, {144, 128, 80}};
    if (format == Format::Fp32 || blas == nullptr) // the library wants whole 16 bytes
        shapes.push_back({33, 65, 131});
    for (const GemmShape& shape : shapes) {
        MEMSCAPE_TRY(product, GpuProduct::make(session, blas, format, shape));
        MEMSCAPE_CHECK(product.launch(session));
        MEMSCAPE_TRY(found, product.result(session));
        compareProduct(check, format, shape, found);
    }
    return check;
}

Result<Json> gpuProductRates(GpuSession& session, RunSink& sink)
{
    const std::unique_ptr<CublasLt> blas = CublasLt::open();
    Json rates = Json::object();
    for (const Format format : multipliedFormats(blas.get(), computeCapability())) {
        if (sink.cancelled())
            return fail("run.cancelled", "the calibration was stopped; nothing was changed");
        MEMSCAPE_TRY(check, checkGpuProduct(session, blas.get(), format));
        MEMSCAPE_CHECK(check.result(std::string(numberFormat(format).label) + " product"));
        const GemmShape shape{calibratedSize, calibratedSize, calibratedSize};
        auto product = GpuProduct::make(session, blas.get(), format, shape);
        if (!product) {
            sink.note("warning", product.error().code,
                      fmt::format("{}: {}", numberFormat(format).label, product.error().text()));
            continue;
        }
        const Work work{[&](int) { return product->launch(session) ? cudaSuccess : cudaErrorUnknown; }, "the product"};
        MEMSCAPE_CHECK(product->launch(session)); // with its own words if it fails
        MEMSCAPE_CHECK(warmUp(session, work));
        PointSamples samples;
        MEMSCAPE_CHECK(samplePass(session, work, false, 0, StoppingOptions(), samples));
        rates[std::string(numberFormat(format).key)] = jsonNumber(shape.flops() / samples.summary().median);
        MEMSCAPE_CHECK(session.synchronize("freeing the matrices"));
    }
    return rates;
}

} // namespace memscape::cuda
