// SPDX-License-Identifier: Apache-2.0
#include "core/training/fsdp_wrapping.h"

#include "core/training/gathered_weights.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>

namespace memscape {

namespace {

constexpr std::uint32_t noOwner = UINT32_MAX;

/// The unit in whose operators each parameter is used; the root for those that several units share, or none uses.
std::vector<std::uint32_t> ownersByUse(const Graph& graph, const std::vector<std::uint32_t>& unitOf)
{
    std::vector<std::uint32_t> ofStorage(graph.storages.size(), noOwner);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        for (const TensorId tensor : graph.inputs(graph.operators[i])) {
            std::uint32_t& owner = ofStorage[graph.tensors[tensor].storage];
            owner = owner == noOwner || owner == unitOf[i] ? unitOf[i] : 0;
        }
    }
    std::vector<std::uint32_t> all;
    for (const NamedTensor& parameter : graph.parameters) {
        const std::uint32_t owner = ofStorage[graph.tensors[parameter.tensor].storage];
        all.push_back(owner == noOwner ? 0 : owner);
    }
    return all;
}

/// PyTorch's modules, by the paths of a network's parameters.
class ModuleTree
{
public:
    explicit ModuleTree(const Graph& graph)
        : m_paths(graph.paths())
    {
        for (const NamedTensor& parameter : graph.parameters) {
            const std::int64_t elements = graph.layoutOf(parameter.tensor).elements();
            for (std::size_t node = nodeOf(m_paths[parameter.module]);; node = m_nodes[node].parent) {
                m_nodes[node].elements += elements;
                if (node == 0)
                    break;
            }
        }
    }

    /// Makes units of modules with `least` parameters.
    void wrap(std::vector<FsdpUnit>& units, std::int64_t least)
    {
        wrapped(0, least);
        for (std::size_t node = 1; node < m_nodes.size(); ++node) { // parents come first
            m_nodes[node].unit = m_nodes[m_nodes[node].parent].unit;
            if (!m_nodes[node].isUnit)
                continue;
            units.push_back({m_nodes[node].unit});
            m_nodes[node].unit = std::uint32_t(units.size() - 1);
        }
    }

    /// Of the innermost module around `path` that has parameters.
    std::uint32_t unitAround(std::string_view path) const
    {
        for (;; path = path.substr(0, path.rfind('.'))) {
            if (const auto found = m_byPath.find(path); found != m_byPath.end())
                return m_nodes[found->second].unit;
            if (path.find('.') == std::string_view::npos)
                return 0;
        }
    }
    const std::string& path(ModuleIndex module) const { return m_paths[module]; }

private:
    struct Node
    {
        std::size_t parent = 0;
        std::int64_t elements = 0;
        std::vector<std::size_t> children = {};
        bool isList = false;
        bool isUnit = false;
        std::uint32_t unit = 0;
    };

    std::size_t nodeOf(std::string_view path)
    {
        if (path.empty())
            return 0;
        if (const auto found = m_byPath.find(path); found != m_byPath.end())
            return found->second;
        const std::size_t dot = path.rfind('.');
        const bool isTop = dot == std::string_view::npos;
        const std::size_t parent = isTop ? 0 : nodeOf(path.substr(0, dot));
        const std::string_view name = isTop ? path : path.substr(dot + 1);
        const std::size_t node = m_nodes.size();
        m_nodes.push_back({parent});
        m_nodes[parent].children.push_back(node);
        m_nodes[parent].isList |= parent != 0 && name.find_first_not_of("0123456789") == std::string_view::npos;
        m_byPath.emplace(path, node);
        return node;
    }

    /// Parameters of a module that are in units (wrap.py, _recursive_wrap).
    std::int64_t wrapped(std::size_t node, std::int64_t least)
    {
        if (m_nodes[node].elements < least)
            return 0;
        std::int64_t sum = 0;
        for (const std::size_t child : m_nodes[node].children)
            sum += wrapped(child, least);
        m_nodes[node].isUnit = node != 0 && !m_nodes[node].isList && m_nodes[node].elements - sum >= least;
        return m_nodes[node].isUnit ? m_nodes[node].elements : sum;
    }

