// SPDX-License-Identifier: GPL-3.0-or-later
// How the panels of the batch picture are drawn.
#include "app/pictures/batch_picture.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QString tickText(double value, Unit unit, ByteStyle style)
{
    return unit == Unit::One ? countText(value) : QString::fromStdString(quantityText(value, unit, style, 2));
}

QPen dashed(const QColor& colour, double width)
{
    QPen pen(colour, width, Qt::CustomDashLine);
    pen.setDashPattern({4, 2.5});
    return pen;
}

void paintLine(QPainter& painter, const std::vector<QPointF>& points, const QPen& pen)
{
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(points.data(), int(points.size()));
}

/// Text with its own colour behind it, kept inside `within`.
void paintTag(QPainter& painter, QRectF box, const QRectF& within, const QColor& back, const QColor& ink, const QString& text)
{
    const double u = plotUnit();
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 10 * u;
    box = QRectF(box.center().x() - width / 2, box.top(), width, 15 * u);
    if (box.right() > within.right())
        box.moveRight(within.right());
    if (box.left() < within.left())
        box.moveLeft(within.left());
    painter.setPen(Qt::NoPen);
    painter.setBrush(back);
    painter.drawRoundedRect(box, 4 * u, 4 * u);
    painter.setPen(ink);
    painter.drawText(box, Qt::AlignCenter, text);
}

void paintStar(QPainter& painter, const QPointF& centre, double radius, const QColor& colour)
{
    QPainterPath path;
    for (int i = 0; i < 10; ++i) {
        const double angle = -M_PI / 2 + i * M_PI / 5, length = i % 2 ? 0.45 * radius : radius;
        const QPointF point = centre + QPointF(length * std::cos(angle), length * std::sin(angle));
        i == 0 ? path.moveTo(point) : path.lineTo(point);
    }
    path.closeSubpath();
    painter.setPen(Qt::NoPen);
    painter.fillPath(path, colour);
}

QColor boundColour(const Theme& theme, const QString& bound)
{
    return theme.series(bound.startsWith(QLatin1String("launch")) ? 3 : bound.startsWith(QLatin1String("memory")) ? 1 : 0);
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
    painter.drawText(panel.title, Qt::AlignRight | Qt::AlignVCenter,
                     QFontMetricsF(painter.font()).elidedText(note, Qt::ElideRight, std::max(0.0, panel.title.width() - used)));
}

void BatchPicture::paintAxes(QPainter& painter, const BatchPanel& panel, const Theme& theme, Unit yUnit, Unit xUnit) const
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
        painter.drawText(QRectF(panel.frame.left() + 2 * u, y - 7 * u, panel.area.left() - panel.frame.left() - 6 * u, 14 * u),
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

void BatchPicture::paintCursor(QPainter& painter, const BatchPanel& panel, const Theme& theme, double y, const QString& label) const
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
    paintTag(painter, QRectF(at.x(), panel.area.top() - 2 * u, 0, 0), panel.area, theme.highlightFill, theme.onHighlight, label);
}

