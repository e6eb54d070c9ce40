// SPDX-License-Identifier: Apache-2.0
// Every version of every kernel against its reference on the host. After an error that loses the
// GPU to this process, or a kernel that does not end, what is left is reported as not run.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/attention/attention_device.h"
#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/batch-size/batch_device.h"
#include "kernels/cuda/batch-size/batch_kernels.h"
#include "kernels/cuda/checkpoint/mlp_device.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/precision/format_product.h"
#include "kernels/cuda/training-memory/amp.h"
#include "kernels/cuda/training-memory/amp_device.h"
#include "kernels/programs/attention/attention_reference.h"
#include "kernels/programs/batch-size/batch_trainer.h"
#include "kernels/programs/checkpoint/mlp_reference.h"

#include "core/access/banks.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

/// What was found so far, and whether the GPU still answers.
class Lines
{
public:
    Lines(GpuSession& session, RunSink& sink)
        : m_session(session)
        , m_sink(sink)
    { }

    /// Nothing more can be checked, or the user wants to stop.
    bool isOver() const { return m_isLost || m_sink.cancelled(); }
    void add(SelftestLine line)
    {
        forgetCudaError(); // one kernel's is not the next one's
        const auto alive = m_session.synchronize("checking " + line.kernel);
        m_isLost = !alive && endsRun(alive.error());
        if (m_isLost)
            line = {line.kernel, false, false, alive.error().text()};
        const std::size_t done = m_lines.size() + 1;
        m_sink.progress(static_cast<int>(done), static_cast<int>(done <= m_expected ? m_expected : 0), line.kernel);
        m_lines.push_back(std::move(line));
    }
    /// For the progress of what follows.
    void expect(std::size_t more) { m_expected = m_lines.size() + more; }
    void group(const char* name, const std::function<void()>& run)
    {
        const bool wasLost = m_isLost;
        if (!wasLost && !m_sink.cancelled())
            run();
        if (m_isLost)
            m_lines.push_back(
                {(wasLost ? "" : "the rest of ") + std::string(name), false, true, "not run: the GPU was lost"});
    }
    const std::vector<SelftestLine>& all() const { return m_lines; }

private:
    GpuSession& m_session;
    RunSink& m_sink;
    bool m_isLost = false;
    std::size_t m_expected = 0;
    std::vector<SelftestLine> m_lines;
};

constexpr int widths[] = {1, 2, 4, 8, 16};

void addStride(Checks& checks, int sms)
{
    for (int version = 1; version <= strideVersions; ++version) {
        for (int width : widths) {
            for (Operation operation : {Operation::Read, Operation::Write, Operation::Copy}) {
                for (std::uint64_t step : {1, 7})
                    checks.push_back([=] { return checkStride(version, width, operation, step, false, sms); });
                checks.push_back([=] { return checkStride(version, width, operation, 1, true, sms); });
            }
        }
    }
}

void addStreams(Checks& checks, int sms)
{
    for (int version = 1; version <= streamVersions; ++version) {
        for (int width : widths) {
            for (Operation operation : {Operation::Read, Operation::Write, Operation::Copy, Operation::Triad})
                checks.push_back([=] { return checkStream(version, width, operation, sms); });
        }
    }
    for (Operation operation : {Operation::Read, Operation::Write, Operation::Copy}) {
        checks.push_back([=] { return checkLaps(operation, true, sms); });
        checks.push_back([=] { return checkLaps(operation, false, sms); });
    }
}

