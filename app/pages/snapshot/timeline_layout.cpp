// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/timeline_layout.h"

#include "app/pages/snapshot/snapshot_words.h"
#include "app/pictures/common/span.h"
#include "app/pictures/common/stairs.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/plot_style.h"
#include "app/plots/ticks.h"
#include "app/settings/words.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double axisWidth = 58, rightRoom = 8, topRoom = 22, rowHeight = 15;
constexpr double leastBytes = 4096, gripRoom = 1.5; ///< in sight: B, heights of the block under the pointer
constexpr std::size_t mostSteps = 400;              ///< in sight, else they are too narrow to be told apart
/// From the bottom up, as on Memory budget.
constexpr Category layerOrder[] = {Category::Weights,   Category::MasterWeights, Category::OptimizerState,
                                   Category::Gradients, Category::KeyValueCache, Category::Input,
                                   Category::Workspace, Category::Communication, Category::Activations,
                                   Category::Temporary, Category::Unknown};

/// Times as shares of the range, or events where all times are the same.
bool hasTimes(const Lifetimes& lifetimes, const TimelineSight& sight)
{
    return lifetimes.timeAt(sight.last) > lifetimes.timeAt(sight.first) && lifetimes.timeAt(sight.first) > 0;
}

void placeColumns(const SnapshotDevice& device, bool byTime, TimelineChart& chart)
{
    const auto& [first, last, bottom, top] = chart.sight;
    const std::size_t pixels = std::size_t(std::max(1.0, chart.area.width()));
    const std::size_t count = std::max<std::size_t>(1, std::min(pixels, byTime ? pixels : last - first));
    chart.boundaries =
        byTime ? device.timeline().byTime(first, last, count) : device.timeline().byEvents(first, last, count);
    chart.columns = device.timeline().columns(chart.boundaries);
    for (std::size_t i = 0; i < chart.boundaries.size(); ++i)
        chart.edges.push_back(chart.area.left() + chart.area.width() * double(i) / double(count));
}

/// The small blocks of each category: all of it without the bands, scaled to what lies below them.
void addLayers(const SnapshotDevice& device, const TimelineBands& bands, TimelineChart& chart)
{
    const std::size_t count = chart.columns.size();
    std::vector<CategoryBytes> layers = device.timeline().categories(chart.columns);
    for (const TimelineBand& band : bands.bands) {
        const std::size_t category = std::size_t(device.categories().of(band.lifetime));
        for (std::size_t i = 0; i < band.bottoms.size() && band.firstColumn + i < count; ++i)
            layers[band.firstColumn + i][category] -= band.size;
    }
    std::vector<double> base(count, 0.0);
    for (const Category category : layerOrder) {
        TimelineShape shape;
        shape.category = category;
        bool isThere = false;
        for (std::size_t i = 0; i < count; ++i) {
            const double rest = double(i < bands.rest.size() ? bands.rest[i] : 0);
            // What no category accounts for (blocks that a stream still uses) goes on top.
            const double own = category == Category::Unknown
                ? rest - base[i]
                : double(std::max<std::int64_t>(0, layers[i][std::size_t(category)]));
            const double height = std::clamp(own, 0.0, std::max(0.0, rest - base[i]));
            shape.low.push_back(chart.y(base[i]));
            base[i] += height;
            shape.high.push_back(chart.y(base[i]));
            isThere |= height > 0;
        }
        if (isThere)
            chart.shapes.push_back(std::move(shape));
    }
}

void addBands(const TimelineBands& bands, const SnapshotDevice& device, TimelineChart& chart)
{
    for (const TimelineBand& band : bands.bands) {
        TimelineShape shape;
        shape.lifetime = band.lifetime;
        shape.category = device.categories().of(band.lifetime);
        shape.column = band.firstColumn;
        for (const std::int64_t bottom : band.bottoms) {
            shape.low.push_back(chart.y(double(bottom)));
            shape.high.push_back(chart.y(double(bottom + band.size)));
        }
        chart.shapes.push_back(std::move(shape));
    }
}

