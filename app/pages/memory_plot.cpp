// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/memory_plot.h"

#include "app/plots/part_colours.h"
#include "app/settings/words.h"

#include <algorithm>

namespace memscape {

namespace {

struct Stretch
{
    double begin, end;
};

double moved(double x, const Stretch& from, const Stretch& to)
{
    const double share = from.end > from.begin ? (x - from.begin) / (from.end - from.begin) : 0;
    return to.begin + std::clamp(share, 0.0, 1.0) * (to.end - to.begin);
}

/// Phases that both have, in pairs; empty when they do not follow each other alike.
std::vector<std::pair<Stretch, Stretch>> commonPhases(const MemoryTimeline& from, const MemoryTimeline& to)
{
    std::vector<std::pair<Stretch, Stretch>> pairs;
    if (from.phases.size() != to.phases.size())
        return pairs;
    for (std::size_t i = 0; i < from.phases.size(); ++i) {
        if (from.phases[i].key != to.phases[i].key)
            return {};
        pairs.push_back({{from.phases[i].begin, from.phases[i].end}, {to.phases[i].begin, to.phases[i].end}});
    }
    return pairs;
}

Curve thinned(Curve curve, std::size_t most)
{
    const std::size_t count = std::min(curve.x.size(), curve.y.size());
    if (count <= most)
        return curve;
    std::vector<double> x, y;
    for (std::size_t k = 0; k < most; ++k) {
        const auto begin = curve.y.begin() + std::ptrdiff_t(k * count / most);
        const auto end = curve.y.begin() + std::ptrdiff_t((k + 1) * count / most);
        const auto highest = std::max_element(begin, end);
        x.push_back(curve.x[std::size_t(highest - curve.y.begin())]);
        y.push_back(*highest);
    }
    curve.x = std::move(x);
    curve.y = std::move(y);
    curve.low.clear();
    curve.high.clear();
    return curve;
}

std::vector<Band> phaseBands(const MemoryTimeline& timeline)
{
    std::vector<Band> bands;
    for (const TimelinePhase& phase : timeline.phases) {
        const QString label =
            phase.microBatch > 0 ? phase.label + QStringLiteral(" %1").arg(phase.microBatch + 1) : phase.label;
        bands.push_back({phase.begin, phase.end, label});
    }
    return bands;
}

/// Where memory runs out, on the line of the capacity. The bytes before the step (weights, optimizer state) may be too
/// much already: that is before the first event of the timeline.
Callout callout(const MemoryTimeline& timeline, const std::vector<double>& totals, ByteStyle bytes)
{
    const OutOfMemoryPoint& point = *timeline.outOfMemory;
    const auto at = std::ranges::lower_bound(timeline.event, point.event) - timeline.event.begin();
    const double height = totals[std::min(std::size_t(at), totals.size() - 1)];
    const bool before = point.event < timeline.event.front();
    return {std::max(point.event, timeline.event.front()),
            timeline.capacity ? std::min(height, *timeline.capacity) : height,
            before ? tr("Out of memory before the step begins") : tr("Out of memory here"),
            tr("%1: %2").arg(placeText(point.phase, point.module, point.name), memoryText(point.bytes, bytes))};
}

} // namespace

MemoryPlot memoryPlot(const MemoryTimeline& timeline, ByteStyle bytes)
{
    MemoryPlot plot;
    for (const TimelineCategory& category : timeline.categories) {
        Curve area;
        area.key = QStringLiteral("area.") + category.key;
        area.name = category.label;
        area.role = CurveRole::Area;
        area.palette = partIndex(category.key.toStdString());
        area.x = timeline.event;
        area.y = category.bytes;
        plot.areas.push_back(std::move(area));
    }
    plot.phases = phaseBands(timeline);
    if (timeline.outOfMemory && !timeline.event.empty())
        plot.callouts.push_back(callout(timeline, timeline.totals(), bytes));
    return plot;
}

Curve alignedCurve(Curve measured, const MemoryTimeline& from, const MemoryTimeline& to, std::size_t most)
{
    measured = thinned(std::move(measured), most);
    if (measured.x.empty() || to.event.empty())
        return measured;
    const auto pairs = commonPhases(from, to);
    const Stretch all{measured.x.front(), measured.x.back()}, over{to.event.front(), to.event.back()};
    for (double& x : measured.x) {
        const auto phase = std::ranges::find_if(pairs, [&](const auto& pair) { return x <= pair.first.end; });
        x = phase != pairs.end() ? moved(x, phase->first, phase->second) : moved(x, all, over);
    }
    return measured;
}

} // namespace memscape
