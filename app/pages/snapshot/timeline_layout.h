// SPDX-License-Identifier: GPL-3.0-or-later
// Where everything of a snapshot's timeline lies: moments across (by events, or even in time), bytes up. Below the sum
// of all small blocks, one layer for each category; on it the largest blocks of what is in sight, in order of their
// allocation, each as high as it is large, so that the outline is the allocated memory. Reserved memory is a line over
// it. Of many moments in one column of pixels the one with the most memory is drawn: peaks stay at every zoom.
// Below, the phases and the steps where they are known.
#pragma once

#include "app/pages/snapshot/snapshot_view.h"

#include <QPolygonF>
#include <QRectF>

#include <vector>

namespace memscape {

/// The part of the trace that is in sight.
struct TimelineSight
{
    std::size_t first = 0, last = 1; ///< moments
    double bottom = 0, top = 1;      ///< B

    bool operator==(const TimelineSight&) const = default;
};

/// All moments, from 0 to a little more than was reserved at most.
TimelineSight wholeSight(const SnapshotDevice& device);
/// Nearer (factor < 1) or farther in moments about a share of what is in sight, within the whole. Of few moments no
/// less than `fewestMoments` stay in sight.
TimelineSight zoomedSight(const SnapshotDevice& device, const TimelineSight& sight, bool byTime, double share,
                          double factor);
/// The bytes in sight from so many on: some of what was reserved stays in sight.
TimelineSight withMemory(const SnapshotDevice& device, const TimelineSight& sight);
/// To the right by a share of what is in sight, within the whole.
TimelineSight pannedSight(const SnapshotDevice& device, const TimelineSight& sight, bool byTime, double xShare);
constexpr std::size_t fewestMoments = 8;

struct TimelineShape
{
    LifetimeId lifetime = noLifetime; ///< none: all smaller ones of the category
    Category category = Category::Unknown;
    std::size_t column = 0;        ///< the first
    std::vector<double> low, high; ///< y in pixels, of each column from there
    QRectF label;                  ///< empty: no room
    QString text;
};

/// A stretch below the axis: a step or a phase.
struct TimelineStretch
{
    QRectF rect;
    QString text; ///< empty: no room
    QString name; ///< "step 3", "backward"
    Phase phase = Phase::Setup;
};

/// A colour and what it means.
struct TimelineLegend
{
    QRectF swatch, rect;
    QString text;
    Category category = Category::Unknown;
};

struct TimelineTick
{
    double place = 0; ///< x or y in pixels
    QString text;
};

struct TimelineChart
{
    QRectF area; ///< of the bytes
    TimelineSight sight;
    std::vector<std::size_t> boundaries; ///< moments, one more than columns
    std::vector<double> edges;           ///< x in pixels, as many
    std::vector<TimelineColumn> columns;
    std::vector<TimelineShape> shapes;
    QPolygonF reserved;
    QRectF reservedLabel;
    QString reservedText;
    std::vector<TimelineStretch> phases, steps;
    std::vector<TimelineLegend> legend; ///< above the area
    double legendEnd = 0;               ///< x after the last of them
    std::vector<TimelineTick> xTicks, yTicks;
    std::vector<double> outOfMemory; ///< x of the requests that failed

    double x(double moment) const;
    double y(double bytes) const;
    std::size_t momentAt(double x) const; ///< the nearest one that is in sight
    /// The moment of the most memory in the column at x: what is drawn there.
    std::size_t peakAt(double x) const;
    const TimelineShape* at(QPointF place) const;
    /// Nearer or farther in bytes about a place, within `most` B: no nearer than to the block there, over the outline
    /// about the outline.
    TimelineSight zoomedBytes(const SnapshotDevice& device, QPointF place, double factor, double most) const;
};

/// At most so many blocks are drawn one by one.
constexpr std::size_t mostBands = 400;

TimelineChart layoutTimeline(const SnapshotDevice& device, const TimelineSight& sight, const QRectF& rect, bool byTime,
                             ByteStyle bytes, std::size_t bands = mostBands);

/// A predicted step, stretched over a step of the snapshot: bytes at equal distances.
/// Its line over the moments [first, last], as far as it is in sight; of many values in a column the highest.
QPolygonF layoutPrediction(const TimelineChart& chart, const std::vector<double>& totals, std::size_t first,
                           std::size_t last);

} // namespace memscape
