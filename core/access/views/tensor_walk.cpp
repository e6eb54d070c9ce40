// SPDX-License-Identifier: Apache-2.0
#include "core/access/views/tensor_walk.h"

#include "core/access/granules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace memscape {

namespace {

constexpr std::int64_t requestBudget = 4096; // requests resolved for one answer

/// How often each remainder of an address by `line` occurs at the beginning of a period.
using Remainders = std::map<std::uint64_t, double>;

Remainders remaindersOf(const TensorWalk& walk, std::size_t firstOuter, std::uint64_t line)
{
    Remainders weights{{std::uint64_t(walk.offset) * walk.itemBytes % line, 1.0}};
    for (std::size_t i = firstOuter; i < walk.loops.size(); ++i) {
        const WalkLoop& loop = walk.loops[i];
        const std::uint64_t step = std::uint64_t(loop.stride) % line * walk.itemBytes % line;
        const auto cycle = std::int64_t(line / std::gcd(line, step == 0 ? line : step)); // of remainders
        Remainders next;
        for (const auto& [remainder, weight] : weights) {
            const std::int64_t rounds = loop.count / cycle, rest = loop.count % cycle;
            for (std::int64_t k = 0; k < std::min(cycle, loop.count); ++k)
                next[(remainder + std::uint64_t(k) * step) % line] += weight * double(rounds + (k < rest));
        }
        weights = std::move(next);
    }
    return weights;
}

class RequestSum
{
public:
    RequestSum(const TensorWalk& walk, const GranuleSizes& sizes)
        : m_walk(walk)
        , m_sizes(sizes)
    {
        m_request.width = walk.itemBytes;
    }

    /// The request that begins with that visit, its addresses moved to `base` mod line.
    Result<void> add(std::int64_t first, std::uint64_t base, double weight)
    {
        const std::int64_t lanes = std::min<std::int64_t>(warpLanes, m_walk.elements - first);
        m_request.addresses.resize(std::size_t(lanes));
        for (std::int64_t lane = 0; lane < lanes; ++lane)
            m_request.addresses[std::size_t(lane)] = m_walk.address(first + lane) + base;
        return addResolved(weight);
    }

    WalkRequests mean(double requests, bool isExact) const
    {
        return {requests, m_sectors / m_weight, m_lines / m_weight, m_used / m_weight, m_fetched / m_weight, isExact};
    }

private:
    Result<void> addResolved(double weight)
    {
        MEMSCAPE_TRY(access, counted());
        m_sectors += weight * access[0];
        m_lines += weight * access[1];
        m_used += weight * access[2];
        m_fetched += weight * access[0] * double(m_sizes.sector);
        m_weight += weight;
        return {};
    }

    /// Sectors, lines and distinct bytes of m_request: resolveRequest() without its lists.
    Result<std::array<double, 3>> counted()
    {
        auto& addresses = m_request.addresses;
        std::ranges::sort(addresses);
        constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t sector = none, line = none, end = 0, sectors = 0, lines = 0, used = 0;
        for (const std::uint64_t begin : addresses) {
            const std::uint64_t last = begin + m_request.width - 1;
            used += m_request.width - std::min(m_request.width, end > begin ? end - begin : 0);
            end = last + 1;
            for (std::uint64_t at = begin / m_sizes.sector; at <= last / m_sizes.sector; ++at) {
                sectors += sector == none || at > sector;
                sector = at;
            }
            for (std::uint64_t at = begin / m_sizes.line; at <= last / m_sizes.line; ++at) {
                lines += line == none || at > line;
                line = at;
            }
        }
        return std::array<double, 3>{double(sectors), double(lines), double(used)};
    }

