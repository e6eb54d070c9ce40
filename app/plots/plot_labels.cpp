// SPDX-License-Identifier: GPL-3.0-or-later
// The words inside a plot. Each has a few places where it may stand: a band's name beside its line,
// a limit's along its line, a curve's near its end. It takes the one that covers least of the
// curves and of the words before it.
#include "app/plots/plot_paint.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

// Pixels of a curve's points, thinned, to put labels at.
std::vector<QPointF> sampledPixels(const CleanCurve& curve, const PlotMapper& map)
{
    std::vector<QPointF> points;
    const std::size_t step = std::max<std::size_t>(1, curve.x.size() / 300);
    for (std::size_t i = 0; i < curve.x.size(); i += step) {
        const QPointF p(map.toX(curve.x[i]), map.toY(curve.y[i]));
        if (std::isfinite(p.x()) && std::isfinite(p.y()) && map.rect.contains(p))
            points.push_back(p);
    }
    return points;
}

constexpr double apart = 6; // px between the places of a line that labels keep away from

// The same with what a line passes through between them.
std::vector<QPointF> linePixels(const std::vector<QPointF>& points)
{
    std::vector<QPointF> line;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const QPointF from = i > 0 ? points[i - 1] : points[i];
        const QPointF way = points[i] - from;
        const int steps = std::max(1, int(std::hypot(way.x(), way.y()) / apart));
        for (int step = 1; step <= steps; ++step)
            line.push_back(from + way * step / steps);
    }
    return line;
}

// Of a line over categories, which stops at each.
std::vector<QPointF> levelPixels(const std::vector<QPointF>& points, const PlotMapper& map)
{
    const double reach = map.toX(levelReach) - map.toX(0);
    std::vector<QPointF> line;
    for (const QPointF& point : points) {
        for (double x = -reach; x <= reach; x += apart)
            line.emplace_back(point.x() + x, point.y());
    }
    return line;
}

/// What labels keep away from.
class Obstacles
{
public:
    Obstacles(const PlotState& state, const PlotMapper& map, const Theme& theme)
    {
        for (std::size_t c = 0; c < state.curves.size(); ++c) {
            const Curve& curve = state.curves[c];
            // An area's own bytes are not where its edge is.
            if (!curve.visible || curve.role == CurveRole::Area || state.cleaned[c].x.size() >= 20000)
                continue;
            const auto dots = sampledPixels(state.cleaned[c], map);
            const bool line = styleOf(curve, theme).pen.style() != Qt::NoPen;
            const auto points = state.hasLevels(c, theme) ? levelPixels(dots, map)
                : line && state.x.names.isEmpty()         ? linePixels(dots)
                                                          : dots;
            m_points.insert(m_points.end(), points.begin(), points.end());
        }
        for (std::size_t i = 0; i < state.markers.size(); ++i) {
            m_taken.push_back(markerPill(state, i, map));
            m_taken.emplace_back(map.toX(state.markers[i].x) - 1, map.rect.top(), 2, map.rect.height());
        }
        for (const Callout& callout : state.callouts)
            m_taken.push_back(calloutCard(callout, map));
        constexpr double radius = 3;
        for (const CleanCurve& curve : state.cleaned) {
            if (curve.x.size() != 1)
                continue;
            m_dots.emplace_back(map.toX(curve.x[0]), map.toY(curve.y[0])); // a point of its own
            m_taken.emplace_back(m_dots.back() - QPointF(radius, radius), QSizeF(2 * radius, 2 * radius));
        }
        for (const Band& band : state.bands) {
            if (std::fabs(map.toX(band.to) - map.toX(band.from)) <= 1)
                m_taken.emplace_back(map.toX(band.from) - 1, map.rect.top(), 2, map.rect.height());
        }
    }

    void take(const QRectF& box)
    {
        m_taken.push_back(box);
        m_words.push_back(box);
    }

    void release(const QRectF& box)
    {
        for (std::vector<QRectF>* boxes : {&m_taken, &m_words})
            boxes->erase(std::ranges::find(*boxes, box));
    }

    bool hits(const QRectF& box) const
    {
        return std::ranges::any_of(m_taken, [&](const QRectF& other) { return other.intersects(box); });
    }

    /// Whether a label stands there already.
    bool hitsWords(const QRectF& box) const
    {
        return std::ranges::any_of(m_words, [&](const QRectF& other) { return other.intersects(box); });
    }

