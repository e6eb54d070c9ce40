// SPDX-License-Identifier: Apache-2.0
// Machines and chains for the tests of placements: round numbers, and random ones with a seed.
#pragma once

#include "core/placement/placement_search.h"

#include <random>

namespace memscape::test {

/// A second for each byte of a copy and a given time for each operator.
class RoundSeconds : public StepSeconds
{
public:
    double onDevice = 1, onHost = 10, latency = 0.5, perByte = 1.0 / 1024;

    double compute(const GraphNode& node, Way way) const override
    {
        const double size = double(node.outputBytes + node.weightBytes) / 1024;
        return node.computes() ? (way == Way::OnHost ? onHost : onDevice) * size : 0;
    }
    double backward(const GraphNode& node) const override { return 2 * compute(node, Way::Resident); }
    double update(const GraphNode& node) const override { return 3 * double(node.updatedBytes) / 1024; }
    double copy(double bytes, Lane) const override { return latency + bytes * perByte; }
};

/// Sizes are multiples of 512 B, as the pool counts.
inline OperatorGraph randomChain(std::size_t length, std::mt19937& random)
{
    OperatorGraph graph;
    const auto size = [&] { return std::int64_t(512) * std::uniform_int_distribution<int>(1, 6)(random); };
    for (std::size_t i = 0; i <= length; ++i) {
        GraphNode node;
        node.name = "n" + std::to_string(i);
        node.kind = i == 0 ? NodeKind::Input : NodeKind::Layer;
        node.outputBytes = size();
        if (i > 0) {
            node.inputs = {std::uint32_t(i - 1)};
            node.weightBytes = node.updatedBytes = random() % 4 == 0 ? 0 : size();
            node.workBytes = random() % 3 == 0 ? size() : 0;
        }
        graph.nodes.push_back(std::move(node));
    }
    return graph;
}

} // namespace memscape::test
