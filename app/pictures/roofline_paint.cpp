// SPDX-License-Identifier: GPL-3.0-or-later
// How roofs and kernels are drawn.
#include "app/pictures/roofline_picture.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

void RooflinePicture::paintAxes(QPainter& painter, const Scales& scales, const Theme& theme) const
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.75));
    for (double power = std::ceil(scales.left / 2) * 2; power <= scales.right; power += 2) {
        const double x = scales.x(std::exp2(power));
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(x, scales.area.top()), QPointF(x, scales.area.bottom()));
        painter.setPen(theme.textFaint);
        const double middle = std::min(x, scales.area.right() - 16 * u);
        painter.drawText(QRectF(middle - 30 * u, scales.area.bottom() + 2 * u, 60 * u, 13 * u),
                         Qt::AlignCenter, QString::number(std::exp2(power), 'g', power < 0 ? 3 : 6));
    }
    const double step = std::max(1.0, std::ceil((scales.top - scales.bottom) / 7 / 3.3219));
    for (double ten = std::ceil(scales.bottom / 3.3219); ten * 3.3219 < scales.top; ten += step) {
        const double y = scales.y(std::pow(10, ten));
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(scales.area.left(), y), QPointF(scales.area.right(), y));
        painter.setPen(theme.textFaint);
        painter.drawText(QRectF(0, y - 8 * u, scales.area.left() - 5 * u, 16 * u),
                         Qt::AlignRight | Qt::AlignVCenter,
                         rateText(std::pow(10, ten), Unit::FlopPerSecond));
    }
    painter.setPen(theme.textDim);
    painter.drawText(QRectF(scales.area.left(), scales.area.bottom() + 15 * u, scales.area.width(),
                            15 * u),
                     Qt::AlignCenter, tr("operations per byte (FLOP/B)"));
}

QString RooflinePicture::roofText(const Roof& format, double dram) const
{
    return tr("%1 %2, ridge %3")
        .arg(format.label, rateText(format.value, Unit::FlopPerSecond))
        .arg(format.value / dram, 0, 'g', 3);
}

QRectF RooflinePicture::roofLabel(const Scales& scales, const Roof& format, double dram) const
{
    const double u = plotUnit();
    const double width = QFontMetricsF(plotFont(0.75)).horizontalAdvance(roofText(format, dram));
    return {scales.area.right() - width - 4 * u, scales.y(format.value) - 14 * u, width, 13 * u};
}

void RooflinePicture::paintRoofs(QPainter& painter, const Scales& scales, const Theme& theme) const
{
    const double u = plotUnit();
    double flat = 0;
    for (const Roof& format : m_formats)
        flat = std::max(flat, format.value);
    painter.save();
    painter.setClipRect(scales.area.adjusted(0, -14 * u, 0, 0));
    painter.setFont(plotFont(0.75));
    const double first = std::exp2(scales.left);
    const double apart = 105 * u * (scales.right - scales.left) / scales.area.width(); // labels
    for (std::size_t i = 0; i < m_levels.size(); ++i) {
        const Roof& level = m_levels[i];
        if (level.value <= 0)
            continue;
        const bool isDram = i + 1 == m_levels.size();
        const QColor colour = isDram ? theme.text : theme.series(int(i) + 2);
        painter.setPen(QPen(colour, (isDram ? 2 : 1.3) * u));
        const QPointF from(scales.x(first), scales.y(first * level.value));
        const QPointF to(scales.x(flat / level.value), scales.y(flat));
        painter.drawLine(from, to);
        // Along the slope, low enough that the flat roofs leave it room.
        painter.save();
        const double at = std::exp2(scales.left + 0.4 + apart * double(i));
        const QPointF anchor(scales.x(at), scales.y(at * level.value));
        painter.translate(anchor);
        painter.rotate(std::atan2(to.y() - from.y(), to.x() - from.x()) * 180 / M_PI);
        painter.setPen(colour);
        painter.drawText(QPointF(0, -4 * u),
                         level.label + QStringLiteral(" ")
                             + rateText(level.value, Unit::BytePerSecond));
        painter.restore();
    }
    double dram = m_levels.empty() ? 0 : m_levels.back().value, lastY = -1e9;
    std::vector<Roof> sorted = m_formats;
    std::sort(sorted.begin(), sorted.end(),
              [](const Roof& a, const Roof& b) { return a.value > b.value; });
    for (const Roof& format : sorted) {
        if (format.value <= 0 || dram <= 0)
            continue;
        const double y = scales.y(format.value);
        painter.setPen(QPen(format.isChosen ? theme.predicted : theme.textFaint,
                            (format.isChosen ? 2.2 : 1) * u,
                            format.isChosen ? Qt::SolidLine : Qt::DotLine));
        const double begin = format.value / (m_levels.front().value);
        painter.drawLine(QPointF(scales.x(begin), y), QPointF(scales.area.right(), y));
        if (y - lastY < 11 * u && !format.isChosen)
            continue;
        lastY = y;
        painter.setPen(format.isChosen ? theme.predictedText : theme.textDim);
        painter.drawText(roofLabel(scales, format, dram), Qt::AlignRight | Qt::AlignVCenter,
                         roofText(format, dram));
    }
    painter.restore();
    painter.setPen(QPen(theme.highlight, 1.6 * u));
    const double x = scales.x(m_intensity);
    painter.drawLine(QPointF(x, scales.area.top()), QPointF(x, scales.area.bottom()));
}

