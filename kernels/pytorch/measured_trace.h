// SPDX-License-Identifier: Apache-2.0
// What the probe recorded of one step, as the trace that a prediction is made of: the same functions answer who is
// alive at the peak, and both lie on one plot. The tables are described in memscape_probe/trace.py.
#pragma once

#include "core/base/json.h"
#include "core/trace/trace.h"

namespace memscape {

/// `tables`: {"modules", "names", "categories", "phases", "events"}. Errors: probe.trace, with the index of the number
/// that is wrong; trace.overflow.
Result<Trace> traceFromProbe(const Json& tables);

} // namespace memscape
