// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/compiled_graph.h"

#include "core/network/compile/partition.h"

#include <algorithm>
#include <numeric>

namespace memscape {

namespace {

bool isFusedKind(OperatorKind kind)
{
    return kind != OperatorKind::Dequantize
        && ((kind >= OperatorKind::Clone && kind <= OperatorKind::BatchNorm) || kind == OperatorKind::NllLoss
            || kind == OperatorKind::MseLoss || kind == OperatorKind::AdaptiveAveragePool);
}

bool isViewOfInput(OperatorKind kind)
{
    return kind >= OperatorKind::View && kind <= OperatorKind::Detach;
}

/// What runs as one: an operator as it is, or fused ones with the views between them.
struct Launch
{
    std::vector<std::uint32_t> members; ///< operators of the recorded network, in program order
    bool isFused = false;
};

/// Which operators run together, and when.
class Scheduler
{
public:
    explicit Scheduler(const Graph& graph)
        : m_graph(graph)
        , m_maker(graph.tensors.size(), none)
        , m_isPending(graph.operators.size(), 0)
        , m_component(graph.operators.size())
    {
        std::iota(m_component.begin(), m_component.end(), 0);
    }

    std::vector<Launch> launches(const std::vector<TensorId>& results)
    {
        for (std::uint32_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator& op = m_graph.operators[i];
            if (op.kind == OperatorKind::Release)
                continue;
            for (const TensorId tensor : m_graph.outputs(op))
                m_maker[tensor] = i;
            if (isFusedKind(op.kind) || isViewOfInput(op.kind)) {
                m_isPending[i] = 1;
                continue;
            }
            demand(m_graph.inputs(op));
            m_launches.push_back({{i}, false});
        }
        demand(results);
        return std::move(m_launches);
    }

private:
    static constexpr std::uint32_t none = UINT32_MAX;

    std::uint32_t pendingMaker(TensorId tensor) const
    {
        const std::uint32_t maker = m_maker[tensor];
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
            return m_maker[tensor] != none && std::binary_search(operators.begin(), operators.end(), m_maker[tensor]);
        };
        std::vector<std::uint8_t> isOutside(operators.size(), 0); // a view of what was there before
        for (std::size_t i = 0; i < operators.size(); ++i) {
            const Operator& op = m_graph.operators[operators[i]];
            bool joins = false;
            for (const TensorId input : m_graph.inputs(op)) {
                if (!isHere(input))
                    continue;
                const auto maker = std::size_t(std::lower_bound(operators.begin(), operators.end(), m_maker[input])
                                               - operators.begin());
                if (isOutside[maker])
                    continue;
                joins = true;
                m_component[componentOf(operators[i])] = componentOf(operators[maker]);
            }
            isOutside[i] = isViewOfInput(op.kind) && !joins;
        }
        for (std::size_t i = 0; i < operators.size(); ++i)
            if (isOutside[i])
                m_launches.push_back({{operators[i]}, false});
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
                m_launches.push_back({{}, true});
            }
            m_launches[launch].members.push_back(operators[i]);
        }
        for (std::size_t i = 0; i < operators.size(); ++i)
            if (!isOutside[i] && isViewOfInput(m_graph.operators[operators[i]].kind))
                m_launches.push_back({{operators[i]}, false}); // dropped where only the kernel reads it
    }

    const Graph& m_graph;
    std::vector<std::uint32_t> m_maker; ///< by tensor
    std::vector<std::uint8_t> m_isPending;
    std::vector<std::uint32_t> m_component;
    std::vector<Launch> m_launches;
};

/// What is kept of each operator, carried over to copies of layers: the first, those between, the last.
class KeptParts
{
public:
    explicit KeptParts(const Graph& graph)
        : m_graph(graph)
        , m_loops(outerLoops(graph))
        , m_joint(jointGraph(graph))
        , m_needed(neededNodes(m_joint, keptNodes(m_joint)))
        , m_patterns(originals(graph, m_loops))
        , m_nodes(graph.operators.size())
    {
        findPatterns();
        for (JointId id = 0; id < m_joint.nodes.size(); ++id)
            if (!m_joint.nodes[id].isInput)
                m_nodes[m_joint.nodes[id].op].push_back(id);
    }