void BatchPicture::paintMemory(QPainter& painter, const BatchPanel& panel, const Theme& theme) const
{
    const double u = plotUnit();
    QString note = tr("capacity not known");
    if (std::isfinite(m_state.capacity)) {
        note = m_state.largest > 0 ? m_state.isLimited ? tr("every batch up to the limit fits") : tr("largest that fits: %1").arg(m_state.largest, 0, 'f', 0)
                                   : tr("batch 1 is %1 too large").arg(QString::fromStdString(quantityText(m_state.over, Unit::Byte, m_state.bytes)));
    }
    paintPanel(painter, panel, theme, tr("Memory"), note);
    paintAxes(painter, panel, theme, Unit::Byte, Unit::One);
    painter.save();
    painter.setClipRect(panel.area.adjusted(-1, -14 * u, 1, 1));
    if (std::isfinite(m_state.capacity)) {
        const double y = panel.at(1, m_state.capacity).y();
        QColor over = theme.bad;
        over.setAlphaF(0.12F);
        painter.fillRect(QRectF(QPointF(panel.area.left(), panel.area.top()), QPointF(panel.area.right(), y)), over);
        painter.setPen(QPen(theme.bad, 1.4 * u));
        painter.drawLine(QPointF(panel.area.left(), y), QPointF(panel.area.right(), y));
        painter.setFont(plotFont(0.75));
        const double textTop = y + 15 * u > panel.area.bottom() ? y - 15 * u : y + 1 * u;
        painter.drawText(QRectF(panel.area.left() + 4 * u, textTop, panel.area.width() - 8 * u, 14 * u), (panel.x.share(m_state.batch) < 0.5 ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter,
                         tr("capacity %1").arg(QString::fromStdString(quantityText(m_state.capacity, Unit::Byte, m_state.bytes))));
    }
    std::vector<QPointF> points;
    for (const BatchMark& mark : m_state.curve)
        points.push_back(panel.at(mark.batch, mark.memory));
    paintLine(painter, points, dashed(theme.predicted, 2 * u));
    if (m_state.largest > 0 && !m_state.isLimited) {
        const QPointF at = panel.at(m_state.largest, m_state.memoryAt(m_state.largest));
        painter.setPen(QPen(theme.predicted, 1.5 * u));
        painter.setBrush(theme.background);
        painter.drawEllipse(at, 4 * u, 4 * u);
    }
    painter.restore();
    const double memory = m_state.memoryAt(m_state.batch);
    paintCursor(painter, panel, theme, memory, QString::fromStdString(quantityText(memory, Unit::Byte, m_state.bytes)));
}

void BatchPicture::paintThroughput(QPainter& painter, const BatchPanel& panel, const Theme& theme) const
{
    const double u = plotUnit();
    paintPanel(painter, panel, theme, tr("Throughput"), m_state.measured.empty() ? tr("examples/s") : tr("examples/s · dots: measured"));
    paintAxes(painter, panel, theme, Unit::One, Unit::One);
    painter.setFont(plotFont(0.72));
    for (std::size_t i = 0; i < m_state.regimes.size(); ++i) {
        const BatchRegime& regime = m_state.regimes[i];
        const double from = i == 0 ? panel.area.left() : panel.at(regime.from, 0).x();
        const double to = i + 1 < m_state.regimes.size() ? panel.at(m_state.regimes[i + 1].from, 0).x() : panel.area.right();
        const QRectF band(QPointF(from, panel.area.bottom() - 15 * u), QPointF(to, panel.area.bottom()));
        QColor colour = boundColour(theme, regime.bound);
        colour.setAlphaF(0.28F);
        painter.fillRect(band, colour);
        painter.setPen(theme.text);
        if (band.width() < 46 * u)
            continue; // the pointer says it
        painter.drawText(band.adjusted(3 * u, 0, -3 * u, 0), Qt::AlignCenter,
                         QFontMetricsF(painter.font()).elidedText(regime.bound, Qt::ElideRight, std::max(0.0, band.width() - 6 * u)));
    }
    std::vector<QPointF> points;
    for (const BatchMark& mark : m_state.curve) {
        if (std::isfinite(mark.throughput))
            points.push_back(panel.at(mark.batch, mark.throughput));
    }
    paintLine(painter, points, dashed(theme.predicted, 2 * u));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.measured);
    for (const BatchMark& mark : m_state.measured) {
        if (std::isfinite(mark.throughput))
            painter.drawEllipse(panel.at(mark.batch, mark.throughput), 3.5 * u, 3.5 * u);
    }
    if (m_state.sweetSpot > 0)
        paintStar(painter, panel.at(m_state.sweetSpot, m_state.throughputAt(m_state.sweetSpot)), 7 * u, theme.good);
    paintCursor(painter, panel, theme, m_state.throughputAt(m_state.batch), tr("batch %1").arg(m_state.batch, 0, 'f', 0));
}

