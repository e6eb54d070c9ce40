// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/plot_paint.h"

#include "app/plots/ticks.h"

#include <QCoreApplication>
#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

void paintBands(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    for (const Band& band : state.bands) {
        const double left = map.toX(std::min(band.from, band.to));
        const double right = map.toX(std::max(band.from, band.to));
        if (!std::isfinite(left) || !std::isfinite(right) || right < map.rect.left() || left > map.rect.right())
            continue;
        if (right - left > 1) {
            QColor tint = theme.text;
            tint.setAlphaF(0.05F);
            painter.fillRect(QRectF(left, map.rect.top(), right - left, map.rect.height()).intersected(map.rect), tint);
        } else {
            painter.setPen(QPen(mix(theme.background, theme.textFaint, 0.7), 1));
            painter.drawLine(QPointF(left, map.rect.top()), QPointF(left, map.rect.bottom()));
        }
    }
}

void paintLines(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    for (const HorizontalLine& line : state.lines) {
        const double y = map.toY(line.y);
        if (!std::isfinite(y) || y < map.rect.top() || y > map.rect.bottom())
            continue;
        painter.setPen(line.limit ? QPen(theme.bad, 1.6, Qt::DashLine) : QPen(theme.textFaint, 1, Qt::DotLine));
        painter.drawLine(QPointF(map.rect.left(), y), QPointF(map.rect.right(), y));
    }
}

// The bars of the measured bands; too many would be a smear, and slow.
void paintBars(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    constexpr std::ptrdiff_t most = 3000;
    for (std::size_t c = 0; c < state.curves.size(); ++c) {
        const CleanCurve& clean = state.cleaned[c];
        const CurveStyle style = styleOf(state.curves[c], theme);
        if (!state.curves[c].visible || clean.low.empty() || style.isBanded)
            continue;
        const auto first = std::ranges::lower_bound(clean.x, map.x.low) - clean.x.begin();
        const auto last = std::ranges::upper_bound(clean.x, map.x.high) - clean.x.begin();
        if (last - first > most)
            continue;
        painter.setPen(QPen(style.colour, 1.6));
        for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
            const double x = map.toX(clean.x[i]);
            const double low = map.toY(clean.low[i]);
            const double high = map.toY(clean.high[i]);
            if (std::isfinite(clean.y[i]) && std::isfinite(low) && std::isfinite(high))
                painter.drawLine(QPointF(x, low), QPointF(x, high));
        }
    }
}

void paintMarkers(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    for (std::size_t i = 0; i < state.markers.size(); ++i) {
        const Marker& marker = state.markers[i];
        const double x = map.toX(marker.x);
        if (!std::isfinite(x) || x < map.rect.left() - 1 || x > map.rect.right() + 1)
            continue;
        painter.setPen(QPen(theme.highlight, 1.2));
        painter.drawLine(QPointF(x, map.rect.top()), QPointF(x, map.rect.bottom()));
        const QRectF pill = markerPill(state, i, map);
        if (pill.isEmpty())
            continue;
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.highlightFill);
        painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2);
        painter.setPen(theme.onHighlight);
        painter.setFont(plotFont(0.85, true));
        painter.drawText(pill, Qt::AlignCenter, marker.draggable ? marker.label + QStringLiteral(" ↔") : marker.label);
    }
}

} // namespace

QRectF markerPill(const PlotState& state, std::size_t marker, const PlotMapper& map)
{
    const Marker& one = state.markers[marker];
    const double x = map.toX(one.x);
    if (one.label.isEmpty() || !(x >= map.rect.left() - 1) || !(x <= map.rect.right() + 1))
        return {};
    const QFontMetricsF metrics(plotFont(0.85, true));
    const double width = metrics.horizontalAdvance(one.label + QStringLiteral(" ↔")) + 22 * plotUnit();
    const double height = metrics.height() + 3 * plotUnit();
    const double inside = map.rect.bottom() - height - 5;
    QRectF pill(x - width / 2, state.phases.empty() ? map.rect.bottom() + 4 : inside, width, height);
    pill.moveRight(std::min(pill.right(), map.rect.right() - 2));
    pill.moveLeft(std::max(pill.left(), map.rect.left() + 2));
    for (std::size_t before = 0; before < marker; ++before) {
        const QRectF other = markerPill(state, before, map);
        if (other.intersects(pill))
            pill.moveTop(std::min(inside, other.top() - height - 3));
    }
    return pill;
}

void paintBelow(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setClipRect(map.rect.adjusted(-1, -1, 1, 1));
    paintBands(painter, state, map, theme);
    paintAreas(painter, state, map, theme);
    paintBandsOfCurves(painter, state, map, theme);
    paintLines(painter, state, map, theme);
    paintBars(painter, state, map, theme);
    painter.restore();
}

void paintAbove(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    if (state.empty()) {
        painter.setFont(plotFont(1.05));
        painter.setPen(theme.textDim);
        const QRectF room = map.rect.adjusted(8, 4, -8, -4);
        const bool fits =
            painter.boundingRect(room, Qt::AlignCenter | Qt::TextWordWrap, state.emptyText).height() <= room.height();
        painter.drawText(room, Qt::AlignCenter | (fits ? Qt::TextWordWrap : 0),
                         fits ? state.emptyText
                              : painter.fontMetrics().elidedText(state.emptyText, Qt::ElideRight, int(room.width())));
    }
    paintLabels(painter, state, map, theme);
    paintPhases(painter, state, map, theme);
    paintMarkers(painter, state, map, theme);
    paintCallouts(painter, state, map, theme);
    const QString note = noteFor(state.cleaned);
    if (!note.isEmpty()) {
        painter.setFont(plotFont(0.8));
        painter.setPen(theme.textFaint);
        // Above the markers' labels, where they stand at the bottom.
        double below = 3;
        for (std::size_t i = 0; i < state.markers.size(); ++i) {
            if (const QRectF pill = markerPill(state, i, map); !pill.isEmpty())
                below = std::max(below, map.rect.bottom() - pill.top() + 2);
        }
        painter.drawText(map.rect.adjusted(6, 0, -6, -below), Qt::AlignLeft | Qt::AlignBottom, note);
    }
    painter.restore();
}

QString baselineText(const PlotState& state, const Sample& sample, std::size_t which)
{
    const Curve& curve = state.curves[which];
    const double y = state.cleaned[which].y[static_cast<std::size_t>(sample.index[which])];
    for (std::size_t c = 0; c < state.curves.size() && !curve.against.isEmpty(); ++c) {
        if (state.curves[c].key != curve.against || sample.index[c] < 0)
            continue;
        const double baseline = state.cleaned[c].y[static_cast<std::size_t>(sample.index[c])];
        if (baseline == 0 || !std::isfinite(baseline))
            return {};
        return QCoreApplication::translate("PlotView", ", %1 vs baseline")
            .arg(QString::fromStdString(signedPercentText((y - baseline) / std::abs(baseline))));
    }
    return {};
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
        QString part = state.curves[c].name + QLatin1Char(' ') + axisReadoutText(state.y, clean.y[i]);
        if (!clean.low.empty() && std::isfinite(clean.low[i]) && std::isfinite(clean.high[i]))
            part += QCoreApplication::translate("PlotView", " (%1 to %2)")
                        .arg(axisValueText(state.y, clean.low[i]), axisValueText(state.y, clean.high[i]));
        parts << part + baselineText(state, sample, c);
    }
    return text + parts.join(QStringLiteral(" · "));
}

} // namespace memscape
