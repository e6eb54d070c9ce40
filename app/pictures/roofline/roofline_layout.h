// SPDX-License-Identifier: GPL-3.0-or-later
// Where roofs, kernels and their words are. Both axes are logarithmic. Words take the first of a few
// places where they touch neither a mark nor the words before them: names of levels along their slope,
// formats on their flat roof, kernels beside their mark. What finds no place is left out (the pointer
// says it then), but for the chosen format and the kernel under the pointer.
#pragma once

#include "app/pictures/common/parameter_changes.h"

#include <QPointF>
#include <QPolygonF>
#include <QRectF>
#include <QString>

#include <vector>

namespace memscape {

struct RooflineMark
{
    QString id, label, experiment, format, level, bound;
    ParameterChanges changes; ///< what its experiment is opened with
    double intensity = 0, rate = 0, roof = 0;
    bool isMeasured = false;
};

struct RooflineRoof
{
    QString label;
    double value = 0; ///< B/s of a level, FLOP/s of a format
    bool isChosen = false;
};

struct RooflineState
{
    QString device;
    double intensity = 1;
    std::vector<RooflineRoof> levels; ///< nearest first; the last is DRAM
    std::vector<RooflineRoof> formats;
    std::vector<RooflineMark> marks;

    bool empty() const { return levels.empty() || formats.empty(); }
};

struct RooflineScales
{
    QRectF area;
    double left = -8, right = 14, bottom = 20, top = 50; ///< log2
    double x(double intensity) const;
    double y(double rate) const;
    QPointF at(double intensity, double rate) const { return {x(intensity), y(rate)}; }
    double intensityAt(double x) const;
};

RooflineScales rooflineScales(const RooflineState& state, const QRectF& rect);

/// A number on the axis of intensities.
struct RooflineTick
{
    double power = 0; ///< log2
    QRectF box;
    QString text; ///< "1/64", "4"
};
/// Powers of two with room between them, however narrow the picture is.
std::vector<RooflineTick> rooflineTicks(const RooflineScales& scales);

enum class RooflineTextKind { Level, Format, Mark };

struct RooflineText
{
    RooflineTextKind kind = RooflineTextKind::Mark;
    std::size_t index = 0; ///< of the level, format or mark
    QString text;
    QPointF corner;   ///< bottom left, on the baseline's side
    double angle = 0; ///< degrees, clockwise
    QPolygonF box;
};

/// `lit` is the id of the kernel under the pointer.
std::vector<RooflineText> rooflineTexts(const RooflineState& state, const RooflineScales& scales, const QString& lit);

} // namespace memscape
