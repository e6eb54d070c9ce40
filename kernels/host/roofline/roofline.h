// SPDX-License-Identifier: Apache-2.0
// `roofline` on the host: every kernel of the prediction, measured by its own experiment at one point
// (kernels/programs/roofline/roofline_run.h), the canary read before each.
#pragma once

#include "kernels/host/session.h"

namespace memscape::host {

/// Measures one experiment of the host at its parameters.
using MeasureExperiment = std::function<Result<MeasuredRun>(HostSession&, const Experiment&, const Parameters&)>;

/// Errors: those of runRoofline().
Result<MeasuredRun> measureRoofline(HostSession& session, const MeasureExperiment& measure);

} // namespace memscape::host
