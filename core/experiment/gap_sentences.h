// SPDX-License-Identifier: Apache-2.0
// The gaps of a sweep (predicted_points.h) in words, for pages, terminals and reports.
#pragma once

#include "core/experiment/outcome.h"

#include <string>
#include <vector>

namespace memscape {

/// Points of the sweep that are missing, a sentence each: "Not predicted at prefetch 4 layers: limit: … "; of more than
/// four the others are counted. Either side may be null.
std::vector<std::string> gapSentences(const Prediction* predicted, const Measurement* measured);

} // namespace memscape
