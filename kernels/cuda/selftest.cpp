// SPDX-License-Identifier: Apache-2.0
// Every version of every kernel against its reference on the host. After an error that loses the
// context the rest is reported as skipped, not as passed.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/amp.h"
#include "kernels/cuda/amp_device.h"
#include "kernels/cuda/attention/attention_device.h"
#include "kernels/cuda/attention/attention_work.h"
#include "kernels/cuda/batch_device.h"
#include "kernels/cuda/batch_kernels.h"
#include "kernels/cuda/errors.h"
#include "kernels/cuda/format_product.h"
#include "kernels/cuda/mlp_device.h"
#include "kernels/measure/attention_reference.h"
#include "kernels/measure/batch_trainer.h"
#include "kernels/measure/mlp_reference.h"

#include "core/access/banks.h"

#include <functional>
#include <tuple>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

using Checks = std::vector<std::function<KernelCheck()>>;
constexpr int widths[] = {1, 2, 4, 8, 16};

void addStride(Checks& checks, int sms)
{
    for (int version = 1; version <= strideVersions; ++version) {
        for (int width : widths) {
            for (Act act : {Act::Read, Act::Write, Act::Copy}) {
                for (std::uint64_t step : {1, 7})
                    checks.push_back(
                        [=] { return checkStride(version, width, act, step, false, sms); });
                checks.push_back([=] { return checkStride(version, width, act, 1, true, sms); });
            }
        }
    }
}

void addStreams(Checks& checks, int sms)
{
    for (int version = 1; version <= streamVersions; ++version) {
        for (int width : widths) {
            for (Act act : {Act::Read, Act::Write, Act::Copy, Act::Triad})
                checks.push_back([=] { return checkStream(version, width, act, sms); });
        }
    }
    for (Act act : {Act::Read, Act::Write, Act::Copy}) {
        checks.push_back([=] { return checkLaps(act, true, sms); });
        checks.push_back([=] { return checkLaps(act, false, sms); });
    }
}

