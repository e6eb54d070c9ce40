// SPDX-License-Identifier: Apache-2.0
// Graphs of operators as text. What can be read can be placed.
#include "core/placement/placement_search.h"
#include "tests/fuzz/target.h"

using namespace memscape;

namespace {

constexpr std::size_t placedAtMost = 60; // nodes

class UnitSeconds final : public StepSeconds
{
public:
    double compute(const GraphNode& node, Way way) const override
    {
        return node.computes() ? (way == Way::OnHost ? 3 : 1) : 0;
    }
    double backward(const GraphNode&) const override { return 2; }
    double update(const GraphNode&) const override { return 1; }
    double copy(double bytes, Lane) const override { return 1 + bytes / 1e6; }
};

void place(const OperatorGraph& graph)
{
    const UnitSeconds seconds;
    const PlacementMachine machine{seconds, LaneSharing::Apart};
    constexpr std::int64_t limit = std::int64_t(1) << 20;
    const auto layers = layersPlacement(graph, limit, 1, machine);
    fuzz::errorIsClear(layers);
    const auto cheapest = cheapestPlacement(graph, limit, 0, machine);
    fuzz::errorIsClear(cheapest);
    fuzz::promise(!cheapest || cheapest->peak <= limit, "the cheapest placement stays within its limit");
    fuzz::promise(!layers || layers->peak <= limit, "layers stay within their limit");
    if (graph.isChain())
        static_cast<void>(peakOf(trainingProgram(graph, {}, seconds)));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const auto graph = parseGraph(fuzz::text(data, size), 4);
    fuzz::errorIsClear(graph);
    if (graph && graph->nodes.size() <= placedAtMost)
        place(*graph);
    return 0;
}
