// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/snapshot_timeline.h"

#include "core/base/parallel.h"
#include "core/base/rounding.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace memscape {

namespace {

constexpr std::size_t leaf = 64;  // moments of the lowest level
constexpr std::size_t factor = 8; // of a level in the next one
constexpr std::size_t categoryStride = 512;
constexpr std::size_t mostLookedAt = 50'000; // of the largest blocks, for a picture: two milliseconds

} // namespace

void SnapshotTimeline::Extremes::include(const Extremes& other)
{
    lowAllocated = std::min(lowAllocated, other.lowAllocated);
    highAllocated = std::max(highAllocated, other.highAllocated);
    lowReserved = std::min(lowReserved, other.lowReserved);
    highReserved = std::max(highReserved, other.highReserved);
}

SnapshotTimeline::SnapshotTimeline(const Lifetimes& lifetimes, const SnapshotCategories& categories, Pace& pace)
    : m_lifetimes(&lifetimes)
    , m_categories(&categories)
{
    inParallel(3, std::min<std::size_t>(3, coreCount()), [&](std::size_t part) {
        if (part == 0)
            indexExtremes(pace);
        else if (part == 1)
            indexCategories();
        else
            listLargest();
    });
}

void SnapshotTimeline::listLargest()
{
    const auto larger = [&](LifetimeId a, LifetimeId b) {
        const std::int64_t left = (*m_lifetimes)[a].size, right = (*m_lifetimes)[b].size;
        return left != right ? left > right : a < b;
    };
    m_bySize.resize(m_lifetimes->all().size());
    std::iota(m_bySize.begin(), m_bySize.end(), 0);
    if (m_bySize.size() > mostLookedAt) {
        std::ranges::nth_element(m_bySize, m_bySize.begin() + std::ptrdiff_t(mostLookedAt), larger);
        m_bySize.resize(mostLookedAt);
        m_bySize.shrink_to_fit();
    }
    std::ranges::sort(m_bySize, larger);
}