/// A stride, a padded column, a swizzled column, in every width.
void addBanks(Checks& checks)
{
    for (const std::uint32_t width : widths) {
        const std::uint32_t granule = std::max<std::uint32_t>(width, bankBytes);
        for (const auto& [padding, swizzle, step] :
             {std::tuple(0U, 0U, 5U), std::tuple(1U, 0U, 32U), std::tuple(0U, granule, 32U)}) {
            const auto tile = sharedTile(width, 32, padding, swizzle);
            if (!tile)
                continue;
            BankWork work;
            work.tile = *tile;
            work.lanes = lanesPerWarp;
            for (std::uint32_t lane = 0; lane < work.lanes; ++lane)
                work.asked[lane] = lane * step;
            work.elements = (work.asked[lanesPerWarp - 1] / 32 + 1) * 32;
            for (const bool isWrite : {false, true})
                checks.push_back([=] { return checkBanks(work, isWrite); });
            if (width >= bankBytes)
                checks.push_back([=] { return checkBankLatency(work); });
        }
    }
}

void addViews(Checks& checks, int sms)
{
    for (int version = 0; version <= viewCopyVersions; ++version) {
        for (int width : widths)
            checks.push_back([=] { return checkView(version, width, sms); });
    }
}

void addChases(Checks& checks)
{
    for (ChaseKind kind : {ChaseKind::Index, ChaseKind::CacheAll, ChaseKind::CacheGlobal, ChaseKind::Shared})
        checks.push_back([=] { return checkChase(kind); });
}

void addProducts(Checks& checks)
{
    for (int version = 1; version <= productVersions; ++version) {
        for (bool aTransposed : {false, true}) {
            for (bool bTransposed : {false, true})
                checks.push_back([=] { return checkProduct(version, aTransposed, bTransposed); });
        }
    }
    checks.push_back([] { return checkMlpElements(); });
    for (const ElementFormat format : {ElementFormat::Float32, ElementFormat::Float16, ElementFormat::BFloat16})
        checks.push_back([format] { return checkAmpElements(format); });
    checks.push_back([] { return checkBatchElements(); });
}

void addKernels(Lines& lines, int sms)
{
    Checks checks;
    addChases(checks);
    addStreams(checks, sms);
    addStride(checks, sms);
    addViews(checks, sms);
    addBanks(checks);
    addProducts(checks);
    for (const auto& [id, experiment] : gpuExperiments()) {
        if (experiment.checks != nullptr)
            std::ranges::move(experiment.checks(sms), std::back_inserter(checks));
    }
    lines.expect(checks.size());
    for (const auto& run : checks) {
        if (lines.isOver())
            return;
        const KernelCheck check = run();
        lines.add({check.kernel, check.passed, false, check.detail});
    }
}

/// The chain that checkpoint runs, in every way to drop and recompute.
SelftestLine chainLine(GpuSession& session, CublasLt* blas, RunSink& sink)
{
    const auto check = checkMlpDevice([&](const MlpShape& shape, std::int64_t arenaBytes) {
        return makeMlpDevice(
            session, blas, [&sink] { return sink.cancelled(); }, shape, arenaBytes);
    });
    const std::string name = "MLP chain, " + (blas != nullptr ? blas->name() : std::string("our products"));
    return check ? SelftestLine{name, check->passed(), false, check->text()}
                 : SelftestLine{name, false, false, check.error().text()};
}

/// The step that batch-size trains with: gradients, norms, accumulation, update.
SelftestLine trainingLine(GpuSession& session, CublasLt* blas, RunSink& sink)
{
    const auto check = checkBatchTrainer(batchDevices(
        session, blas, [&sink] { return sink.cancelled(); }, nullptr));
    const std::string name = "training step, " + (blas != nullptr ? blas->name() : std::string("our products"));
    return check ? SelftestLine{name, check->passed(), false, check->text()}
                 : SelftestLine{name, false, false, check.error().text()};
}

