// SPDX-License-Identifier: Apache-2.0
// `checkpoint` on a GPU: kernels/programs/checkpoint/chain_run.h on this session's device. Products by cuBLASLt
// where it is installed, else by our own kernel, which is checked first.
#include "kernels/cuda/experiments.h"

#include "kernels/cuda/checkpoint/mlp_device.h"
#include "kernels/cuda/common/clock_watch.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/float_products.h"
#include "kernels/programs/checkpoint/checkpoint_measurement.h"

#include <nlohmann/json.hpp>

namespace memscape::cuda {

namespace {

/// A schedule of the MLP chain, checked, profiled and timed; `blas` may be null. Errors: those of runChain().
Result<ChainRun> runChainOnGpu(GpuSession& session, const RunStart& runStart, CublasLt* blas, const ChainTask& task,
                               RunSink& sink)
{
    ClockWatch watch(session, runStart.referenceClock);
    const Clock& clock = session.clock();
    const auto cancelled = [&sink] { return sink.cancelled(); };
    const ChainRunner runner{[&](const MlpShape& shape, std::int64_t arenaBytes) {
                                 return makeMlpDevice(session, blas, cancelled, shape, arenaBytes);
                             },
                             clock, sink, [&] { watch.read(); }, [&](std::size_t) { return watch.seen(); }};
    return runChain(task, runner);
}

} // namespace

Result<MeasuredRun> measureCheckpoint(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    // Asked before the GPU is warmed up: most mistakes are in the parameters.
    if (!plan.parameters.sweep())
        MEMSCAPE_CHECK(chainTask(plan.device.device, plan.parameters));
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    MEMSCAPE_CHECK(passedCheck(checkMlpElements()));
    MEMSCAPE_TRY(blas, openProducts(sink));
    ChainMeasurer measurer(plan.device.device, [&](const ChainTask& task) {
        return runChainOnGpu(session, runStart, blas.get(), task, sink);
    });
    MEMSCAPE_TRY(measured, runSweep(session, runStart, plan, measurer, sink));
    addLibrary(measured.provenance.machine, blas.get());
    return measured;
}

} // namespace memscape::cuda
