// SPDX-License-Identifier: Apache-2.0
// The figures of a placement with their reasons, and what its picture draws.
#include "core/experiments/common/explain.h"
#include "core/experiments/common/hidden_time.h"
#include "core/experiments/placement/placement.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::size_t drawnNodes = 400, drawnPieces = 1200;

/// What a program does, added up.
struct ProgramSums
{
    PlacementNumbers numbers;
    double copies = 0, waits = 0;
    double resident = 0, streamed = 0; ///< B of weights
    double onHost = 0;                 ///< operators
    double flops = 0;                  ///< of products, without repetitions
};

ProgramSums sumsOf(const PlacementCase& asked, const Placement& placement)
{
    ProgramSums sums;
    double compute = 0, transfer = 0, host = 0, update = 0;
    for (const ProgramStep& step : placement.program.steps) {
        if (step.isCopy()) {
            transfer += step.seconds;
            sums.copies += step.lane != Lane::Disk;
            sums.waits += step.waits;
            (step.lane == Lane::Up         ? sums.numbers.up
                 : step.lane == Lane::Down ? sums.numbers.down
                                           : sums.numbers.disk) += step.seconds;
        } else {
            compute += step.seconds;
            host += step.lane == Lane::Host ? step.seconds : 0;
            update += step.kind == StepKind::Update ? step.seconds : 0;
        }
    }
    for (std::size_t i = 0; i < asked.graph.nodes.size(); ++i) {
        const GraphNode& node = asked.graph.nodes[i];
        const Way way = placement.ways[i];
        (way == Way::Resident ? sums.resident : sums.streamed) += way == Way::OnHost ? 0 : double(node.weightBytes);
        sums.onHost += node.computes() && way == Way::OnHost;
        const double flops = node.kind == NodeKind::Layer ? asked.layers[i].flops
            : node.kind == NodeKind::Matmul               ? node.flops()
                                                          : 0;
        sums.flops += (asked.trains() ? 3 : 1) * flops;
    }
    sums.numbers.time.seconds = placement.seconds;
    sums.numbers.compute.seconds = compute;
    sums.numbers.transfer.seconds = transfer;
    sums.numbers.host.seconds = host;
    sums.numbers.update.seconds = update;
    sums.numbers.transferred = placement.program.copied();
    sums.numbers.peak = double(placement.peak);
    return sums;
}

double hiddenOf(const PlacementNumbers& numbers)
{
    return hiddenSeconds(numbers.compute.seconds + numbers.transfer.seconds, numbers.time.seconds);
}

std::string bottleneckOf(const PlacementNumbers& numbers)
{
    const std::array<std::pair<double, const char*>, 5> lanes{
        {{numbers.compute.seconds - numbers.host.seconds, "device"},
         {numbers.host.seconds, "host"},
         {numbers.up, "copies up"},
         {numbers.down, "copies down"},
         {numbers.disk, "disk"}}};
    return std::ranges::max_element(lanes, [](const auto& a, const auto& b) { return a.first < b.first; })->second;
}

std::string methodText(const PlacementCase& asked, const Placement& placement)
{
    if (asked.strategy != PlacementStrategy::Cheapest)
        return "by rule";
    return placement.isExact ? "exact" : "heuristic";
}

Why placementWhy(std::string formula, std::string with, std::string source, std::vector<std::string> omits = {})
{
    Why why;
    why.formula = std::move(formula);
    why.with = std::move(with);
    why.source = std::move(source);
    why.omits = std::move(omits);
    return why;
}

Why timeWhyOf(const PlacementCase& asked, const ProgramSums& sums, const PlacementSeconds& rates)
{
    const double hidden = hiddenOf(sums.numbers);
    Why why = placementWhy("time = longest path through the lanes = Σ compute + Σ copies − what overlaps",
                           fmt::format("= {} + {} − {} = {}", secondsText(sums.numbers.compute.seconds),
                                       secondsText(sums.numbers.transfer.seconds), secondsText(hidden),
                                       secondsText(sums.numbers.time.seconds)),
                           "lanes run their steps in order; a step waits for what it reads",
                           {"lanes that slow each other down", "what the program around it costs"});
    why.terms = {{"α", rates.linkLatency, Unit::Second, "one copy of no bytes", rates.linkSource},
                 {"β", rates.linkRate, Unit::BytePerSecond, "one direction", rates.linkSource}};
    if (asked.trains())
        why.omits.push_back("the norm of all gradients, and updates that begin before it is known (delayed by a step)");
    if (!asked.serial.empty())
        why.omits.push_back(asked.serial);
    if (asked.sharing == LaneSharing::Apart)
        why.source += "; measured between events around a stream of operators and one of copies each way, in FP32; not "
                      "yet run on a GPU";
    return why;
}

