// SPDX-License-Identifier: Apache-2.0
#include "core/network/compile/joint_graph.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

using Kind = OperatorKind;

class JointWriter
{
public:
    JointWriter(const Graph& graph, const CompiledRegions& regions, JointGraph& joint)
        : m_graph(graph)
        , m_regions(regions)
        , m_joint(joint)
    {
        m_joint.ofTensor.assign(graph.tensors.size(), noJoint);
        m_joint.reads.resize(graph.operators.size());
    }

    void write(std::uint32_t index)
    {
        const Operator& op = m_graph.operators[index];
        if (std::exchange(m_region, m_regions.ofOperator[index]) != m_regions.ofOperator[index])
            m_regionBegin = JointId(m_joint.nodes.size());
        m_index = index;
        m_op = &op;
        writeNodes();
        for (const TensorId tensor : m_graph.outputs(op))
            if (m_joint.ofTensor[tensor] != noJoint)
                at(m_joint.ofTensor[tensor]).isOutput = m_regions.isResult[tensor];
    }

private:
    void writeNodes()
    {
        const Operator& op = *m_op;
        if (isViewOfInput(op.kind))
            return writeView();
        if (op.kind >= Kind::Clone && op.kind <= Kind::Compare)
            return writeCopy();
        if (op.kind >= Kind::Add && op.kind <= Kind::Divide)
            return writeBinary();
        if (op.kind >= Kind::Scale && op.kind <= Kind::Softplus)
            return writeUnary();
        switch (op.kind) {
        case Kind::MaskedFill:
        case Kind::Where: result({in(0), in(1)}); return read(in(1));
        case Kind::Dropout: return writeDropout();
        case Kind::Sum:
        case Kind::Mean:
        case Kind::AdaptiveAveragePool: result({in(0)}); return;
        case Kind::Softmax: return writeSoftmax();
        case Kind::LogSoftmax: return writeLogSoftmax();
        case Kind::NllLoss: return writeNll();
        case Kind::MseLoss:
            result({in(0), in(1)});
            read(in(0));
            return read(in(1));
        case Kind::LayerNorm:
        case Kind::GroupNorm:
        case Kind::BatchNorm:
        case Kind::RmsNorm: return writeNorm();
        case Kind::Addmm:
        case Kind::Mm:
        case Kind::Bmm:
        case Kind::Convolution: return writeProduct();
        case Kind::MaxPool: return writeMaxPool();
        case Kind::Index:
        case Kind::IndexSelect:
        case Kind::Gather: result({in(0), in(1)}); return read(in(1));
        case Kind::Embedding: opaque(); return read(in(1));
        default: writeOpaque();
        }
    }

    JointNode& at(JointId id) { return m_joint.nodes[id]; }
    std::int64_t elementsOf(TensorId tensor) const { return m_graph.layoutOf(tensor).elements(); }
    TensorId input(std::size_t i) const { return m_graph.inputs(*m_op)[i]; }
    TensorId output() const { return m_graph.outputs(*m_op)[0]; }
    std::int64_t outputElements() const { return elementsOf(output()); }
    DType outputType() const { return m_graph.tensors[output()].dtype; }
    bool wants(std::size_t i) const { return m_graph.tensors[input(i)].needsGradient; }
    bool isHalf() const { return isFloating(outputType()) && elementBytes(outputType()) < 4; }

