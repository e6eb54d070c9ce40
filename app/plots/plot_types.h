// SPDX-License-Identifier: GPL-3.0-or-later
// What a plot shows, as plain values: the rest of the program uses these and never QCustomPlot.
#pragma once

#include "core/base/number.h"

#include <QString>
#include <QStringList>

#include <optional>
#include <utility>
#include <vector>

namespace memscape {

/// How a quantity runs along an axis. Values are in SI base units; texts are made at the edge.
struct AxisSpec
{
    QString label;
    Unit unit = Unit::One;
    int log = 0; ///< 0 linear, 2 or 10: the base of the grid of a logarithmic axis
    std::optional<std::pair<double, double>> range = {}; ///< fixed limits; else from the data
    QStringList names = {};                              ///< of a category axis: name i stands at x = i
    ByteStyle bytes = ByteStyle::Binary;
    bool fromZero = false; ///< a linear axis starts at 0 (bandwidths, shares)
    QString suffix = {};   ///< of a ratio: "×"
    double one = 0;        ///< what 1 of a ratio is in `oneUnit`; readouts say that too. 0: not told
    Unit oneUnit = Unit::Second;

    bool operator==(const AxisSpec&) const = default;
};

/// Predicted: blue dashed line. Measured: orange dots with their band. Variant: thinner, own dash
/// and colour (measured variants: hollow, each of a shape of its own). Pinned: a record put beside, dots and line in
/// its colour. Datasheet and Uncalibrated: what would be predicted from the vendor's numbers alone, or without the
/// calibration; thinner than the prediction, in the colour of text and its own. Probed: with links as a run found them,
/// a thin line in the colour of what is measured, in its band. Area: a part of a whole, stacked on the
/// areas before it; its palette index is a part's (part_colours.h). Drawn: by hand; a wide solid line in a palette
/// colour.
enum class CurveRole {
    Predicted,
    Measured,
    Variant,
    MeasuredVariant,
    Pinned,
    Datasheet,
    Uncalibrated,
    Probed,
    Area,
    Drawn
};
enum class MarkerShape { Automatic, Circle, Square, Diamond, Triangle, Cross, TriangleDown, Plus };

struct Curve
{
    QString key;  ///< stable: setCurves() finds the curve again by it
    QString name; ///< legend, readout, columns of exports
    CurveRole role = CurveRole::Predicted;
    int palette = 0; ///< of variants the index of their colour or shape, of pins of their own colours
    std::vector<double> x, y;
    std::vector<double> low, high; ///< the measured band; empty or as long as y
    MarkerShape shape = MarkerShape::Automatic;
    bool visible = true;
    bool labelled = false; ///< its name stands at its end, beside the line
    bool listed = true;    ///< in the legend
    bool dashed = false;   ///< of a pinned record: it was predicted only, so no dots
    QString against = {};  ///< key of the baseline's curve: the readout says how far this is from it

    bool operator==(const Curve&) const = default;
};

/// A vertical line that a person may drag: the current value of the swept parameter.
struct Marker
{
    QString key; ///< the parameter
    double x = 0;
    QString label; ///< in the pill: "24 MB"
    bool draggable = true;
    QString along = {}; ///< key of a curve: pressed there, the marker comes and is dragged

    bool operator==(const Marker&) const = default;
};

struct HorizontalLine
{
    double y = 0;
    QString label;      ///< "datasheet 4.8 TB/s"
    bool limit = false; ///< what is above does not fit: dashed and red

    bool operator==(const HorizontalLine&) const = default;
};

/// A stretch of the x axis with a name, or a thin line when both ends are the same: "L2".
struct Band
{
    double from = 0, to = 0;
    QString label;

    bool operator==(const Band&) const = default;
};

/// A card that points at a place: "Out of memory here".
struct Callout
{
    double x = 0, y = 0;
    QString title, text;

    bool operator==(const Callout&) const = default;
};

} // namespace memscape