void placeLabels(const SnapshotDevice& device, TimelineChart& chart, ByteStyle bytes)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.75));
    for (TimelineShape& shape : chart.shapes) {
        const QRectF best =
            longestStretch({chart.edges, shape.column, shape.low, shape.high}, chart.area, metrics.height());
        const double room = best.width() - 6 * u;
        if (room < 20 * u)
            continue;
        QStringList wordings;
        if (shape.lifetime == noLifetime) {
            wordings << categoryName(shape.category);
        } else {
            const QString size = memoryText(double(device.lifetimes()[shape.lifetime].size), bytes);
            const QString name = lifetimeName(device, shape.lifetime);
            wordings << (name.isEmpty() ? categoryName(shape.category) : name) + u' ' + size
                     << categoryName(shape.category) + u' ' + size << size;
        }
        for (const QString& words : wordings) {
            if (metrics.horizontalAdvance(words) > room)
                continue;
            shape.text = words;
            shape.label = best.adjusted(3 * u, 0, -3 * u, 0);
            break;
        }
    }
}

void placeReserved(TimelineChart& chart, ByteStyle bytes)
{
    std::int64_t most = 0;
    for (std::size_t i = 0; i < chart.columns.size(); ++i) {
        const double height = chart.y(double(chart.columns[i].highReserved));
        most = std::max(most, chart.columns[i].highReserved);
        chart.reserved << QPointF(chart.edges[i], height) << QPointF(chart.edges[i + 1], height);
    }
    if (chart.reserved.isEmpty() || most == 0)
        return;
    const QFontMetricsF metrics(plotFont(0.78, true));
    chart.reservedText = tr("reserved %1").arg(memoryText(double(chart.columns.back().highReserved), bytes));
    const double width = metrics.horizontalAdvance(chart.reservedText) + 4;
    const double line = chart.reserved.back().y(), height = metrics.height();
    const double above = line - height - 2;
    chart.reservedLabel =
        QRectF(chart.area.right() - width, above >= chart.area.top() ? above : line + 2, width, height);
}

void placePhases(const SnapshotDevice& device, const QRectF& row, TimelineChart& chart)
{
    const QFontMetricsF metrics(plotFont(0.72));
    const auto phaseOf = [&](std::size_t column) {
        const std::size_t moment = chart.columns[column].peak;
        return moment == 0 ? std::nullopt : device.categories().phaseOf(moment - 1);
    };
    for (std::size_t i = 0; i < chart.columns.size();) {
        const std::optional<Phase> phase = phaseOf(i);
        std::size_t end = i + 1;
        while (end < chart.columns.size() && phaseOf(end) == phase)
            ++end;
        if (phase) {
            TimelineStretch stretch{
                QRectF(chart.edges[i], row.top(), chart.edges[end] - chart.edges[i], row.height() - 2), {}, {}, *phase};
            const std::string_view name = phaseText(*phase);
            stretch.name = QString::fromUtf8(name.data(), qsizetype(name.size()));
            if (metrics.horizontalAdvance(stretch.name) + 4 <= stretch.rect.width())
                stretch.text = stretch.name;
            chart.phases.push_back(std::move(stretch));
        }
        i = end;
    }
}