    /// A node of operator `op`.
    struct Part
    {
        std::uint32_t op = 0;
        std::size_t place = 0; ///< among the nodes of its operator
    };
    const JointNode& node(const Part& part) const { return m_joint.nodes[m_nodes[m_patterns[part.op]][part.place]]; }

    /// What backward of `op` finds in memory, beside what exists before the step. A view lies in its base.
    void needed(std::uint32_t op, std::vector<Part>& parts) const
    {
        for (JointId id : m_needed[m_patterns[op]]) {
            while (m_joint.nodes[id].isView)
                id = m_joint.nodes[id].inputs[0];
            const JointNode& node = m_joint.nodes[id];
            if (node.isInput)
                continue;
            const auto& nodes = m_nodes[node.op];
            const auto place = std::size_t(std::find(nodes.begin(), nodes.end(), id) - nodes.begin());
            parts.push_back({realOperator(op, node.op), place});
        }
    }

private:
    /// The operator whose fate an operator shares. Of a loop over layers three iterations were recorded and the third
    /// copied: the last copy ends as the third does, those before it and the third itself are as the second.
    void findPatterns()
    {
        for (const CopiedOperators& loop : m_loops)
            for (std::uint32_t i = loop.first - loop.period; i < loop.last - loop.period; ++i)
                m_patterns[i] -= loop.period;
    }

    /// What `from` of the pattern is for `op`: in its own iteration or one before; behind a loop in the last one.
    std::uint32_t realOperator(std::uint32_t op, std::uint32_t from) const
    {
        for (const CopiedOperators& loop : m_loops) {
            const std::uint32_t begin = loop.first - 3 * loop.period;
            if (op >= begin && op < loop.last && from >= begin && isAlike(from + (op - m_patterns[op]), from))
                return from + (op - m_patterns[op]);
        }
        for (const CopiedOperators& loop : m_loops)
            if (from >= loop.first - loop.period && from < loop.first && op >= loop.last)
                return from + (loop.last - loop.first);
        return from;
    }

    /// What only the first iteration makes, a mask, has nothing like it behind a period.
    bool isAlike(std::uint32_t op, std::uint32_t other) const
    {
        return m_graph.operators[op].kind == m_graph.operators[other].kind
            && m_nodes[m_patterns[op]].size() == m_nodes[other].size();
    }

    const Graph& m_graph;
    std::vector<CopiedOperators> m_loops;
    JointGraph m_joint;
    std::vector<std::vector<JointId>> m_needed;
    std::vector<std::uint32_t> m_patterns;
    std::vector<std::vector<JointId>> m_nodes; ///< by operator
};

class Compiler
{
public:
    explicit Compiler(const Graph& graph)
        : m_graph(graph)
        , m_parts(graph)
        , m_made(graph)
        , m_partTensor(graph.operators.size())
        , m_launchOf(graph.operators.size(), UINT32_MAX)
        , m_makers(graph.tensors.size(), UINT32_MAX)
        , m_lastUse(graph.tensors.size(), 0)
        , m_uses(graph.tensors.size(), 0)
        , m_isRead(graph.tensors.size(), 0)
        , m_isReleased(graph.tensors.size(), 0)
        , m_sameAs(graph.tensors.size(), noTensor)
    { }

    Result<Graph> compiled()
    {
        m_launches = Scheduler(m_graph).launches(results());
        for (std::uint32_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator& op = m_graph.operators[i];
            if (op.kind == OperatorKind::Release)
                m_isReleased[m_graph.operands[op.first]] = 1;
            else
                for (const TensorId tensor : m_graph.outputs(op))
                    m_makers[tensor] = i;
        }
        for (std::uint32_t i = 0; i < m_launches.size(); ++i)
            for (const std::uint32_t op : m_launches[i].members)
                if (m_launches[i].isFused || m_launchOf[op] == UINT32_MAX)
                    m_launchOf[op] = i;
        findNeeds();
        findUses();
        m_made.operators.clear();
        m_made.operands.clear();
        m_made.copies.clear();
        m_position.assign(m_launches.size(), 0);
        for (std::uint32_t i = 0; i < m_launches.size(); ++i)
            MEMSCAPE_CHECK(write(i));
        moveBlocks();
        return std::move(m_made);
    }

private:
    using Part = KeptParts::Part;

