// SPDX-License-Identifier: Apache-2.0
// A schedule that was replayed or run, for `detail.schedule` of a prediction and of its measurement alike.
#pragma once

#include "core/base/json.h"
#include "core/checkpoint/replay.h"

namespace memscape {

/// [{"operation", "stage", "option", "begin", "end", "during", "after", "recomputation"}…], one per
/// operation; `replay` has as many steps.
Json scheduleJson(const Schedule& schedule, const Replay& replay);

} // namespace memscape
