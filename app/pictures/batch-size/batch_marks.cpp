// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/batch-size/batch_marks.h"

#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainterPath>

#include <cmath>

namespace memscape {

QPen dashedPen(const QColor& colour, double width)
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

void paintTag(QPainter& painter, QRectF box, const QRectF& within, const QColor& back, const QColor& ink,
              const QString& text)
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

} // namespace memscape