    JointId in(std::size_t i) { return nodeOf(input(i)); }
    /// What exists before the region gets its node when it is first read there.
    JointId nodeOf(TensorId tensor)
    {
        JointId& known = m_joint.ofTensor[tensor];
        if (known != noJoint && known >= m_regionBegin)
            return known;
        const Role role = m_graph.storageOf(tensor).role;
        JointNode node;
        node.bytes = elementsOf(tensor) * elementBytes(m_graph.tensors[tensor].dtype);
        node.dtype = m_graph.tensors[tensor].dtype;
        node.op = std::uint32_t(m_graph.operators.size());
        node.tensor = tensor;
        node.isInput = true;
        node.isStatic = role == Role::Parameter || role == Role::Buffer;
        m_joint.nodes.push_back(node);
        return known = JointId(m_joint.nodes.size() - 1);
    }
    JointId inner(std::int64_t elements, DType dtype, std::vector<JointId> inputs)
    {
        const auto id = JointId(m_joint.nodes.size());
        for (const JointId input : inputs)
            at(input).users.push_back(id);
        JointNode node;
        node.bytes = elements * elementBytes(dtype);
        node.dtype = dtype;
        node.op = m_index;
        node.inputs = std::move(inputs);
        m_joint.nodes.push_back(std::move(node));
        return id;
    }
    JointId result(std::vector<JointId> inputs)
    {
        return named(inner(outputElements(), outputType(), std::move(inputs)));
    }
    JointId named(JointId id)
    {
        at(id).tensor = output();
        return m_joint.ofTensor[output()] = id;
    }
    /// Only backward needs it.
    JointId extra(std::int64_t elements, DType dtype, std::vector<JointId> inputs)
    {
        const JointId id = inner(elements, dtype, std::move(inputs));
        at(id).isForward = false;
        return id;
    }
    /// A kernel of its own, never run twice; all that it makes.
    JointId opaque()
    {
        std::vector<JointId> inputs;
        for (const TensorId tensor : m_graph.inputs(*m_op))
            inputs.push_back(nodeOf(tensor));
        JointId first = noJoint;
        for (const TensorId tensor : m_graph.outputs(*m_op)) {
            const JointId id = inner(elementsOf(tensor), m_graph.tensors[tensor].dtype, inputs);
            at(id).isFusible = at(id).isRecomputable = false;
            at(id).tensor = tensor;
            m_joint.ofTensor[tensor] = id;
            first = first == noJoint ? id : first;
        }
        return first;
    }
    void read(JointId id)
    {
        if (!m_op->hasGradient)
            return;
        at(id).isReadFused = true;
        m_joint.reads[m_index].push_back(id);
    }
    void readWhole(JointId id)
    {
        if (!m_op->hasGradient)
            return;
        at(id).isReadWhole = true;
        m_joint.reads[m_index].push_back(id);
    }
    /// Halves are computed in float.
    JointId widened(JointId id)
    {
        const std::int64_t elements = at(id).bytes / elementBytes(at(id).dtype);
        return elementBytes(at(id).dtype) < 4 ? inner(elements, DType::Float32, {id}) : id;
    }
    JointId narrowed(JointId id) { return isHalf() ? result({id}) : named(id); }

    void writeView()
    {
        for (const TensorId tensor : m_graph.outputs(*m_op)) {
            const JointId id = inner(elementsOf(tensor), m_graph.tensors[tensor].dtype, {in(0)});
            at(id).isView = true;
            at(id).tensor = tensor;
            m_joint.ofTensor[tensor] = id;
        }
    }

    void writeCopy()
    {
        if (m_op->kind == Kind::Dequantize)
            return writeOpaque();
        std::vector<JointId> inputs;
        for (const TensorId tensor : m_graph.inputs(*m_op))
            inputs.push_back(nodeOf(tensor));
        const JointId id = result(std::move(inputs));
        const bool isJoined = m_op->kind == Kind::Cat || m_op->kind == Kind::Stack;
        at(id).isConcatenation = isJoined;
        if (isJoined || m_op->kind == Kind::Pad)
            at(id).isFusible = at(id).isRecomputable = false;
    }

    void writeBinary()
    {
        const JointId made = result({in(0), in(1)});
        if (m_op->kind == Kind::Add || m_op->kind == Kind::Subtract)
            return;
        if (wants(0))
            read(in(1));
        if (wants(1))
            read(m_op->kind == Kind::Divide ? made : in(0));
        if (m_op->kind == Kind::Divide && wants(1))
            read(in(1));
    }

    void writeUnary()
    {
        switch (m_op->kind) {
        case Kind::Scale:
        case Kind::Shift:
        case Kind::Negate: result({in(0)}); return;
        case Kind::SquareRoot:
        case Kind::ReciprocalRoot:
        case Kind::Exponential:
        case Kind::Sigmoid:
        case Kind::Tanh: return read(result({in(0)}));
        case Kind::Relu: { // its gradient asks where the result is 0
            const JointId made = result({in(0)});
            if (m_op->hasGradient)
                read(extra(outputElements(), DType::Bool, {made}));
            return;
        }
        case Kind::Power:
        case Kind::Square:
        case Kind::Logarithm: result({in(0)}); return read(in(0));
        default: break;
        }
        const JointId x = widened(in(0));
        const JointId computed = inner(outputElements(), DType::Float32, {x});
        narrowed(computed);
        read(x);
    }

