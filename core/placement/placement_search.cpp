// SPDX-License-Identifier: Apache-2.0
#include "core/placement/placement_search.h"

#include "core/base/number.h"
#include "core/checkpoint/mlp_chain.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::size_t scannedLayers = 128;                       ///< resident prefixes are tried one by one up to here
constexpr std::size_t mostLabels = 4'000'000, fewestLabels = 64; ///< over a whole chain, of one operator and place
constexpr double triedNodes = 3e5; ///< of a heuristic: nodes of all programs that it writes

std::string placementBytes(std::int64_t bytes)
{
    return quantityText(double(bytes), Unit::Byte);
}

/// The error of a placement whose peak is the least that can be had.
tl::unexpected<Error> tooLarge(const OperatorGraph& graph, const Placement& least, std::int64_t limit)
{
    const ProgramPeak peak = peakOf(least.program);
    const std::uint32_t at = least.program.steps[peak.step].node;
    Error error{"placement.limit",
                fmt::format("{} needs {} on the device at once ({} of weights), and the limit is {}",
                            graph.nodes[at].name, placementBytes(peak.bytes),
                            placementBytes(graph.nodes[at].weightBytes), placementBytes(limit)),
                "limit", fmt::format("choose limit={} or more, or strategy=host", peak.bytes)};
    error.remedy = Remedy{"limit", fmt::format("{}", peak.bytes)};
    return tl::unexpected<Error>(std::move(error));
}

/// The first `resident` nodes with weights stay, the others' come up.
std::vector<Way> prefixWays(const OperatorGraph& graph, std::size_t resident)
{
    std::vector<Way> ways = uniformWays(graph, Place::Device);
    std::size_t seen = 0;
    for (std::size_t i = 0; i < ways.size(); ++i) {
        if (ways[i] == Way::Resident && graph.nodes[i].weightBytes > 0 && seen++ >= resident)
            ways[i] = Way::Streamed;
    }
    return ways;
}

/// What one way of one operator of a chain costs behind a result at `from`.
struct ChainMove
{
    Way way = Way::Resident;
    Place to = Place::Device;
    double seconds = 0;
    std::int64_t resident = 0, working = 0; ///< B
};

std::vector<ChainMove> movesOf(const OperatorGraph& graph, std::size_t i, Place from, const StepSeconds& seconds)
{
    const GraphNode& node = graph.nodes[i];
    const std::int64_t input = pooledBytes(graph.nodes[i - 1].outputBytes), output = pooledBytes(node.outputBytes);
    std::vector<ChainMove> moves;
    if (node.pinned != Place::Device) {
        const bool copies = from == Place::Device;
        moves.push_back({Way::OnHost, Place::Host,
                         seconds.compute(node, Way::OnHost)
                             + (copies ? seconds.copy(double(graph.nodes[i - 1].outputBytes), Lane::Down) : 0),
                         0, copies ? input : 0});
    }
    if (node.pinned == Place::Host)
        return moves;
    const double brought = from == Place::Host ? seconds.copy(double(graph.nodes[i - 1].outputBytes), Lane::Up) : 0;
    const std::int64_t working = input + output + pooledBytes(node.workBytes), weights = pooledBytes(node.weightBytes);
    moves.push_back({Way::Resident, Place::Device, seconds.compute(node, Way::Resident) + brought, weights, working});
    if (weights > 0)
        moves.push_back(
            {Way::Streamed, Place::Device,
             seconds.compute(node, Way::Streamed) + brought + seconds.copy(double(node.weightBytes), Lane::Up), 0,
             working + weights});
    return moves;
}

struct ChainLabel
{
    double seconds = 0;
    std::int64_t resident = 0, working = 0;
    std::uint32_t before = 0; ///< the label behind which it stands, of the node before
    Place beforePlace = Place::Device;
    Way way = Way::Resident;
};

/// Leaves those that no other is at least as good as in all three; at most `most`, the quickest. Whether all are left.
bool keepUndominated(std::vector<ChainLabel>& labels, std::size_t most)
{
    std::ranges::sort(labels, [](const ChainLabel& a, const ChainLabel& b) {
        return std::tie(a.seconds, a.resident, a.working) < std::tie(b.seconds, b.resident, b.working);
    });
    std::map<std::int64_t, std::int64_t> stairs; // least working set by resident bytes, falling
    std::vector<ChainLabel> kept;
    for (const ChainLabel& one : labels) {
        const auto above = stairs.upper_bound(one.resident);
        if (above != stairs.begin() && std::prev(above)->second <= one.working)
            continue;
        auto next = stairs.lower_bound(one.resident);
        while (next != stairs.end() && next->second >= one.working)
            next = stairs.erase(next);
        stairs[one.resident] = one.working;
        kept.push_back(one);
    }
    const bool isWhole = kept.size() <= most;
    if (!isWhole) { // the quickest, and the one that needs least
        const auto least = std::ranges::min_element(kept, [](const ChainLabel& a, const ChainLabel& b) {
            return a.resident + a.working < b.resident + b.working;
        });
        kept[most - 1] = *least;
        kept.resize(most);
    }
    labels = std::move(kept);
    return isWhole;
}

