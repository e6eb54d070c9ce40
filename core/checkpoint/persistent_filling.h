// SPDX-License-Identifier: Apache-2.0
// Fills the table of the persistent recursion, sixteen slots of memory at a time for all segments:
// what a segment needs is never more memory than its own, so a block of memory needs earlier blocks
// and itself only.
//
// With e(s,t,m) the extra time and p_j the time to pass stages 0 … j−1, a(j,t,m) = p_j + e(j,t,m)
// turns the cut into
//     a(s,t,m) = min over j of a(j,t,m − x_j) + e(s,j−1,m)
// a product of two matrices in (min, +). Inside a block m is innermost; e is kept row by row
// (`m_left`), a(j,t,· − x_j), shifted already, column by column (`m_below`), so both run along j
// without gaps. Tiles of 4 × 4 segments share what they load; sixteen rows of e stay in the
// second-level cache while t runs.
//
// Skipped, exactly: blocks below and above a tile's windows, and every j with p_j ≥ a(s,t,·) of the
// block below, which can't be better (e ≥ 0, and a never grows with m).
//
// A tile whose stages are those of the tile four rows and columns further on takes its cells from it, which share their
// place in the table: in a chain of equal layers, where times are whole numbers, nearly all do.
#pragma once

#include "core/checkpoint/persistent_table.h"
#include "core/checkpoint/persistent_tiles.h"

namespace memscape::persistent {

template <typename Cost> struct alignas(64) Lanes
{
    Cost at[laneCount];
};

/// A way to save a stage, in slots; nothing above `top` matters.
template <typename Cost> struct Way
{
    std::int32_t saved = 0;
    std::int32_t forward = 0;  ///< x̄ + its forward's overhead; y_{t+1} comes on top
    std::int32_t backward = 0; ///< all that its backward needs
    Cost beyond = 0;           ///< time beyond the fastest way
};

/// What is known of a tile's segments together.
struct Tile
{
    std::int32_t first = 0;    ///< below, none can run
    std::int32_t free = 0;     ///< from here on all may pass all their stages
    std::int32_t settled = 0;  ///< from here on nothing is recomputed, in shifted rows neither
    std::int32_t furthest = 0; ///< no j above can be better for any
    bool isCopied = false;     ///< its stages are those of the tile groupStages further on
};

/// A segment's window and its cells.
struct Segment
{
    std::size_t start = 0; ///< cells[start + m]
    std::int32_t first = 0;
    std::int32_t last = 0;
};

/// Where a tile's rows s and columns t lie: `left[r] + t·laneCount`, `below[c] + s·laneCount`,
/// `segments[r] + t`.
template <typename Cost> struct Place
{
    int s = 0, t = 0; ///< the tile's first
    int rows = 0, columns = 0;
    Cost* left[tileSize];
    Cost* below[tileSize];
    const Segment* segments[tileSize + 1];
};

template <typename Cost> class Filling
{
public:
    Filling(const SlotChain& chain, const std::vector<Window>& windows, std::int64_t top);

    int groupCount() const { return (m_tileCount + tileSize - 1) / tileSize; }
    std::int32_t top() const { return m_top; }
    CostTable<Cost> take() { return std::move(m_table); }

    /// Rows of four tiles by four, beginning with the last, and their columns.
    template <int Width, int Columns> [[gnu::always_inline]] inline void fillGroup(int group, std::int32_t block);

private:
    /// Tiles of one group are not done in the order of their rows, those of the next one are done.
    static constexpr int groupStages = tileSize * tileSize;
    void makeWays(const SlotChain& chain);
    void makeTiles(const SlotChain& chain);
    void findCopies(const SlotChain& chain);
    bool isSameWindow(int s, int t) const;
    void placeCells();
    std::size_t leftOf(int s, int t) const { return (m_padded.rowStart(s) + std::size_t(t)) * laneCount; }
    std::size_t belowOf(int j, int t) const
    {
        return (std::size_t(t) * std::size_t(t + 1) / 2 + std::size_t(j)) * laneCount;
    }
    Cost* cellsOf(const Segment& segment, std::int32_t m) const
    {
        return m_table.cells.get() + (segment.start + std::size_t(m));
    }
    Tile& tile(int i, int j) { return m_tiles[std::size_t(i) * std::size_t(m_tileCount) + std::size_t(j)]; }

    [[gnu::always_inline]] inline Place<Cost> placeOf(int i, int j);
    template <int Width, int Columns>
    [[gnu::always_inline]] inline void fillTile(int i, int j, std::int32_t block, Recent<Cost>* recent);
    [[gnu::always_inline]] inline Cost begin(const Place<Cost>& place, std::int32_t block, Cost* least);
    template <int Width>
    [[gnu::always_inline]] inline void combineEdges(const Place<Cost>& place, int r, int c, Cost* least);
    [[gnu::always_inline]] inline void combineGuarded(const Place<Cost>& place, int r, int c, std::int32_t block,
                                                      Cost* least);
    template <int Width>
    [[gnu::always_inline]] inline void save(const Place<Cost>& place, int r, int c, std::int32_t block,
                                            const Recent<Cost>& next, Cost* least);
    template <int Width>
    [[gnu::always_inline]] inline void finish(const Place<Cost>& place, int r, int c, std::int32_t block,
                                              Recent<Cost>& recent, const Cost* least);
    [[gnu::always_inline]] inline void copyLanes(const Place<Cost>& place, int r, int c, Cost* least) const;
    [[gnu::always_inline]] inline const Cost* read(const Segment& segment, std::int32_t from, Cost* edge) const;

    const std::vector<Window>& m_windows;
    Segments m_segments;
    Segments m_padded; ///< with stages added to make whole tiles, which are never feasible
    int m_stageCount;
    int m_tileCount;
    std::int32_t m_top;
    CostTable<Cost> m_table;
    std::vector<std::int32_t> m_values;  ///< x_i, L + 2
    std::vector<std::int32_t> m_passing; ///< per stage i: x_{i+1} + overhead of passing it
    std::vector<Cost> m_passed;          ///< p_j
    std::vector<Way<Cost>> m_ways;
    std::vector<std::int32_t> m_waysOf; ///< stage s has ways m_waysOf[s] … m_waysOf[s+1]−1
    std::vector<Tile> m_tiles;
    std::vector<Segment> m_segment;
    std::vector<Lanes<Cost>> m_leftLanes, m_belowLanes;
    Cost* m_left = nullptr;
    Cost* m_below = nullptr;
};

} // namespace memscape::persistent
