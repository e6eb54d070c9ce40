// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/plot_paint.h"

#include "app/plots/ticks.h"

#include <QCoreApplication>
#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

void paintBands(QPainter& painter, const PlotState& state, const PlotMapper& map,
                const Theme& theme)
{
    const QFont font = plotFont(0.85, true);
    const QFontMetricsF metrics(font);
    painter.setFont(font);
    std::vector<QRectF> taken;
    for (const Band& band : state.bands) {
        const double left = map.toX(std::min(band.from, band.to));
        const double right = map.toX(std::max(band.from, band.to));
        if (!std::isfinite(left) || !std::isfinite(right) || right < map.rect.left()
            || left > map.rect.right())
            continue;
        if (right - left > 1) {
            QColor tint = theme.text;
            tint.setAlphaF(0.05F);
            painter.fillRect(
                QRectF(left, map.rect.top(), right - left, map.rect.height()).intersected(map.rect),
                tint);
        } else {
            painter.setPen(QPen(mix(theme.background, theme.textFaint, 0.7), 1));
            painter.drawLine(QPointF(left, map.rect.top()), QPointF(left, map.rect.bottom()));
        }
        const double width = metrics.horizontalAdvance(band.label);
        QRectF text(right - left > 1 ? left + 5 : left - width - 5, map.rect.top() + 3, width,
                    metrics.height());
        text.moveLeft(std::max(text.left(), map.rect.left() + 3));
        const auto hit = [&](const QRectF& other) { return other.intersects(text); };
        for (int row = 0; row < 4 && std::any_of(taken.begin(), taken.end(), hit); ++row)
            text.translate(0, metrics.height());
        taken.push_back(text.adjusted(-3, 0, 3, 0));
        painter.setPen(theme.textFaint);
        painter.drawText(text, Qt::AlignCenter, band.label);
    }
}

void paintLines(QPainter& painter, const PlotState& state, const PlotMapper& map,
                const Theme& theme)
{
    const QFont font = plotFont(0.85);
    const QFontMetricsF metrics(font);
    painter.setFont(font);
    for (const HorizontalLine& line : state.lines) {
        const double y = map.toY(line.y);
        if (!std::isfinite(y) || y < map.rect.top() || y > map.rect.bottom())
            continue;
        painter.setPen(line.limit ? QPen(theme.bad, 1.6, Qt::DashLine)
                                  : QPen(theme.textFaint, 1, Qt::DotLine));
        painter.drawLine(QPointF(map.rect.left(), y), QPointF(map.rect.right(), y));
        const double width = metrics.horizontalAdvance(line.label);
        const bool above = y - metrics.height() - 2 > map.rect.top();
        const QRectF place(map.rect.right() - width - 4, above ? y - metrics.height() - 1 : y + 1,
                           width + 2, metrics.height());
        if (line.limit) // what is drawn under it must not swallow it
            painter.fillRect(place.adjusted(-3, 0, 2, 0), theme.raised);
        painter.setPen(line.limit ? theme.bad : theme.textDim);
        painter.drawText(place, Qt::AlignRight, line.label);
    }
}

// The bars of the measured bands; too many would be a smear, and slow.
void paintBars(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    constexpr std::ptrdiff_t most = 3000;
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const CleanCurve& clean = state.cleaned[c];
        if (!state.curves[c].visible || clean.low.empty())
            continue;
        const auto first =
            std::lower_bound(clean.x.begin(), clean.x.end(), map.x.low) - clean.x.begin();
        const auto last =
            std::upper_bound(clean.x.begin(), clean.x.end(), map.x.high) - clean.x.begin();
        if (last - first > most)
            continue;
        painter.setPen(QPen(styleOf(state.curves[c], theme).colour, 1.6));
        for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
            const double x = map.toX(clean.x[i]);
            const double low = map.toY(clean.low[i]);
            const double high = map.toY(clean.high[i]);
            if (std::isfinite(clean.y[i]) && std::isfinite(low) && std::isfinite(high))
                painter.drawLine(QPointF(x, low), QPointF(x, high));
        }
    }
}

void paintMarkers(QPainter& painter, const PlotState& state, const PlotMapper& map,
                  const Theme& theme)
{
    for (const Marker& marker : state.markers) {
        const double x = map.toX(marker.x);
        if (!std::isfinite(x) || x < map.rect.left() - 1 || x > map.rect.right() + 1)
            continue;
        painter.setPen(QPen(theme.highlight, 1.2));
        painter.drawLine(QPointF(x, map.rect.top()), QPointF(x, map.rect.bottom()));
        if (marker.label.isEmpty())
            continue;
        const QRectF pill = markerPill(marker, map);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.highlightFill);
        painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2);
        painter.setPen(theme.onHighlight);
        painter.setFont(plotFont(0.85, true));
        painter.drawText(pill, Qt::AlignCenter,
                         marker.draggable ? marker.label + QStringLiteral(" ↔") : marker.label);
    }
}

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

