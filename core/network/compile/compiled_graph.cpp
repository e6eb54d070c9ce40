// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/compiled_graph.h"

#include "core/network/compile/kept_parts.h"
#include "core/network/compile/launches.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

class Compiler
{
public:
    Compiler(const Graph& graph, CompileScope scope)
        : m_graph(graph)
        , m_regions(graph, scope)
        , m_parts(graph, m_regions)
        , m_made(graph)
        , m_launches(launches(graph, m_regions))
        , m_partTensor(graph.operators.size())
        , m_launchOf(graph.operators.size(), UINT32_MAX)
        , m_lastUse(graph.tensors.size(), 0)
        , m_uses(graph.tensors.size(), 0)
        , m_isRead(graph.tensors.size(), 0)
        , m_sameAs(graph.tensors.size(), noTensor)
    { }

    Result<Graph> compiled()
    {
        for (std::uint32_t i = 0; i < m_launches.size(); ++i)
            for (const std::uint32_t op : m_launches[i].members)
                if (m_launches[i].isFused || m_launchOf[op] == UINT32_MAX)
                    m_launchOf[op] = i;
        findNeeds();
        findUses();
        m_made.operators.clear();
        m_made.operands.clear();
        m_made.copies.clear();
        for (const CompiledRegion& region : m_regions.regions)
            m_made.regions.push_back({0, 0, region.results});
        m_position.assign(m_launches.size(), 0);
        for (std::uint32_t i = 0; i < m_launches.size(); ++i) {
            const auto begin = std::uint32_t(m_made.operators.size());
            MEMSCAPE_CHECK(write(i));
            extendRegion(m_launches[i].region, begin);
        }
        moveBlocks();
        return std::move(m_made);
    }

private:
    using Part = KeptParts::Part;

    /// The tensor that holds a kept part; where it has none in the recorded network, a new one.
    TensorId tensorOf(const Part& part)
    {
        const JointNode& node = m_parts.node(part);
        const Operator& op = m_graph.operators[part.op];
        if (node.tensor != noTensor) { // that of the pattern: here the output in the same place
            const auto outputs = m_graph.outputs(m_graph.operators[node.op]);
            const auto place = std::find(outputs.begin(), outputs.end(), node.tensor) - outputs.begin();
            return m_graph.outputs(op)[std::size_t(place)];
        }
        auto& known = m_partTensor[part.op];
        known.resize(std::max(known.size(), part.place + 1), noTensor);
        if (known[part.place] == noTensor)
            known[part.place] = newTensor(node, op.module);
        return known[part.place];
    }

    TensorId newTensor(const JointNode& node, ModuleIndex module)
    {
        const std::int64_t elements = node.bytes / elementBytes(node.dtype);
        m_made.layouts.emplace_back(Shape{elements});
        const auto layout = LayoutId(m_made.layouts.size() - 1);
        m_made.storages.push_back({node.bytes, module, OperatorKind::Fused, Role::Activation});
        m_made.tensors.push_back({layout, StorageId(m_made.storages.size() - 1), node.dtype, false});
        m_lastUse.push_back(0);
        return TensorId(m_made.tensors.size() - 1);
    }

    /// By operator of the recorded network: what its backward finds in memory. Eager ones keep what they did.
    void findNeeds()
    {
        m_needs.resize(m_graph.operators.size());
        std::vector<Part> parts;
        for (std::uint32_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator& op = m_graph.operators[i];
            if (op.kind == OperatorKind::Release)
                continue;
            if (m_regions.ofOperator[i] == CompiledRegions::none) {
                m_needs[i].assign(m_graph.saved(op).begin(), m_graph.saved(op).end());
                continue;
            }
            if (!op.hasGradient)
                continue;
            parts.clear();
            std::vector<TensorId> given;
            m_parts.needed(i, parts, given);
            for (const TensorId tensor : given)
                addOnce(m_needs[i], tensor);
            for (const Part& part : parts)
                addOnce(m_needs[i], tensorOf(part));
        }
        m_isKept.assign(m_made.tensors.size(), 0);
        for (const auto& needs : m_needs)
            for (const TensorId tensor : needs)
                m_isKept[tensor] = 1;
    }

    /// Of a region: eager ones run as they were recorded.
    bool isView(const Launch& launch) const
    {
        return !launch.isFused && launch.region != CompiledRegions::none
            && isViewOfInput(m_graph.operators[launch.members[0]].kind);
    }