    std::vector<TensorId> results() const
    {
        std::vector<TensorId> all = m_graph.otherOutputs;
        for (const TensorId tensor : {m_graph.output, m_graph.loss})
            if (tensor != noTensor)
                all.push_back(tensor);
        return all;
    }

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

    /// By operator of the recorded network: what its backward finds in memory.
    void findNeeds()
    {
        m_needs.resize(m_graph.operators.size());
        std::vector<Part> parts;
        for (std::uint32_t i = 0; i < m_graph.operators.size(); ++i) {
            const Operator& op = m_graph.operators[i];
            if (op.kind == OperatorKind::Release || !op.hasGradient)
                continue;
            parts.clear();
            m_parts.needed(i, parts);
            for (const Part& part : parts)
                addOnce(m_needs[i], tensorOf(part));
        }
        m_isKept.assign(m_made.tensors.size(), 0);
        for (const auto& needs : m_needs)
            for (const TensorId tensor : needs)
                m_isKept[tensor] = 1;
    }

    bool isView(const Launch& launch) const
    {
        return !launch.isFused && isViewOfInput(m_graph.operators[launch.members[0]].kind);
    }

    /// Which launch is the last that reads a tensor or keeps it. Views that nothing reads do not run.
    void findUses()
    {
        m_runs.assign(m_launches.size(), 1);
        for (const TensorId tensor : results())
            m_isRead[tensor] = 1;
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
        const std::vector<TensorId> named = results();
        for (TensorId tensor = 0; tensor < m_lastUse.size(); ++tensor) {
            const bool isOwn = tensor >= m_graph.tensors.size() || m_makers[tensor] != UINT32_MAX;
            const bool isResult = std::find(named.begin(), named.end(), tensor) != named.end();
            if (isOwn && !(isResult && !m_isReleased[tensor]))
                m_endsAt[m_lastUse[tensor]].push_back(tensor);
        }
    }

    bool isInside(TensorId tensor, std::uint32_t launch) const
    {
        return m_makers[tensor] != UINT32_MAX && m_launchOf[m_makers[tensor]] == launch;
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
        const auto made = op.kind == OperatorKind::MaxPool ? outputs.first(1) : outputs;
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
        } else if (isView(launch)) {
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

    /// Blocks of layers: a kernel may reach over their border.
    void moveBlocks()
    {
        for (Block& block : m_made.blocks) {
            std::uint32_t first = UINT32_MAX, last = 0;
            for (std::uint32_t i = block.first; i < block.last; ++i) {
                const std::uint32_t launch = m_launchOf[i];
                if (launch == UINT32_MAX || !m_runs[launch])
                    continue;
                first = std::min(first, m_position[launch]);
                last = std::max(last, m_position[launch] + 1);
            }
            block.first = first == UINT32_MAX ? 0 : first;
            block.last = std::max(last, block.first);
        }
    }

    const Graph& m_graph;
    KeptParts m_parts;
    Graph m_made;
    std::vector<Launch> m_launches;
    std::vector<std::vector<TensorId>> m_partTensor, m_needs; ///< by operator
    std::vector<std::uint32_t> m_launchOf, m_makers, m_lastUse, m_position, m_uses;
    std::vector<std::uint8_t> m_isRead, m_isReleased, m_isKept, m_runs;
    std::vector<std::vector<TensorId>> m_endsAt; ///< by launch: whose last use it is
    std::vector<TensorId> m_sameAs;
};

} // namespace

Result<Graph> compiledGraph(const Graph& graph)
{
    return Compiler(graph).compiled();
}

} // namespace memscape