/// None where nothing stays within the limit.
std::optional<Placement> cheapestOfChain(const OperatorGraph& graph, std::int64_t limit,
                                         const PlacementMachine& machine)
{
    using ByPlace = std::array<std::vector<ChainLabel>, 2>;
    const std::size_t count = graph.nodes.size();
    const std::size_t most = std::max(fewestLabels, mostLabels / count);
    std::vector<ByPlace> all(count);
    const GraphNode& input = graph.nodes.front();
    const Place begin = input.pinned.value_or(Place::Device);
    ChainLabel first;
    first.working = begin == Place::Device ? pooledBytes(input.outputBytes) : 0;
    first.way = begin == Place::Device ? Way::Resident : Way::OnHost;
    all[0][std::size_t(begin)].push_back(first);
    bool isExact = true;
    std::size_t examined = 0;
    for (std::size_t i = 1; i < count; ++i) {
        for (const Place from : {Place::Device, Place::Host}) {
            const std::vector<ChainLabel>& labels = all[i - 1][std::size_t(from)];
            if (labels.empty())
                continue;
            for (const ChainMove& move : movesOf(graph, i, from, machine.seconds)) {
                for (std::uint32_t k = 0; k < labels.size(); ++k) {
                    const ChainLabel next{labels[k].seconds + move.seconds,
                                          labels[k].resident + move.resident,
                                          std::max(labels[k].working, move.working),
                                          k,
                                          from,
                                          move.way};
                    ++examined;
                    if (next.resident + next.working <= limit)
                        all[i][std::size_t(move.to)].push_back(next);
                }
            }
        }
        for (std::vector<ChainLabel>& labels : all[i])
            isExact = keepUndominated(labels, most) && isExact;
    }
    const ChainLabel* best = nullptr;
    for (const Place end : {Place::Device, Place::Host}) {
        for (const ChainLabel& label : all.back()[std::size_t(end)]) {
            if (!best || label.seconds < best->seconds)
                best = &label;
        }
    }
    if (!best)
        return std::nullopt;
    std::vector<Way> ways(count, Way::Resident);
    for (std::size_t i = count; i-- > 0;) {
        ways[i] = best->way;
        if (i > 0)
            best = &all[i - 1][std::size_t(best->beforePlace)][best->before];
    }
    Placement found = placementOf(graph, std::move(ways), 0, machine);
    found.isExact = isExact;
    found.examined = examined;
    return found;
}

/// `length` nodes from `first` on that are free to be placed go another way.
std::vector<Way> changedRun(const OperatorGraph& graph, std::vector<Way> ways, std::size_t first, std::size_t length,
                            Way way)
{
    for (std::size_t i = first; i < first + length; ++i) {
        const GraphNode& node = graph.nodes[i];
        if (node.computes() && !node.pinned)
            ways[i] = way == Way::Streamed && node.weightBytes == 0 ? Way::Resident : way;
    }
    return ways;
}

/// The best of `candidates` within the limit, changed as long as that helps: one node, then runs of neighbours.
std::optional<Placement> improved(const OperatorGraph& graph, std::vector<Placement> candidates, std::int64_t limit,
                                  int prefetch, const PlacementMachine& machine)
{
    std::optional<Placement> best;
    std::size_t examined = candidates.size();
    const auto consider = [&](Placement&& one) {
        const bool isBetter = one.peak <= limit && (!best || one.seconds < best->seconds);
        if (isBetter)
            best = std::move(one);
        return isBetter;
    };
    for (Placement& one : candidates)
        consider(std::move(one));
    auto left = std::size_t(triedNodes / double(graph.nodes.size()));
    left -= std::min(left, examined);
    const std::size_t count = graph.nodes.size();
    for (bool helps = best.has_value(); helps && left > 0;) {
        helps = false;
        for (std::size_t length = 1; length < count && left > 0; ++length) {
            for (std::size_t first = 0; first + length <= count && left > 0; ++first) {
                for (const Way way : {Way::Resident, Way::Streamed, Way::OnHost}) {
                    std::vector<Way> ways = changedRun(graph, best->ways, first, length, way);
                    if (ways == best->ways || left == 0)
                        continue;
                    --left;
                    ++examined;
                    helps = consider(placementOf(graph, std::move(ways), prefetch, machine)) || helps;
                }
            }
        }
    }
    if (best) {
        best->isExact = false;
        best->examined = examined;
    }
    return best;
}

} // namespace

