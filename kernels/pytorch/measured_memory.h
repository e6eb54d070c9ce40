// SPDX-License-Identifier: Apache-2.0
// What the probe measured at one point, as the figures and the detail that a prediction has: its own figures, and what
// follows from its trace by the functions that predictions use.
#pragma once

#include "core/experiment/experiment.h"
#include "core/trace/trace.h"

namespace memscape {

struct MeasuredMemory
{
    Figures figures; ///< in the order of the prediction's
    Json detail = Json::object();
    std::optional<Series> timeline;
    std::vector<Series> curves = {}; ///< others
    std::vector<double> seconds;     ///< of each timed step
    Json hostState;                  ///< s of the works taken in turn with them, by name
};

/// `result`: what a run of `training-memory` or `inference-memory` ended with; its trace may be missing where the
/// memory ran out. Errors: probe.trace, json.*.
Result<MeasuredMemory> measuredMemory(const Device& device, const Parameters& parameters, const Json& result);

} // namespace memscape
