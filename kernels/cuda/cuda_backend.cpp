// SPDX-License-Identifier: Apache-2.0
// The backend inside the module, and the one function that the module exports. A run opens the GPU,
// measures, and closes it again, so that an idle worker holds no memory beyond the context. After
// an error that loses the context, and with a GPU that does not finish, every further run says so at
// once: the worker then ends.
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/describe.h"
#include "kernels/cuda/experiments.h"
#include "kernels/cuda/module.h"

#include <optional>

#include <fmt/format.h>

namespace memscape::cuda {

// One for every experiment; that of `stride` is in experiments.h.
Result<MeasuredRun> measureHierarchy(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureLayout(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Checks checksOfTransfer(int multiprocessors);
Result<MeasuredRun> measureTransfer(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureLoading(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Checks checksOfPlacement(int multiprocessors);
Result<MeasuredRun> measurePlacement(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Checks checksOfSharding(int multiprocessors);
Result<MeasuredRun> measureSharding(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Checks checksOfInPlace(int multiprocessors);
Result<MeasuredRun> measureInPlace(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureBankConflicts(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureAttention(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureAllocator(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureBatchSize(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureCheckpoint(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measurePrecision(GpuSession& session, const SweepPlan& plan, RunSink& sink);
Result<MeasuredRun> measureRoofline(GpuSession& session, const SweepPlan& plan, RunSink& sink);

const std::map<std::string, GpuExperiment>& gpuExperiments()
{
    static const std::map<std::string, GpuExperiment> all{
        // clang-format off: a row each
        {"stride", {measureStride}},
        {"hierarchy", {measureHierarchy}},
        {"layout", {measureLayout}},
        {"transfer", {measureTransfer, checksOfTransfer}},
        {"loading", {measureLoading}},
        {"placement", {measurePlacement, checksOfPlacement}},
        {"sharding", {measureSharding, checksOfSharding}},
        {"in-place", {measureInPlace, checksOfInPlace}},
        {"bank-conflicts", {measureBankConflicts}},
        {"attention", {measureAttention}},
        {"allocator", {measureAllocator}},
        {"batch-size", {measureBatchSize}},
        {"checkpoint", {measureCheckpoint}},
        {"precision", {measurePrecision}},
        {"roofline", {measureRoofline}},
        // clang-format on
    };
    return all;
}

Measure measureOf(const std::string& experiment)
{
    const auto found = gpuExperiments().find(experiment);
    return found == gpuExperiments().end() ? nullptr : found->second.measure;
}

namespace {

class CudaBackend : public Backend
{
public:
    explicit CudaBackend(std::shared_ptr<const Clock> clock)
        : m_clock(std::move(clock))
    { }

    std::string id() const override { return "cuda"; }
    std::vector<BackendDevice> devices() override { return listDevices(); }

    Result<MeasuredRun> measure(const Experiment& experiment, const BackendDevice& device, const Parameters& parameters,
                                RunSink& sink) override
    {
        const Measure run = measureOf(experiment.id());
        if (run == nullptr)
            return fail("run.skipped", fmt::format("\"{}\" has no measurement on a GPU", experiment.id()),
                        "choose another device, or look at the prediction");
        return remembered(onDevice(device, [&](GpuSession& session) -> Result<MeasuredRun> {
            const SweepPlan plan{experiment, device, parameters, sweepOf(experiment, device.device, parameters)};
            return run(session, plan, sink);
        }));
    }

    Result<Device> calibrate(const BackendDevice& device, RunSink& sink) override
    {
        return remembered(onDevice(device, [&](GpuSession& session) { return calibrateGpu(session, device, sink); }));
    }

    std::vector<SelftestLine> selftest(const BackendDevice& device, RunSink& sink) override
    {
        auto lines = remembered(onDevice(device, [&](GpuSession& session) -> Result<std::vector<SelftestLine>> {
            auto said = selftestGpu(session, sink);
            if (const auto alive = session.synchronize("checking the kernels"); !alive)
                remember(alive.error());
            return said;
        }));
        if (lines)
            return std::move(*lines);
        const bool missing = lines.error().code == "device.missing";
        return {{"cuda", false, missing, lines.error().text()}};
    }

    bool isSpent() const override { return m_lost.has_value(); }

private:
    template <typename Run>
    auto onDevice(const BackendDevice& device, const Run& run) -> decltype(run(std::declval<GpuSession&>()))
    {
        if (m_lost)
            return fail(*m_lost);
        MEMSCAPE_TRY(ordinal, ordinalOf(device));
        MEMSCAPE_TRY(session, GpuSession::open(ordinal, m_clock));
        return run(*session);
    }

    template <typename T> Result<T> remembered(Result<T> result)
    {
        if (!result)
            remember(result.error());
        return result;
    }
    void remember(const Error& error)
    {
        if (error.code == "run.sticky" || error.code == "run.hung")
            m_lost = error;
    }

    std::shared_ptr<const Clock> m_clock;
    std::optional<Error> m_lost; ///< the error that lost the GPU to this process
};

Backend* makeBackend()
{
    return makeCudaBackend(std::make_shared<SteadyClock>()).release();
}

constexpr Module theModule{moduleAbi, moduleLayout, &makeBackend};

} // namespace

std::unique_ptr<Backend> makeCudaBackend(std::shared_ptr<const Clock> clock)
{
    return std::make_unique<CudaBackend>(std::move(clock));
}

} // namespace memscape::cuda

extern "C" __attribute__((visibility("default"))) const memscape::cuda::Module* memscape_cuda_module()
{
    return &memscape::cuda::theModule;
}