    const TensorWalk& m_walk;
    GranuleSizes m_sizes;
    WarpRequest m_request;
    double m_sectors = 0, m_lines = 0, m_used = 0, m_fetched = 0, m_weight = 0;
};

/// Cuts the loop that completes whole requests, so that the loops up to it are one period; how many
/// loops that are, 0 when no period exists.
std::size_t cutIntoPeriod(TensorWalk& walk, std::int64_t& visits)
{
    visits = 1;
    for (std::size_t i = 0; i < walk.loops.size(); ++i) {
        const WalkLoop loop = walk.loops[i];
        if (visits * loop.count % warpLanes != 0) {
            visits *= loop.count;
            continue;
        }
        const std::int64_t steps = warpLanes / std::gcd(visits, std::int64_t(warpLanes)); // divides the count
        visits *= steps;
        walk.loops[i].count = steps;
        walk.loops.insert(walk.loops.begin() + std::ptrdiff_t(i) + 1, {loop.count / steps, loop.stride * steps});
        return i + 1;
    }
    return 0;
}

/// Runs of the walk in ascending order of addresses: loops by stride, broadcasts left away.
std::vector<WalkLoop> ascendingLoops(const TensorWalk& walk)
{
    std::vector<WalkLoop> loops;
    for (const WalkLoop& loop : walk.loops) {
        if (loop.stride > 0)
            loops.push_back(loop);
    }
    std::ranges::sort(loops, [](const WalkLoop& a, const WalkLoop& b) { return a.stride < b.stride; });
    return loops;
}

/// Each loop steps beyond all that the loops inside it reach.
bool isNested(const std::vector<WalkLoop>& loops)
{
    std::int64_t reach = 0;
    for (const WalkLoop& loop : loops) {
        if (loop.stride <= reach)
            return false;
        reach += loop.stride * (loop.count - 1);
    }
    return true;
}

double granulesByVisits(const TensorWalk& walk, std::uint64_t granule)
{
    std::vector<std::uint64_t> all;
    all.reserve(std::size_t(walk.elements));
    for (std::int64_t i = 0; i < walk.elements; ++i) {
        const std::uint64_t address = walk.address(i);
        for (std::uint64_t at = address / granule; at <= (address + walk.itemBytes - 1) / granule; ++at)
            all.push_back(at);
    }
    std::ranges::sort(all);
    return double(std::unique(all.begin(), all.end()) - all.begin());
}

} // namespace

std::uint64_t TensorWalk::address(std::int64_t visit) const
{
    std::int64_t at = offset;
    for (const WalkLoop& loop : loops) {
        at += visit % loop.count * loop.stride;
        visit /= loop.count;
    }
    return std::uint64_t(at) * itemBytes;
}

std::uint64_t TensorWalk::pitchBytes() const
{
    return loops.empty() ? itemBytes : std::uint64_t(loops.front().stride) * itemBytes;
}

bool TensorWalk::isSequential() const
{
    return loops.empty() || (loops.size() == 1 && loops.front().stride == 1);
}

TensorWalk sliceOf(const TensorWalk& walk, std::int64_t begin, std::int64_t end)
{
    TensorWalk slice = walk;
    if (walk.loops.empty())
        return slice;
    WalkLoop& slowest = slice.loops.back();
    slice.offset += begin * slowest.stride;
    slice.elements = walk.elements / slowest.count * (end - begin);
    slowest.count = end - begin;
    return slice;
}

TensorWalk walkOf(const TensorView& view, WalkOrder order, std::int64_t itemBytes)
{
    TensorWalk walk{{}, view.offset, view.elements(), std::uint64_t(itemBytes)};
    if (walk.elements == 0)
        return walk;
    const std::size_t rank = view.size.size();
    for (std::size_t k = 0; k < rank; ++k) {
        const std::size_t i = order == WalkOrder::LastFastest ? rank - 1 - k : k;
        if (view.size[i] == 1)
            continue;
        const WalkLoop loop{view.size[i], view.stride[i]};
        if (!walk.loops.empty() && loop.stride == walk.loops.back().stride * walk.loops.back().count)
            walk.loops.back().count *= loop.count;
        else
            walk.loops.push_back(loop);
    }
    return walk;
}

Result<WalkRequests> walkRequests(const TensorWalk& walk, const GranuleSizes& sizes)
{
    MEMSCAPE_CHECK(resolveRequest({{0}, walk.itemBytes}, sizes)); // the sizes are sane
    if (walk.elements == 0)
        return WalkRequests{0, 0, 0, 0, 0, true};
    const double requests = std::ceil(double(walk.elements) / warpLanes);
    RequestSum sum(walk, sizes);
    std::int64_t visits = 1;
    TensorWalk cut = walk;
    const std::size_t loops = cutIntoPeriod(cut, visits);
    if (loops > 0 && requests > double(requestBudget)) {
        const Remainders remainders = remaindersOf(cut, loops, sizes.line);
        const std::int64_t period = visits / warpLanes;
        if (period <= requestBudget / std::int64_t(remainders.size())) {
            const std::uint64_t here = std::uint64_t(walk.offset) * walk.itemBytes % sizes.line;
            for (const auto& [remainder, weight] : remainders) {
                for (std::int64_t i = 0; i < period; ++i)
                    MEMSCAPE_CHECK(sum.add(i * warpLanes, (remainder + sizes.line - here) % sizes.line, weight));
            }
            return sum.mean(requests, true);
        }
    }
    const std::int64_t step = requests <= double(requestBudget) ? 1 : std::int64_t(requests) / requestBudget | 1;
    for (std::int64_t i = 0; i < std::int64_t(requests); i += step)
        MEMSCAPE_CHECK(sum.add(i * warpLanes, 0, 1));
    return sum.mean(requests, step == 1);
}

