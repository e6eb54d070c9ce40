// SPDX-License-Identifier: Apache-2.0
// `roofline` on a GPU: every kernel of the prediction by its own experiment, in one session.
#include "kernels/cuda/experiments.h"

#include "kernels/programs/roofline/roofline_run.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cuda {

Result<MeasuredRun> measureRoofline(GpuSession& session, const SweepPlan& plan, RunSink& sink)
{
    MEMSCAPE_TRY(runStart, beginRun(session, sink));
    Json library; // that multiplied in any of them
    const auto one = [&](const Experiment& experiment, const Parameters& parameters,
                         RunSink& quiet) -> Result<MeasuredRun> {
        const Measure measure = measureOf(experiment.id());
        if (measure == nullptr)
            return fail("run.skipped", fmt::format("\"{}\" has no measurement on a GPU", experiment.id()));
        const SweepPlan own{experiment, plan.device, parameters, sweepOf(experiment, plan.device.device, parameters)};
        auto measured = measure(session, own, quiet);
        if (measured && measured->provenance.machine.contains("cublaslt"))
            library = measured->provenance.machine["cublaslt"];
        return measured;
    };
    MEMSCAPE_TRY(run, runRoofline(plan.device.device, sink, one));
    run.provenance.machine = machineFacts(session, runStart, plan.device);
    if (!library.is_null())
        run.provenance.machine["cublaslt"] = std::move(library);
    return run;
}

} // namespace memscape::cuda