    /// How many points of their own are nearer to the box than the one at `own`: it would seem to be theirs.
    int strangers(const QRectF& box, QPointF own) const
    {
        const auto distance = [&](QPointF dot) {
            return std::hypot(std::max({box.left() - dot.x(), 0.0, dot.x() - box.right()}),
                              std::max({box.top() - dot.y(), 0.0, dot.y() - box.bottom()}));
        };
        return int(std::ranges::count_if(m_dots, [&](QPointF dot) { return distance(dot) < distance(own); }));
    }

    /// How much a label in this box would cover.
    double cost(const QRectF& box) const
    {
        const QRectF room = box.adjusted(-2, -2, 2, 2);
        const auto inside = [&](const QPointF& point) { return room.contains(point); };
        return double(std::ranges::count_if(m_points, inside)) + (hits(room) ? 40 : 0);
    }

private:
    std::vector<QPointF> m_points, m_dots;
    std::vector<QRectF> m_taken, m_words;
};

/// Beside its line or inside its stretch, at the top; lower where something stands already.
QRectF bandPlace(const Band& band, const PlotMapper& map, const QSizeF& size, const Obstacles& obstacles)
{
    const double left = map.toX(std::min(band.from, band.to));
    const double right = map.toX(std::max(band.from, band.to));
    const bool stretch = right - left > 1;
    const double before = stretch ? left + 5 : left - size.width() - 5;
    const double after = stretch ? before : right + 5;
    const auto box = [&](double x, int row) {
        return QRectF(QPointF(std::max(x, map.rect.left() + 3), map.rect.top() + 3 + row * size.height()), size);
    };
    // Where lines stand close together one may cross a name, but no name stands on another.
    for (const auto isTaken : {&Obstacles::hits, &Obstacles::hitsWords}) {
        for (int row = 0; row < 4; ++row) {
            for (const double x : {before, after}) {
                const QRectF place = box(x, row);
                if (!(obstacles.*isTaken)(place) && place.left() > map.rect.left() && place.right() < map.rect.right())
                    return place;
            }
        }
    }
    return box(std::max(before, map.rect.left() + 3), 0);
}

void addBands(const PlotState& state, const PlotMapper& map, const Theme& theme, Obstacles& obstacles,
              std::vector<PlotLabel>& labels)
{
    const QFont font = plotFont(0.85, true);
    const QFontMetricsF metrics(font);
    for (const Band& band : state.bands) {
        const double left = map.toX(std::min(band.from, band.to));
        const double right = map.toX(std::max(band.from, band.to));
        if (!(right >= map.rect.left()) || !(left <= map.rect.right()))
            continue;
        const QSizeF size(metrics.horizontalAdvance(band.label), metrics.height());
        const QRectF box = bandPlace(band, map, size, obstacles);
        obstacles.take(box.adjusted(-3, 0, 3, 0));
        labels.push_back({box, band.label, font, theme.textFaint});
    }
}

/// Above or below its line, as far to the right as that costs little.
QRectF linePlace(double y, const PlotMapper& map, const QSizeF& size, const Obstacles& obstacles)
{
    constexpr int steps = 12;
    const double last = map.rect.right() - size.width() - 4;
    const double step = (last - map.rect.left() - 4) / steps;
    QRectF best(QPointF(last, y + 1), size);
    double least = 1e9;
    for (int i = 0; i <= steps && step >= 0; ++i) {
        for (const double top : {y - size.height() - 1, y + 1}) {
            const QRectF box(QPointF(last - i * step, top), size);
            if (!map.rect.contains(box))
                continue;
            const double cost = obstacles.cost(box) + 0.3 * i + (top > y ? 0.2 : 0);
            if (cost < least) {
                least = cost;
                best = box;
            }
        }
    }
    return best;
}

void addLines(const PlotState& state, const PlotMapper& map, const Theme& theme, Obstacles& obstacles,
              std::vector<PlotLabel>& labels)
{
    const QFont font = plotFont(0.85);
    const QFontMetricsF metrics(font);
    for (const HorizontalLine& line : state.lines) {
        const double y = map.toY(line.y);
        if (!std::isfinite(y) || y < map.rect.top() || y > map.rect.bottom())
            continue;
        const QSizeF size(metrics.horizontalAdvance(line.label) + 4, metrics.height());
        const QRectF box = linePlace(y, map, size, obstacles);
        obstacles.take(box);
        labels.push_back({box, line.label, font, line.limit ? theme.bad : theme.textDim, line.limit});
    }
}

struct LabelOffset
{
    QPointF at; ///< from the point to the label's corner
    double cost;
};

