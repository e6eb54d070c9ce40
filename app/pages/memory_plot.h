// SPDX-License-Identifier: GPL-3.0-or-later
// One training step, byte by byte, for a plot: the categories as stacked areas, the phases under
// the axis, the capacity as a line and the allocation that does not fit as a card. Pure values from
// a record's `detail.timeline`.
#pragma once

#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/plot_types.h"

#include <vector>

namespace memscape {

/// The key of the series, and of the marker that is the cursor.
inline constexpr auto timelineKey = "timeline";
inline constexpr auto cursorMarker = "moment";

struct MemoryPlot
{
    std::vector<Curve> areas;
    std::vector<Band> phases;
    std::vector<Callout> callouts;
};

MemoryPlot memoryPlot(const MemoryTimeline& timeline, ByteStyle bytes);

/// A measured curve over the events of the predicted step: a real step has other events, so each of
/// its phases is stretched over the same phase of the prediction; without common phases the whole
/// over the whole. Of more than `most` points the highest of each stretch stays.
Curve alignedCurve(Curve measured, const MemoryTimeline& from, const MemoryTimeline& to, std::size_t most = 160);

} // namespace memscape
