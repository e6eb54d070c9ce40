// SPDX-License-Identifier: Apache-2.0
// `batch-size` on the host: steps of a real chain of linear layers over the batch (time, allocations), the same
// chain trained to the target loss at each batch, the noise of its gradients, accumulation against the whole batch.
#pragma once

#include "kernels/host/session.h"

namespace memscape::host {

/// Errors: run.skipped for models and plans that are not run here, naming the parameter; run.memory, check.failed,
/// run.cancelled before the first point.
Result<MeasuredRun> measureBatchSize(HostSession& session, const Experiment& experiment, const Parameters& parameters);

} // namespace memscape::host
