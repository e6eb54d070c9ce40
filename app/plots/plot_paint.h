// SPDX-License-Identifier: GPL-3.0-or-later
// What is drawn around and over the curves, by plain QPainter: title and legend, bands and lines
// under the curves, markers, labels and notes over them, and the crosshair with its card.
#pragma once

#include "app/plots/plot_style.h"

#include <QRectF>

#include <optional>
#include <vector>

namespace memscape {

struct LegendEntry
{
    std::size_t curve = 0;
    QRectF rect;
};

/// Title on the left, legend on the right or, when that is too narrow, in rows below it. Where they
/// would take most of `height` the axis' name goes and the legend has one row, its names shortened, or none: the
/// curves are what one came for.
struct PlotHeader
{
    double height = 0;
    QRectF title;
    QRectF yLabel;
    std::vector<LegendEntry> legend;
};
PlotHeader layoutHeader(const PlotState& state, double width, double height = 1e9);
void paintHeader(QPainter& painter, const PlotState& state, const PlotHeader& header, const Theme& theme,
                 int hovered = -1);

/// Under the curves: bands, horizontal lines, the measured bars.
void paintBelow(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme);
// plot_areas.cpp
/// Stacked areas.
void paintAreas(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme);
/// Of curves that are drawn in a band rather than with bars.
void paintBandsOfCurves(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme);
/// Bars with names under the axis.
void paintPhases(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme);
void paintCallouts(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme);
/// Where a callout's card stands: beside its point, inside the axis rectangle.
QRectF calloutCard(const Callout& callout, const PlotMapper& map);

// plot_labels.cpp
struct PlotLabel
{
    QRectF box;
    QString text;
    QFont font;
    QColor colour;
    bool backed = false; ///< on a ground of its own: it may stand on areas
};
/// Names of bands, lines and curves, each where it covers least of what is drawn.
std::vector<PlotLabel> layoutLabels(const PlotState& state, const PlotMapper& map, const Theme& theme);
void paintLabels(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme);

/// Over the curves: labels, markers with their pills, callouts, the note, the empty text.
void paintAbove(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme);

/// Where a marker's pill stands: on the axis, in place of the numbers there, or at the foot of the plot where phases
/// have their names there; above that of a marker before it which it would cover. Empty without a label, or where the
/// marker is out of sight.
QRectF markerPill(const PlotState& state, std::size_t marker, const PlotMapper& map);

struct Crosshair
{
    Sample sample;
    QPointF pointer;
};
void paintCrosshair(QPainter& painter, const PlotState& state, const PlotMapper& map, const Theme& theme,
                    const Crosshair& crosshair);
void paintRubberBand(QPainter& painter, const QRectF& rect, const Theme& theme);
void paintFocus(QPainter& painter, const QRectF& rect, const Theme& theme);

/// ", +4.2 % vs baseline" of a curve that has a point in the sample; empty where the baseline has none
/// there, or there is no baseline.
QString baselineText(const PlotState& state, const Sample& sample, std::size_t which);
/// "stride 4: predicted 1.08 TB/s · measured 1.06 TB/s (1.03 to 1.09 TB/s)".
QString readoutText(const PlotState& state, const Sample& sample);

} // namespace memscape
