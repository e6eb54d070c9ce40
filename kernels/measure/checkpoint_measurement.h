// SPDX-License-Identifier: Apache-2.0
// `checkpoint` from its parameters to a measured run, whatever machine runs the chain: the schedule
// is the one that the prediction shows, and only a chain with real buffers can run.
#pragma once

#include "kernels/measure/chain_run.h"

namespace memscape {

/// The schedule of the parameters' strategy and budget. Errors: run.skipped for chains that are no
/// MLP, those of the prediction, checkpoint.* when the strategy has no schedule for the budget.
Result<ChainTask> chainTask(const Device& device, const Parameters& parameters);

/// The parameters' own point, or every point of their sweep with `runTask`. `provenance` gets
/// grade, method and raw samples. A cancelled run that has timed steps already is a result that is
/// not complete.
Result<MeasuredRun> measureCheckpoint(const Experiment& experiment, const Device& device, const Parameters& parameters,
                                      RunSink& sink, const std::function<Result<ChainRun>(const ChainTask&)>& runTask,
                                      Json provenance);

} // namespace memscape