/// One version of attention in one format, on small shapes of every kind; skipped where the GPU is too
/// old for it or the library is missing.
SelftestLine attentionLine(GpuSession& session, CublasLt* blas, const AttentionVersion& version, DType dtype,
                           RunSink& sink)
{
    const std::string name = fmt::format("{} attention v{} {}, {}", attentionKindText(version.kind), version.number,
                                         dtypeText(dtype), version.name);
    AttentionTask task;
    task.problem = {{}, dtype, version.kind, version.hasBackward ? AttentionPass::Both : AttentionPass::Forward};
    task.version = version;
    if (auto runs = checkMachine(task, blas != nullptr); !runs)
        return {name, false, true, runs.error().text()};
    const auto check = checkAttentionDevice(
        [&](const AttentionTask& small) -> Result<std::unique_ptr<AttentionDevice>> {
            return makeAttentionDevice(
                session, blas, [&sink] { return sink.cancelled(); }, small);
        },
        version, dtype, 1);
    return check ? SelftestLine{name, check->passed(), false, check->text()}
                 : SelftestLine{name, false, false, check.error().text()};
}

/// By the library's products where there is one, and by ours.
void addChains(GpuSession& session, CublasLt* blas, RunSink& sink, Lines& lines)
{
    std::vector<CublasLt*> all{nullptr};
    if (blas != nullptr)
        all.insert(all.begin(), blas);
    for (CublasLt* const products : all) {
        for (const auto& line : {chainLine, trainingLine}) {
            if (!lines.isOver())
                lines.add(line(session, products, sink));
        }
    }
}

void addAttention(GpuSession& session, CublasLt* blas, RunSink& sink, Lines& lines)
{
    for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
        for (const AttentionVersion& version : attentionVersions(kind, true)) {
            for (const DType dtype : version.dtypes) {
                if (lines.isOver())
                    return;
                sink.progress(static_cast<int>(lines.all().size()), 0, "attention");
                lines.add(attentionLine(session, blas, compiledVersion(version), dtype, sink));
            }
        }
    }
}

SelftestLine formatLine(const std::string& name, const Result<Check>& check)
{
    if (check)
        return {name, check->passed(), false, check->text()};
    return {name, false, check.error().code == "run.skipped", check.error().text()};
}

/// Products in every format, and the conversions to the short ones.
void addFormats(GpuSession& session, CublasLt* blas, Lines& lines)
{
    for (const NumberFormat& numbers : numberFormats()) {
        if (!lines.isOver())
            lines.add(formatLine(fmt::format("product in {}", numbers.label),
                                 checkGpuProduct(session, blas, numbers.format)));
    }
    for (const Format format : {Format::Fp16, Format::Bf16, Format::Fp8E4M3, Format::Fp8E5M2}) {
        if (!lines.isOver())
            lines.add(formatLine(fmt::format("conversion to {} and back", numberFormat(format).label),
                                 checkConversions(session, format)));
    }
}

/// A whole training step in each format, by the library's products where there is one, and by ours.
void addTraining(GpuSession& session, CublasLt* blas, Lines& lines)
{
    std::vector<CublasLt*> all{nullptr};
    if (blas != nullptr)
        all.insert(all.begin(), blas);
    for (CublasLt* const products : all) {
        for (const Format format : {Format::Fp32, Format::Fp16, Format::Bf16}) {
            if (lines.isOver())
                return;
            lines.add(formatLine(fmt::format("training step in {}, {}", numberFormat(format).label,
                                             products != nullptr ? products->name() : "our products"),
                                 checkGpuTraining(session, products, format)));
        }
    }
}

} // namespace

std::vector<SelftestLine> selftestGpu(GpuSession& session, RunSink& sink)
{
    const std::unique_ptr<CublasLt> blas = CublasLt::open();
    Lines lines(session, sink);
    // Attention last, its newest versions at the very end: they are the likeliest to lose the GPU.
    const std::pair<const char*, std::function<void()>> groups[] = {
        {"single kernels", [&] { addKernels(lines, session.multiprocessors()); }},
        {"chains and training steps", [&] { addChains(session, blas.get(), sink, lines); }},
        {"products and conversions in every format", [&] { addFormats(session, blas.get(), lines); }},
        {"training in every format", [&] { addTraining(session, blas.get(), lines); }},
        {"attention", [&] { addAttention(session, blas.get(), sink, lines); }},
    };
    for (const auto& [name, run] : groups)
        lines.group(name, run);
    return lines.all();
}

} // namespace memscape::cuda
