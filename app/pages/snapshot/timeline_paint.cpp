// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/snapshot_words.h"
#include "app/pages/snapshot/timeline_view.h"
#include "app/pictures/common/stairs.h"
#include "app/pictures/common/timeline_picture.h"
#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"

#include <QPaintEngine>
#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

constexpr double thinnestRim = 5; ///< px; of thinner bands a rim would take the colour

/// Neighbours of one category have three shades.
QColor colourOf(const TimelineShape& shape, const Theme& theme)
{
    const QColor colour = partColour(theme, partOf(shape.category));
    return shape.lifetime == noLifetime ? colour : mix(theme.background, colour, 1 - 0.13 * (shape.lifetime % 3));
}

void paintAxes(QPainter& painter, const TimelineChart& chart, const Theme& theme)
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.75));
    const double height = QFontMetricsF(painter.font()).height();
    for (const TimelineTick& tick : chart.yTicks) {
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(chart.area.left(), tick.place), QPointF(chart.area.right(), tick.place));
        painter.setPen(theme.textFaint);
        painter.drawText(QRectF(0, tick.place - height / 2, chart.area.left() - 5 * u, height),
                         Qt::AlignRight | Qt::AlignVCenter, tick.text);
    }
    painter.setPen(theme.textFaint);
    const double top = chart.area.bottom() + 2 * u + height;
    for (const TimelineTick& tick : chart.xTicks) {
        QRectF box(tick.place - 60 * u, top, 120 * u, height);
        const double width = painter.fontMetrics().horizontalAdvance(tick.text);
        box.moveLeft(std::min(box.left(), chart.area.right() - box.width() / 2 - width / 2));
        painter.drawText(box, Qt::AlignHCenter | Qt::AlignVCenter, tick.text);
    }
}

QColor phaseColour(Phase phase, const Theme& theme)
{
    return mix(theme.background, theme.textFaint,
               phase == Phase::Forward        ? 0.5
                   : phase == Phase::Backward ? 0.3
                                              : 0.18);
}

void paintFoot(QPainter& painter, const TimelineChart& chart, const Theme& theme)
{
    painter.setFont(plotFont(0.72));
    for (const TimelineStretch& phase : chart.phases) {
        const QColor colour = phaseColour(phase.phase, theme);
        painter.fillRect(phase.rect, colour);
        painter.setPen(textOn(colour));
        painter.drawText(phase.rect, Qt::AlignCenter, phase.text);
    }
    painter.setFont(plotFont(0.8));
    for (const TimelineStretch& step : chart.steps) {
        painter.setPen(QPen(theme.border, 1));
        painter.drawLine(step.rect.topLeft(), step.rect.bottomLeft());
        painter.setPen(theme.textDim);
        painter.drawText(step.rect, Qt::AlignCenter | Qt::TextDontClip, step.text);
    }
}

void paintLegend(QPainter& painter, const TimelineChart& chart, const Theme& theme)
{
    painter.setFont(plotFont(0.8));
    painter.setPen(theme.textDim);
    for (const TimelineLegend& item : chart.legend) {
        painter.fillRect(item.swatch, partColour(theme, partOf(item.category)));
        painter.drawText(item.rect, Qt::AlignLeft | Qt::AlignVCenter | Qt::TextDontClip, item.text);
    }
}

/// On the screen: a polygon with thousands of corners takes Qt longer than as many rectangles.
void fillColumns(QPainter& painter, const TimelineChart& chart, const TimelineShape& shape, const QColor& colour)
{
    for (std::size_t i = 0; i < shape.low.size();) {
        std::size_t end = i + 1;
        while (end < shape.low.size() && shape.low[end] == shape.low[i] && shape.high[end] == shape.high[i])
            ++end;
        const double left = chart.edges[shape.column + i], right = chart.edges[shape.column + end];
        painter.fillRect(QRectF(left, shape.high[i], right - left, shape.low[i] - shape.high[i]), colour);
        i = end;
    }
}

void paintShapes(QPainter& painter, const TimelineChart& chart, const Theme& theme)
{
    const bool byColumns = painter.paintEngine()->type() == QPaintEngine::Raster;
    for (const TimelineShape& shape : chart.shapes) {
        const QColor colour = colourOf(shape, theme);
        const bool hasRim = shape.lifetime != noLifetime && shape.low.front() - shape.high.front() > thinnestRim;
        if (byColumns)
            fillColumns(painter, chart, shape, colour);
        if (byColumns && !hasRim)
            continue;
        const QPolygonF outline = outlineOf({chart.edges, shape.column, shape.low, shape.high});
        if (!outline.boundingRect().intersects(chart.area))
            continue;
        painter.setPen(hasRim ? QPen(mix(theme.background, colour, 0.55), 1) : QPen(Qt::NoPen));
        painter.setBrush(byColumns ? QBrush(Qt::NoBrush) : QBrush(colour));
        painter.drawPolygon(outline);
    }
    painter.setFont(plotFont(0.75));
    for (const TimelineShape& shape : chart.shapes) {
        if (shape.label.isEmpty())
            continue;
        painter.setPen(textOn(colourOf(shape, theme)));
        painter.drawText(shape.label, Qt::AlignLeft | Qt::AlignVCenter, shape.text);
    }
}

} // namespace