void placeSteps(const SnapshotDevice& device, const QRectF& row, TimelineChart& chart)
{
    const QFontMetricsF metrics(plotFont(0.8));
    const auto& steps = device.steps().steps;
    const auto begin =
        std::ranges::find_if(steps, [&](const SnapshotStep& step) { return step.last > chart.sight.first; });
    const auto end =
        std::find_if(begin, steps.end(), [&](const SnapshotStep& step) { return step.first >= chart.sight.last; });
    if (end - begin > std::ptrdiff_t(mostSteps))
        return;
    double free = row.left();
    for (auto step = begin; step != end; ++step) {
        TimelineStretch stretch;
        const double left = std::max(chart.area.left(), chart.x(double(step->first)));
        const double right = std::min(chart.area.right(), chart.x(double(step->last)));
        stretch.rect = QRectF(left, row.top(), std::max(0.0, right - left), row.height());
        stretch.name = tr("step %1").arg(step->index);
        const double width = metrics.horizontalAdvance(stretch.name);
        if (stretch.rect.center().x() - width / 2 >= free && width <= std::max(stretch.rect.width(), width * 0.9)) {
            stretch.text = stretch.name;
            free = stretch.rect.center().x() + width / 2 + 8;
        }
        chart.steps.push_back(std::move(stretch));
    }
}

void placeTicks(const SnapshotDevice& device, bool byTime, ByteStyle bytes, TimelineChart& chart)
{
    const double u = plotUnit();
    for (const Tick& tick : byteTicks(bytes, chart.sight.bottom, chart.sight.top, int(chart.area.height() / (44 * u))))
        chart.yTicks.push_back({chart.y(tick.value), tick.text});
    const Lifetimes& lifetimes = device.lifetimes();
    AxisSpec across;
    across.unit = byTime ? Unit::Second : Unit::One;
    const double start = byTime ? double(lifetimes.timeAt(0)) : 0;
    const auto value = [&](std::size_t moment) {
        return byTime ? (double(lifetimes.timeAt(moment)) - start) * 1e-6 : double(moment);
    };
    const double low = value(chart.sight.first), high = value(chart.sight.last);
    if (!(high > low))
        return;
    for (const Tick& tick : majorTicks(across, low, high, std::max(2, int(chart.area.width() / (110 * u)))))
        chart.xTicks.push_back({chart.area.left() + (tick.value - low) / (high - low) * chart.area.width(), tick.text});
}

/// Of the categories that are there, in the order of their layers, as many as have room.
void placeLegend(TimelineChart& chart)
{
    const double u = plotUnit();
    const QFontMetricsF metrics(plotFont(0.8));
    chart.legendEnd = chart.area.left();
    for (const Category category : layerOrder) {
        const bool isThere =
            std::ranges::any_of(chart.shapes, [&](const TimelineShape& shape) { return shape.category == category; });
        if (!isThere)
            continue;
        TimelineLegend item;
        item.category = category;
        item.text = categoryName(category);
        const double top = chart.area.top() - 19 * u, width = metrics.horizontalAdvance(item.text);
        if (chart.legendEnd + width + 16 * u > chart.area.right())
            return;
        item.swatch = QRectF(chart.legendEnd, top + 3 * u, 9 * u, 9 * u);
        item.rect = QRectF(chart.legendEnd + 13 * u, top, width + 2, 15 * u);
        chart.legendEnd = item.rect.right() + 10 * u;
        chart.legend.push_back(std::move(item));
    }
}

void placeFailures(const SnapshotDevice& device, TimelineChart& chart)
{
    const Lifetimes& lifetimes = device.lifetimes();
    const SnapshotEvents& events = device.snapshot().events;
    for (std::size_t event = chart.sight.first; event < std::min(chart.sight.last, lifetimes.events()); ++event) {
        if (events.action(lifetimes.eventIndex(event)) == SnapshotAction::OutOfMemory)
            chart.outOfMemory.push_back(chart.x(double(event + 1)));
    }
}

/// Nearest moment to a share of what is in sight.
std::size_t momentAtShare(const Lifetimes& lifetimes, const TimelineSight& sight, bool byTime, double share)
{
    if (byTime && hasTimes(lifetimes, sight)) {
        const double from = double(lifetimes.timeAt(sight.first)), to = double(lifetimes.timeAt(sight.last));
        const double time = from + share * (to - from);
        return time <= double(lifetimes.timeAt(0)) ? 0 : lifetimes.momentAt(std::int64_t(time));
    }
    const double moment = double(sight.first) + share * double(sight.last - sight.first);
    return std::size_t(std::clamp(std::round(moment), 0.0, double(lifetimes.events())));
}

} // namespace

