// SPDX-License-Identifier: GPL-3.0-or-later
// What a measurement says of the prediction, in words: at the selected point ("L3: predicted 12.8 ns,
// measured 13.1 ns, 2.3 % off"), and of a calibration that it contradicts.
#pragma once

#include "core/device/device.h"
#include "core/experiment/outcome.h"

#include <QString>

namespace memscape {

/// The curve `series` at `x`; empty where either side has no point there. Where x is a working set the
/// level that holds it gives the name, elsewhere `name` ("stride 8").
QString pointText(const Outcome& predicted, const Outcome& measured, const std::string& series, double x,
                  const Device& device, const QString& name, ByteStyle bytes);

/// "measured 1.7× above it": the median of measured over predicted, where that is 1.4 or more either
/// way on at least three points; else empty. A measurement of grade D contradicts nothing.
QString staleText(const Outcome& predicted, const Outcome& measured, const std::string& series);

/// "A" to "D" of a measurement; empty where it has none.
QString gradeText(const Outcome& measured);

} // namespace memscape
