// SPDX-License-Identifier: Apache-2.0
// The timeline at any zoom: for each column of pixels the lowest and the highest allocated and reserved bytes, and the
// largest allocations as bands, stacked. A column shows the moment of its peak, so a spike of one event is drawn at
// every zoom, to the byte.
//
// An index of minima and maxima (each 64 moments, then each 8 of these, …) is made once. A picture of 2,000 columns
// then costs about a millisecond, whatever the range: a window can ask again for every frame of a zoom.
#pragma once

#include "core/snapshot/categories.h"
#include "core/snapshot/lifetimes.h"

namespace memscape {

/// What one column of pixels covers: the moments between two boundaries, the first of them included.
struct TimelineColumn
{
    std::int64_t lowAllocated = 0, highAllocated = 0;
    std::int64_t lowReserved = 0, highReserved = 0;
    std::size_t peak = 0; ///< the first moment with highAllocated: what bands and categories of the column show
};

/// One allocation in the picture, from column `first` on: its lower edge in each of its columns (the upper edge is
/// `size` above). A column without it, at its end, is not in the list.
struct TimelineBand
{
    LifetimeId lifetime = noLifetime;
    std::int64_t size = 0;
    std::size_t firstColumn = 0;
    std::vector<std::int64_t> bottoms;
};

struct TimelineBands
{
    std::vector<TimelineBand> bands; ///< the oldest first: it lies lowest
    /// By column: the bytes of everything smaller, which lies below the bands.
    std::vector<std::int64_t> rest;
};

class SnapshotTimeline
{
public:
    /// `lifetimes` and `categories` must outlive it.
    /// Of no use when it was cancelled meanwhile. `pace` is asked on one thread, which need not be the caller's.
    SnapshotTimeline(const Lifetimes& lifetimes, const SnapshotCategories& categories, Pace& pace);

    /// Boundaries of `columns` columns over the moments [first, last]; columns + 1 of them, rising (not strictly where
    /// there are more columns than moments). By events, or evenly in time.
    std::vector<std::size_t> byEvents(std::size_t first, std::size_t last, std::size_t columns) const;
    std::vector<std::size_t> byTime(std::size_t first, std::size_t last, std::size_t columns) const;

    /// LargeArray i covers the moments [boundaries[i], boundaries[i + 1]), at least boundaries[i]; the last one its
    /// end, too.
    std::vector<TimelineColumn> columns(std::span<const std::size_t> boundaries) const;
    /// The `count` largest allocations that are alive in the peaks of the columns, stacked.
    TimelineBands bands(std::span<const TimelineColumn> columns, std::size_t count) const;
    /// Allocated bytes by category at the peak of each column: what a stacked area chart draws.
    std::vector<CategoryBytes> categories(std::span<const TimelineColumn> columns) const;
    CategoryBytes categoriesAt(std::size_t moment) const;

    /// The first moment of [first, last] with the most allocated, or reserved, bytes.
    std::size_t peakAllocated(std::size_t first, std::size_t last) const;
    std::size_t peakReserved(std::size_t first, std::size_t last) const;
    std::int64_t lowestAllocated(std::size_t first, std::size_t last) const;

private:
    struct Extremes
    {
        std::int64_t lowAllocated, highAllocated, lowReserved, highReserved;
        void include(const Extremes& other);
    };
    void indexExtremes(Pace& pace);
    void indexCategories();
    void listLargest();
    void changeCategories(std::size_t event, CategoryBytes& bytes) const;
    Extremes extremes(std::size_t first, std::size_t last) const;
    std::size_t firstWith(std::size_t first, std::size_t last, std::int64_t Extremes::*extreme,
                          std::int64_t SnapshotBytes::*count, std::int64_t wanted) const;
    std::vector<LifetimeId> largest(std::span<const TimelineColumn> columns, std::size_t count) const;

    const Lifetimes* m_lifetimes;
    const SnapshotCategories* m_categories;
    std::vector<std::vector<Extremes>> m_levels; ///< [0]: each 64 moments, [k + 1]: each 8 of [k]
    std::vector<CategoryBytes> m_categoryStates; ///< at moments 0, 512, 1024 …
    std::vector<LifetimeId> m_bySize;            ///< largest first: the 50,000 that a picture looks at
};

} // namespace memscape