TimelineSight wholeSight(const SnapshotDevice& device)
{
    const std::size_t last = device.lifetimes().events();
    const std::size_t peak = device.timeline().peakReserved(0, last);
    const double most = std::max(double(device.lifetimes().bytesAt(peak).reserved), leastBytes);
    return {0, last, 0, most * 1.06};
}

TimelineSight zoomedSight(const SnapshotDevice& device, const TimelineSight& sight, bool byTime, double share,
                          double factor)
{
    const std::size_t events = device.lifetimes().events(), fewest = std::min(fewestMoments, events);
    const double at = std::clamp(share, 0.0, 1.0);
    TimelineSight next = sight;
    next.first = momentAtShare(device.lifetimes(), sight, byTime, at - at * factor);
    next.last = momentAtShare(device.lifetimes(), sight, byTime, at + (1 - at) * factor);
    if (next.last < next.first + fewest) {
        const std::size_t middle = momentAtShare(device.lifetimes(), sight, byTime, at);
        next.first = std::min(middle - std::min(middle, fewest / 2), events - fewest);
        next.last = next.first + fewest;
    }
    return next;
}

TimelineSight withMemory(const SnapshotDevice& device, const TimelineSight& sight)
{
    const std::size_t peak = device.timeline().peakReserved(sight.first, sight.last);
    const Span bytes = lowered({sight.bottom, sight.top}, double(device.lifetimes().bytesAt(peak).reserved));
    return {sight.first, sight.last, bytes.low, bytes.high};
}

TimelineSight TimelineChart::zoomedBytes(const SnapshotDevice& device, QPointF place, double factor, double most) const
{
    const int column = columnAt(edges, place.x());
    const double reserved = column < 0 ? 0 : double(columns[std::size_t(column)].highReserved);
    const double held = std::clamp(place.y(), std::clamp(y(reserved), area.top(), area.bottom()), area.bottom());
    const TimelineShape* shape = at({place.x(), held + 0.5});
    const bool isBlock = shape && shape->lifetime != noLifetime;
    const double least = isBlock ? gripRoom * double(device.lifetimes()[shape->lifetime].size) : leastBytes;
    const double bytes = sight.bottom + (area.bottom() - held) / area.height() * (sight.top - sight.bottom);
    const Span next = zoomed({sight.bottom, sight.top}, {0, most}, bytes, factor, least);
    return {sight.first, sight.last, next.low, next.high};
}

TimelineSight pannedSight(const SnapshotDevice& device, const TimelineSight& sight, bool byTime, double xShare)
{
    const Lifetimes& lifetimes = device.lifetimes();
    TimelineSight next = sight;
    const std::size_t width = sight.last - sight.first;
    next.first = momentAtShare(lifetimes, sight, byTime, xShare);
    next.last = momentAtShare(lifetimes, sight, byTime, 1 + xShare);
    if (next.last >= lifetimes.events() && xShare > 0) {
        next.last = lifetimes.events();
        next.first = next.last - std::min(width, next.last);
    } else if (next.first == 0 && xShare < 0) {
        next.last = std::min(width, lifetimes.events());
    }
    if (next.last < next.first + std::min(fewestMoments, lifetimes.events()))
        return sight;
    return next;
}

double TimelineChart::y(double bytes) const
{
    return area.bottom() - (bytes - sight.bottom) / (sight.top - sight.bottom) * area.height();
}

