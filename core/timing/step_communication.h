// SPDX-License-Identifier: Apache-2.0
// What of a step's communication the step waits for: reductions of gradients and gathered weights behind the passes,
// the collectives among a network's operators (those in pieces: micro_pipeline.h), the borders of pipeline stages,
// copies to and from the host. stepCollectives() of operator_time.h lists the same.
//
// Left out: which bucket hides behind what (the timeline of `sharding`); links that several collectives share at once.
#pragma once

#include "core/timing/operator_runs.h"

namespace memscape {

/// Books it into `time`, whose passes, those of `runs`, are there.
/// Errors: predict.device where the plan needs a link whose bandwidth is not known.
Result<void> addCommunication(StepTime& time, const Graph& graph, const std::vector<ParameterTensor>& parameters,
                              const Plan& plan, const DeviceRates& rates, const StepTimeOptions& options,
                              const OperatorRuns& runs);

} // namespace memscape
