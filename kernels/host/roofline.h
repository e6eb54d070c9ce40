// SPDX-License-Identifier: Apache-2.0
// `roofline` on the host: every kernel of the prediction, measured by its own experiment at one point.
#pragma once

#include "kernels/host/session.h"

namespace memscape::host {

/// Measures one experiment of the host at its parameters.
using MeasureExperiment =
    std::function<Result<MeasuredRun>(HostSession&, const Experiment&, const Parameters&)>;

/// Kernels that cannot be measured are named in a note and left out. Errors: run.cancelled before
/// the first, run.failed when there is none.
Result<MeasuredRun> measureRoofline(HostSession& session, const Experiment& experiment,
                                    const Parameters& parameters, const MeasureExperiment& measure);

} // namespace memscape::host
