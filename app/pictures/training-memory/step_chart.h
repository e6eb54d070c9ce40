// SPDX-License-Identifier: GPL-3.0-or-later
// Where the blocks of a step lie: events across, bytes up. What is alive the whole step is at the
// bottom, one layer for each category; on it the blocks in order of allocation, each as high as it is
// large, so that the outline is the allocated memory. Blocks lower than a pixel share a layer with
// their neighbours of the same category until zooming separates them. Below, the modules at work as
// a flame chart. Of many events in one column of pixels the highest moment is drawn: peaks stay.
#pragma once

#include "app/pictures/training-memory/step_blocks.h"
#include "core/base/number.h"

#include <QPolygonF>
#include <QRectF>

namespace memscape {

/// The part of the step that is in sight.
struct StepView
{
    double left = 0, right = 1; ///< events
    double bottom = 0, top = 1; ///< B

    bool operator==(const StepView&) const = default;
};

/// What a zoom about a place holds on to.
struct StepGrip
{
    double event = 0, bytes = 0;
    double least = 4096; ///< B that stay in sight: those of the block there, and a little of its neighbours
};

/// Nearer (`factor` < 1) or farther about a place, within `whole`.
StepView zoomed(const StepView& view, const StepView& whole, const StepGrip& grip, double xFactor, double yFactor);
/// By shares of what is in sight, within `whole`.
StepView panned(const StepView& view, const StepView& whole, double xShare, double yShare);
/// So far down that some of the step's memory is in sight.
StepView withMemory(const StepView& view, const StepBlocks& step);

struct StepShape
{
    enum class Kind { Residents, Rest, Block, Group };

    Kind kind = Kind::Block;
    Category category = Category::Unknown;
    bool isMatch = true;           ///< of what is searched for
    std::vector<int> members;      ///< of StepBlocks::blocks, of its residents, or of its rest
    double bytes = 0;              ///< of all of them together
    int column = 0;                ///< the first
    std::vector<double> low, high; ///< y in pixels, of each column from there
    QRectF label;                  ///< empty: no room
    QString text;
};

struct StepChart
{
    QRectF area;
    StepView view;
    std::vector<int> events;   ///< that a column shows
    std::vector<double> edges; ///< x in pixels, one more than columns
    std::vector<StepShape> shapes;
    int matches = 0;         ///< blocks that have the words, residents among them
    double matchedBytes = 0; ///< the most of them that is alive at one of the columns

    QPolygonF outline(const StepShape& shape) const;
    const StepShape* at(QPointF place) const;
    /// Over the outline it is the outline that is held.
    StepGrip gripAt(QPointF place) const;
    double eventAt(double x) const;
    double bytesAt(double y) const;
    double x(double event) const;
    double y(double bytes) const;
};

StepChart layoutChart(const StepBlocks& step, const StepView& view, const QRectF& area, const QString& words,
                      ByteStyle style);

struct FlameBox
{
    QRectF rect;
    int span = 0; ///< of StepBlocks::spans
    QString text; ///< empty: no room
    bool isMatch = true;
};

/// The first rows of the nesting that fit, from the top of `area`; boxes narrower than a pixel are
/// left out.
std::vector<FlameBox> layoutFlame(const StepBlocks& step, const StepView& view, const QRectF& area,
                                  const QString& words);
double flameRowHeight();

/// "layers.3.mlp · gelu: 48 MiB of activations, alive for 1007 of 4210 events (24 %), made in forward, freed
/// in backward".
QString shapeText(const StepBlocks& step, const StepShape& shape, ByteStyle style);

} // namespace memscape
