// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/precision/gemm.h"

#include "core/base/text.h"
#include "kernels/host/common/blas.h"
#include "kernels/host/precision/convert.h"
#include "kernels/host/precision/onednn.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#if MEMSCAPE_X86
#include <cpuid.h>
#endif

namespace memscape::host {

namespace {

constexpr std::size_t grain = 64;      // rows or columns: whole tiles
constexpr double slabFlops = 3e10;     // between two looks at Stop,
constexpr std::size_t slabLines = 256; // but not so few that the other matrix is packed in vain

/// One of product.h's kernels on floats.
class ProductPlan final : public GemmPlan
{
public:
    ProductPlan(ProductKernel kernel, const GemmTask& task)
        : m_kernel(std::move(kernel))
        , m_task(task)
    { }
    void run(const void* a, const void* b, void* c) override
    {
        const auto& [m, n, k] = m_task.shape;
        m_kernel.run({std::size_t(m), std::size_t(n), std::size_t(k), static_cast<const float*>(a),
                      std::size_t(m_task.aStride), m_task.aTransposed, static_cast<const float*>(b),
                      std::size_t(m_task.bStride), m_task.bTransposed, static_cast<float*>(c),
                      std::size_t(m_task.cStride), false},
                     m_scratch);
    }
    std::string name() const override { return m_kernel.name; }

private:
    ProductKernel m_kernel;
    GemmTask m_task;
    ProductScratch m_scratch;
};

/// A matrix of 16-bit numbers, widened row by row and packed.
void widen(Format format, const void* from, std::int64_t rows, std::int64_t columns, std::int64_t stride,
           std::vector<float>& to)
{
    to.resize(std::size_t(rows * columns));
    for (std::int64_t i = 0; i < rows; ++i)
        widenRow(format, static_cast<const std::uint16_t*>(from) + i * stride, to.data() + i * columns,
                 std::size_t(columns));
}

/// Widened, multiplied in FP32, and narrowed where the result is short.
class EmulatedPlan final : public GemmPlan
{
public:
    EmulatedPlan(ProductKernel kernel, const GemmTask& task)
        : m_task(task)
        , m_product(std::move(kernel), packed(task))
    { }
    void run(const void* a, const void* b, void* c) override
    {
        const auto& [m, n, k] = m_task.shape;
        widen(m_task.operands, a, m_task.aTransposed ? k : m, m_task.aTransposed ? m : k, m_task.aStride, m_a);
        widen(m_task.operands, b, m_task.bTransposed ? n : k, m_task.bTransposed ? k : n, m_task.bStride, m_b);
        m_c.resize(std::size_t(m * n));
        m_product.run(m_a.data(), m_b.data(), m_c.data());
        for (std::int64_t i = 0; i < m; ++i) {
            const float* row = m_c.data() + i * n;
            if (m_task.result == Format::Fp32)
                std::memcpy(static_cast<float*>(c) + i * m_task.cStride, row, std::size_t(n) * sizeof(float));
            else
                narrowRow(m_task.result, row, static_cast<std::uint16_t*>(c) + i * m_task.cStride, std::size_t(n));
        }
    }
    std::string name() const override { return "FP32 units, " + m_product.name(); }

private:
    static GemmTask packed(GemmTask task)
    {
        task.aStride = task.aTransposed ? task.shape.m : task.shape.k;
        task.bStride = task.bTransposed ? task.shape.k : task.shape.n;
        task.cStride = task.shape.n;
        return task;
    }

