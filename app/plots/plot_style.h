// SPDX-License-Identifier: GPL-3.0-or-later
// How each role of a curve looks: pen, dot, colour. Shape and colour agree, so that a prediction differs from a
// measurement in a grey print too.
#pragma once

#include "app/plots/plot_data.h"
#include "app/settings/theme.h"

#include <QFont>
#include <QPainter>
#include <QPen>

namespace memscape {

/// Everything that is drawn, with logarithms and limits as they are now.
struct PlotState
{
    QString title;
    QString emptyText;
    AxisSpec x, y;
    std::vector<Curve> curves;
    std::vector<CleanCurve> cleaned; ///< as many as curves
    std::vector<Marker> markers;
    std::vector<HorizontalLine> lines;
    std::vector<Band> bands;
    std::vector<Band> phases; ///< under the x axis
    std::vector<Callout> callouts;
    AxisRange xRange, yRange;

    /// That curve is a line without dots over categories: a level stands at each.
    bool hasLevels(std::size_t curve, const Theme& theme) const;
    bool empty() const;   ///< no visible curve has a point
    bool hasAxes() const; ///< there is something to read off: points, or limits that were given
};

/// Values to pixels of the axis rectangle.
struct PlotMapper
{
    QRectF rect;
    AxisRange x, y;

    double toX(double value) const { return rect.left() + x.toShare(value) * rect.width(); }
    double toY(double value) const { return rect.bottom() - y.toShare(value) * rect.height(); }
    double fromX(double pixel) const { return x.fromShare(shareX(pixel)); }
    double fromY(double pixel) const { return y.fromShare(shareY(pixel)); }
    double shareX(double pixel) const { return (pixel - rect.left()) / rect.width(); }
    double shareY(double pixel) const { return (rect.bottom() - pixel) / rect.height(); }
};

struct CurveStyle
{
    QColor colour;
    QColor textColour;
    QPen pen; ///< NoPen when the curve has no line
    MarkerShape shape = MarkerShape::Circle;
    double size = 0; ///< diameter of a dot in pixels; 0 for none
    bool hollow = false;
    bool isBanded = false; ///< low to high is filled, faintly, instead of a bar at each point
    bool area = false;     ///< a filled stretch: its sample is a square
};

/// Categories have no way between them: a line stands at each, this share of the way to its neighbours to either side.
constexpr double levelReach = 0.3;

/// Has no inside to fill.
bool isOfStrokes(MarkerShape shape);
CurveStyle styleOf(const Curve& curve, const Theme& theme);

/// A dot, or its outline when hollow (over `background`, so that lines don't show through).
void paintDot(QPainter& painter, QPointF centre, const CurveStyle& style, const QColor& background);
/// The curve's sample in a legend or a card: line, dot, or both, in a box.
void paintSwatch(QPainter& painter, const QRectF& box, const CurveStyle& style, const QColor& background);

/// The application font in pixels (exports have other resolutions), scaled.
QFont plotFont(double factor = 1.0, bool bold = false);
/// One pixel of the drawings: lengths grow with the font.
double plotUnit();

} // namespace memscape