void paintTimeline(QPainter& painter, const TimelineChart& chart, const Theme& theme)
{
    const double u = plotUnit();
    paintAxes(painter, chart, theme);
    paintLegend(painter, chart, theme);
    painter.save();
    painter.setClipRect(chart.area);
    painter.setRenderHint(QPainter::Antialiasing, false);
    paintShapes(painter, chart, theme);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.text, 1.5 * u, Qt::DotLine));
    painter.drawPolyline(chart.reserved);
    for (const double x : chart.outOfMemory) {
        painter.setPen(QPen(theme.bad, 1.4 * u));
        painter.drawLine(QPointF(x, chart.area.top()), QPointF(x, chart.area.bottom()));
    }
    if (!chart.reservedText.isEmpty()) {
        painter.setFont(plotFont(0.78, true));
        QColor back = theme.background;
        back.setAlphaF(0.7F);
        painter.fillRect(chart.reservedLabel, back);
        painter.setPen(theme.text);
        painter.drawText(chart.reservedLabel, Qt::AlignCenter, chart.reservedText);
    }
    painter.restore();
    paintFoot(painter, chart, theme);
}

void TimelineView::paintPrediction(QPainter& painter, const TimelineChart& chart, const Theme& theme) const
{
    if (m_prediction.empty())
        return;
    painter.save();
    painter.setClipRect(chart.area);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.predicted, 2 * plotUnit(), Qt::DashLine));
    const auto& steps = shown().device->steps().steps;
    if (steps.empty())
        painter.drawPolyline(layoutPrediction(chart, m_prediction, 0, shown().device->lifetimes().events()));
    for (const SnapshotStep& step : steps) {
        const QPolygonF line = layoutPrediction(chart, m_prediction, step.first, step.last);
        if (!line.isEmpty())
            painter.drawPolyline(line);
    }
    const double u = plotUnit();
    painter.setFont(plotFont(0.78, true));
    const QString words = tr("predicted");
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(words) + 34 * u;
    painter.setClipping(false);
    const QRectF legend(chart.legendEnd, chart.area.top() - 20 * u, width, 17 * u);
    painter.drawLine(QPointF(legend.left() + 4 * u, legend.center().y()),
                     QPointF(legend.left() + 26 * u, legend.center().y()));
    painter.setPen(theme.predictedText);
    painter.drawText(legend.adjusted(30 * u, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, words);
    painter.restore();
}

void TimelineView::paintCursor(QPainter& painter, const TimelineChart& chart, const Theme& theme) const
{
    const std::size_t moment = shown().moment;
    if (moment < chart.sight.first || moment > chart.sight.last)
        return;
    const double x = std::clamp(chart.x(double(moment)), chart.area.left(), chart.area.right());
    paintNamedMoment(painter, x, chart.area,
                     moment == shown().peak ? tr("peak") : tr("event %1").arg(eventsText(moment)), theme);
}

/// What is not selected is dimmed.
void TimelineView::paintSelection(QPainter& painter, const TimelineChart& chart, const Theme& theme) const
{
    double left = 0, right = 0;
    if (m_isDragged && m_pressed && m_button == Qt::LeftButton) {
        left = std::min(m_pressed->x(), pointer().x());
        right = std::max(m_pressed->x(), pointer().x());
    } else if (shown().isSelected) {
        left = shown().range.first <= chart.sight.first ? chart.area.left() : chart.x(double(shown().range.first));
        right = shown().range.last >= chart.sight.last ? chart.area.right() : chart.x(double(shown().range.last));
    } else {
        return;
    }
    left = std::clamp(left, chart.area.left(), chart.area.right());
    right = std::clamp(right, chart.area.left(), chart.area.right());
    QColor veil = theme.background;
    veil.setAlphaF(0.55F);
    painter.fillRect(QRectF(chart.area.topLeft(), QPointF(left, chart.area.bottom())), veil);
    painter.fillRect(QRectF(QPointF(right, chart.area.top()), chart.area.bottomRight()), veil);
    painter.setPen(QPen(theme.highlight, plotUnit()));
    for (const double x : {left, right})
        painter.drawLine(QPointF(x, chart.area.top()), QPointF(x, chart.area.bottom()));
}

void TimelineView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    painter.save();
    painter.fillRect(rect, theme.background);
    if (shown().device) {
        const bool isScreen = rect == QRectF(this->rect());
        const TimelineChart chart = isScreen ? chartNow() : chartIn(rect);
        paintTimeline(painter, chart, theme);
        painter.setRenderHint(QPainter::Antialiasing);
        paintPrediction(painter, chart, theme);
        if (!isScreen) {
            paintSelection(painter, chart, theme);
            paintCursor(painter, chart, theme);
        }
    }
    painter.restore();
}

void TimelineView::paintOver(QPainter& painter, const Theme& theme) const
{
    const TimelineChart& chart = chartNow();
    paintSelection(painter, chart, theme);
    paintCursor(painter, chart, theme);
    const TimelineShape* shape = m_isDragged ? nullptr : chart.at(pointer());
    if (shape == nullptr)
        return;
    painter.setClipRect(chart.area);
    painter.setPen(QPen(theme.text, 1.4));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolygon(outlineOf({chart.edges, shape->column, shape->low, shape->high}));
}

} // namespace memscape