Why peakWhyOf(const PlacementCase& asked, const Placement& placement)
{
    const ProgramPeak peak = peakOf(placement.program);
    const std::string at = placement.program.steps.empty()
        ? "the beginning"
        : asked.graph.nodes[placement.program.steps[peak.step].node].name;
    return placementWhy("peak = most that is taken at once: weights on the device, tensors until their last reader, "
                        "weights and gradients on their way",
                        fmt::format("= {} at {}", bytesText(double(peak.bytes)), at),
                        "counted step by step, rounded up to 512 B as allocators do",
                        asked.isModel()
                            ? std::vector<std::string>{"inside a layer an estimate: Memory budget simulates it exactly"}
                            : std::vector<std::string>{});
}

void explainPlacement(Figures& figures, const PlacementCase& asked, const Placement& placement,
                      const PlacementSeconds& rates)
{
    const ProgramSums sums = sumsOf(asked, placement);
    explain(figures, "time", timeWhyOf(asked, sums, rates));
    explain(figures, "peak", peakWhyOf(asked, placement));
    explain(
        figures, "compute_time",
        placementWhy("compute = Σ operators", "= " + secondsText(sums.numbers.compute.seconds), rates.computeSource));
    explain(figures, "transfer_time",
            placementWhy("copies = Σ (α + bytes / β), one piece each",
                         fmt::format("= {} × {} + {} / {}", countText(sums.copies), secondsText(rates.linkLatency),
                                     bytesText(sums.numbers.transferred),
                                     quantityText(rates.linkRate, Unit::BytePerSecond)),
                         rates.linkSource));
    explain(
        figures, "hidden_time",
        placementWhy("hidden = max(0, compute + copies − time)",
                     fmt::format("= {} + {} − {}", secondsText(sums.numbers.compute.seconds),
                                 secondsText(sums.numbers.transfer.seconds), secondsText(sums.numbers.time.seconds)),
                     "lanes", {hiddenFromZero}));
    explain(
        figures, "transferred",
        placementWhy("bytes over the link, both directions", "= " + bytesText(sums.numbers.transferred), "counted"));
    explain(figures, "update_time",
            placementWhy("update = elements × 28 B / β of the host's memory",
                         fmt::format("= {} at {}", secondsText(sums.numbers.update.seconds),
                                     quantityText(rates.updateRate, Unit::BytePerSecond)),
                         rates.updateSource,
                         {"Adam in one pass: p, m and v read and written, g read; in half precision 2 B fewer read "
                          "and 2 B more written",
                          "a root and a division for each element, which rule where the arrays are in a cache"}));
    explain(figures, "flop_rate",
            placementWhy("rate = FLOPs of products / time; in training three times those of forward",
                         fmt::format("= {} / {}", operationsText(sums.flops), secondsText(sums.numbers.time.seconds)),
                         "counted", {"what backward repeats of the forward pass is no useful work"}));
    const char* const rule = asked.strategy != PlacementStrategy::Cheapest ? "the strategy says where"
        : placement.isExact ? "dynamic programming: no placement of this chain is quicker within the limit"
                            : "heuristic: the best of the named placements, changed as long as that helps";
    explain(figures, "method",
            placementWhy(rule, fmt::format("{} looked at", countText(double(placement.examined))), "search"));
}

const char* wayText(Way way)
{
    return way == Way::Resident ? "resident" : way == Way::Streamed ? "streamed" : "host";
}

const char* stepText(StepKind kind)
{
    switch (kind) {
    case StepKind::Compute: return "forward";
    case StepKind::Backward: return "backward";
    case StepKind::Update: return "update";
    case StepKind::Wait: return "wait";
    case StepKind::CopyTensor: return "tensor";
    case StepKind::CopyWeights: return "weights";
    case StepKind::CopyGradient: return "gradient";
    case StepKind::CopyUpdated: return "new weights";
    case StepKind::ReadState: return "state read";
    case StepKind::WriteState: break;
    }
    return "state written";
}

