// SPDX-License-Identifier: GPL-3.0-or-later
// The four panels of the batch picture: memory, throughput, steps and examples to the target, the front.
#include "app/pictures/batch-size/batch_marks.h"
#include "app/pictures/batch-size/batch_picture.h"
#include "app/plots/plot_style.h"

#include <QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QColor boundColour(const Theme& theme, const QString& bound)
{
    const bool waits = bound.startsWith(QLatin1String("launch")) || bound.startsWith(QLatin1String("call"));
    return theme.series(waits ? 3 : bound.startsWith(QLatin1String("memory")) ? 1 : 0);
}

} // namespace

void BatchPicture::paintMemory(QPainter& painter, const BatchPanel& panel, const Theme& theme) const
{
    const double u = plotUnit();
    QString note = tr("capacity not known");
    if (std::isfinite(m_state.capacity)) {
        note = m_state.largest > 0
            ? m_state.isLimited ? tr("every batch up to the limit fits")
                                : tr("largest that fits: %1").arg(m_state.largest, 0, 'f', 0)
            : tr("batch 1 is %1 too large")
                  .arg(QString::fromStdString(quantityText(m_state.over, Unit::Byte, m_state.bytes)));
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
        painter.drawText(
            QRectF(panel.area.left() + 4 * u, textTop, panel.area.width() - 8 * u, 14 * u),
            (panel.x.share(m_state.batch) < 0.5 ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter,
            tr("capacity %1").arg(QString::fromStdString(quantityText(m_state.capacity, Unit::Byte, m_state.bytes))));
    }
    std::vector<QPointF> points;
    for (const BatchMark& mark : m_state.curve)
        points.push_back(panel.at(mark.batch, mark.memory));
    paintLine(painter, points, dashedPen(theme.predicted, 2 * u));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.measured);
    for (const BatchMark& mark : m_state.measured) {
        if (mark.memory > 0)
            painter.drawEllipse(panel.at(mark.batch, mark.memory), 3.5 * u, 3.5 * u);
    }
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
    paintPanel(painter, panel, theme, tr("Throughput"),
               m_state.measured.empty() ? tr("examples/s") : tr("examples/s · dots: measured"));
    paintAxes(painter, panel, theme, Unit::One, Unit::One);
    painter.setFont(plotFont(0.72));
    for (std::size_t i = 0; i < m_state.regimes.size(); ++i) {
        const BatchRegime& regime = m_state.regimes[i];
        const double from = i == 0 ? panel.area.left() : panel.at(regime.from, 0).x();
        const double to =
            i + 1 < m_state.regimes.size() ? panel.at(m_state.regimes[i + 1].from, 0).x() : panel.area.right();
        const QRectF band(QPointF(from, panel.area.bottom() - 15 * u), QPointF(to, panel.area.bottom()));
        QColor colour = boundColour(theme, regime.bound);
        colour.setAlphaF(0.28F);
        painter.fillRect(band, colour);
        painter.setPen(theme.text);
        if (band.width() < 46 * u)
            continue; // the pointer says it
        const QFontMetricsF metrics(painter.font());
        const double width = std::max(0.0, band.width() - 6 * u);
        const QString text = metrics.horizontalAdvance(regime.bound) <= width
            ? regime.bound
            : regime.bound.section(QLatin1Char('-'), 0, 0);
        painter.drawText(band.adjusted(3 * u, 0, -3 * u, 0), Qt::AlignCenter,
                         metrics.elidedText(text, Qt::ElideRight, width));
    }
    std::vector<QPointF> points;
    for (const BatchMark& mark : m_state.curve) {
        if (std::isfinite(mark.throughput))
            points.push_back(panel.at(mark.batch, mark.throughput));
    }
    paintLine(painter, points, dashedPen(theme.predicted, 2 * u));
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.measured);
    for (const BatchMark& mark : m_state.measured) {
        if (std::isfinite(mark.throughput))
            painter.drawEllipse(panel.at(mark.batch, mark.throughput), 3.5 * u, 3.5 * u);
    }
    if (m_state.sweetSpot > 0)
        paintStar(painter, panel.at(m_state.sweetSpot, m_state.throughputAt(m_state.sweetSpot)), 7 * u, theme.good);
    paintCursor(painter, panel, theme, m_state.throughputAt(m_state.batch),
                tr("batch %1").arg(m_state.batch, 0, 'f', 0));
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
        painter.drawText(panel.frame.adjusted(16 * u, 22 * u, -16 * u, -8 * u), Qt::AlignCenter | Qt::TextWordWrap,
                         text);
        return;
    }
    paintAxes(painter, panel, theme, Unit::One, Unit::One);
    painter.save();
    painter.setClipRect(panel.area.adjusted(-2, -14 * u, 2, 2));
    std::vector<QPointF> line;
    const double first = m_state.curve.front().batch * m_state.perBatch,
                 last = m_state.curve.back().batch * m_state.perBatch;
    for (int i = 0; i <= 120; ++i) {
        const double update = first * std::pow(last / first, i / 120.0);
        line.push_back(panel.at(m_state.steps(update), m_state.examples(update)));
    }
    paintLine(painter, line, m_state.isFitted ? QPen(theme.measured, 1 * u) : dashedPen(theme.predicted, 2 * u));
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
    const QString text = tr("critical batch %1").arg(shortCount(m_state.critical));
    const double width = QFontMetricsF(painter.font()).horizontalAdvance(text);
    QRectF label(0, 0, width, 14 * u);
    for (const QPointF& place :
         {QPointF(9 * u, -15 * u), QPointF(9 * u, -32 * u), QPointF(9 * u, -49 * u), QPointF(-width - 9 * u, -15 * u),
          QPointF(-width - 9 * u, 4 * u), QPointF(9 * u, 4 * u)}) {
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
             tr("≈ %1 steps").arg(shortCount(std::ceil(m_state.steps(update)))));
}

void BatchPicture::paintFront(QPainter& painter, const BatchPanel& panel, const Theme& theme) const
{
    const double u = plotUnit();
    paintPanel(painter, panel, theme, tr("The front"),
               m_state.front.empty() ? QString() : tr("examples/s by memory · dark: few examples"));
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

} // namespace memscape
