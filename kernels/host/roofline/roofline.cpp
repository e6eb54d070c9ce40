// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/roofline/roofline.h"

#include "core/experiments/roofline/roofline.h"
#include "kernels/programs/roofline/roofline_run.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace memscape::host {

Result<MeasuredRun> measureRoofline(HostSession& session, const MeasureExperiment& measure)
{
    const double budget = sweepBudget / double(std::max<std::size_t>(rooflineKernels(session.device()).size(), 1));
    const auto one = [&](const Experiment& experiment, const Parameters& parameters, RunSink& sink) {
        session.readCanary();
        HostSession own(session.device(), sink);
        own.setBudget(budget);
        return measure(own, experiment, parameters);
    };
    MEMSCAPE_TRY(run, runRoofline(session.device(), session.sink(), one));
    run.provenance.machine = machineFacts(session);
    return run;
}

} // namespace memscape::host