    /// Which launch is the last that reads a tensor or keeps it. Views that nothing reads do not run.
    void findUses()
    {
        m_runs.assign(m_launches.size(), 1);
        for (TensorId tensor = 0; tensor < m_graph.tensors.size(); ++tensor)
            m_isRead[tensor] = m_regions.isResult[tensor];
        for (std::uint32_t i = std::uint32_t(m_launches.size()); i-- > 0;) {
            const Launch& launch = m_launches[i];
            const auto outputs = m_graph.outputs(m_graph.operators[launch.members[0]]);
            if (isView(launch)
                && std::none_of(outputs.begin(), outputs.end(), [&](TensorId tensor) { return m_isRead[tensor]; })) {
                m_runs[i] = 0;
                continue;
            }
            for (const std::uint32_t op : launch.members) {
                for (const TensorId tensor : m_graph.inputs(m_graph.operators[op])) {
                    if (launch.isFused && isInside(tensor, i))
                        continue;
                    m_isRead[tensor] = 1;
                    m_lastUse[tensor] = std::max(m_lastUse[tensor], i);
                }
                for (const TensorId tensor : m_graph.outputs(m_graph.operators[op]))
                    m_lastUse[tensor] = std::max(m_lastUse[tensor], i);
                for (const TensorId tensor : m_needs[op])
                    m_lastUse[tensor] = std::max(m_lastUse[tensor], i);
            }
        }
        m_endsAt.resize(m_launches.size());
        for (TensorId tensor = 0; tensor < m_lastUse.size(); ++tensor)
            if (tensor >= m_graph.tensors.size() || m_regions.isInner[tensor])
                m_endsAt[m_lastUse[tensor]].push_back(tensor);
    }

    bool isInside(TensorId tensor, std::uint32_t launch) const
    {
        const std::uint32_t maker = m_regions.makerOf[tensor];
        return maker != CompiledRegions::none && m_launchOf[maker] == launch;
    }

    static void addOnce(std::vector<TensorId>& list, TensorId tensor)
    {
        if (std::find(list.begin(), list.end(), tensor) == list.end())
            list.push_back(tensor);
    }

    struct Operands
    {
        std::vector<TensorId> inputs, outputs, saved;
    };

    /// Kept parts that the recorded network has no tensor for.
    void addParts(std::uint32_t op, std::vector<TensorId>& outputs) const
    {
        for (const TensorId tensor : m_partTensor[op])
            if (tensor != noTensor)
                addOnce(outputs, tensor);
    }

    Operands fusedOperands(std::uint32_t index)
    {
        Operands all;
        for (const std::uint32_t i : m_launches[index].members) {
            const Operator& op = m_graph.operators[i];
            for (const TensorId tensor : m_graph.inputs(op))
                if (!isInside(tensor, index))
                    addOnce(all.inputs, tensor);
            for (const TensorId tensor : m_graph.outputs(op))
                if (!isViewOfInput(op.kind) && (m_isRead[tensor] || m_isKept[tensor]))
                    addOnce(all.outputs, tensor);
            addParts(i, all.outputs);
            for (const TensorId tensor : m_needs[i])
                addOnce(all.saved, tensor);
        }
        return all;
    }

    Operands ownOperands(std::uint32_t i) const
    {
        const Operator& op = m_graph.operators[i];
        const auto inputs = m_graph.inputs(op), outputs = m_graph.outputs(op);
        // Pooling keeps offsets instead of the indices that it would return.
        const bool isCompiled = m_regions.ofOperator[i] != CompiledRegions::none;
        const auto made = op.kind == OperatorKind::MaxPool && isCompiled ? outputs.first(1) : outputs;
        Operands all{{inputs.begin(), inputs.end()}, {made.begin(), made.end()}, {}};
        addParts(i, all.outputs);
        for (const TensorId tensor : m_needs[i])
            addOnce(all.saved, tensor);
        return all;
    }

    /// Inputs that one gradient serves: what is only added up.
    std::vector<std::uint8_t> sharedGradients(std::uint32_t index, const Operands& all)
    {
        std::vector<TensorId> touched;
        for (const std::uint32_t i : m_launches[index].members)
            for (const TensorId tensor : m_graph.inputs(m_graph.operators[i])) {
                ++m_uses[tensor];
                touched.push_back(tensor);
            }
        for (const std::uint32_t i : m_launches[index].members) {
            const Operator& op = m_graph.operators[i];
            if (op.kind != OperatorKind::Add && op.kind != OperatorKind::Shift)
                continue;
            const TensorId sum = m_graph.outputs(op)[0];
            for (const TensorId tensor : m_graph.inputs(op)) {
                const bool isWhole = m_graph.layoutOf(tensor).shape == m_graph.layoutOf(sum).shape
                    && m_graph.tensors[tensor].dtype == m_graph.tensors[sum].dtype;
                if (isWhole && m_uses[tensor] == 1)
                    m_sameAs[tensor] = sum;
            }
        }
        const auto root = [&](TensorId tensor) {
            while (m_sameAs[tensor] != noTensor)
                tensor = m_sameAs[tensor];
            return tensor;
        };
        std::vector<std::uint8_t> shared(all.inputs.size());
        for (std::size_t i = 0; i < shared.size(); ++i) {
            shared[i] = std::uint8_t(i);
            for (std::size_t k = 0; k < i; ++k)
                if (root(all.inputs[i]) == root(all.inputs[k]) && all.inputs[i] != all.inputs[k]) {
                    shared[i] = shared[k];
                    break;
                }
        }
        for (const TensorId tensor : touched) {
            m_uses[tensor] = 0;
            m_sameAs[tensor] = noTensor;
        }
        return shared;
    }

