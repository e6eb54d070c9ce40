// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/plot_style.h"

#include "app/plots/part_colours.h"

#include <QFontInfo>
#include <QGuiApplication>
#include <QPainterPath>

#include <algorithm>
#include <array>
#include <cmath>

namespace memscape {

namespace {

QPen dashed(const QColor& colour, double width, const QList<qreal>& pattern)
{
    QPen pen(colour, width, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin);
    if (!pattern.isEmpty())
        pen.setDashPattern(pattern);
    return pen;
}

QPen variantPen(const QColor& colour, int index)
{
    static const std::array<QList<qreal>, 4> patterns{{{5, 3}, {2, 2}, {8, 3, 2, 3}, {10, 4}}};
    return dashed(colour, 1.4, patterns[static_cast<std::size_t>(std::abs(index)) % patterns.size()]);
}

MarkerShape variantShape(int index)
{
    static constexpr std::array<MarkerShape, 4> shapes{MarkerShape::Square, MarkerShape::Diamond, MarkerShape::Triangle,
                                                       MarkerShape::Circle};
    return shapes[static_cast<std::size_t>(std::abs(index)) % shapes.size()];
}

/// All measured curves are orange: only their shapes differ. The circle is the first one's.
MarkerShape measuredShape(int index)
{
    static constexpr std::array<MarkerShape, 6> shapes{MarkerShape::Square,   MarkerShape::Diamond,
                                                       MarkerShape::Triangle, MarkerShape::TriangleDown,
                                                       MarkerShape::Cross,    MarkerShape::Plus};
    return shapes[static_cast<std::size_t>(std::abs(index)) % shapes.size()];
}

QPainterPath dotPath(QPointF c, MarkerShape shape, double r)
{
    QPainterPath path;
    switch (shape) {
    case MarkerShape::Square: path.addRect(QRectF(c.x() - 0.88 * r, c.y() - 0.88 * r, 1.76 * r, 1.76 * r)); break;
    case MarkerShape::Diamond:
        path.addPolygon(QPolygonF(
            {{c.x(), c.y() - 1.2 * r}, {c.x() + 1.2 * r, c.y()}, {c.x(), c.y() + 1.2 * r}, {c.x() - 1.2 * r, c.y()}}));
        path.closeSubpath();
        break;
    case MarkerShape::Triangle:
        path.addPolygon(QPolygonF(
            {{c.x(), c.y() - 1.15 * r}, {c.x() + 1.1 * r, c.y() + 0.85 * r}, {c.x() - 1.1 * r, c.y() + 0.85 * r}}));
        path.closeSubpath();
        break;
    case MarkerShape::Cross:
        path.moveTo(c.x() - r, c.y() - r);
        path.lineTo(c.x() + r, c.y() + r);
        path.moveTo(c.x() - r, c.y() + r);
        path.lineTo(c.x() + r, c.y() - r);
        break;
    case MarkerShape::TriangleDown:
        path.addPolygon(QPolygonF(
            {{c.x(), c.y() + 1.15 * r}, {c.x() + 1.1 * r, c.y() - 0.85 * r}, {c.x() - 1.1 * r, c.y() - 0.85 * r}}));
        path.closeSubpath();
        break;
    case MarkerShape::Plus:
        path.moveTo(c.x() - r, c.y());
        path.lineTo(c.x() + r, c.y());
        path.moveTo(c.x(), c.y() - r);
        path.lineTo(c.x(), c.y() + r);
        break;
    default: path.addEllipse(c, r, r);
    }
    return path;
}

} // namespace

bool isOfStrokes(MarkerShape shape)
{
    return shape == MarkerShape::Cross || shape == MarkerShape::Plus;
}

bool PlotState::hasLevels(std::size_t curve, const Theme& theme) const
{
    const CurveStyle style = styleOf(curves[curve], theme);
    return !x.names.isEmpty() && style.pen.style() != Qt::NoPen && !(style.size > 0);
}

bool PlotState::empty() const
{
    for (std::size_t i = 0; i < cleaned.size(); ++i) {
        if (curves[i].visible && std::ranges::any_of(cleaned[i].y, [](double v) { return std::isfinite(v); }))
            return false;
    }
    return true;
}

bool PlotState::hasAxes() const
{
    return !empty() || (x.range && y.range);
}

CurveStyle styleOf(const Curve& curve, const Theme& theme)
{
    CurveStyle style;
    style.colour = theme.series(curve.palette);
    style.textColour = style.colour;
    style.pen = Qt::NoPen;
    switch (curve.role) {
    case CurveRole::Predicted:
        style.colour = theme.predicted;
        style.textColour = theme.predictedText;
        style.pen = dashed(style.colour, 2.2, {2.6, 1.6});
        break;
    case CurveRole::Measured:
        style.colour = theme.measured;
        style.textColour = theme.measuredText;
        style.size = 9;
        break;
    case CurveRole::Variant: style.pen = variantPen(style.colour, curve.palette); break;
    case CurveRole::MeasuredVariant:
        style.colour = theme.measured;
        style.textColour = theme.measuredText;
        style.shape = measuredShape(curve.palette);
        style.size = 7.5;
        style.hollow = true;
        break;
    case CurveRole::Pinned:
        style.colour = theme.pin(curve.palette);
        style.textColour = style.colour;
        style.pen = dashed(style.colour, 1.2, {});
        style.shape = variantShape(curve.palette);
        style.size = 7;
        if (curve.dashed) {
            style.pen = dashed(style.colour, 1.8, {4, 2});
            style.size = 0;
        }
        break;
    case CurveRole::Datasheet:
        style.colour = theme.textDim;
        style.textColour = theme.textDim;
        style.pen = dashed(style.colour, 1.2, {1, 2.5});
        break;
    case CurveRole::Probed:
        style.colour = theme.measured;
        style.textColour = theme.measuredText;
        style.pen = dashed(style.colour, 1.2, {6, 3});
        style.isBanded = true;
        break;
    case CurveRole::Drawn:
        style.pen = dashed(style.colour, 2.6, {});
        style.shape = MarkerShape::Circle;
        style.size = curve.x.size() <= 16 ? 8 : 0; // points that are kept, not every pixel of a stroke
        break;
    case CurveRole::Area:
        style.colour = partColour(theme, curve.palette);
        style.textColour = theme.textDim;
        style.area = true;
        break;
    case CurveRole::Uncalibrated:
        style.colour = mix(theme.background, theme.predicted, 0.75);
        style.textColour = theme.predictedText;
        style.pen = dashed(style.colour, 1.2, {7, 3, 1.5, 3});
        break;
    }
    if (curve.shape != MarkerShape::Automatic) {
        style.shape = curve.shape;
        style.size = std::max(style.size, 7.0);
    }
    return style;
}

void paintDot(QPainter& painter, QPointF centre, const CurveStyle& style, const QColor& background)
{
    const QPainterPath path = dotPath(centre, style.shape, style.size / 2 - (style.hollow ? 0.6 : 0));
    if (style.hollow || isOfStrokes(style.shape)) {
        painter.setPen(QPen(style.colour, 1.5));
        painter.setBrush(isOfStrokes(style.shape) ? QBrush(Qt::NoBrush) : QBrush(background));
    } else {
        painter.setPen(Qt::NoPen);
        painter.setBrush(style.colour);
    }
    painter.drawPath(path);
}

void paintSwatch(QPainter& painter, const QRectF& box, const CurveStyle& style, const QColor& background)
{
    if (style.area) {
        const double side = std::min(box.height() * 0.6, box.width());
        painter.fillRect(QRectF(box.right() - side, box.center().y() - side / 2, side, side), style.colour);
        return;
    }
    if (style.pen.style() != Qt::NoPen) {
        painter.setPen(style.pen);
        painter.drawLine(QPointF(box.left(), box.center().y()), QPointF(box.right(), box.center().y()));
    }
    if (style.size > 0)
        paintDot(painter, box.center(), style, background);
}

QFont plotFont(double factor, bool bold)
{
    QFont font = QGuiApplication::font();
    const int pixels = QFontInfo(font).pixelSize();
    font.setPixelSize(std::max(6, static_cast<int>(std::lround(pixels * factor))));
    font.setBold(bold);
    return font;
}

double plotUnit()
{
    return std::max(0.5, QFontInfo(QGuiApplication::font()).pixelSize() / 13.0);
}

} // namespace memscape
