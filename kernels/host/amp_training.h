// SPDX-License-Identifier: Apache-2.0
// precision, operation=train, measured on the host: the same steps on the same batches in FP32 and in
// the format, in turn, so that both meet the same machine; in FP16 a third time without loss scaling.
// Gradients are counted by magnitude in the FP32 run.
#pragma once

#include "kernels/host/session.h"

namespace memscape::host {

/// Errors: run.skipped for formats that are not trained in, run.memory, check.failed, run.cancelled
/// before the second step.
Result<MeasuredRun> measureTraining(HostSession& session, const Experiment& experiment,
                                    const Parameters& parameters);

} // namespace memscape::host