void BatchPicture::paintTarget(QPainter& painter, const BatchPanel& panel, const Theme& theme) const
{
    const double u = plotUnit();
    const QString loss = QString::fromStdString(quantityText(m_state.target, Unit::One));
    const QString note = m_state.isFitted ? tr("examples over steps, as measured")
        : m_state.knowsSteps()            ? tr("a loss of %1: examples over steps").arg(loss)
                                          : QString();
    paintPanel(painter, panel, theme, tr("To the target"), note);
    if (!m_state.knowsSteps()) {
        painter.setFont(plotFont(0.8));
        painter.setPen(theme.textDim);
        QString text = m_state.noiseReason;
        if (!m_state.noiseRemedy.isEmpty())
            text += QStringLiteral("\n") + m_state.noiseRemedy;
        painter.drawText(panel.frame.adjusted(16 * u, 22 * u, -16 * u, -8 * u), Qt::AlignCenter | Qt::TextWordWrap, text);
        return;
    }
    paintAxes(painter, panel, theme, Unit::One, Unit::One);
    painter.save();
    painter.setClipRect(panel.area.adjusted(-2, -14 * u, 2, 2));
    std::vector<QPointF> line;
    const double first = m_state.curve.front().batch * m_state.perBatch, last = m_state.curve.back().batch * m_state.perBatch;
    for (int i = 0; i <= 120; ++i) {
        const double update = first * std::pow(last / first, i / 120.0);
        line.push_back(panel.at(m_state.steps(update), m_state.examples(update)));
    }
    paintLine(painter, line, m_state.isFitted ? QPen(theme.measured, 1 * u) : dashed(theme.predicted, 2 * u));
    painter.setPen(QPen(theme.predicted, 1.3 * u));
    painter.setBrush(theme.surface);
    for (const BatchMark& mark : m_state.isFitted ? std::vector<BatchMark>() : m_state.curve)
        painter.drawEllipse(panel.at(mark.steps, mark.examples), 2.6 * u, 2.6 * u);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.measured);
    for (const BatchMark& mark : m_state.measured) {
        if (std::isfinite(mark.examples))
            painter.drawEllipse(panel.at(mark.steps, mark.examples), 3.4 * u, 3.4 * u);
    }
    const QPointF critical = panel.at(m_state.steps(m_state.critical), m_state.examples(m_state.critical));
    painter.setPen(QPen(theme.text, 1.2 * u));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(critical.x() - 4 * u, critical.y() - 4 * u, 8 * u, 8 * u));
    painter.setFont(plotFont(0.75));
    const double update = m_state.batch * m_state.perBatch;
    const QPointF now = panel.at(m_state.steps(update), m_state.examples(update));
    const bool isLow = now.y() > panel.area.center().y();
    const QRectF tag(now.x() - 45 * u, isLow ? now.y() - 23 * u : now.y() + 8 * u, 90 * u, 15 * u);
    const QString text = tr("critical batch %1").arg(countText(m_state.critical));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(text);
    QRectF label(0, 0, width, 14 * u);
    for (const QPointF& place : {QPointF(9 * u, -15 * u), QPointF(9 * u, -32 * u), QPointF(9 * u, -49 * u), QPointF(-width - 9 * u, -15 * u),
                                 QPointF(-width - 9 * u, 4 * u)}) {
        label.moveTopLeft(critical + place);
        if (panel.area.contains(label) && !label.intersects(tag))
            break;
    }
    painter.drawText(label, Qt::AlignCenter, text);
    painter.setPen(QPen(theme.background, 1));
    painter.setBrush(theme.highlightFill);
    painter.drawEllipse(now, 4.8 * u, 4.8 * u);
    painter.restore();
    painter.setFont(plotFont(0.75, true));
    paintTag(painter, QRectF(now.x(), tag.top(), 0, 0), panel.area, theme.highlightFill, theme.onHighlight,
             tr("%1 steps").arg(countText(m_state.steps(update))));
}

void BatchPicture::paintFront(QPainter& painter, const BatchPanel& panel, const Theme& theme) const
{
    const double u = plotUnit();
    paintPanel(painter, panel, theme, tr("The front"), m_state.front.empty() ? QString() : tr("examples/s over memory · darker: fewer examples"));
    if (m_state.front.empty()) {
        painter.setFont(plotFont(0.8));
        painter.setPen(theme.textDim);
        painter.drawText(panel.frame.adjusted(16 * u, 22 * u, -16 * u, -8 * u), Qt::AlignCenter | Qt::TextWordWrap,
                         m_state.over > 0 ? tr("No batch fits.") : tr("The device's rates are not known."));
        return;
    }
    paintAxes(painter, panel, theme, Unit::One, Unit::Byte);
    double least = 1e300, most = 0;
    for (const BatchMark& mark : m_state.front) {
        if (!std::isfinite(mark.examples))
            continue;
        least = std::min(least, mark.examples);
        most = std::max(most, mark.examples);
    }
    for (const BatchMark& mark : m_state.front) {
        const double share = most > least ? std::log(mark.examples / least) / std::log(most / least) : 0;
        const QColor colour = mix(theme.surface, theme.predicted, std::isfinite(share) ? 1 - 0.75 * share : 1);
        painter.setPen(QPen(theme.predicted, 1 * u));
        painter.setBrush(colour);
        const QPointF at = panel.at(mark.allocated, mark.throughput);
        mark.accumulation > 1 ? painter.drawRect(QRectF(at.x() - 2.6 * u, at.y() - 2.6 * u, 5.2 * u, 5.2 * u))
                              : painter.drawEllipse(at, 3.4 * u, 3.4 * u);
    }
    const auto spot = [&](double batch) { return panel.at(m_state.allocatedAt(batch), m_state.throughputAt(batch)); };
    if (m_state.sweetSpot > 0)
        paintStar(painter, spot(m_state.sweetSpot), 8 * u, theme.good);
    const double memory = m_state.allocatedAt(m_state.batch);
    if (std::isfinite(memory) && memory <= panel.x.high && std::isfinite(m_state.throughputAt(m_state.batch))) {
        painter.setPen(QPen(theme.background, 1));
        painter.setBrush(theme.highlightFill);
        painter.drawEllipse(spot(m_state.batch), 4.8 * u, 4.8 * u);
    }
}