double distinctGranules(const TensorWalk& walk, std::uint64_t granule)
{
    if (walk.elements == 0)
        return 0;
    std::vector<WalkLoop> loops = ascendingLoops(walk);
    std::int64_t last = walk.offset;
    for (const WalkLoop& loop : loops)
        last += loop.stride * (loop.count - 1);
    const std::uint64_t item = walk.itemBytes;
    const auto granulesTo = [&](std::int64_t from, std::int64_t to) {
        return double((std::uint64_t(to) * item + item - 1) / granule - std::uint64_t(from) * item / granule + 1);
    };
    if (!isNested(loops)) {
        return walk.elements <= 8 * requestBudget ? granulesByVisits(walk, granule)
                                                  : std::min(double(walk.elements), granulesTo(walk.offset, last));
    }
    // Loops that leave no gap of a granule are one run.
    std::int64_t runEnd = 0; // of a run, after its first element, in elements
    std::size_t inner = 0;
    while (inner < loops.size() && std::uint64_t(loops[inner].stride - runEnd) * item < granule + item) {
        runEnd += loops[inner].stride * (loops[inner].count - 1);
        ++inner;
    }
    if (inner == loops.size())
        return granulesTo(walk.offset, walk.offset + runEnd);
    // Runs along the next loop in closed form; along the others one by one, or as many as the budget allows.
    const StridedWalk run{0, std::uint64_t(loops[inner].stride) * item, std::uint64_t(runEnd) * item + item,
                          std::uint64_t(loops[inner].count)};
    std::int64_t outer = 1;
    for (std::size_t i = inner + 1; i < loops.size(); ++i)
        outer *= loops[i].count;
    const std::int64_t counted = std::min<std::int64_t>(outer, requestBudget);
    double granules = 0;
    std::uint64_t before = std::numeric_limits<std::uint64_t>::max(); // last granule of the run before
    for (std::int64_t i = 0; i < counted; ++i) {
        std::int64_t at = walk.offset, rest = i;
        for (std::size_t k = inner + 1; k < loops.size(); ++k) {
            at += rest % loops[k].count * loops[k].stride;
            rest /= loops[k].count;
        }
        StridedWalk here = run;
        here.base = std::uint64_t(at) * item;
        granules += double(granulesTouched(here, granule).value_or(0));
        granules -= here.base / granule == before;
        before = (here.base + here.pitch * (here.count - 1) + here.width - 1) / granule;
    }
    return granules * (double(outer) / double(counted));
}

Result<WalkMisses> walkMisses(const TensorWalk& walk, const std::vector<CacheGeometry>& levels, std::int64_t limit)
{
    MEMSCAPE_TRY(simulator, CacheSimulator::create(levels));
    WalkMisses result;
    result.misses.assign(levels.size(), 0);
    result.isWhole = walk.elements <= limit;
    result.simulated = std::min(walk.elements, limit);
    std::vector<std::int64_t> index(walk.loops.size());
    std::int64_t at = walk.offset;
    const auto item = std::uint32_t(walk.itemBytes);
    const auto next = [&] {
        const MemoryAccess access{std::uint64_t(at) * item % cacheAddressLimit, item, false};
        for (std::size_t k = 0; k < index.size(); ++k) {
            at += walk.loops[k].stride;
            if (++index[k] < walk.loops[k].count)
                break;
            at -= walk.loops[k].stride * walk.loops[k].count;
            index[k] = 0;
        }
        return access;
    };
    double scale = 1;
    std::uint64_t visits = std::uint64_t(result.simulated);
    if (result.isWhole) { // the pass before: the walk is back at its first visit
        MEMSCAPE_CHECK(simulator.run(visits, next));
    } else {
        MEMSCAPE_CHECK(simulator.run(visits / 2, next));
        visits -= visits / 2;
        scale = double(walk.elements) / double(visits);
    }
    simulator.resetCounters();
    MEMSCAPE_CHECK(simulator.run(visits, next));
    for (std::size_t i = 0; i < levels.size(); ++i)
        result.misses[i] = double(simulator.counters()[i].misses()) * scale;
    return result;
}

double reuseBytes(const TensorWalk& walk, std::uint64_t line)
{
    // A loop whose stride is less than a line comes back to it each time it steps; what the loops inside
    // it have fetched by then lies between.
    double between = 1; // lines of the loops so far
    double needed = 0;
    for (const WalkLoop& loop : walk.loops) {
        const double stride = double(loop.stride) * double(walk.itemBytes);
        if (stride < double(line)) {
            if (between > 1)
                needed = std::max(needed, between * double(line));
            between *= std::max(1.0, stride * double(loop.count) / double(line));
        } else {
            between *= double(loop.count);
        }
    }
    return needed;
}

} // namespace memscape
