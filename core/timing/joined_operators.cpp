// SPDX-License-Identifier: Apache-2.0
#include "core/timing/joined_operators.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Instructions for a weight, and for each row of the input beside (joined_operators.h).
constexpr double unpacked = 14.0 / 16, multiplied = 15.0 / 16;

bool hasWeight(const Graph& graph, const Operator& op)
{
    return isMatrixProduct(op.kind)
        && graph.storages[graph.tensors[graph.inputs(op)[1]].storage].role == Role::Parameter;
}

/// By module: the experts of its layer where it belongs to one; else 1.
std::vector<double> expertsOfModules(const Graph& graph)
{
    const auto isExpert = [](const ModuleCall& module) { return module.type == "Expert"; };
    std::vector<double> experts(graph.modules.size(), 1), children(graph.modules.size());
    for (const ModuleCall& module : graph.modules)
        children[module.parent] += isExpert(module);
    for (std::size_t i = 1; i < experts.size(); ++i) { // parents come first
        const ModuleCall& module = graph.modules[i];
        experts[i] = isExpert(module) ? children[module.parent] : experts[module.parent];
    }
    return experts;
}

} // namespace

JoinedOperators::JoinedOperators(const Graph& graph, const Plan& plan)
    : m_graph(graph)
    , m_served(plan.served)
    , m_experts(graph.modules.size(), 1)
    , m_expertMade(graph.storages.size(), 1)
    , m_maker(graph.storages.size())
    , m_readers(graph.storages.size())
{
    if (plan.expertParallel > 1 || m_served.expertsHit > 0)
        m_experts = expertsOfModules(graph);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator& op = graph.operators[i];
        if (m_experts[op.module] > 1)
            for (const TensorId made : graph.outputs(op))
                m_expertMade[graph.tensors[made].storage] = m_experts[op.module];
        if (!hasWeight(graph, op))
            continue;
        m_head = i;
        m_maker[graph.tensors[graph.outputs(op)[0]].storage] = std::uint32_t(i + 1);
        ++m_readers[graph.tensors[graph.inputs(op)[0]].storage];
    }
}

/// Where an engine runs experts together it adds up their results with them.
double JoinedOperators::expertsOfLayer(std::size_t i) const
{
    const Operator& op = m_graph.operators[i];
    double experts = m_experts[op.module];
    if (m_served.expertsHit > 0 && (op.kind == OperatorKind::Add || op.kind == OperatorKind::Fused))
        for (const TensorId input : m_graph.inputs(op))
            experts = std::max(experts, m_expertMade[m_graph.tensors[input].storage]);
    return experts;
}

double JoinedOperators::expertsAtOnce(std::size_t op) const
{
    const double experts = expertsOfLayer(op);
    return m_served.expertsHit > 0 ? std::max(1.0, std::min(experts, m_served.expertsHit)) : experts;
}

double JoinedOperators::share(std::size_t op) const
{
    return expertsAtOnce(op) / expertsOfLayer(op);
}

bool JoinedOperators::isWithinProduct(std::size_t i) const
{
    const Operator& op = m_graph.operators[i];
    const auto outputs = m_graph.outputs(op);
    if (op.kind != OperatorKind::Fused || outputs.size() != 1)
        return false;
    bool isMade = false;
    for (const TensorId input : m_graph.inputs(op)) {
        const Tensor& tensor = m_graph.tensors[input];
        if (m_graph.storages[tensor.storage].role == Role::Parameter)
            continue;
        if (isMade || m_maker[tensor.storage] == 0)
            return false;
        isMade = m_graph.layoutOf(input).elements() == m_graph.layoutOf(outputs[0]).elements();
        if (!isMade)
            return false;
    }
    return isMade;
}

OperatorCost JoinedOperators::joined(OperatorCost cost, std::size_t i) const
{
    const Operator& op = m_graph.operators[i];
    if (m_served.joinsProducts && isWithinProduct(i))
        return {};
    cost.isByHead = m_served.joinsProducts && cost.attention.has_value();
    if (hasWeight(m_graph, op)) {
        const TensorId weight = m_graph.inputs(op)[1];
        const bool isExpert = m_experts[op.module] > 1, isHead = i == m_head && !m_served.isHeadStored;
        const double stored = isHead ? 1 : isExpert ? m_served.expertWeights : m_served.weights;
        cost.bytes -=
            (1 - stored) * double(m_graph.layoutOf(weight).elements() * elementBytes(m_graph.tensors[weight].dtype));
        const TensorId rows = m_graph.inputs(op)[0];
        const Layout& layout = m_graph.layoutOf(rows);
        const double count = double(layout.elements()) / double(std::max<std::int64_t>(1, layout.shape.last()));
        if (stored < 1 && count <= m_served.vectorRows) {
            cost.isRowByRow = true;
            cost.instructions = (unpacked + multiplied * count) * double(m_graph.layoutOf(weight).elements());
        }
        if (isExpert && stored < 1 && m_served.expertTile > 0) {
            const double filled = count / (std::ceil(count / m_served.expertTile) * m_served.expertTile);
            cost.flops /= filled;
            for (ProductPart& part : cost.products)
                part.shape.m /= filled;
        }
        const double readers = m_readers[m_graph.tensors[rows].storage];
        if (m_served.joinsProducts && readers > 1) {
            cost.bytes -= (1 - 1 / readers)
                * double(m_graph.layoutOf(rows).elements() * elementBytes(m_graph.tensors[rows].dtype));
            cost.kernels /= readers;
            cost.atOnce *= readers;
        }
    }
    const double experts = expertsAtOnce(i);
    cost.atOnce *= experts;
    if (m_served.expertsHit > 0)
        cost.kernels /= experts;
    return cost;
}

} // namespace memscape
