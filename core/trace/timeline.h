// SPDX-License-Identifier: Apache-2.0
// Memory over the events of a trace, by category, with few enough points to draw. Each stretch of
// events keeps its lowest and its highest moment, so a spike of one event survives a million-fold
// reduction: the drawn maximum is the peak, to the byte.
#pragma once

#include "core/trace/peak.h"

namespace memscape {

/// At most `points` (at least 4) moments in order: the first after the setup (or the first of all),
/// the last, and between them the lowest and the highest of each stretch. All of them when they
/// fit.
std::vector<Moment> timelineOf(const Trace& trace, std::size_t points);

} // namespace memscape
