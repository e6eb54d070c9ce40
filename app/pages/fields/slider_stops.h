// SPDX-License-Identifier: GPL-3.0-or-later
// Where a slider stops. A byte count from 4 KiB to 2 GiB cannot move in steps of one: logarithmic
// parameters stop four times an octave (1, 1.25, 1.5 and 1.75 times a power of two, whole numbers
// where the parameter is whole), linear ones at every whole number or 200 times over their range.
// Values between stops can still be typed. A least value that is called "all" is the last stop.
#pragma once

#include "core/experiment/parameter.h"

#include <vector>

namespace memscape {

/// Ascending, without repeats, from the parameter's minimum to its maximum; at least one.
std::vector<double> sliderStops(const ParameterSpec& spec);

/// Index of the stop nearest to the value, by ratio on a logarithmic scale.
int nearestStop(const std::vector<double>& stops, double value);

} // namespace memscape
