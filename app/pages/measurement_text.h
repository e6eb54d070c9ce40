// SPDX-License-Identifier: GPL-3.0-or-later
// What a measurement says of itself and of the prediction, in words. How far the two are apart at a point stands in the
// table of figures.
#pragma once

#include "core/experiment/outcome.h"

#include <QString>

namespace memscape {

/// "measured 1.7× above it": the median of measured over predicted, where that is 1.4 or more either
/// way on at least three points; else empty. A measurement of grade D contradicts nothing.
QString staleText(const Outcome& predicted, const Outcome& measured, const std::string& series);

/// "A" to "D" of a measurement; empty where it has none.
QString gradeText(const Outcome& measured);

} // namespace memscape