    GemmTask m_task;
    ProductPlan m_product;
    std::vector<float> m_a, m_b, m_c;
};

template <typename Plan> GemmKernel kernelOf(const ProductKernel& product, bool isEmulated)
{
    return {(isEmulated ? "FP32 units, " : "") + product.name, isEmulated,
            [product](const GemmTask& task) -> Result<std::unique_ptr<GemmPlan>> {
                return std::unique_ptr<GemmPlan>(std::make_unique<Plan>(product, task));
            }};
}

} // namespace

GemmTask GemmTask::dense(const GemmShape& shape, Format format)
{
    return {shape, format, format, shape.k, shape.n, shape.n, false, false};
}

int resultBytes(const GemmTask& task)
{
    return task.operands == Format::Int8 ? 4 : numberFormat(task.result).bytes;
}

std::vector<GemmKernel> gemmKernels(Format format)
{
    std::vector<GemmKernel> kernels;
    const bool isShort = format == Format::Fp16 || format == Format::Bf16;
    if (!isShort && format != Format::Fp32 && format != Format::Int8)
        return kernels;
    const bool isExact = format != Format::Int8 || hasExactInt8();
    if (isExact && oneDnnPlan(GemmTask::dense({64, 64, 64}, format)))
        kernels.push_back({oneDnnName(), false, [](const GemmTask& task) { return oneDnnPlan(task); }});
    if (format == Format::Int8)
        return kernels;
    std::vector<ProductKernel> products = productKernels();
    // The last of ours is the widest; behind it the library's.
    const std::size_t kept = openBlas() ? 2 : 1;
    for (std::size_t i = products.size(); i-- > products.size() - kept;)
        kernels.push_back(isShort ? kernelOf<EmulatedPlan>(products[i], true)
                                  : kernelOf<ProductPlan>(products[i], false));
    return kernels;
}

std::vector<Format> gemmFormats()
{
    std::vector<Format> found;
    for (const NumberFormat& format : numberFormats()) {
        if (!gemmKernels(format.format).empty())
            found.push_back(format.format);
    }
    return found;
}

Result<TeamGemm> TeamGemm::make(HostSession& session, const GemmKernel& kernel, const GemmTask& task)
{
    TeamGemm made;
    made.m_session = &session;
    const bool byRows = task.shape.m >= task.shape.n;
    const auto length = std::size_t(byRows ? task.shape.m : task.shape.n);
    const double perLine = task.shape.flops() / double(length);
    const std::size_t most = std::max(slabLines, std::size_t(slabFlops / perLine) / grain * grain);
    const auto operand = std::size_t(numberFormat(task.operands).bytes);
    const std::size_t aStep = task.aTransposed ? 1 : std::size_t(task.aStride);
    const std::size_t bStep = task.bTransposed ? std::size_t(task.bStride) : 1;
    const std::size_t cStep = byRows ? std::size_t(task.cStride) : 1;
    for (int thread = 0; thread < session.team().size(); ++thread) {
        const Part part = partOf(length, thread, session.team().size(), grain);
        if (part.size() == 0)
            continue;
        std::vector<Slab>& slabs = made.m_slabs.emplace_back();
        for (std::size_t at = part.begin; at < part.end; at += most) {
            GemmTask slab = task;
            (byRows ? slab.shape.m : slab.shape.n) = std::int64_t(std::min(most, part.end - at));
            MEMSCAPE_TRY(plan, kernel.plan(slab));
            slabs.push_back({std::move(plan), byRows ? at * aStep * operand : 0, byRows ? 0 : at * bStep * operand,
                             at * cStep * std::size_t(resultBytes(task))});
        }
    }
    return made;
}

double TeamGemm::run(const void* a, const void* b, void* c)
{
    ThreadTeam& team = m_session->team();
    return team.run(
        [&](int thread) {
            for (const Slab& slab : m_slabs[std::size_t(thread)]) {
                if (team.stopping())
                    return;
                slab.plan->run(static_cast<const std::byte*>(a) + slab.a, static_cast<const std::byte*>(b) + slab.b,
                               static_cast<std::byte*>(c) + slab.c);
            }
        },
        int(m_slabs.size()));
}

std::string numberInstructions()
{
#if MEMSCAPE_X86
    unsigned a = 0, b = 0, c = 0, d = 0, features = 0, more = 0, deep = 0, extra = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0)
        features = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
        more = c;
        deep = d;
        if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0)
            extra = a;
    }
    std::vector<std::string> found, missing;
    const auto say = [&](bool has, const char* name) { (has ? found : missing).push_back(name); };
    say(features >> 29 & 1, "F16C");
    say(extra >> 5 & 1, "AVX512-BF16");
    say(deep >> 23 & 1, "AVX512-FP16");
    say(more >> 11 & 1, "AVX512-VNNI");
    say(deep >> 22 & 1, "AMX-BF16");
    say(deep >> 25 & 1, "AMX-INT8");
    return (found.empty() ? "none" : join(found, ", ")) + (missing.empty() ? "" : "; not " + join(missing, ", "));
#else
    return "not read on this architecture";
#endif
}

} // namespace memscape::host
