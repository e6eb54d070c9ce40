// SPDX-License-Identifier: Apache-2.0
#include "core/placement/operator_graph.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

double GraphNode::flops() const
{
    if (kind == NodeKind::Matmul)
        return 2.0 * double(rows) * double(columns) * double(inner);
    return computes() && kind != NodeKind::Layer ? double(rows) * double(columns) : 0;
}

double GraphNode::moved(int elementBytes) const
{
    const double result = double(rows) * double(columns);
    if (kind == NodeKind::Matmul)
        return elementBytes * (double(rows) * double(inner) + double(inner) * double(columns) + result);
    return computes() && kind != NodeKind::Layer ? elementBytes * result * double(inputs.size() + 1) : 0;
}

bool OperatorGraph::isChain() const
{
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const bool follows = i == 0 ? nodes[i].kind == NodeKind::Input
                                    : nodes[i].computes() && nodes[i].inputs.size() == 1 && nodes[i].inputs[0] + 1 == i;
        if (!follows)
            return false;
    }
    return !nodes.empty();
}

std::int64_t OperatorGraph::weightBytes() const
{
    std::int64_t sum = 0;
    for (const GraphNode& node : nodes)
        sum += node.weightBytes;
    return sum;
}

Result<OperatorGraph> chainGraph(std::int64_t length, std::int64_t width, std::int64_t batch, int elementBytes)
{
    OperatorGraph graph;
    graph.elementBytes = elementBytes;
    if (double(width) * double(std::max(width, batch)) * elementBytes > mostTensorBytes)
        return fail("graph.range", "a layer of this chain is larger than any memory", "choose a narrower chain");
    GraphNode input;
    input.name = "x";
    input.rows = batch;
    input.columns = width;
    input.outputBytes = batch * width * elementBytes;
    graph.nodes.push_back(input);
    for (std::int64_t i = 0; i < length; ++i) {
        GraphNode product = input;
        product.kind = NodeKind::Matmul;
        product.name = fmt::format("layer{}", i);
        product.inner = width;
        product.weightBytes = product.updatedBytes = width * width * elementBytes;
        product.inputs = {std::uint32_t(graph.nodes.size() - 1)};
        graph.nodes.push_back(product);
        GraphNode activation = input;
        activation.kind = NodeKind::Gelu;
        activation.name = fmt::format("gelu{}", i);
        activation.inputs = {std::uint32_t(graph.nodes.size() - 1)};
        graph.nodes.push_back(std::move(activation));
    }
    return graph;
}

} // namespace memscape
