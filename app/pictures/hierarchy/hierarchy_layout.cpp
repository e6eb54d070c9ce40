// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/hierarchy/hierarchy_layout.h"

#include "app/pictures/common/declutter.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"
#include "core/timing/working_set.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double smallestSet = 1024; // B, where the handle's way begins

QString quantity(double value, Unit unit, ByteStyle style, int digits = 3)
{
    return std::isfinite(value) ? QString::fromStdString(quantityText(value, unit, style, digits)) : tr("unknown");
}

double known(double value, double fallback)
{
    return std::isfinite(value) && value > 0 ? value : fallback;
}

// Wanted places: log latency over the width; what is unknown stands between its neighbours.
std::vector<double> wantedPlaces(const std::vector<PictureLevel>& levels, double left, double right)
{
    const std::size_t count = levels.size();
    double low = INFINITY;
    double high = -INFINITY;
    std::vector<double> place(count, std::nan(""));
    for (std::size_t i = 0; i < count; ++i) {
        if (std::isfinite(levels[i].latency) && levels[i].latency > 0) {
            place[i] = std::log(levels[i].latency);
            low = std::min(low, place[i]);
            high = std::max(high, place[i]);
        }
    }
    if (!(low < high)) { // no two latencies: evenly
        for (std::size_t i = 0; i < count; ++i)
            place[i] = static_cast<double>(i);
        low = 0;
        high = std::max<double>(1, static_cast<double>(count) - 1);
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (std::isfinite(place[i]))
            continue;
        const double before = i > 0 ? place[i - 1] : low;
        double after = high;
        for (std::size_t j = i + 1; j < count; ++j) {
            if (std::isfinite(place[j])) {
                after = place[j];
                break;
            }
        }
        place[i] = (before + std::max(before, after)) / 2;
    }
    for (double& p : place)
        p = left + (p - low) / (high - low) * (right - left);
    return place;
}

double logShare(double value, double low, double high)
{
    if (!std::isfinite(value) || !(value > 0) || !(high > low))
        return 0.5;
    return std::clamp(std::log(value / low) / std::log(high / low), 0.0, 1.0);
}

struct Extent
{
    double low = INFINITY, high = 0;
    void add(double v)
    {
        if (std::isfinite(v) && v > 0) {
            low = std::min(low, v);
            high = std::max(high, v);
        }
    }
};

// The widest text under each box.
std::vector<Span> labelSpans(const HierarchyLayout& layout, const std::vector<double>& places, double boxWidth)
{
    const QFontMetricsF bold(plotFont(0.9 * layout.fontFactor, true));
    const QFontMetricsF plain(plotFont(0.85 * layout.fontFactor));
    const QFontMetricsF strong(plotFont(0.85 * layout.fontFactor, true));
    std::vector<Span> spans;
    for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
        const LevelBox& box = layout.boxes[i];
        const double width = std::max({bold.horizontalAdvance(box.nameText), plain.horizontalAdvance(box.capacityText),
                                       strong.horizontalAdvance(box.latencyText), boxWidth});
        spans.push_back({places[i], std::ceil(width) + 2});
    }
    return spans;
}

// Labels of the lines in a row of their own, moved apart like the boxes.
void placeRoadLabels(HierarchyLayout& layout, const QRectF& area, double top)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.8 * layout.fontFactor));
    std::vector<Span> spans;
    for (const Road& road : layout.roads)
        spans.push_back({road.rect.center().x(), std::ceil(metrics.horizontalAdvance(road.text)) + 2});
    const bool room = fits(spans, 6 * u, area.left(), area.right());
    const auto centres = spread(spans, 6 * u, area.left(), area.right());
    for (std::size_t i = 0; i < layout.roads.size(); ++i) {
        Road& road = layout.roads[i];
        if (!room) { // too narrow for all: shown on hovering
            road.text.clear();
            continue;
        }
        road.label = QRectF(centres[i] - spans[i].width / 2, top, spans[i].width, metrics.height());
    }
}

