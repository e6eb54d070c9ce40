// SPDX-License-Identifier: GPL-3.0-or-later
// The allocator's segments as it laid them: addresses from left to right, row after row like the words of a text, so
// that every byte has the same width. A small gap parts segments; within a segment blocks and holes touch.
#pragma once

#include "core/snapshot/lifetimes.h"

#include <QRectF>

#include <vector>

namespace memscape {

struct BlocksSight
{
    double zoom = 1;     ///< 1: all is in sight
    double firstRow = 0; ///< of all rows at that zoom, the topmost in sight

    bool operator==(const BlocksSight&) const = default;
};

/// A part of a block in one row.
struct BlockPiece
{
    QRectF rect;
    std::size_t block = 0; ///< of SnapshotLayout::blocks
    std::size_t segment = 0;
};

struct BlocksChart
{
    QRectF area;
    std::vector<BlockPiece> pieces;  ///< by address; those in sight that have a pixel
    std::vector<QRectF> frames;      ///< of segments, a rectangle for each row that they touch
    double bytesPerRow = 1, gap = 0; ///< B; the gap between segments in those
    double rows = 1;                 ///< in all
    double rowPitch = 1, rowHeight = 1;

    const BlockPiece* at(QPointF place) const;
    /// Row of a byte, counted along all segments with their gaps; with a fraction.
    double rowOf(const SnapshotLayout& layout, std::size_t segment, double offset) const;
};

BlocksChart layoutBlocks(const SnapshotLayout& layout, const BlocksSight& sight, const QRectF& rect);

/// Nearer or farther about a place, so that what lies there stays there.
BlocksSight zoomedBlocks(const BlocksChart& chart, const BlocksSight& sight, QPointF place, double factor);
/// Down by so many rows, within what there is.
BlocksSight scrolledBlocks(const BlocksChart& chart, const BlocksSight& sight, double rows);

} // namespace memscape
