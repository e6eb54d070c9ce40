// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/timeline_picture.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr int timelineSteps = 240; ///< of the whole

} // namespace

void TimelinePicture::setEnd(double seconds, double rest)
{
    m_end = seconds;
    setSteps(isEmpty() ? 0 : timelineSteps, isEmpty() ? 0 : int(rest * timelineSteps));
}

double TimelinePicture::secondsOf(int step) const
{
    return step < 0 ? -1 : m_end * step / (timelineSteps - 1);
}

QString TimelinePicture::wordsOf(int step) const
{
    return isEmpty() || step < 0 ? QString() : wordsAt(secondsOf(step));
}

int TimelinePicture::stepNear(QPointF at) const
{
    return isEmpty() ? -1 : int(std::lround(secondsAt(at.x()) / m_end * (timelineSteps - 1)));
}

void TimelinePicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    if (isEmpty())
        paintProblem(painter, rect, theme);
    else
        drawTimeline(painter, rect, playSign(isScreen), theme);
}

void TimelinePicture::mouseMoveEvent(QMouseEvent* event)
{
    WalkPicture::mouseMoveEvent(event);
    if (const QString words = toolTipAt(event->position()); !words.isEmpty())
        emit hoverText(words);
}

void paintPlayButton(QPainter& painter, const QRectF& button, double unit, PlayButton play, const Theme& theme)
{
    if (play == PlayButton::None)
        return;
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.predicted);
    const QPointF c = button.center();
    if (play == PlayButton::Pause) {
        for (const double left : {-5.0, 1.5})
            painter.drawRect(QRectF(c.x() + left * unit, c.y() - 6 * unit, 3.5 * unit, 12 * unit));
        return;
    }
    painter.drawPolygon(
        QPolygonF{c + QPointF(-4 * unit, -6 * unit), c + QPointF(6 * unit, 0), c + QPointF(-4 * unit, 6 * unit)});
}

void paintMoment(QPainter& painter, double x, const QRectF& lanes, double unit, const Theme& theme)
{
    painter.setPen(QPen(theme.highlightText, 1.5 * unit));
    painter.drawLine(QPointF(x, lanes.top()), QPointF(x, lanes.bottom()));
}

void paintNamedMoment(QPainter& painter, double x, const QRectF& chart, const QString& name, const Theme& theme)
{
    const double u = plotUnit();
    painter.setPen(QPen(theme.highlight, 1.6 * u));
    painter.drawLine(QPointF(x, chart.top()), QPointF(x, chart.bottom()));
    painter.setFont(plotFont(0.78, true));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(name) + 12 * u;
    const double left = std::clamp(x - width / 2, chart.left(), std::max(chart.left(), chart.right() - width));
    const QRectF pill(left, chart.bottom() - 19 * u, width, 17 * u);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.highlightFill);
    painter.drawRoundedRect(pill, 8 * u, 8 * u);
    painter.setPen(theme.onHighlight);
    painter.drawText(pill, Qt::AlignCenter, name);
}

} // namespace memscape
