// SPDX-License-Identifier: Apache-2.0
// The timed figures of `layout` from samples, in the keys of the prediction.
#pragma once

#include "core/experiments/layout/layout.h"
#include "kernels/measure/sweep_run.h"

namespace memscape {

/// `samples` in seconds: "view_total" (all reads through the view), "contiguous_time" (one read of the copy),
/// "contiguous_total" (copy and all reads), and "copy_time" where a copy is needed.
Figures sampledLayoutFigures(const LayoutCase& asked, const MergedSamples& samples);

} // namespace memscape
