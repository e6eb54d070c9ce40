// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/launches.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace memscape {

namespace {

bool isFusedKind(OperatorKind kind)
{
    return kind != OperatorKind::Dequantize
        && ((kind >= OperatorKind::Clone && kind <= OperatorKind::BatchNorm) || kind == OperatorKind::NllLoss
            || kind == OperatorKind::MseLoss || kind == OperatorKind::AdaptiveAveragePool);
}

/// Which operators run together, and when.
class Scheduler
{
public:
    Scheduler(const Graph& graph, const CompiledRegions& regions)
        : m_graph(graph)
        , m_regions(regions)
        , m_isPending(graph.operators.size(), 0)
        , m_component(graph.operators.size())
    {
        std::iota(m_component.begin(), m_component.end(), 0);
    }

    std::vector<Launch> launches()
    {
        std::vector<std::uint32_t> releases; // of names from outside
        for (std::uint32_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator& op = m_graph.operators[i];
            m_region = m_regions.ofOperator[i];
            const bool isInRegion = m_region != none;
            if (op.kind == OperatorKind::Release) {
                if (!m_regions.isInner[m_graph.operands[op.first]])
                    releases.push_back(i);
            } else if (isInRegion && (isFusedKind(op.kind) || isViewOfInput(op.kind))) {
                m_isPending[i] = 1;
            } else {
                demand(m_graph.inputs(op));
                m_launches.push_back({{i}, m_region, false});
            }
            const bool isEnd = !isInRegion || i + 1 == m_regions.regions[m_region].last;
            if (!isEnd)
                continue;
            if (isInRegion)
                demand(results(m_regions.regions[m_region]));
            for (const std::uint32_t release : std::exchange(releases, {}))
                m_launches.push_back({{release}, none, false});
        }
        return std::move(m_launches);
    }

private:
    static constexpr std::uint32_t none = CompiledRegions::none;

    std::vector<TensorId> results(const CompiledRegion& region) const
    {
        std::vector<TensorId> all;
        for (std::uint32_t i = region.first; i < region.last; ++i)
            if (m_graph.operators[i].kind != OperatorKind::Release)
                for (const TensorId tensor : m_graph.outputs(m_graph.operators[i]))
                    if (m_regions.isResult[tensor])
                        all.push_back(tensor);
        return all;
    }

    std::uint32_t pendingMaker(TensorId tensor) const
    {
        const std::uint32_t maker = m_regions.makerOf[tensor];
        return maker != none && m_isPending[maker] ? maker : none;
    }

    /// Runs what is pending and makes these.
    void demand(std::span<const TensorId> tensors)
    {
        std::vector<std::uint32_t> wanted, open;
        const auto want = [&](std::span<const TensorId> all) {
            for (const TensorId tensor : all)
                if (const std::uint32_t maker = pendingMaker(tensor); maker != none)
                    open.push_back(maker);
        };
        want(tensors);
        while (!open.empty()) {
            const std::uint32_t op = open.back();
            open.pop_back();
            if (!m_isPending[op])
                continue;
            want(m_graph.inputs(m_graph.operators[op]));
            m_isPending[op] = 0;
            wanted.push_back(op);
        }
        std::sort(wanted.begin(), wanted.end());
        launch(wanted);
    }

    std::uint32_t componentOf(std::uint32_t op)
    {
        while (m_component[op] != op)
            op = m_component[op] = m_component[m_component[op]];
        return op;
    }

    /// Views of what was there before, then a kernel for each connected part, then views of its results.
    void launch(const std::vector<std::uint32_t>& operators)
    {
        const auto isHere = [&](TensorId tensor) {
            const std::uint32_t maker = m_regions.makerOf[tensor];
            return maker != none && std::binary_search(operators.begin(), operators.end(), maker);
        };
        std::vector<std::uint8_t> isOutside(operators.size(), 0); // a view of what was there before
        for (std::size_t i = 0; i < operators.size(); ++i) {
            const Operator& op = m_graph.operators[operators[i]];
            bool joins = false;
            for (const TensorId input : m_graph.inputs(op)) {
                if (!isHere(input))
                    continue;
                const auto maker = std::size_t(
                    std::lower_bound(operators.begin(), operators.end(), m_regions.makerOf[input]) - operators.begin());
                if (isOutside[maker])
                    continue;
                joins = true;
                m_component[componentOf(operators[i])] = componentOf(operators[maker]);
            }
            isOutside[i] = isViewOfInput(op.kind) && !joins;
        }
        for (std::size_t i = 0; i < operators.size(); ++i)
            if (isOutside[i])
                m_launches.push_back({{operators[i]}, m_region, false});
        std::vector<std::pair<std::uint32_t, std::size_t>> kernels; // component, launch
        for (std::size_t i = 0; i < operators.size(); ++i) {
            if (isOutside[i])
                continue;
            const std::uint32_t component = componentOf(operators[i]);
            const auto known = std::find_if(kernels.begin(), kernels.end(),
                                            [&](const auto& kernel) { return kernel.first == component; });
            const std::size_t launch = known == kernels.end() ? m_launches.size() : known->second;
            if (known == kernels.end()) {
                kernels.emplace_back(component, launch);
                m_launches.push_back({{}, m_region, true});
            }
            m_launches[launch].members.push_back(operators[i]);
        }
        for (std::size_t i = 0; i < operators.size(); ++i)
            if (!isOutside[i] && isViewOfInput(m_graph.operators[operators[i]].kind))
                m_launches.push_back({{operators[i]}, m_region, false}); // dropped where only the kernel reads it
    }

    const Graph& m_graph;
    const CompiledRegions& m_regions;
    std::vector<std::uint8_t> m_isPending;
    std::vector<std::uint32_t> m_component;
    std::vector<Launch> m_launches;
    std::uint32_t m_region = none; ///< of the operator that is looked at
};

} // namespace

std::vector<Launch> launches(const Graph& graph, const CompiledRegions& regions)
{
    return Scheduler(graph, regions).launches();
}

} // namespace memscape