void placeBoxes(const HierarchyState& state, HierarchyLayout& layout, const QRectF& area, double tallest)
{
    const double u = plotUnit();
    const double boxWidth = std::min(56 * u, area.width() / (1.6 * static_cast<double>(state.levels.size())));
    const auto places = wantedPlaces(state.levels, area.left() + boxWidth / 2, area.right() - boxWidth / 2);
    std::vector<Span> spans;
    const double gap = 8 * u;
    for (layout.fontFactor = 1; layout.fontFactor > 0.62; layout.fontFactor -= 0.08) {
        spans = labelSpans(layout, places, boxWidth);
        if (fits(spans, gap, area.left(), area.right()))
            break;
    }
    const auto centres = spread(spans, gap, area.left(), area.right());
    const bool squeezed = !fits(spans, gap, area.left(), area.right());
    Extent capacity;
    for (const PictureLevel& level : state.levels)
        capacity.add(level.capacity);
    const QFontMetricsF name(plotFont(0.9 * layout.fontFactor, true));
    const QFontMetricsF text(plotFont(0.85 * layout.fontFactor));
    for (std::size_t i = 0; i < state.levels.size(); ++i) {
        const PictureLevel& level = state.levels[i];
        LevelBox& box = layout.boxes[i];
        const double height = 16 * u + logShare(level.capacity, capacity.low, capacity.high) * (tallest - 16 * u);
        const double width = squeezed ? std::min(boxWidth, spans[i].width * 0.6) : boxWidth;
        box.box = QRectF(centres[i] - width / 2, layout.ground - height, width, height);
        box.unknown = !std::isfinite(level.capacity) || !std::isfinite(level.latency);
        if (level.onPath && i <= state.home)
            box.filled = std::clamp(state.workingSet / known(level.holds, known(level.capacity, 1)), 0.0, 1.0);
        const double half = spans[i].width / 2;
        double y = layout.ground + 6 * u;
        box.name = QRectF(centres[i] - half, y, 2 * half, name.height());
        y += name.height();
        box.capacity = QRectF(centres[i] - half, y, 2 * half, text.height());
        y += text.height();
        box.latency = QRectF(centres[i] - half, y, 2 * half, text.height());
    }
}

void placeRoads(const HierarchyState& state, HierarchyLayout& layout)
{
    const double u = plotUnit();
    Extent bandwidth;
    for (const PictureLevel& level : state.levels)
        bandwidth.add(level.bandwidth);
    for (std::size_t i = 0; i + 1 < layout.boxes.size(); ++i) {
        const double rate = state.levels[i + 1].bandwidth;
        const double thick = 2.5 * u + logShare(rate, bandwidth.low, bandwidth.high) * 11 * u;
        Road road;
        const double left = layout.boxes[i].box.right();
        const double right = layout.boxes[i + 1].box.left();
        road.rect = QRectF(left, layout.ground - 8 * u - thick / 2, std::max(0.0, right - left), thick);
        road.text = quantity(rate, Unit::BytePerSecond, state.bytes);
        layout.roads.push_back(road);
    }
}

QString secondsText(const HierarchyState& state)
{
    if (!(state.clockHz > 0))
        return {};
    QStringList parts;
    for (const PictureLevel& level : state.levels) {
        const double cycles = level.latency * state.clockHz;
        if (std::isfinite(cycles) && cycles >= 0.5 && level.onPath)
            parts << QString::fromStdString(level.id) + QLatin1Char(' ') + humanDuration(cycles);
    }
    return parts.isEmpty() ? QString() : tr("if one cycle were one second: ") + parts.join(QStringLiteral(" · "));
}

