// SPDX-License-Identifier: Apache-2.0
// Figures of sampled times: a value, and the band from the fastest sample to the third quartile.
#pragma once

#include "core/base/quantity.h"
#include "kernels/measure/statistics.h"

#include <string>

namespace memscape {

/// The median of the samples, or (for latencies) the minimum; not a number when there are none.
Figure timeFigure(std::string key, std::string label, const Summary& seconds, bool fromMinimum);
/// `amount` / seconds: the median, and the band turned round.
Figure rateFigure(std::string key, std::string label, double amount, const Summary& seconds);

} // namespace memscape