Placement placementOf(const OperatorGraph& graph, std::vector<Way> ways, int prefetch, const PlacementMachine& machine)
{
    Placement placement;
    placement.program = placedProgram(graph, ways, prefetch, machine.seconds);
    placement.ways = std::move(ways);
    placement.prefetch = prefetch;
    placement.peak = peakOf(placement.program).bytes;
    for (const LaneSpan& span : placement.program.spans(machine.sharing))
        placement.seconds = std::max(placement.seconds, span.end);
    return placement;
}

std::vector<Way> implicitWays(const OperatorGraph& graph)
{
    std::vector<Way> ways;
    for (const GraphNode& node : graph.nodes) {
        Place place = Place::Device;
        if (node.pinned)
            place = *node.pinned;
        else if (!node.inputs.empty())
            place = placeOf(graph.nodes[node.inputs.front()], ways[node.inputs.front()]);
        ways.push_back(place == Place::Host ? Way::OnHost : Way::Resident);
    }
    return ways;
}

std::vector<Way> uniformWays(const OperatorGraph& graph, Place place)
{
    std::vector<Way> ways;
    for (const GraphNode& node : graph.nodes) {
        // An input is where the text has it: on the device unless it says so.
        const Place there = node.pinned.value_or(node.kind == NodeKind::Input ? Place::Device : place);
        ways.push_back(there == Place::Host ? Way::OnHost : Way::Resident);
    }
    return ways;
}

Result<Placement> layersPlacement(const OperatorGraph& graph, std::int64_t limit, int prefetch,
                                  const PlacementMachine& machine)
{
    const auto with = [&](std::size_t resident) {
        return placementOf(graph, prefixWays(graph, resident), prefetch, machine);
    };
    std::size_t layers = 0;
    for (const GraphNode& node : graph.nodes)
        layers += node.weightBytes > 0;
    Placement found = with(layers);
    if (found.peak <= limit)
        return found;
    std::size_t examined = 1;
    std::optional<Placement> best;
    if (layers <= scannedLayers) {
        for (std::size_t resident = layers; resident-- > 0 && !best; ++examined) {
            if (Placement one = with(resident); one.peak <= limit)
                best = std::move(one);
        }
    } else { // more layers that stay take more, but for a largest one among them
        std::size_t low = 0, high = layers;
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            Placement one = with(middle);
            ++examined;
            if (one.peak <= limit) {
                best = std::move(one);
                low = middle + 1;
            } else {
                high = middle;
            }
        }
    }
    if (!best) {
        Placement least = with(0);
        if (prefetch > 0) {
            const Placement alone = placementOf(graph, prefixWays(graph, 0), 0, machine);
            if (alone.peak <= limit) {
                Error error = tooLarge(graph, least, limit).value();
                error.hint = fmt::format("choose prefetch=0, which needs {}, or limit={} or more",
                                         placementBytes(alone.peak), least.peak);
                error.remedy = Remedy{"prefetch", "0"};
                return tl::unexpected<Error>(std::move(error));
            }
            least = alone;
        }
        return tooLarge(graph, least, limit);
    }
    best->examined = examined;
    return std::move(*best);
}

std::int64_t leastLayersLimit(const OperatorGraph& graph, int prefetch, const PlacementMachine& machine)
{
    return placementOf(graph, prefixWays(graph, 0), prefetch, machine).peak;
}

Result<Placement> cheapestPlacement(const OperatorGraph& graph, std::int64_t limit, int prefetch,
                                    const PlacementMachine& machine)
{
    std::vector<Placement> candidates;
    if (graph.isChain()) {
        auto chain = cheapestOfChain(graph, limit, machine);
        if (chain && prefetch == 0 && chain->isExact)
            return std::move(*chain);
        if (chain) {
            for (int ahead = 1; ahead <= prefetch; ++ahead)
                candidates.push_back(placementOf(graph, chain->ways, ahead, machine));
            candidates.push_back(std::move(*chain));
        }
    }
    for (int ahead = 0; ahead <= prefetch; ++ahead) {
        if (auto layers = layersPlacement(graph, limit, ahead, machine))
            candidates.push_back(std::move(*layers));
    }
    candidates.push_back(placementOf(graph, implicitWays(graph), prefetch, machine));
    candidates.push_back(placementOf(graph, uniformWays(graph, Place::Device), prefetch, machine));
    Placement host = placementOf(graph, uniformWays(graph, Place::Host), prefetch, machine);
    const Placement least = host;
    candidates.push_back(std::move(host));
    auto best = improved(graph, std::move(candidates), limit, prefetch, machine);
    if (!best)
        return tooLarge(graph, least, limit);
    return std::move(*best);
}

} // namespace memscape