// The yellow handle: on top of what is filled of the home level, where its capacity puts it.
void placeHandle(const HierarchyState& state, HierarchyLayout& layout)
{
    if (layout.boxes.empty())
        return;
    const double u = plotUnit();
    double before = smallestSet;
    for (std::size_t i = 0; i < state.home; ++i) {
        if (state.levels[i].onPath)
            before = known(state.levels[i].holds, before);
    }
    const double after = std::max(known(state.levels[state.home].holds, before * 1024), before * 1.01);
    const QRectF box = layout.boxes[state.home].box;
    const double x = box.left() + logShare(state.workingSet, before, after) * box.width();
    const double y = box.bottom() - std::max(0.04, layout.boxes[state.home].filled) * box.height();
    layout.handle = QRectF(x - 7 * u, y - 7 * u, 14 * u, 14 * u);
}

void placeTexts(const HierarchyState& state, HierarchyLayout& layout, const QRectF& rect)
{
    const double u = plotUnit();
    const QFontMetricsF small(plotFont(0.85));
    const QFontMetricsF bold(plotFont(0.85, true));
    if (state.home < state.levels.size())
        layout.calloutText = std::isfinite(state.latency)
            ? tr("a working set of %1 is in %2: %3")
                  .arg(quantity(state.workingSet, Unit::Byte, state.bytes),
                       QString::fromStdString(state.levels[state.home].id),
                       quantity(state.latency, Unit::Second, state.bytes))
            : tr("a working set of %1 is in %2")
                  .arg(quantity(state.workingSet, Unit::Byte, state.bytes),
                       QString::fromStdString(state.levels[state.home].id));
    if (state.measured)
        layout.measuredText = tr(" · measured %1").arg(quantity(*state.measured, Unit::Second, state.bytes));
    layout.seconds = QRectF(rect.left() + 8 * u, layout.title.bottom() + 2 * u, rect.width() - 16 * u, small.height());
    layout.secondsText = small.elidedText(secondsText(state), Qt::ElideRight, layout.seconds.width());
    const double width =
        std::min(rect.width() - 16 * u, bold.horizontalAdvance(layout.calloutText + layout.measuredText) + 4);
    double x = layout.handle.center().x() + 10 * u;
    x = std::clamp(x, rect.left() + 8 * u, std::max(rect.left() + 8 * u, rect.right() - 8 * u - width));
    layout.callout = QRectF(x, layout.seconds.bottom() + 4 * u, width, bold.height());
}

} // namespace

std::vector<QRectF> HierarchyLayout::labels() const
{
    std::vector<QRectF> rects{title, caption, seconds, callout};
    for (const LevelBox& box : boxes)
        rects.insert(rects.end(), {box.name, box.capacity, box.latency});
    for (const Road& road : roads) {
        if (!road.text.isEmpty())
            rects.push_back(road.label);
    }
    std::erase_if(rects, [](const QRectF& rect) { return rect.isEmpty(); });
    return rects;
}

QString humanDuration(double seconds)
{
    struct Step
    {
        double size;
        const char* text;
    };
    static constexpr Step steps[] = {{365.25 * 86400, "%1 years"}, {86400, "%1 days"}, {3600, "%1 h"}, {60, "%1 min"}};
    for (const Step& step : steps) {
        if (seconds >= step.size * 1.5 || (step.size < 86400 && seconds >= step.size))
            return tr(step.text).arg(QString::number(std::round(seconds / step.size), 'f', 0));
    }
    return tr("%1 s").arg(QString::number(seconds < 1 ? seconds : std::round(seconds), 'g', seconds < 1 ? 1 : 3));
}

