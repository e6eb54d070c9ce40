// SPDX-License-Identifier: Apache-2.0
// `batch-size` on the host: see kernels/programs/batch-size/batch_measurement.h for what is done.
#pragma once

#include "kernels/host/session.h"

namespace memscape::host {

/// Errors: run.skipped for models and plans that are not run here, naming the parameter; run.memory, check.failed,
/// run.cancelled before the first point.
Result<MeasuredRun> measureBatchSize(HostSession& session, const Experiment& experiment, const Parameters& parameters);

} // namespace memscape::host