/// A stride, a padded column, a swizzled column, in every width.
void addBanks(Checks& checks)
{
    for (const std::uint32_t width : widths) {
        const std::uint32_t granule = std::max<std::uint32_t>(width, bankBytes);
        for (const auto& [padding, swizzle, step] : {std::tuple(0U, 0U, 5U), std::tuple(1U, 0U, 32U), std::tuple(0U, granule, 32U)}) {
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
    for (ChaseKind kind :
         {ChaseKind::Index, ChaseKind::CacheAll, ChaseKind::CacheGlobal, ChaseKind::Shared})
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

/// The chain that checkpoint runs, in every way to forget and make again.
SelftestLine chainLine(Session& session, CublasLt* blas, RunSink& sink)
{
    const auto check = checkMlpDevice([&](const MlpShape& shape, std::int64_t arenaBytes) {
        return makeMlpDevice(
            session, blas, [&sink] { return sink.cancelled(); }, shape, arenaBytes);
    });
    const std::string name =
        "MLP chain, " + (blas != nullptr ? blas->name() : std::string("our products"));
    return check ? SelftestLine{name, check->passed(), false, check->text()}
                 : SelftestLine{name, false, false, check.error().text()};
}

/// The step that batch-size trains with: gradients, norms, accumulation, update.
SelftestLine trainingLine(Session& session, CublasLt* blas, RunSink& sink)
{
    const auto check = checkBatchTrainer(
        batchDevices(session, blas, [&sink] { return sink.cancelled(); }, nullptr));
    const std::string name =
        "training step, " + (blas != nullptr ? blas->name() : std::string("our products"));
    return check ? SelftestLine{name, check->passed(), false, check->text()}
                 : SelftestLine{name, false, false, check.error().text()};
}

/// One version of attention in one format, on small shapes of every kind; skipped where the GPU is too
/// old for it or the library is missing.
SelftestLine attentionLine(Session& session, CublasLt* blas, const AttentionVersion& version,
                           DType dtype, RunSink& sink)
{
    const std::string name = fmt::format("{} attention v{} {}, {}", attentionKindText(version.kind),
                                         version.number, dtypeText(dtype), version.name);
    AttentionTask task;
    task.problem = {{}, dtype, version.kind,
                    version.hasBackward ? AttentionPass::Both : AttentionPass::Forward};
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

void addAttention(Session& session, CublasLt* blas, RunSink& sink, std::vector<SelftestLine>& lines)
{
    for (const AttentionKind kind : {AttentionKind::Standard, AttentionKind::Flash}) {
        for (const AttentionVersion& version : attentionVersions(kind, true)) {
            for (const DType dtype : version.dtypes) {
                if (sink.cancelled())
                    return;
                sink.progress(static_cast<int>(lines.size()), 0, "attention");
                lines.push_back(
                    attentionLine(session, blas, compiledVersion(version), dtype, sink));
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
void addFormats(Session& session, CublasLt* blas, RunSink& sink, std::vector<SelftestLine>& lines)
{
    for (const NumberFormat& numbers : numberFormats()) {
        if (sink.cancelled())
            return;
        sink.progress(static_cast<int>(lines.size()), 0, std::string(numbers.label));
        lines.push_back(formatLine(fmt::format("product in {}", numbers.label),
                                   checkGpuProduct(session, blas, numbers.format)));
    }
    for (const Format format : {Format::Fp16, Format::Bf16, Format::Fp8E4M3, Format::Fp8E5M2})
        lines.push_back(formatLine(fmt::format("conversion to {} and back", numberFormat(format).label),
                                   checkConversions(session, format)));
}

/// A whole training step in each format, by the library's products where there is one, and by ours.
void addTraining(Session& session, CublasLt* blas, RunSink& sink, std::vector<SelftestLine>& lines)
{
    std::vector<CublasLt*> all{nullptr};
    if (blas != nullptr)
        all.insert(all.begin(), blas);
    for (CublasLt* const products : all) {
        for (const Format format : {Format::Fp32, Format::Fp16, Format::Bf16}) {
            if (sink.cancelled())
                return;
            lines.push_back(formatLine(fmt::format("training step in {}, {}", numberFormat(format).label,
                                                   products != nullptr ? products->name() : "our products"),
                                       checkGpuTraining(session, products, format)));
        }
    }
}

} // namespace

std::vector<SelftestLine> selftestGpu(Session& session, RunSink& sink)
{
    Checks checks;
    addChases(checks);
    addStreams(checks, session.multiprocessors());
    addStride(checks, session.multiprocessors());
    addViews(checks, session.multiprocessors());
    addBanks(checks);
    addProducts(checks);
    std::vector<SelftestLine> lines;
    for (const auto& run : checks) {
        if (sink.cancelled())
            break;
        const KernelCheck check = run();
        sink.progress(static_cast<int>(lines.size()) + 1, static_cast<int>(checks.size()),
                      check.kernel);
        lines.push_back({check.kernel, check.passed, false, check.detail});
        if (isSticky(check.error)) {
            lines.push_back(
                {"the rest", false, true,
                 cudaFailure(check.error, "checking " + std::string(check.kernel)).text()});
            return lines;
        }
    }
    const std::unique_ptr<CublasLt> blas = CublasLt::open();
    if (blas) {
        lines.push_back(chainLine(session, blas.get(), sink));
        lines.push_back(trainingLine(session, blas.get(), sink));
    }
    lines.push_back(chainLine(session, nullptr, sink));
    lines.push_back(trainingLine(session, nullptr, sink));
    addFormats(session, blas.get(), sink, lines);
    addTraining(session, blas.get(), sink, lines);
    addAttention(session, blas.get(), sink, lines);
    return lines;
}

} // namespace memscape::cuda