    Result<void> write(std::uint32_t index)
    {
        const Launch& launch = m_launches[index];
        if (!m_runs[index])
            return {};
        if (const Operator& op = m_graph.operators[launch.members[0]]; op.kind == OperatorKind::Release) {
            release(m_graph.operands[op.first]);
            return {};
        }
        const Operands all = launch.isFused ? fusedOperands(index) : ownOperands(launch.members[0]);
        constexpr std::size_t most = 255;
        if (all.inputs.size() > most || all.outputs.size() > most || all.saved.size() > most)
            return fail("network.compile", "one fused kernel of this network has more than 255 tensors",
                        "choose compile=none", "compile");
        if (launch.isFused && all.outputs.empty()) {
            m_runs[index] = 0;
            return {};
        }
        Operator op = m_graph.operators[launch.members.back()];
        if (launch.isFused) {
            op.kind = OperatorKind::Fused;
            op.attribute = std::int64_t(m_made.fused.size());
            op.inPlace = false;
            op.hasGradient = std::any_of(launch.members.begin(), launch.members.end(),
                                         [&](std::uint32_t i) { return m_graph.operators[i].hasGradient; });
            m_made.fused.push_back(sharedGradients(index, all));
            for (const TensorId tensor : all.outputs)
                if (tensor < m_graph.tensors.size())
                    giveStorage(tensor, op.module);
        } else if (isViewOfInput(op.kind) || op.inPlace) {
            for (const TensorId tensor : all.outputs)
                m_made.tensors[tensor].storage = m_made.tensors[all.inputs[0]].storage;
        }
        op.inputs = std::uint8_t(all.inputs.size());
        op.outputs = std::uint8_t(all.outputs.size());
        op.saved = std::uint8_t(all.saved.size());
        op.first = std::uint32_t(m_made.operands.size());
        for (const auto* const list : {&all.inputs, &all.outputs, &all.saved})
            m_made.operands.insert(m_made.operands.end(), list->begin(), list->end());
        m_made.operators.push_back(op);
        m_position[index] = std::uint32_t(m_made.operators.size() - 1);
        for (const TensorId tensor : m_endsAt[index])
            release(tensor);
        return {};
    }

    void giveStorage(TensorId tensor, ModuleIndex module)
    {
        const Tensor& known = m_made.tensors[tensor];
        const Layout dense = m_made.layouts[known.layout].isDense() ? m_made.layouts[known.layout]
                                                                    : Layout(m_made.layouts[known.layout].shape);
        const std::int64_t bytes = dense.elements() * elementBytes(known.dtype);
        const Role role = m_graph.storageOf(tensor).role == Role::WeightCast ? Role::WeightCast : Role::Activation;
        m_made.storages.push_back({bytes, module, OperatorKind::Fused, role});
        m_made.tensors[tensor].storage = StorageId(m_made.storages.size() - 1);
    }

    void release(TensorId tensor)
    {
        Operator op;
        op.inputs = 1;
        op.first = std::uint32_t(m_made.operands.size());
        m_made.operands.push_back(tensor);
        m_made.operators.push_back(op);
    }

    /// The operators from `begin` on are of this region.
    void extendRegion(std::uint32_t index, std::uint32_t begin)
    {
        if (index == CompiledRegions::none)
            return;
        CompiledRegion& region = m_made.regions[index];
        if (std::exchange(m_lastRegion, index) != index)
            region.first = begin;
        region.last = std::uint32_t(m_made.operators.size());
    }

    /// Blocks of layers: a kernel may reach over their border where that is not one of a region.
    void moveBlocks()
    {
        for (Block& block : m_made.blocks) {
            const std::uint32_t region = m_regions.ofOperator[block.first];
            if (region != CompiledRegions::none && m_regions.regions[region].first == block.first
                && m_regions.regions[region].last == block.last) {
                block.first = m_made.regions[region].first;
                block.last = m_made.regions[region].last;
                continue;
            }
            std::uint32_t first = UINT32_MAX, last = 0;
            for (std::uint32_t i = block.first; i < block.last; ++i) {
                const std::uint32_t launch = m_launchOf[i];
                if (m_graph.operators[i].kind == OperatorKind::Release || launch == UINT32_MAX || !m_runs[launch])
                    continue;
                first = std::min(first, m_position[launch]);
                last = std::max(last, m_position[launch] + 1);
            }
            block.first = first == UINT32_MAX ? 0 : first;
            block.last = std::max(last, block.first);
        }
    }

    const Graph& m_graph;
    CompiledRegions m_regions;
    KeptParts m_parts;
    Graph m_made;
    std::vector<Launch> m_launches;
    std::vector<std::vector<TensorId>> m_partTensor, m_needs; ///< by operator
    std::vector<std::uint32_t> m_launchOf, m_lastUse, m_position, m_uses;
    std::vector<std::uint8_t> m_isRead, m_isKept, m_runs;
    std::vector<std::vector<TensorId>> m_endsAt; ///< by launch: whose last use it is
    std::vector<TensorId> m_sameAs;
    std::uint32_t m_lastRegion = CompiledRegions::none;
};

} // namespace

Result<Graph> compiledGraph(const Graph& graph, CompileScope scope)
{
    return Compiler(graph, scope).compiled();
}

} // namespace memscape
