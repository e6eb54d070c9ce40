// SPDX-License-Identifier: GPL-3.0-or-later
// How the batch picture is drawn: frames and axes of its panels, the schedule, the sweet spot's reason. The panels
// themselves are in batch_panels.cpp.
#include "app/pictures/batch-size/batch_marks.h"
#include "app/pictures/batch-size/batch_picture.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QString tickText(double value, Unit unit, ByteStyle style)
{
    return unit == Unit::One ? shortCount(value) : QString::fromStdString(quantityText(value, unit, style, 2));
}

} // namespace

void BatchPicture::paintPanel(QPainter& painter, const BatchPanel& panel, const Theme& theme, const QString& title,
                              const QString& note) const
{
    const double u = plotUnit();
    painter.setPen(QPen(theme.border, 1));
    painter.setBrush(theme.surface);
    painter.drawRoundedRect(panel.frame, 6 * u, 6 * u);
    painter.setFont(plotFont(0.85, true));
    painter.setPen(theme.text);
    painter.drawText(panel.title, Qt::AlignLeft | Qt::AlignVCenter, title);
    const double used = QFontMetricsF(painter.font()).horizontalAdvance(title) + 12 * u;
    painter.setFont(plotFont(0.78));
    painter.setPen(theme.textDim);
    painter.drawText(
        panel.title, Qt::AlignRight | Qt::AlignVCenter,
        QFontMetricsF(painter.font()).elidedText(note, Qt::ElideRight, std::max(0.0, panel.title.width() - used)));
}

void BatchPicture::paintAxes(QPainter& painter, const BatchPanel& panel, const Theme& theme, Unit yUnit,
                             Unit xUnit) const
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.72));
    const QFontMetricsF metrics(painter.font());
    const auto base = [&](Unit unit) { return unit == Unit::Byte && m_state.bytes == ByteStyle::Binary ? 2.0 : 10.0; };
    for (const double value : panel.y.ticks(std::max(2, int(panel.area.height() / (30 * u))), base(yUnit))) {
        const double y = panel.at(panel.x.low, value).y();
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(panel.area.left(), y), QPointF(panel.area.right(), y));
        painter.setPen(theme.textFaint);
        painter.drawText(
            QRectF(panel.frame.left() + 2 * u, y - 7 * u, panel.area.left() - panel.frame.left() - 6 * u, 14 * u),
            Qt::AlignRight | Qt::AlignVCenter, tickText(value, yUnit, m_state.bytes));
    }
    double last = -1e9;
    for (const double value : panel.x.ticks(std::max(2, int(panel.area.width() / (60 * u))), base(xUnit))) {
        const double x = panel.at(value, panel.y.low).x();
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(x, panel.area.top()), QPointF(x, panel.area.bottom()));
        const QString text = tickText(value, xUnit, m_state.bytes);
        const double width = metrics.horizontalAdvance(text);
        QRectF box(x - width / 2, panel.area.bottom() + 2 * u, width, 13 * u);
        if (box.right() > panel.frame.right() - 3 * u)
            box.moveRight(panel.frame.right() - 3 * u);
        if (box.left() < last + 6 * u)
            continue;
        last = box.right();
        painter.setPen(theme.textFaint);
        painter.drawText(box, Qt::AlignCenter, text);
    }
}

void BatchPicture::paintCursor(QPainter& painter, const BatchPanel& panel, const Theme& theme, double y,
                               const QString& label) const
{
    const double u = plotUnit();
    const QPointF at = panel.at(m_state.batch, std::isfinite(y) ? y : panel.y.low);
    painter.setPen(QPen(theme.highlight, 1.4 * u));
    painter.drawLine(QPointF(at.x(), panel.area.top()), QPointF(at.x(), panel.area.bottom()));
    painter.setBrush(theme.highlightFill);
    painter.setPen(QPen(theme.background, 1));
    if (std::isfinite(y))
        painter.drawEllipse(at, 4.5 * u, 4.5 * u);
    painter.setFont(plotFont(0.78, true));
    paintTag(painter, QRectF(at.x(), panel.area.top() - 2 * u, 0, 0), panel.area, theme.highlightFill,
             theme.onHighlight, label);
}

