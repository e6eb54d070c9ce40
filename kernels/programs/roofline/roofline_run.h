// SPDX-License-Identifier: Apache-2.0
// `roofline` measured on any device: every kernel of the prediction, one after the other, each by its own
// experiment at one point. Kernels that cannot be measured are named in a note and left out.
#pragma once

#include "kernels/measure/backend.h"

#include <functional>

namespace memscape {

/// Measures one experiment at its parameters; progress and points of the sink go nowhere, Stop and notes do.
using MeasureKernel = std::function<Result<MeasuredRun>(const Experiment&, const Parameters&, RunSink&)>;

/// Figures, `detail.points` and, as provenance, each kernel's method and samples and the worst grade.
/// Errors: run.cancelled before the first, run.failed when there is none; those of endsRun(),
/// after which no other can be measured.
Result<MeasuredRun> runRoofline(const Device& device, RunSink& sink, const MeasureKernel& measure);

} // namespace memscape
