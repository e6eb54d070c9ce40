// SPDX-License-Identifier: GPL-3.0-or-later
// How roofs and kernels are drawn.
#include "app/pictures/roofline/roofline_picture.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace memscape {

void RooflinePicture::paintAxes(QPainter& painter, const RooflineScales& scales, const Theme& theme) const
{
    const double u = plotUnit();
    painter.setFont(plotFont(0.75));
    for (const RooflineTick& tick : rooflineTicks(scales)) {
        const double x = scales.x(std::exp2(tick.power));
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(x, scales.area.top()), QPointF(x, scales.area.bottom()));
        painter.setPen(theme.textFaint);
        painter.drawText(tick.box, Qt::AlignCenter | Qt::TextDontClip, tick.text);
    }
    const double step = std::max(1.0, std::ceil((scales.top - scales.bottom) / 7 / 3.3219));
    for (double ten = std::ceil(scales.bottom / 3.3219); ten * 3.3219 < scales.top; ten += step) {
        const double y = scales.y(std::pow(10, ten));
        painter.setPen(QPen(theme.grid, 1));
        painter.drawLine(QPointF(scales.area.left(), y), QPointF(scales.area.right(), y));
        painter.setPen(theme.textFaint);
        painter.drawText(QRectF(0, y - 8 * u, scales.area.left() - 5 * u, 16 * u), Qt::AlignRight | Qt::AlignVCenter,
                         rateText(std::pow(10, ten), Unit::FlopPerSecond));
    }
    painter.setPen(theme.textDim);
    painter.drawText(QRectF(scales.area.left(), scales.area.bottom() + 15 * u, scales.area.width(), 15 * u),
                     Qt::AlignCenter, tr("operations per byte (FLOP/B)"));
}

QColor RooflinePicture::levelColour(std::size_t index, const Theme& theme) const
{
    return index + 1 == m_state.levels.size() ? theme.text : theme.series(int(index) + 2);
}

void RooflinePicture::paintRoofs(QPainter& painter, const RooflineScales& scales, const Theme& theme) const
{
    const double u = plotUnit();
    double flat = 0;
    for (const RooflineRoof& format : m_state.formats)
        flat = std::max(flat, format.value);
    painter.save();
    painter.setClipRect(scales.area);
    const double first = std::exp2(scales.left);
    for (std::size_t i = 0; i < m_state.levels.size(); ++i) {
        const double value = m_state.levels[i].value;
        if (value <= 0)
            continue;
        const bool isDram = i + 1 == m_state.levels.size();
        painter.setPen(QPen(levelColour(i, theme), (isDram ? 2 : 1.3) * u));
        painter.drawLine(scales.at(first, first * value), scales.at(flat / value, flat));
    }
    for (const RooflineRoof& format : m_state.formats) {
        if (format.value <= 0)
            continue;
        const double y = scales.y(format.value);
        painter.setPen(QPen(format.isChosen ? theme.predicted : theme.textFaint, (format.isChosen ? 2.2 : 1) * u,
                            format.isChosen ? Qt::SolidLine : Qt::DotLine));
        painter.drawLine(QPointF(scales.x(format.value / m_state.levels.front().value), y),
                         QPointF(scales.area.right(), y));
    }
    painter.restore();
    painter.setPen(QPen(theme.highlight, 1.6 * u));
    const double x = scales.x(m_state.intensity);
    painter.drawLine(QPointF(x, scales.area.top()), QPointF(x, scales.area.bottom()));
}

void RooflinePicture::paintMarks(QPainter& painter, const RooflineScales& scales, const Theme& theme) const
{
    const double u = plotUnit();
    for (const RooflineMark& mark : m_state.marks) {
        const double radius = (mark.id == m_hovered ? 5.5 : 4) * u;
        painter.setPen(QPen(mark.isMeasured ? theme.measured : theme.predicted, 1.8 * u));
        painter.setBrush(mark.isMeasured ? QBrush(theme.measured) : QBrush(theme.background));
        painter.drawEllipse(scales.at(mark.intensity, mark.rate), radius, radius);
    }
}

void RooflinePicture::paintTexts(QPainter& painter, const RooflineScales& scales, const Theme& theme) const
{
    painter.setFont(plotFont(0.75));
    const double descent = QFontMetricsF(painter.font()).descent();
    QColor veil = theme.background; // lines stay seen behind a word, and the word readable
    veil.setAlphaF(0.8F);
    for (const RooflineText& text : rooflineTexts(m_state, scales, m_hovered)) {
        QColor colour = theme.textDim;
        if (text.kind == RooflineTextKind::Level)
            colour = levelColour(text.index, theme);
        else if (text.kind == RooflineTextKind::Format && m_state.formats[text.index].isChosen)
            colour = theme.predictedText;
        else if (text.kind == RooflineTextKind::Mark && m_state.marks[text.index].id == m_hovered)
            colour = theme.text;
        painter.setPen(Qt::NoPen);
        painter.setBrush(veil);
        painter.drawPolygon(text.box);
        painter.save();
        painter.translate(text.corner);
        painter.rotate(text.angle);
        painter.setPen(colour);
        painter.drawText(QPointF(0, -descent), text.text);
        painter.restore();
    }
}

void RooflinePicture::draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool) const
{
    painter.setRenderHint(QPainter::Antialiasing);
    const double u = plotUnit();
    const QRectF head = rect.adjusted(12 * u, 4 * u, -12 * u, 0);
    painter.setFont(plotFont(1.1, true));
    painter.setPen(theme.text);
    painter.drawText(QRectF(head.topLeft(), QSizeF(head.width(), 22 * u)), Qt::AlignLeft | Qt::AlignVCenter, title());
    const double used = QFontMetricsF(painter.font()).horizontalAdvance(title()) + 20 * u;
    painter.setFont(plotFont(0.82));
    painter.setPen(theme.textDim);
    const QString legend = tr("ring: predicted · dot: measured");
    if (QFontMetricsF(painter.font()).horizontalAdvance(legend) <= head.width() - used) // all of it or nothing
        painter.drawText(QRectF(head.topLeft(), QSizeF(head.width(), 22 * u)), Qt::AlignRight | Qt::AlignVCenter,
                         legend);
    if (!m_state.empty()) {
        const RooflineScales scales = rooflineScales(m_state, rect);
        paintAxes(painter, scales, theme);
        paintRoofs(painter, scales, theme);
        paintTexts(painter, scales, theme);
        paintMarks(painter, scales, theme);
    } else {
        paintProblem(painter, rect, theme);
    }
}

} // namespace memscape
