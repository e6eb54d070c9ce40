// SPDX-License-Identifier: GPL-3.0-or-later
// The levels of a device on paper. Across: latency, logarithmic. Height of a box: capacity,
// logarithmic. Thickness of the line to a level: its bandwidth, logarithmic. Levels that would overlap are moved apart
// (declutter.h), keeping their order; a level of unknown latency stands between its neighbours. Pure geometry, so that
// a test can ask whether any two labels touch.
#pragma once

#include "core/access/stride_case.h"
#include "core/base/number.h"
#include "core/device/device.h"

#include <QRectF>
#include <QString>

#include <optional>
#include <string>
#include <vector>

namespace memscape {

/// A level as the picture needs it; NaN where the device does not know.
struct PictureLevel
{
    std::string id;
    double capacity = 0;  ///< B, what one core (SM) sees
    double holds = 0;     ///< B, capacity of all instances that share a working set; for the filling
    double latency = 0;   ///< s
    double bandwidth = 0; ///< B/s of the line to it
    double share = 0;     ///< of the accesses that it serves
    bool onPath = true;   ///< an ordinary load may be served by it (scratchpads and registers are not)
};

struct HierarchyState
{
    std::vector<PictureLevel> levels; ///< nearest first
    double workingSet = 0;
    double clockHz = 0;
    bool gpu = false;
    QString deviceName;
    double latency = 0;                  ///< s, predicted for the working set; NaN unknown
    std::optional<double> measured = {}; ///< s
    ByteStyle bytes = ByteStyle::Binary;
    std::size_t home = 0; ///< index of the level that serves most
};

HierarchyState hierarchyState(const Device& device, double workingSet, Operation operation, int threads);

/// "4 s", "6 min", "4 days": a number of cycles as if each took a second.
QString humanDuration(double seconds);

struct LevelBox
{
    QRectF box;                     ///< on the ground line
    QRectF name, capacity, latency; ///< labels under it
    QString nameText, capacityText, latencyText;
    double filled = 0;    ///< 0 … 1 of the box
    bool unknown = false; ///< capacity or latency is not known: hatched
};

struct Road
{
    QRectF rect;
    QRectF label;
    QString text;
};

struct HierarchyLayout
{
    QRectF title, caption, seconds, callout;
    QString secondsText, calloutText, measuredText;
    double ground = 0;
    double fontFactor = 1;
    std::vector<LevelBox> boxes;
    std::vector<Road> roads;
    QRectF handle; ///< of the working set
    QRectF pause;  ///< a click here stops the moving access

    /// Every rectangle that holds text under and above the boxes.
    std::vector<QRectF> labels() const;
};

HierarchyLayout layoutHierarchy(const HierarchyState& state, const QRectF& rect, const QString& title);

/// The working set of the handle at `x`: log capacity, box by box.
double workingSetAt(const HierarchyState& state, const HierarchyLayout& layout, double x);

} // namespace memscape