void RooflinePicture::paintMarks(QPainter& painter, const Scales& scales, const Theme& theme) const
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.75));
    std::vector<QRectF> taken;
    for (const Roof& format : m_formats)
        taken.push_back(roofLabel(scales, format, m_levels.back().value));
    for (const RooflineMark& mark : m_marks) {
        const QPointF at(scales.x(mark.intensity), scales.y(mark.rate));
        const bool isLit = mark.id == m_hovered;
        const double radius = (isLit ? 5.5 : 4) * u;
        painter.setPen(QPen(mark.isMeasured ? theme.measured : theme.predicted, 1.8 * u));
        painter.setBrush(mark.isMeasured ? QBrush(theme.measured) : QBrush(theme.background));
        painter.drawEllipse(at, radius, radius);
    }
    for (const RooflineMark& mark : m_marks) {
        const bool isLit = mark.id == m_hovered;
        const QPointF at(scales.x(mark.intensity), scales.y(mark.rate));
        const double width = QFontMetricsF(painter.font()).horizontalAdvance(mark.label);
        // To the right, to the left, or not at all (the pointer says it then).
        QRectF label(at.x() + 7 * u, at.y() - 1 * u, width, 13 * u);
        const auto isFree = [&] {
            return scales.area.contains(label)
                && std::none_of(taken.begin(), taken.end(),
                                [&](const QRectF& other) { return other.intersects(label); });
        };
        if (!isFree())
            label.moveRight(at.x() - 7 * u);
        if (!isFree() && !isLit)
            continue;
        taken.push_back(label);
        painter.setPen(isLit ? theme.text : theme.textDim);
        painter.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, mark.label);
    }
}

void RooflinePicture::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect, theme.background);
    const double u = plotUnit();
    const QRectF head = rect.adjusted(12 * u, 4 * u, -12 * u, 0);
    painter.setFont(plotFont(1.1, true));
    painter.setPen(theme.text);
    painter.drawText(QRectF(head.topLeft(), QSizeF(head.width(), 22 * u)),
                     Qt::AlignLeft | Qt::AlignVCenter, title());
    const double used = QFontMetricsF(painter.font()).horizontalAdvance(title()) + 20 * u;
    painter.setFont(plotFont(0.82));
    painter.setPen(theme.textDim);
    painter.drawText(QRectF(head.topLeft(), QSizeF(head.width(), 22 * u)),
                     Qt::AlignRight | Qt::AlignVCenter,
                     QFontMetricsF(painter.font())
                         .elidedText(tr("ring: predicted · dot: measured · a click opens the experiment"),
                                     Qt::ElideRight, std::max(0.0, head.width() - used)));
    if (!m_levels.empty() && !m_formats.empty()) {
        const Scales scales = scalesFor(rect);
        paintAxes(painter, scales, theme);
        paintRoofs(painter, scales, theme);
        paintMarks(painter, scales, theme);
    } else {
        paintProblem(painter, rect, theme);
    }
    painter.restore();
}

} // namespace memscape