/// Above and below a point of a curve.
std::vector<LabelOffset> curveOffsets(const QSizeF& size)
{
    const double above = -size.height() - 5, half = -size.width() / 2;
    return {{{half, above}, 0}, {{half, 6}, 0}, {{half, above - 11}, 0.8}, {{half, 17}, 0.8}};
}

/// Around a point of its own, rather beside it, and so near that it is clear whose name it is.
std::vector<LabelOffset> pointOffsets(const QSizeF& size)
{
    const double gap = 7, above = -size.height() - gap, middle = -size.height() / 2, left = -size.width() - gap;
    std::vector<LabelOffset> offsets;
    for (const double y : {middle, above + 4, gap - 4.0, above - 4, gap + 4}) {
        offsets.push_back({{gap, y}, y == middle ? 0 : 0.1});
        offsets.push_back({{left, y}, y == middle ? 0.2 : 0.3});
    }
    const double row = size.height() * 0.8;
    for (const double y : {above, gap, above - row, gap + row}) {
        const double distance = y == above || y == gap ? 0.4 : 2.5;
        for (const double share : {0.5, 0.25, 0.75, 0.1, 0.9})
            offsets.push_back({{-share * size.width(), y}, distance + std::fabs(share - 0.5)});
    }
    return offsets;
}

/// Of some places near the curve's right end, the one that covers least.
QRectF endPlace(const std::vector<QPointF>& points, const PlotMapper& map, const QSizeF& size,
                const Obstacles& obstacles)
{
    QRectF best;
    double least = 1e9;
    const bool isPoint = points.size() == 1;
    const std::vector<LabelOffset> offsets = isPoint ? pointOffsets(size) : curveOffsets(size);
    for (std::size_t back = 0; back < std::min<std::size_t>(points.size(), 60); ++back) {
        const QPointF p = points[points.size() - 1 - back];
        for (const LabelOffset& offset : offsets) {
            QRectF box(p + offset.at, size);
            if (!isPoint)
                box.moveRight(std::min(box.right(), map.rect.right() - 4));
            double cost = 0.02 * static_cast<double>(back) + offset.cost;
            cost += map.rect.contains(box) ? 0 : 50;
            cost += obstacles.cost(box) + (isPoint ? 3 * obstacles.strangers(box, p) : 0);
            if (cost < least) {
                least = cost;
                best = box;
            }
        }
    }
    return best;
}

struct NamedCurve
{
    const Curve* curve;
    std::vector<QPointF> points;
    QRectF box;
};

void addCurves(const PlotState& state, const PlotMapper& map, const Theme& theme, Obstacles& obstacles,
               std::vector<PlotLabel>& labels)
{
    const QFont font = plotFont(0.85, true);
    const QFontMetricsF metrics(font);
    std::vector<NamedCurve> named;
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const Curve& curve = state.curves[c];
        if (!curve.visible || !curve.labelled)
            continue;
        auto points = sampledPixels(state.cleaned[c], map);
        if (points.empty())
            continue;
        const QSizeF size(metrics.horizontalAdvance(curve.name) + 2, metrics.height());
        const QRectF box = endPlace(points, map, size, obstacles);
        obstacles.take(box);
        named.push_back({&curve, std::move(points), box});
    }
    // Those that came first left the others little room: each looks once more where it stands best among all.
    for (int again = 0; again < 3; ++again) {
        for (NamedCurve& one : named) {
            if (one.points.size() != 1)
                continue;
            obstacles.release(one.box);
            one.box = endPlace(one.points, map, one.box.size(), obstacles);
            obstacles.take(one.box);
        }
    }
    for (const NamedCurve& one : named) {
        obstacles.release(one.box);
        // No room among its neighbours: pointing at it, and the legend, say what it is.
        if (obstacles.hitsWords(one.box))
            continue;
        obstacles.take(one.box);
        labels.push_back({one.box, one.curve->name, font, styleOf(*one.curve, theme).textColour});
    }
}

} // namespace

std::vector<PlotLabel> layoutLabels(const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    std::vector<PlotLabel> labels;
    Obstacles obstacles(state, map, theme);
    addBands(state, map, theme, obstacles, labels);
    addLines(state, map, theme, obstacles, labels);
    addCurves(state, map, theme, obstacles, labels);
    return labels;
}

void paintLabels(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    for (const PlotLabel& label : layoutLabels(state, map, theme)) {
        if (label.backed)
            painter.fillRect(label.box.adjusted(-2, 0, 2, 0), theme.raised);
        painter.setFont(label.font);
        painter.setPen(label.colour);
        painter.drawText(label.box, Qt::AlignCenter, label.text);
    }
}

} // namespace memscape