void BatchPicture::paintSchedule(QPainter& painter, const BatchLayout& layout, const Theme& theme) const
{
    const double u = plotUnit();
    const BatchPanel& panel = layout.schedule;
    const QString kind = m_state.scheduleKind == QLatin1String("linear") ? tr("grows linearly")
        : m_state.scheduleKind == QLatin1String("adaptive")              ? tr("follows the noise scale")
                                                                         : tr("constant");
    paintPanel(painter, panel, theme, tr("Schedule"), m_state.schedule.empty() ? tr("%1 · no steps are known to run it by").arg(kind)
                                                                               : tr("the update, %1, and the noise scale (thin), over steps").arg(kind));
    const bool hasSteps = !m_state.schedule.empty();
    const QPointF centre = layout.play.center();
    painter.setPen(Qt::NoPen);
    painter.setBrush(hasSteps ? theme.predicted : theme.border);
    if (m_timer.isActive()) {
        painter.drawRect(QRectF(centre.x() - 5 * u, centre.y() - 5.5 * u, 3.6 * u, 11 * u));
        painter.drawRect(QRectF(centre.x() + 1.4 * u, centre.y() - 5.5 * u, 3.6 * u, 11 * u));
    } else {
        const QPointF triangle[] = {centre + QPointF(-4 * u, -6 * u), centre + QPointF(6 * u, 0), centre + QPointF(-4 * u, 6 * u)};
        painter.drawPolygon(triangle, 3);
    }
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
    paintLine(painter, batches, dashed(theme.predicted, 2 * u));
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
    lines << tr("step %1 · update %2").arg(countText(m_moment * m_state.scheduleSteps), countText(now.batch));
    lines << (std::isfinite(now.loss) ? tr("loss %1, %2 examples").arg(QString::fromStdString(quantityText(now.loss, Unit::One)), countText(now.examples))
                                      : tr("%1 examples").arg(countText(now.examples)));
    if (!m_state.isScheduleReached)
        lines << tr("not reached in %1 steps").arg(countText(m_state.scheduleSteps));
    else if (m_state.constantSteps > 0)
        lines << tr("%1 of the steps at a constant batch").arg(QString::fromStdString(percentText(m_state.scheduleSteps / m_state.constantSteps)));
    painter.setPen(theme.text);
    painter.drawText(layout.scheduleText, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, lines.join(QLatin1Char('\n')));
}

void BatchPicture::paintReason(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    const double u = plotUnit();
    double left = rect.left();
    if (m_state.sweetSpot > 0) {
        paintStar(painter, QPointF(rect.left() + 8 * u, rect.top() + 8 * u), 6 * u, theme.good);
        left += 20 * u;
    }
    painter.setFont(plotFont(0.82));
    painter.setPen(theme.text);
    const QString text = m_state.sweetSpot > 0 ? tr("Sweet spot %1: %2").arg(m_state.sweetSpot, 0, 'f', 0).arg(m_state.sweetReason)
                                               : tr("No sweet spot: %1").arg(m_state.sweetReason);
    painter.drawText(QRectF(left, rect.top(), rect.right() - left, rect.height()), Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, text);
}

void BatchPicture::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect, theme.background);
    const double u = plotUnit();
    const BatchLayout layout = layoutBatch(m_state, rect);
    painter.setFont(plotFont(1.1, true));
    painter.setPen(theme.text);
    const QString head = QFontMetricsF(painter.font()).elidedText(title(), Qt::ElideMiddle, layout.title.width());
    painter.drawText(layout.title, Qt::AlignLeft | Qt::AlignVCenter, head);
    const double used = QFontMetricsF(painter.font()).horizontalAdvance(head) + 20 * u;
    if (m_state.curve.empty()) {
        paintProblem(painter, rect, theme);
        painter.restore();
        return;
    }
    painter.setFont(plotFont(0.82));
    painter.setPen(theme.textDim);
    painter.drawText(layout.title, Qt::AlignRight | Qt::AlignVCenter,
                     QFontMetricsF(painter.font()).elidedText(tr("drag the batch · click a point · space plays the schedule"), Qt::ElideRight,
                                                              std::max(0.0, layout.title.width() - used)));
    paintMemory(painter, layout.memory, theme);
    paintThroughput(painter, layout.throughput, theme);
    paintTarget(painter, layout.target, theme);
    paintFront(painter, layout.front, theme);
    if (layout.hasSchedule)
        paintSchedule(painter, layout, theme);
    paintReason(painter, layout.reason, theme);
    painter.restore();
}

} // namespace memscape
