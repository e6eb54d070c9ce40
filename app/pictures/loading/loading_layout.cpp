// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/loading/loading_layout.h"

#include <algorithm>

namespace memscape {

namespace {

void placeVessels(LoadingLayout& layout, const LoadingState& state, const QRectF& area)
{
    const double u = layout.unit;
    std::vector<VesselKind> kinds{VesselKind::Medium, VesselKind::Host};
    if (state.gpus > 0)
        kinds.push_back(VesselKind::Gpu);
    const double arrow = 66 * u; // a rate has room above it
    const double room = area.width() - arrow * double(kinds.size() - 1);
    const double width = std::max(20 * u, room / double(kinds.size()));
    double x = area.left();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        LoadingVessel vessel;
        vessel.kind = kinds[i];
        vessel.label = {x, area.top(), width, 16 * u};
        vessel.words = {x, area.bottom() - 16 * u, width, 16 * u};
        vessel.box = {x, vessel.label.bottom() + 2 * u, width,
                      std::max(8 * u, vessel.words.top() - vessel.label.bottom() - 4 * u)};
        layout.vessels.push_back(vessel);
        x += width;
        if (i + 1 < kinds.size())
            layout.arrows.emplace_back(x, vessel.box.top(), arrow, vessel.box.height());
        x += arrow;
    }
}

} // namespace

LoadingLayout layoutLoading(const LoadingState& state, const QRectF& rect, double unit)
{
    const PictureFrame frame(rect, unit);
    const double top = frame.title.bottom() + 4 * unit, room = frame.foot.top() - 4 * unit - top;
    std::size_t rows = 0;
    for (const LoadingWay& way : state.ways)
        rows += std::size_t(way.lanes.size());
    // The lanes take what they need, at most half of the height.
    const double lanes = std::min(0.55 * room, double(rows) * 18 * unit + double(state.ways.size()) * 20 * unit);
    LoadingLayout layout{frame,
                         placeLaneBlocks(state.ways,
                                         {frame.inside.left(), top + room - lanes, frame.inside.width(), lanes},
                                         {.labels = 112, .gap = 4, .leastRow = 5, .mostRow = 30}, unit, state.longest),
                         {},
                         {}};
    placeVessels(layout, state, {layout.inside.left(), top, layout.inside.width(), room - lanes - 6 * unit});
    return layout;
}

} // namespace memscape
