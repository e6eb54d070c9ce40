// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/blocks_layout.h"

#include "app/plots/plot_style.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double pitch = 26, height = 20, widestGap = 3, mostZoom = 1e6;

/// Puts stretches of bytes into rows.
class Rows
{
public:
    Rows(BlocksChart& chart, double firstRow)
        : m_chart(chart)
        , m_firstRow(firstRow)
    { }

    /// Calls `put` with a rectangle for each row in sight that [from, to) touches.
    template <typename Put> void place(double from, double to, const Put& put) const
    {
        const double inSight = m_chart.area.height() / m_chart.rowPitch;
        const double scale = m_chart.area.width() / m_chart.bytesPerRow;
        const double first = std::max(std::floor(from / m_chart.bytesPerRow), std::floor(m_firstRow));
        for (double row = first; row <= m_firstRow + inSight && row * m_chart.bytesPerRow < to; ++row) {
            const double left = std::max(from - row * m_chart.bytesPerRow, 0.0) * scale;
            const double right = std::min(to - row * m_chart.bytesPerRow, m_chart.bytesPerRow) * scale;
            if (right > left)
                put(QRectF(m_chart.area.left() + left, m_chart.area.top() + (row - m_firstRow) * m_chart.rowPitch,
                           right - left, m_chart.rowHeight));
        }
    }

private:
    BlocksChart& m_chart;
    double m_firstRow;
};

void placeBlocks(const SnapshotLayout& layout, const Rows& rows, std::size_t index, double start, BlocksChart& chart)
{
    const LaidSegment& segment = layout.segments[index];
    for (std::size_t i = segment.firstBlock; i < segment.firstBlock + segment.blockCount; ++i) {
        const double from = start + double(layout.blocks[i].address - segment.address);
        rows.place(from, from + double(layout.blocks[i].size), [&](QRectF rect) {
            // Blocks narrower than a pixel share it.
            if (!chart.pieces.empty() && chart.pieces.back().rect.top() == rect.top()
                && std::floor(rect.right()) == std::floor(chart.pieces.back().rect.left()) && rect.width() < 1)
                return;
            rect.setWidth(std::max(rect.width(), 1.0));
            chart.pieces.push_back({rect, i, index});
        });
    }
}

} // namespace

const BlockPiece* BlocksChart::at(QPointF place) const
{
    const auto found =
        std::ranges::find_if(pieces, [&](const BlockPiece& piece) { return piece.rect.contains(place); });
    return found == pieces.end() ? nullptr : &*found;
}

double BlocksChart::rowOf(const SnapshotLayout& layout, std::size_t segment, double offset) const
{
    double start = offset;
    for (std::size_t i = 0; i < segment; ++i)
        start += double(layout.segments[i].size) + gap;
    return start / bytesPerRow;
}

BlocksChart layoutBlocks(const SnapshotLayout& layout, const BlocksSight& sight, const QRectF& rect)
{
    const double u = plotUnit();
    BlocksChart chart;
    chart.area = rect.adjusted(2 * u, 2 * u, -2 * u, -2 * u);
    double reserved = 0;
    for (const LaidSegment& segment : layout.segments)
        reserved += double(segment.size);
    if (reserved <= 0 || chart.area.width() < 8 || chart.area.height() < 4)
        return chart;
    const double fitting = std::max(1.0, std::floor((chart.area.height() + (pitch - height) * u) / (pitch * u)));
    chart.rowPitch = (chart.area.height() + (pitch - height) * u) / fitting;
    chart.rowHeight = chart.rowPitch - (pitch - height) * u;
    chart.rows = fitting * sight.zoom;
    const double count = double(layout.segments.size());
    const double gapPixels = std::min(widestGap * u, 0.25 * chart.rows * chart.area.width() / count);
    chart.bytesPerRow = reserved / (chart.rows - count * gapPixels / chart.area.width());
    chart.gap = gapPixels / chart.area.width() * chart.bytesPerRow;
    const Rows rows(chart, sight.firstRow);
    double start = 0;
    for (std::size_t i = 0; i < layout.segments.size(); ++i) {
        const double size = double(layout.segments[i].size);
        const double last = (sight.firstRow + fitting + 1) * chart.bytesPerRow;
        if (start > last)
            break;
        if (start + size >= sight.firstRow * chart.bytesPerRow - chart.bytesPerRow) {
            rows.place(start, start + size, [&](const QRectF& frame) { chart.frames.push_back(frame); });
            placeBlocks(layout, rows, i, start, chart);
        }
        start += size + chart.gap;
    }
    return chart;
}

BlocksSight zoomedBlocks(const BlocksChart& chart, const BlocksSight& sight, QPointF place, double factor)
{
    BlocksSight next = sight;
    next.zoom = std::clamp(sight.zoom / factor, 1.0, mostZoom);
    if (chart.area.height() <= 0)
        return next;
    const double down = (place.y() - chart.area.top()) / chart.rowPitch;
    const double across = (place.x() - chart.area.left()) / chart.area.width();
    // The byte there: whole rows above it, and the share of its own.
    const double bytes = std::floor(sight.firstRow + down) + std::clamp(across, 0.0, 1.0);
    const double row = bytes * next.zoom / sight.zoom;
    const double rows = chart.rows * next.zoom / sight.zoom;
    const double inSight = chart.area.height() / chart.rowPitch;
    next.firstRow = std::clamp(std::floor(row) - std::floor(down), 0.0, std::max(0.0, std::ceil(rows - inSight)));
    return next;
}

BlocksSight scrolledBlocks(const BlocksChart& chart, const BlocksSight& sight, double rows)
{
    const double inSight = std::floor((chart.area.height() + 1) / chart.rowPitch);
    return {sight.zoom,
            std::clamp(std::round(sight.firstRow + rows), 0.0, std::max(0.0, std::ceil(chart.rows - inSight)))};
}

} // namespace memscape