    /// The random numbers are made in a kernel that is never run again; what is kept is whether they are above the
    /// probability.
    void writeDropout()
    {
        const JointId random = inner(outputElements(), DType::Float32, {});
        at(random).isFusible = at(random).isRecomputable = false;
        const JointId keeps = inner(outputElements(), DType::Bool, {random});
        result({keeps, in(0)});
        read(keeps);
    }

    std::int64_t rows(std::int64_t elements) const
    {
        const std::int64_t width = m_graph.layoutOf(output()).shape.last();
        return elements / std::max<std::int64_t>(width, 1);
    }

    void writeSoftmax()
    {
        const std::int64_t elements = outputElements();
        const JointId x = widened(in(0));
        const JointId most = inner(rows(elements), DType::Float32, {x});
        const JointId power = inner(elements, DType::Float32, {x, most});
        const JointId sum = inner(rows(elements), DType::Float32, {power});
        const JointId share = inner(elements, DType::Float32, {power, sum});
        read(narrowed(share));
    }

    void writeLogSoftmax()
    {
        const std::int64_t elements = outputElements();
        const JointId x = widened(in(0));
        const JointId most = inner(rows(elements), DType::Float32, {x});
        const JointId shifted = inner(elements, DType::Float32, {x, most});
        const JointId power = inner(elements, DType::Float32, {shifted});
        const JointId sum = inner(rows(elements), DType::Float32, {power});
        const JointId logarithm = inner(rows(elements), DType::Float32, {sum});
        const JointId share = inner(elements, DType::Float32, {shifted, logarithm});
        read(narrowed(share));
    }

    void writeNll()
    {
        const JointId taken = inner(elementsOf(input(1)), m_graph.tensors[input(0)].dtype, {in(0), in(1)});
        result({taken});
        read(in(1));
    }

    void writeNorm()
    {
        const bool isRms = m_op->kind == Kind::RmsNorm;
        const std::int64_t elements = outputElements();
        const auto outputs = m_graph.outputs(*m_op);
        const std::int64_t statistics = outputs.size() > 1 ? elementsOf(outputs[1]) : rows(elements);
        const JointId x = widened(in(0));
        const JointId mean = isRms ? noJoint : inner(statistics, DType::Float32, {x});
        const JointId variance = inner(statistics, DType::Float32, {x});
        const JointId deviation = inner(statistics, DType::Float32, {variance});
        const JointId centred = isRms ? x : inner(elements, DType::Float32, {x, mean});
        const JointId normal = inner(elements, DType::Float32, {centred, deviation});
        JointId made = normal;
        for (std::size_t i = 1; i < std::min<std::size_t>(isRms ? 2 : 3, m_op->inputs); ++i)
            made = inner(elements, DType::Float32, {made, in(i)});
        if (made == normal)
            made = inner(elements, DType::Float32, {normal});
        narrowed(made);
        if (m_op->inputs > 1)
            read(in(1));
        if (m_op->kind == Kind::LayerNorm) {
            read(normal);
            if (m_op->hasGradient)
                read(extra(statistics, DType::Float32, {deviation}));
            return;
        }
        read(isRms ? normal : x);
        read(deviation);
        if (!isRms)
            read(mean);
    }

    /// An operand as the product of backward reads it: transposed, a view.
    void readTransposed(JointId operand)
    {
        if (!m_op->hasGradient)
            return;
        const JointNode& node = at(operand);
        const JointId view = extra(node.bytes / elementBytes(node.dtype), node.dtype, {operand});
        at(view).isView = true;
        readWhole(view);
    }

