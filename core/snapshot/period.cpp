// SPDX-License-Identifier: Apache-2.0
#include "core/snapshot/period.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr std::size_t shortest = 8;   // allocations of a period
constexpr std::size_t mostTried = 48; // distances
constexpr std::size_t patternLength = 32;
constexpr std::size_t mostRead = 4'000'000; // allocations from the end

struct Sequence
{
    std::vector<std::int64_t> sizes;
    std::vector<std::size_t> events;
};

Sequence sequenceOf(const Lifetimes& lifetimes)
{
    Sequence sequence;
    for (std::size_t event = lifetimes.events(); event-- > 0 && sequence.sizes.size() < mostRead;) {
        const LifetimeId id = lifetimes.lifetimeOf(event);
        if (id == noLifetime || lifetimes[id].begin != event + 1)
            continue;
        sequence.sizes.push_back(lifetimes[id].requested);
        sequence.events.push_back(event);
    }
    std::ranges::reverse(sequence.sizes);
    std::ranges::reverse(sequence.events);
    return sequence;
}

/// Distances at which the last sizes occur before.
std::vector<std::size_t> distances(const std::vector<std::int64_t>& sizes)
{
    std::vector<std::size_t> found;
    const std::size_t length = std::min(patternLength, sizes.size() / 4);
    if (length < 4)
        return found;
    const auto pattern = sizes.end() - std::ptrdiff_t(length);
    for (std::size_t distance = shortest; distance + length <= sizes.size() && found.size() < mostTried; ++distance) {
        const auto earlier = pattern - std::ptrdiff_t(distance);
        if (std::equal(pattern, sizes.end(), earlier))
            found.push_back(distance);
    }
    return found;
}

/// How many of the last sizes repeat at that distance, with at most one in twenty different.
std::size_t explained(const std::vector<std::int64_t>& sizes, std::size_t distance)
{
    std::size_t different = 0, best = 0;
    for (std::size_t count = 1; count + distance <= sizes.size(); ++count) {
        const std::size_t i = sizes.size() - count;
        different += sizes[i] != sizes[i - distance];
        if (different * 20 > std::max<std::size_t>(count, 40))
            break;
        best = count;
    }
    return best;
}

} // namespace

Period findPeriod(const Lifetimes& lifetimes)
{
    const Sequence sequence = sequenceOf(lifetimes);
    Period period;
    std::size_t most = 0;
    for (const std::size_t distance : distances(sequence.sizes)) {
        const std::size_t count = explained(sequence.sizes, distance);
        if (count >= 2 * distance && count > most + most / 20) { // a multiple explains no more
            most = count;
            period.allocations = distance;
        }
    }
    if (period.allocations == 0)
        return period;
    // The lowest moment of the last whole period is where a step begins.
    const std::size_t all = sequence.sizes.size(), length = period.allocations;
    std::size_t lowest = all - length;
    std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = all - length; i < all; ++i) {
        const std::int64_t before = lifetimes.bytesAt(sequence.events[i]).allocated;
        if (before < bytes) {
            bytes = before;
            lowest = i;
        }
    }
    const std::size_t begin = all - most - length;
    std::vector<std::size_t> starts;
    for (std::size_t i = lowest;; i -= length) {
        starts.push_back(sequence.events[i]);
        if (i < begin + length)
            break;
    }
    std::ranges::reverse(starts);
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
        period.steps.push_back({std::int64_t(i), starts[i], starts[i + 1]});
    // The last one is whole when the trace goes on as long as the others do.
    if (all - lowest >= length)
        period.steps.push_back({std::int64_t(starts.size() - 1), starts.back(), lifetimes.events()});
    return period;
}

} // namespace memscape