void BatchPicture::paintSchedule(QPainter& painter, const BatchLayout& layout, const Theme& theme, bool onScreen) const
{
    const double u = plotUnit();
    const BatchPanel& panel = layout.schedule;
    const QString kind = m_state.scheduleKind == QLatin1String("linear") ? tr("grows linearly")
        : m_state.scheduleKind == QLatin1String("adaptive")              ? tr("follows the noise scale")
                                                                         : tr("stays constant");
    paintPanel(painter, panel, theme, tr("Schedule"),
               m_state.schedule.empty()
                   ? tr("%1; the number of steps is not known").arg(kind)
                   : tr("size of the update over steps, which %1; thin: the noise scale").arg(kind));
    const bool hasSteps = !m_state.schedule.empty();
    if (onScreen)
        paintPlay(painter, layout.play.center(), hasSteps ? theme.predicted : theme.border);
    if (!hasSteps)
        return;
    paintAxes(painter, panel, theme, Unit::One, Unit::One);
    std::vector<QPointF> batches, noise;
    for (const BatchSchedulePoint& point : m_state.schedule) {
        batches.push_back(panel.at(point.step, point.batch));
        if (point.noise > 0)
            noise.push_back(panel.at(point.step, point.noise));
    }
    painter.save();
    painter.setClipRect(panel.area.adjusted(-1, -1, 1, 1));
    paintLine(painter, noise, QPen(theme.textDim, 1 * u));
    paintLine(painter, batches, dashedPen(theme.predicted, 2 * u));
    painter.restore();
    const BatchSchedulePoint now = scheduleNow();
    const double x = panel.at(m_moment * m_state.scheduleSteps, panel.y.low).x();
    painter.setPen(QPen(theme.highlight, 1.4 * u));
    painter.drawLine(QPointF(x, panel.area.top()), QPointF(x, panel.area.bottom()));
    painter.setPen(QPen(theme.background, 1));
    painter.setBrush(theme.highlightFill);
    painter.drawEllipse(QPointF(x, panel.at(0, now.batch).y()), 4 * u, 4 * u);
    painter.setFont(plotFont(0.78));
    QStringList lines;
    lines << tr("step %1 · update %2")
                 .arg(shortCount(std::round(m_moment * m_state.shownScheduleSteps())), shortCount(now.batch));
    lines << (std::isfinite(now.loss)
                  ? tr("loss %1, %2 examples")
                        .arg(QString::fromStdString(quantityText(now.loss, Unit::One)), shortCount(now.examples))
                  : tr("%1 examples").arg(shortCount(now.examples)));
    if (!m_state.isScheduleReached)
        lines << tr("not reached in %1 steps").arg(shortCount(m_state.scheduleSteps));
    else if (m_state.constantSteps > 0)
        lines << tr("%1 of the steps at a constant batch")
                     .arg(QString::fromStdString(percentText(m_state.scheduleSteps / m_state.constantSteps)));
    painter.setPen(theme.text);
    painter.drawText(layout.scheduleText, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                     lines.join(QLatin1Char('\n')));
}

void BatchPicture::paintPlay(QPainter& painter, QPointF centre, const QColor& colour) const
{
    const double u = plotUnit();
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    if (m_timer.isActive()) {
        painter.drawRect(QRectF(centre.x() - 5 * u, centre.y() - 5.5 * u, 3.6 * u, 11 * u));
        painter.drawRect(QRectF(centre.x() + 1.4 * u, centre.y() - 5.5 * u, 3.6 * u, 11 * u));
    } else {
        const QPointF triangle[] = {centre + QPointF(-4 * u, -6 * u), centre + QPointF(6 * u, 0),
                                    centre + QPointF(-4 * u, 6 * u)};
        painter.drawPolygon(triangle, 3);
    }
}

void BatchPicture::paintReason(QPainter& painter, const BatchLayout& layout, const Theme& theme) const
{
    const QRectF& rect = layout.reason;
    const double u = plotUnit();
    double left = rect.left();
    if (m_state.sweetSpot > 0) {
        paintStar(painter, QPointF(rect.left() + 8 * u, rect.top() + 8 * u), 6 * u, theme.good);
        left += 20 * u;
    }
    painter.setFont(plotFont(0.82));
    painter.setPen(theme.text);
    painter.drawText(QRectF(left, rect.top(), rect.right() - left, rect.height()),
                     Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, layout.reasonText);
}

void BatchPicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    const BatchLayout layout = layoutBatch(m_state, rect);
    painter.setFont(plotFont(1.1, true));
    painter.setPen(theme.text);
    const QString head = QFontMetricsF(painter.font()).elidedText(title(), Qt::ElideMiddle, layout.title.width());
    painter.drawText(layout.title, Qt::AlignLeft | Qt::AlignVCenter, head);
    if (m_state.curve.empty())
        return paintProblem(painter, rect, theme);
    paintMemory(painter, layout.memory, theme);
    paintThroughput(painter, layout.throughput, theme);
    paintTarget(painter, layout.target, theme);
    paintFront(painter, layout.front, theme);
    if (layout.hasSchedule)
        paintSchedule(painter, layout, theme, isScreen);
    paintReason(painter, layout, theme);
}

} // namespace memscape