void SnapshotTimeline::indexExtremes(Pace& pace)
{
    constexpr Extremes none{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
                            std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    m_levels.emplace_back();
    SnapshotBytes bytes = m_lifetimes->bytesAt(0);
    const std::size_t events = m_lifetimes->events();
    for (std::size_t moment = 0; moment <= events && pace.goesOn(moment, events); ++moment) {
        if (moment > 0)
            bytes += m_lifetimes->change(moment - 1);
        if (moment % leaf == 0)
            m_levels[0].push_back(none);
        m_levels[0].back().include({bytes.allocated, bytes.allocated, bytes.reserved, bytes.reserved});
    }
    while (m_levels.back().size() > factor) {
        std::vector<Extremes> next;
        for (std::size_t i = 0; i < m_levels.back().size(); ++i) {
            if (i % factor == 0)
                next.push_back(none);
            next.back().include(m_levels.back()[i]);
        }
        m_levels.push_back(std::move(next));
    }
}

void SnapshotTimeline::indexCategories()
{
    CategoryBytes bytes{};
    const auto& all = m_lifetimes->all();
    for (LifetimeId id = 0; id < all.size() && all[id].begin == 0; ++id) {
        if (all[id].freed > 0)
            bytes[std::size_t(m_categories->of(id))] += all[id].size;
    }
    for (std::size_t moment = 0; moment <= m_lifetimes->events() && !(moment % 65'536 == 0 && isCancelled());
         ++moment) {
        if (moment > 0)
            changeCategories(moment - 1, bytes);
        if (moment % categoryStride == 0)
            m_categoryStates.push_back(bytes);
    }
}

/// One category changes at most, but where trace and segments contradict each other: there the sums are of the
/// block that the event is about.
void SnapshotTimeline::changeCategories(std::size_t event, CategoryBytes& bytes) const
{
    const LifetimeId id = m_lifetimes->lifetimeOf(event);
    if (id != noLifetime) {
        const Lifetime& lifetime = (*m_lifetimes)[id];
        auto& sum = bytes[std::size_t(m_categories->of(id))];
        if (lifetime.begin == event + 1)
            sum += lifetime.freed > lifetime.begin ? lifetime.size : 0;
        else if (lifetime.freed == event + 1)
            sum -= lifetime.size;
    }
    for (const auto& [at, ended] : m_lifetimes->extrasOf(event)) {
        if ((*m_lifetimes)[ended].freed == event + 1 && (*m_lifetimes)[ended].begin < event + 1)
            bytes[std::size_t(m_categories->of(ended))] -= (*m_lifetimes)[ended].size;
    }
}

std::vector<std::size_t> SnapshotTimeline::byEvents(std::size_t first, std::size_t last, std::size_t columns) const
{
    std::vector<std::size_t> boundaries(columns + 1);
    for (std::size_t i = 0; i <= columns; ++i)
        boundaries[i] =
            first + std::size_t(double(last - first) * double(i) / double(std::max<std::size_t>(1, columns)));
    boundaries.back() = last;
    return boundaries;
}

std::vector<std::size_t> SnapshotTimeline::byTime(std::size_t first, std::size_t last, std::size_t columns) const
{
    const std::int64_t begin = m_lifetimes->timeAt(first), end = m_lifetimes->timeAt(last);
    if (end <= begin)
        return byEvents(first, last, columns);
    std::vector<std::size_t> boundaries(columns + 1, first);
    for (std::size_t i = 1; i < columns; ++i) {
        const double time = double(end - begin) * double(i) / double(columns);
        boundaries[i] = std::clamp(m_lifetimes->momentAt(begin + std::int64_t(time)), boundaries[i - 1], last);
    }
    boundaries.back() = last;
    return boundaries;
}

/// Extremes of the moments [first, last): whole nodes of the index where they fit, else moment by moment.
SnapshotTimeline::Extremes SnapshotTimeline::extremes(std::size_t first, std::size_t last) const
{
    const SnapshotBytes start = m_lifetimes->bytesAt(first);
    Extremes found{start.allocated, start.allocated, start.reserved, start.reserved};
    const auto singly = [&](std::size_t from, std::size_t until) {
        SnapshotBytes bytes = m_lifetimes->bytesAt(from);
        for (std::size_t moment = from; moment < until; ++moment) {
            if (moment > from)
                bytes += m_lifetimes->change(moment - 1);
            found.include({bytes.allocated, bytes.allocated, bytes.reserved, bytes.reserved});
        }
    };
    const std::size_t inner = std::min(last, roundedUp(first, leaf)), innerEnd = last / leaf * leaf;
    singly(first, inner);
    if (innerEnd < inner)
        return found;
    for (std::size_t at = inner / leaf, end = innerEnd / leaf; at < end;) {
        std::size_t level = 0, width = 1;
        while (level + 1 < m_levels.size() && at % (width * factor) == 0 && at + width * factor <= end) {
            width *= factor;
            ++level;
        }
        found.include(m_levels[level][at / width]);
        at += width;
    }
    singly(innerEnd, last);
    return found;
}

/// The first moment of [first, last) with that many bytes: nodes of the index that do not reach them are passed over.
std::size_t SnapshotTimeline::firstWith(std::size_t first, std::size_t last, std::int64_t Extremes::*extreme,
                                        std::int64_t SnapshotBytes::*count, std::int64_t wanted) const
{
    for (std::size_t node = first / leaf; node * leaf < last; ++node) {
        for (std::size_t level = m_levels.size(); level-- > 1;) {
            const std::size_t width = std::size_t(1) << (3 * level);
            if (node % width == 0 && m_levels[level][node / width].*extreme < wanted) {
                node += width - 1;
                break;
            }
        }
        if (node >= m_levels[0].size() || m_levels[0][node].*extreme < wanted)
            continue;
        const std::size_t begin = std::max(first, node * leaf), end = std::min(last, (node + 1) * leaf);
        SnapshotBytes bytes = m_lifetimes->bytesAt(begin);
        for (std::size_t moment = begin; moment < end; ++moment) {
            if (moment > begin)
                bytes += m_lifetimes->change(moment - 1);
            if (bytes.*count == wanted)
                return moment;
        }
    }
    return first;
}

std::vector<TimelineColumn> SnapshotTimeline::columns(std::span<const std::size_t> boundaries) const
{
    std::vector<TimelineColumn> columns(boundaries.empty() ? 0 : boundaries.size() - 1);
    const std::size_t moments = m_lifetimes->events() + 1;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::size_t first = std::min(boundaries[i], moments - 1);
        const bool isLast = i + 1 == columns.size();
        const std::size_t last = std::min(moments, std::max(boundaries[i + 1] + (isLast ? 1 : 0), first + 1));
        const Extremes found = extremes(first, last);
        columns[i] = {found.lowAllocated, found.highAllocated, found.lowReserved, found.highReserved,
                      firstWith(first, last, &Extremes::highAllocated, &SnapshotBytes::allocated, found.highAllocated)};
    }
    return columns;
}

std::size_t SnapshotTimeline::peakAllocated(std::size_t first, std::size_t last) const
{
    const std::int64_t most = extremes(first, last + 1).highAllocated;
    return firstWith(first, last + 1, &Extremes::highAllocated, &SnapshotBytes::allocated, most);
}

std::size_t SnapshotTimeline::peakReserved(std::size_t first, std::size_t last) const
{
    const std::int64_t most = extremes(first, last + 1).highReserved;
    return firstWith(first, last + 1, &Extremes::highReserved, &SnapshotBytes::reserved, most);
}

std::int64_t SnapshotTimeline::lowestAllocated(std::size_t first, std::size_t last) const
{
    return extremes(first, last + 1).lowAllocated;
}

/// Those alive at one of the peaks, largest first.
std::vector<LifetimeId> SnapshotTimeline::largest(std::span<const TimelineColumn> columns, std::size_t count) const
{
    std::vector<LifetimeId> chosen;
    const std::size_t first = columns.front().peak, last = columns.back().peak + 1;
    const auto isSeen = [&](LifetimeId id) {
        const Lifetime& lifetime = (*m_lifetimes)[id];
        if (!lifetime.overlaps(first, last) || lifetime.freed <= first)
            return false;
        const auto column = std::ranges::lower_bound(columns, std::size_t(lifetime.begin), {}, &TimelineColumn::peak);
        return column != columns.end() && column->peak < lifetime.freed;
    };
    // Of a short stretch all that live in it are looked at, of a long one the largest of all: many of them do.
    if (last - first < m_lifetimes->all().size() / 16) {
        for (const LifetimeId id : m_lifetimes->aliveIn(first, last)) {
            if (isSeen(id))
                chosen.push_back(id);
        }
        const auto larger = [&](LifetimeId a, LifetimeId b) {
            const std::int64_t left = (*m_lifetimes)[a].size, right = (*m_lifetimes)[b].size;
            return left != right ? left > right : a < b;
        };
        if (chosen.size() > count) {
            std::ranges::nth_element(chosen, chosen.begin() + std::ptrdiff_t(count), larger);
            chosen.resize(count);
        }
        return chosen;
    }
    for (std::size_t i = 0; i < m_bySize.size() && chosen.size() < count; ++i) {
        if (isSeen(m_bySize[i]))
            chosen.push_back(m_bySize[i]);
    }
    return chosen;
}

TimelineBands SnapshotTimeline::bands(std::span<const TimelineColumn> columns, std::size_t count) const
{
    TimelineBands picture;
    if (columns.empty())
        return picture;
    auto chosen = largest(columns, count);
    std::ranges::sort(chosen); // by allocation: the oldest lies lowest
    std::vector<std::int64_t> shown(columns.size(), 0);
    const auto columnsOf = [&](const Lifetime& lifetime) {
        const auto first = std::ranges::lower_bound(columns, std::size_t(lifetime.begin), {}, &TimelineColumn::peak);
        const auto last =
            std::ranges::lower_bound(first, columns.end(), std::size_t(lifetime.freed), {}, &TimelineColumn::peak);
        return std::pair(std::size_t(first - columns.begin()), std::size_t(last - columns.begin()));
    };
    for (const LifetimeId id : chosen) {
        const Lifetime& lifetime = (*m_lifetimes)[id];
        const auto [first, last] = columnsOf(lifetime);
        TimelineBand band{id, lifetime.size, first, {}};
        band.bottoms.assign(shown.begin() + std::ptrdiff_t(first), shown.begin() + std::ptrdiff_t(last));
        for (std::size_t i = first; i < last; ++i)
            shown[i] += lifetime.size;
        picture.bands.push_back(std::move(band));
    }
    for (std::size_t i = 0; i < columns.size(); ++i)
        picture.rest.push_back(columns[i].highAllocated - shown[i]);
    for (TimelineBand& band : picture.bands) {
        for (std::size_t i = 0; i < band.bottoms.size(); ++i)
            band.bottoms[i] += picture.rest[band.firstColumn + i];
    }
    return picture;
}

CategoryBytes SnapshotTimeline::categoriesAt(std::size_t moment) const
{
    moment = std::min(moment, m_lifetimes->events());
    CategoryBytes bytes = m_categoryStates[moment / categoryStride];
    for (std::size_t event = moment / categoryStride * categoryStride; event < moment; ++event)
        changeCategories(event, bytes);
    return bytes;
}

std::vector<CategoryBytes> SnapshotTimeline::categories(std::span<const TimelineColumn> columns) const
{
    std::vector<CategoryBytes> found;
    std::size_t at = 0;
    for (const TimelineColumn& column : columns) {
        if (found.empty() || column.peak < at || column.peak - at > categoryStride) {
            found.push_back(categoriesAt(column.peak));
        } else { // from the column before
            found.push_back(found.back());
            for (std::size_t event = at; event < column.peak; ++event)
                changeCategories(event, found.back());
        }
        at = column.peak;
    }
    return found;
}

} // namespace memscape