// The same with what a line passes through between them, to keep labels away from.
std::vector<QPointF> linePixels(const std::vector<QPointF>& points)
{
    constexpr double apart = 6;
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

// Names beside their curves: of some places near the right end, the one that covers least.
void paintEndLabels(QPainter& painter, const PlotState& state, const PlotMapper& map,
                    const Theme& theme)
{
    const QFont font = plotFont(0.85, true);
    const QFontMetricsF metrics(font);
    std::vector<QPointF> obstacles;
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        if (state.curves[c].visible && state.cleaned[c].x.size() < 20000) {
            const auto dots = sampledPixels(state.cleaned[c], map);
            const bool line = styleOf(state.curves[c], theme).pen.style() != Qt::NoPen;
            const auto points = line ? linePixels(dots) : dots;
            obstacles.insert(obstacles.end(), points.begin(), points.end());
        }
    }
    painter.setFont(font);
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const Curve& curve = state.curves[c];
        if (!curve.visible || !curve.labelled)
            continue;
        const auto points = sampledPixels(state.cleaned[c], map);
        QRectF best;
        double least = 1e9;
        const QSizeF size(metrics.horizontalAdvance(curve.name) + 2, metrics.height());
        for (std::size_t back = 0; back < std::min<std::size_t>(points.size(), 60); ++back) {
            const QPointF p = points[points.size() - 1 - back];
            for (const double dy : {-size.height() - 5, 6.0}) {
                QRectF box(QPointF(p.x() - size.width() / 2, p.y() + dy), size);
                box.moveRight(std::min(box.right(), map.rect.right() - 4));
                double cost = 0.02 * static_cast<double>(back);
                cost += map.rect.contains(box) ? 0 : 50;
                for (const QPointF& o : obstacles)
                    cost += box.adjusted(-2, -2, 2, 2).contains(o) ? 1 : 0;
                if (cost < least) {
                    least = cost;
                    best = box;
                }
            }
        }
        if (points.empty())
            continue;
        painter.setPen(styleOf(curve, theme).textColour);
        painter.drawText(best, Qt::AlignCenter, curve.name);
        for (double x = best.left(); x <= best.right(); x += 8)
            obstacles.emplace_back(x, best.center().y());
    }
}

} // namespace

QRectF markerPill(const Marker& marker, const PlotMapper& map)
{
    const QFontMetricsF metrics(plotFont(0.85, true));
    const double width =
        metrics.horizontalAdvance(marker.label + QStringLiteral(" ↔")) + 22 * plotUnit();
    const double height = metrics.height() + 3 * plotUnit();
    QRectF pill(map.toX(marker.x) - width / 2, map.rect.bottom() - height - 5, width, height);
    if (pill.right() > map.rect.right() + 12)
        pill.moveRight(map.rect.right() + 12);
    pill.moveLeft(std::max(pill.left(), map.rect.left() - 12));
    return pill;
}

void paintBelow(QPainter& painter, const PlotState& state, const PlotMapper& map,
                const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setClipRect(map.rect.adjusted(-1, -1, 1, 1));
    paintBands(painter, state, map, theme);
    paintAreas(painter, state, map, theme);
    paintLines(painter, state, map, theme);
    paintBars(painter, state, map, theme);
    painter.restore();
}

void paintAbove(QPainter& painter, const PlotState& state, const PlotMapper& map,
                const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    if (state.empty()) {
        painter.setFont(plotFont(1.05));
        painter.setPen(theme.textDim);
        painter.drawText(map.rect.adjusted(20, 20, -20, -20), Qt::AlignCenter | Qt::TextWordWrap,
                         state.emptyText);
    }
    paintEndLabels(painter, state, map, theme);
    paintPhases(painter, state, map, theme);
    paintMarkers(painter, state, map, theme);
    paintCallouts(painter, state, map, theme);
    const QString note = noteFor(state.cleaned);
    if (!note.isEmpty()) {
        painter.setFont(plotFont(0.8));
        painter.setPen(theme.textFaint);
        painter.drawText(map.rect.adjusted(6, 0, -6, -3), Qt::AlignLeft | Qt::AlignBottom, note);
    }
    painter.restore();
}

QString readoutText(const PlotState& state, const Sample& sample)
{
    if (!sample.found)
        return {};
    QString text = state.x.names.isEmpty() ? state.x.label + QLatin1Char(' ') : QString();
    text += axisValueText(state.x, sample.x, 4) + QStringLiteral(": ");
    QStringList parts;
    for (std::size_t c = 0; c < sample.index.size(); ++c) {
        if (sample.index[c] < 0)
            continue;
        const auto i = static_cast<std::size_t>(sample.index[c]);
        const CleanCurve& clean = state.cleaned[c];
        QString part = state.curves[c].name + QLatin1Char(' ') + axisValueText(state.y, clean.y[i]);
        if (!clean.low.empty() && std::isfinite(clean.low[i]) && std::isfinite(clean.high[i]))
            part += QCoreApplication::translate("PlotView", " (%1 to %2)")
                        .arg(axisValueText(state.y, clean.low[i]),
                             axisValueText(state.y, clean.high[i]));
        parts << part;
    }
    return text + parts.join(QStringLiteral(" · "));
}

} // namespace memscape