double TimelineChart::x(double moment) const
{
    if (boundaries.size() < 2)
        return area.left();
    const auto above = std::upper_bound(boundaries.begin(), boundaries.end(), moment,
                                        [](double value, std::size_t one) { return value < double(one); });
    const std::size_t i = std::clamp<std::size_t>(std::size_t(above - boundaries.begin()), 1, boundaries.size() - 1);
    const double from = double(boundaries[i - 1]), to = double(boundaries[i]);
    const double share = to > from ? (moment - from) / (to - from) : 0;
    return edges[i - 1] + share * (edges[i] - edges[i - 1]);
}

std::size_t TimelineChart::momentAt(double place) const
{
    if (boundaries.size() < 2)
        return sight.first;
    const double inside = std::clamp(place, area.left(), std::nextafter(area.right(), area.left()));
    const int column = std::max(0, columnAt(edges, inside));
    const std::size_t from = boundaries[std::size_t(column)], to = boundaries[std::size_t(column) + 1];
    const double share = (inside - edges[std::size_t(column)])
        / std::max(1e-9, edges[std::size_t(column) + 1] - edges[std::size_t(column)]);
    return std::clamp(from + std::size_t(std::floor(share * double(to - from))), sight.first, sight.last);
}

std::size_t TimelineChart::peakAt(double place) const
{
    const int column = columnAt(edges, place);
    return column < 0 || std::size_t(column) >= columns.size() ? momentAt(place) : columns[std::size_t(column)].peak;
}

const TimelineShape* TimelineChart::at(QPointF place) const
{
    if (!area.contains(place))
        return nullptr;
    const int column = columnAt(edges, place.x());
    const auto found = std::ranges::find_if(shapes, [&](const TimelineShape& shape) {
        return contains({edges, shape.column, shape.low, shape.high}, column, place.y());
    });
    return found == shapes.end() ? nullptr : &*found;
}

TimelineChart layoutTimeline(const SnapshotDevice& device, const TimelineSight& sight, const QRectF& rect, bool byTime,
                             ByteStyle bytes, std::size_t bands)
{
    const double u = plotUnit();
    TimelineChart chart;
    chart.sight = sight;
    const bool hasSteps = !device.steps().steps.empty();
    const double foot = rowHeight * u * (hasSteps ? 3 : 2);
    chart.area = rect.adjusted(axisWidth * u, topRoom * u, -rightRoom * u, -foot);
    if (chart.area.width() < 8 || chart.area.height() < 8 || sight.last <= sight.first)
        return chart;
    const bool even = byTime && hasTimes(device.lifetimes(), sight);
    placeColumns(device, even, chart);
    const TimelineBands largest = device.timeline().bands(chart.columns, bands);
    addLayers(device, largest, chart);
    addBands(largest, device, chart);
    placeLabels(device, chart, bytes);
    placeReserved(chart, bytes);
    const QRectF row(chart.area.left(), chart.area.bottom() + 2 * u, chart.area.width(), rowHeight * u);
    placePhases(device, row, chart);
    if (hasSteps)
        placeSteps(device, row.translated(0, row.height() * 2), chart);
    placeTicks(device, even, bytes, chart);
    placeFailures(device, chart);
    placeLegend(chart);
    return chart;
}

QPolygonF layoutPrediction(const TimelineChart& chart, const std::vector<double>& totals, std::size_t first,
                           std::size_t last)
{
    QPolygonF line;
    if (totals.size() < 2 || last <= first || last <= chart.sight.first || first >= chart.sight.last)
        return line;
    const double left = chart.x(double(first)), right = chart.x(double(last));
    const std::size_t points = std::size_t(std::max(2.0, std::min(double(totals.size()), right - left)));
    for (std::size_t i = 0; i < points; ++i) {
        const std::size_t from = i * totals.size() / points;
        const std::size_t to = std::max(from + 1, (i + 1) * totals.size() / points);
        const double most =
            *std::max_element(totals.begin() + std::ptrdiff_t(from), totals.begin() + std::ptrdiff_t(to));
        line << QPointF(left + (right - left) * double(i) / double(points - 1), chart.y(most));
    }
    return line;
}

} // namespace memscape