HierarchyState hierarchyState(const Device& device, double workingSet, Operation operation, int threads)
{
    HierarchyState state;
    state.workingSet = workingSet;
    state.clockHz = device.clock.valueOr(0);
    state.gpu = device.isGpu();
    state.deviceName = QString::fromStdString(device.name);
    const auto served = servedBy(device, workingSet);
    const MemoryLevel* home = homeLevel(device, workingSet);
    for (const MemoryLevel& level : device.levels) {
        PictureLevel one;
        one.id = level.id;
        one.capacity = one.holds = level.capacity.value;
        one.latency = level.latency.value;
        one.bandwidth = levelRate(device, level, operation, threads);
        one.onPath = level.kind != LevelKind::Registers && level.kind != LevelKind::Scratchpad;
        for (const ServedBy& by : served) {
            if (by.level == &level) {
                one.share = by.share;
                one.holds = by.capacity;
            }
        }
        state.levels.push_back(one);
    }
    const auto farther = [](const PictureLevel& a, const PictureLevel& b) {
        return std::isfinite(a.latency) && std::isfinite(b.latency) && a.latency < b.latency;
    };
    // Scratchpads are listed where they belong by name; on paper latency decides.
    for (std::size_t i = 1; i < state.levels.size(); ++i) {
        for (std::size_t j = i; j > 0 && farther(state.levels[j], state.levels[j - 1]); --j)
            std::swap(state.levels[j], state.levels[j - 1]);
    }
    for (std::size_t i = 0; i < state.levels.size(); ++i) {
        if (home && state.levels[i].id == home->id)
            state.home = i;
    }
    state.latency = latencyOf(device, workingSet, Pages::Huge).seconds;
    return state;
}

HierarchyLayout layoutHierarchy(const HierarchyState& state, const QRectF& rect, const QString& title)
{
    HierarchyLayout layout;
    const double u = plotUnit();
    const QFontMetricsF head(plotFont(1.1, true));
    const QFontMetricsF small(plotFont(0.85));
    layout.title = QRectF(rect.left() + 8 * u, rect.top() + 4 * u,
                          std::min(head.horizontalAdvance(title) + 4, rect.width() - 60 * u), head.height());
    layout.pause = QRectF(rect.right() - 26 * u, rect.top() + 4 * u, 18 * u, 18 * u);
    const double captionWidth =
        small.horizontalAdvance(tr("across: latency · height: capacity · line: bandwidth (all logarithmic)")) + 4;
    if (layout.title.right() + 20 * u + captionWidth < layout.pause.left() - 6 * u)
        layout.caption =
            QRectF(layout.pause.left() - 8 * u - captionWidth, rect.top() + 4 * u, captionWidth, head.height());
    for (const PictureLevel& level : state.levels) {
        LevelBox box;
        box.nameText = QString::fromStdString(level.id);
        box.capacityText = quantity(level.capacity, Unit::Byte, state.bytes);
        box.latencyText = quantity(level.latency, Unit::Second, state.bytes);
        layout.boxes.push_back(box);
    }
    const QRectF area(rect.left() + 8 * u, rect.top(), rect.width() - 16 * u, rect.height());
    const double under = 6 * u + QFontMetricsF(plotFont(0.9, true)).height() + 2 * small.height() + 4 * u
        + QFontMetricsF(plotFont(0.8)).height() + 6 * u;
    layout.ground = rect.bottom() - under;
    const double above = layout.title.bottom() + small.height() * 2 + 22 * u;
    const double tallest = std::max(40 * u, layout.ground - above);
    if (!layout.boxes.empty()) {
        placeBoxes(state, layout, area, tallest);
        placeRoads(state, layout);
        placeHandle(state, layout);
        placeRoadLabels(layout, area, layout.boxes.front().latency.bottom() + 4 * u);
    }
    placeTexts(state, layout, rect);
    return layout;
}

double workingSetAt(const HierarchyState& state, const HierarchyLayout& layout, double x)
{
    double before = smallestSet;
    for (std::size_t i = 0; i < state.levels.size(); ++i) {
        if (!state.levels[i].onPath)
            continue;
        const double after = std::max(known(state.levels[i].holds, before * 1024), before);
        const QRectF box = layout.boxes[i].box;
        if (x <= box.left())
            return before;
        if (x <= box.right())
            return before * std::pow(after / before, (x - box.left()) / box.width());
        before = after;
    }
    return before;
}

} // namespace memscape