    std::vector<std::string> m_paths;
    std::vector<Node> m_nodes{{}};
    std::map<std::string, std::size_t, std::less<>> m_byPath;
};

/// One of both is an ancestor of the other, or they are one.
bool areInLine(std::string_view a, std::string_view b)
{
    const auto& [shorter, longer] = std::minmax(a, b, [](auto x, auto y) { return x.size() < y.size(); });
    return longer.starts_with(shorter)
        && (shorter.empty() || longer.size() == shorter.size() || longer[shorter.size()] == '.');
}

} // namespace

FsdpWrapping::FsdpWrapping(const Graph& graph, std::span<const ModuleId> modules, FsdpWrap wrap, std::int64_t least)
    : units(1)
    , unitOf(graph.operators.size(), 0)
{
    units[0].last = std::uint32_t(graph.operators.size());
    if (wrap == FsdpWrap::Block) {
        LayerMap layers(graph, modules);
        for (const Block& block : graph.blocks)
            if (block.kind == Block::Kind::Layer)
                units.push_back({0, block.first, block.last, block.first, 0, layers.moduleOf[units.size()]});
        unitOf = std::move(layers.unitOf);
        ownerOf = ownersByUse(graph, unitOf);
    } else if (wrap == FsdpWrap::Size) {
        wrapBySize(graph, modules, least);
    } else {
        ownerOf.assign(graph.parameters.size(), 0);
    }
    findOrder();
}

void FsdpWrapping::wrapBySize(const Graph& graph, std::span<const ModuleId> modules, std::int64_t least)
{
    ModuleTree tree(graph);
    tree.wrap(units, least);
    std::vector<std::uint32_t> ofModule(graph.modules.size()), parameterOf(graph.storages.size(), noOwner);
    for (ModuleIndex module = 0; module < graph.modules.size(); ++module) {
        ofModule[module] = tree.unitAround(tree.path(module));
        if (ModuleId& name = units[ofModule[module]].module; name == 0)
            name = modules[module];
    }
    for (std::uint32_t i = 0; i < graph.parameters.size(); ++i) {
        parameterOf[graph.tensors[graph.parameters[i].tensor].storage] = i;
        ownerOf.push_back(ofModule[graph.parameters[i].module]);
    }
    for (std::size_t i = 1; i < units.size(); ++i)
        units[i].first = noOwner;
    const auto used = [&](const Operator& op, auto visit) {
        for (const TensorId tensor : graph.inputs(op))
            if (const std::uint32_t parameter = parameterOf[graph.tensors[tensor].storage]; parameter != noOwner)
                visit(parameter);
    };
    // An operator runs in the module that it lies in, or in that of its parameter where this lies further inside.
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i) {
        const Operator& op = graph.operators[i];
        std::uint32_t unit = ofModule[op.module];
        used(op, [&](std::uint32_t parameter) {
            const ModuleIndex home = graph.parameters[parameter].module;
            if (areInLine(tree.path(op.module), tree.path(home)))
                unit = std::max(unit, ofModule[home]);
            else if (ofModule[op.module] != ofModule[home])
                ownerOf[parameter] = 0;
        });
        for (; unit != 0; unit = units[unit].parent) {
            units[unit].first = std::min(units[unit].first, i);
            units[unit].last = i + 1;
        }
    }
    for (std::uint32_t i = std::uint32_t(graph.operators.size()); i-- > 0;)
        used(graph.operators[i], [&](std::uint32_t parameter) { units[ownerOf[parameter]].end = i; });
    for (std::uint32_t unit = 1; unit < units.size(); ++unit)
        if (units[unit].last > 0)
            std::fill(unitOf.begin() + units[unit].first, unitOf.begin() + units[unit].last, unit);
}

void FsdpWrapping::findOrder()
{
    std::vector<std::uint32_t> order(units.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return units[a].last != units[b].last ? units[a].last < units[b].last : a > b;
    });
    for (std::size_t i = 1; i < order.size(); ++i)
        units[order[i]].before = units[order[i - 1]].last > 0 ? order[i - 1] : 0; // unless nothing runs in it
}

} // namespace memscape