Json nodesJson(const PlacementCase& asked, const Placement& placement, const PlacementSeconds& rates)
{
    Json nodes = Json::array();
    for (std::size_t i = 0; i < std::min(drawnNodes, asked.graph.nodes.size()); ++i) {
        const GraphNode& node = asked.graph.nodes[i];
        const Place place = placeOf(node, placement.ways[i]);
        Json inputs = Json::array();
        for (const std::uint32_t input : node.inputs)
            inputs.push_back(input);
        nodes.push_back({{"name", node.name},
                         {"kind", nodeKindText(node.kind)},
                         {"place", place == Place::Device ? "device" : "host"},
                         {"way", wayText(placement.ways[i])},
                         {"pinned", node.pinned.has_value()},
                         {"fixed", node.isCopy()},
                         {"weights", node.weightBytes},
                         {"bytes", node.outputBytes},
                         {"seconds", jsonNumber(rates.compute(node, placement.ways[i]))},
                         {"inputs", std::move(inputs)}});
    }
    return nodes;
}

Json piecesJson(const PlacementCase& asked, const Placement& placement)
{
    Json pieces = Json::array();
    const std::vector<LaneSpan> spans = placement.program.spans(asked.sharing);
    for (std::size_t i = 0; i < spans.size() && pieces.size() < drawnPieces; ++i) {
        const ProgramStep& step = placement.program.steps[i];
        if (step.kind == StepKind::Wait)
            continue;
        pieces.push_back({std::size_t(step.lane), stepText(step.kind), jsonNumber(spans[i].begin),
                          jsonNumber(spans[i].end), step.node, step.bytes});
    }
    return pieces;
}

} // namespace

Figures placementFigures(const PlacementCase& asked, const Placement& placement, const PlacementNumbers& numbers)
{
    const ProgramSums sums = sumsOf(asked, placement);
    const auto time = [](const char* key, const char* label, const PlacementTime& one) {
        return Figure{key, label, Unit::Second, one.seconds, one.low, one.high, {}};
    };
    const double over = numbers.peak - double(asked.limit);
    Figures figures{
        time("time", "time", numbers.time),
        {"peak", "peak on the device", Unit::Byte, numbers.peak},
        {"transferred", "moved over the link", Unit::Byte, numbers.transferred},
        {"hidden_time", "hidden", Unit::Second, hiddenOf(numbers)},
        time("compute_time", "computing alone", numbers.compute),
        time("transfer_time", "copies alone", numbers.transfer),
        {"fits", "fits", Unit::One, over > 0 ? fmt::format("no: {} too much", bytesText(over, 3)) : std::string("yes")},
        {"bottleneck", "most time goes to", Unit::One, bottleneckOf(numbers)},
        time("host_time", "computing on the host", numbers.host),
        time("update_time", "optimizer on the host", numbers.update),
        {"flop_rate", "useful products", Unit::FlopPerSecond, sums.flops / numbers.time.seconds},
        {"copies", "copies", Unit::One, sums.copies},
        {"waits", "copies that are waited for", Unit::One, sums.waits},
        {"resident", "weights that stay on the device", Unit::Byte, sums.resident},
        {"streamed", "weights that come up", Unit::Byte, sums.streamed},
        {"on_host", "operators on the host", Unit::One, sums.onHost},
        {"method", "found", Unit::One, methodText(asked, placement)}};
    markCounted(figures, {"copies", "waits", "resident", "streamed", "on_host", "method"});
    return figures;
}

Result<Figures> predictedPlacement(const Device& device, const Parameters& parameters)
{
    MEMSCAPE_TRY(asked, placementCase(device, parameters));
    MEMSCAPE_TRY(rates, placementSeconds(device, parameters, asked));
    MEMSCAPE_TRY(placement, chosenPlacement(asked, rates));
    Figures figures = placementFigures(asked, placement, sumsOf(asked, placement).numbers);
    explainPlacement(figures, asked, placement, rates);
    return figures;
}

Json placementDetail(const Device& device, const Parameters& parameters)
{
    const auto asked = placementCase(device, parameters);
    if (!asked)
        return Json::object();
    const auto rates = placementSeconds(device, parameters, *asked);
    const auto placement = rates ? chosenPlacement(*asked, *rates) : tl::unexpected<Error>(rates.error());
    if (!placement)
        return Json::object();
    Json lanes = Json::array();
    for (std::size_t lane = 0; lane < laneCount; ++lane)
        lanes.push_back(laneText(Lane(lane)));
    return {{"subject", asked->subject},
            {"strategy", placementStrategyKey(asked->strategy)},
            {"trains", asked->trains()},
            {"limit", asked->limit},
            {"peak", placement->peak},
            {"time", jsonNumber(placement->seconds)},
            {"prefetch", placement->prefetch},
            {"serial", asked->serial},
            {"node_count", asked->graph.nodes.size()},
            {"step_count", placement->program.steps.size()},
            {"lanes", std::move(lanes)},
            {"nodes", nodesJson(*asked, *placement, *rates)},
            {"pieces", piecesJson(*asked, *placement)}};
}

} // namespace memscape