    void writeProduct()
    {
        std::vector<JointId> inputs;
        for (const TensorId tensor : m_graph.inputs(*m_op))
            inputs.push_back(nodeOf(tensor));
        opaque();
        if (wants(1))
            readTransposed(inputs[0]);
        if (wants(0) && m_graph.storageOf(input(1)).source != Kind::Dequantize) // else it is made again
            readTransposed(inputs[1]);
    }

    /// _low_memory_max_pool_with_offsets: a byte for each result instead of an index.
    void writeMaxPool()
    {
        const JointId x = in(0);
        named(inner(outputElements(), outputType(), {x}));
        at(m_joint.ofTensor[output()]).isFusible = at(m_joint.ofTensor[output()]).isRecomputable = false;
        const JointId offsets = inner(outputElements(), DType::Int8, {x});
        at(offsets).isFusible = at(offsets).isRecomputable = false;
        read(offsets);
    }

    /// What no rule takes apart keeps what eager autograd keeps.
    void writeOpaque()
    {
        opaque();
        for (const TensorId tensor : m_graph.saved(*m_op))
            readWhole(nodeOf(tensor));
    }

    const Graph& m_graph;
    const CompiledRegions& m_regions;
    JointGraph& m_joint;
    const Operator* m_op = nullptr;
    std::uint32_t m_index = 0, m_region = CompiledRegions::none;
    JointId m_regionBegin = 0; ///< the first node of the operator's region
};

/// Tensors of copied operators are those of the operator that was copied; by tensor.
std::vector<TensorId> originalTensors(const Graph& graph, const std::vector<std::uint32_t>& originalOf)
{
    std::vector<TensorId> tensors(graph.tensors.size());
    for (TensorId i = 0; i < tensors.size(); ++i)
        tensors[i] = i;
    for (std::uint32_t i = 0; i < originalOf.size(); ++i) {
        if (originalOf[i] == i)
            continue;
        const auto own = graph.outputs(graph.operators[i]);
        const auto first = graph.outputs(graph.operators[originalOf[i]]);
        for (std::size_t k = 0; k < own.size(); ++k)
            tensors[own[k]] = first[k];
    }
    return tensors;
}

} // namespace

std::vector<CopiedOperators> outerLoops(const Graph& graph)
{
    std::vector<CopiedOperators> loops;
    for (const CopiedOperators& copied : graph.copies) {
        const bool isInner = std::any_of(graph.copies.begin(), graph.copies.end(), [&](const CopiedOperators& other) {
            return other.first - 3 * other.period <= copied.first && copied.last <= other.first;
        });
        if (!isInner)
            loops.push_back(copied);
    }
    return loops;
}

std::vector<std::uint32_t> originals(const Graph& graph, const std::vector<CopiedOperators>& loops)
{
    std::vector<std::uint32_t> result(graph.operators.size());
    auto copied = loops.begin();
    for (std::uint32_t i = 0; i < result.size(); ++i) {
        while (copied != loops.end() && i >= copied->last)
            ++copied;
        const bool isCopy = copied != loops.end() && i >= copied->first;
        result[i] = isCopy ? result[i - copied->period] : i;
    }
    return result;
}

JointGraph jointGraph(const Graph& graph, const CompiledRegions& regions)
{
    JointGraph joint;
    const std::vector<std::uint32_t> originalOf = originals(graph, outerLoops(graph));
    const std::vector<TensorId> tensors = originalTensors(graph, originalOf);
    JointWriter writer(graph, regions, joint);
    // What follows the copies reads the last of them: here it reads the original.
    const auto alias = [&](const Operator& op) {
        for (const TensorId tensor : graph.inputs(op))
            if (tensors[tensor] != tensor)
                joint.ofTensor[tensor] = joint.ofTensor[tensors[tensor]];
    };
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i) {
        const Operator& op = graph.operators[i];
        if (regions.ofOperator[i] == CompiledRegions::none || op.kind == Kind::Release)
            continue;
        if (originalOf[i] == i) {
            alias(op);
            writer.write(i);
            continue;
        }
        for (const TensorId tensor : graph.outputs(op))
            if (regions.isResult[tensor] && joint.ofTensor[tensors[tensor]] != noJoint)
                joint.nodes[joint.ofTensor[tensors[tensor]]].isOutput = true;
    }
    return joint;
}

} // namespace memscape
