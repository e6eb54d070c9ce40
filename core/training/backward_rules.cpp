// SPDX-License-Identifier: Apache-2.0
// What each node of the autograd graph allocates, after tools/autograd/derivatives.yaml and
// torch/csrc/autograd/FunctionsManual.cpp: the gradients of its inputs, in the order of the names
// of the operator's arguments, and the temporaries of composite formulas, which live until the end
// of their C++ expression.
#include "core/training/autograd.h"

#include "core/base/rounding.h"

#include <algorithm>

namespace memscape {

namespace {

using Kind = OperatorKind;

/// Temporaries of the formula beside its result.
int temporaries(Kind kind)
{
    switch (kind) {
    case Kind::Power:          // grad * (2 * x.pow(1))
    case Kind::ReciprocalRoot: // -0.5 * grad * result.pow(3)
        return 2;
    case Kind::SquareRoot: // grad / (2 * result)
        return 1;
    default: return 0;
    }
}

} // namespace

// --- what rules are written with ------------------------------------------------------------------

Autograd::Gradient Autograd::fresh(const Layout& layout, DType dtype)
{
    const std::int64_t bytes = layout.elements() * elementBytes(dtype);
    return {m_live.allocate(bytes, Category::Temporary, m_name, m_module), dtype, layout};
}

Autograd::Gradient Autograd::freshFor(TensorId input, const Layout& layout, DType dtype)
{
    const bool isParameter = m_graph.storageOf(input).role == Role::Parameter; // not what a pipeline's rank was sent
    const bool isKept = isParameter && m_isLeaf[input] && !m_parameterGradient[input] && !isReduced(input);
    if (!isKept)
        return fresh(layout, dtype);
    const std::int64_t bytes = layout.elements() * elementBytes(dtype);
    const ModuleId module = m_moduleIds[m_graph.storageOf(input).module];
    return {m_live.allocate(bytes, Category::Gradients, m_gradientNames[input], module), dtype, layout};
}

Autograd::Gradient Autograd::alias(const Gradient& given)
{
    m_live.retain(given.live);
    return given;
}

Autograd::Gradient Autograd::viewOf(const Gradient& given, const Layout& layout)
{
    m_live.retain(given.live);
    return {given.live, given.dtype, layout, true};
}

void Autograd::drop(Gradient& gradient)
{
    m_live.release(gradient.live);
    gradient.live = 0;
}

Autograd::Gradient Autograd::elementwise(const Gradient& given, TensorId other)
{
    const Layout& factor = layoutOf(other);
    const DType dtype = m_graph.tensors[other].dtype;
    const std::array<const Layout*, 2> like{&given.layout, &factor};
    const auto shape = Shape::broadcast(given.layout.shape, factor.shape);
    const std::int64_t size = elementBytes(dtype), givenSize = elementBytes(given.dtype);
    const bool isWider = factor.rank() > 0 && isFloating(dtype) && size > givenSize;
    // A CPU's kernels cast the operand of the smaller type first.
    const bool isCast = m_rules.isOnCpu && factor.rank() > 0 && isFloating(dtype) && size != givenSize;
    const LiveId cast = isCast ? scratch(isWider ? given.layout.elements() * size : factor.elements() * givenSize) : 0;
    const Gradient result =
        fresh(elementwiseLayout(shape ? *shape : given.layout.shape, like), isWider ? dtype : given.dtype);
    if (cast)
        m_live.release(cast);
    return result;
}

Autograd::Gradient Autograd::elementwiseAfter(int count, const Gradient& given, TensorId other)
{
    std::array<Gradient, 3> before;
    for (int i = 0; i < count; ++i)
        before[std::size_t(i)] = elementwise(given, other);
    const Gradient result = elementwise(given, other);
    for (int i = count - 1; i >= 0; --i)
        drop(before[std::size_t(i)]);
    return result;
}

void Autograd::reshape(Gradient& gradient, const Shape& shape)
{
    if (const auto view = gradient.layout.viewed(shape)) {
        gradient.layout = *view;
        gradient.isView = true;
        return;
    }
    Gradient copy = fresh(Layout(shape), gradient.dtype);
    drop(gradient);
    gradient = copy;
}

// --- the rules ------------------------------------------------------------------------------------

void Autograd::applyRule(const Operator& op, Gradient& given)
{
    if (viewBackward(op, given) || elementwiseBackward(op, given) || binaryBackward(op, given)
        || productBackward(op, given) || normBackward(op, given))
        return;
    const auto inputs = m_graph.inputs(op);
    if (isAttentionKernel(op.kind)) {
        attentionBackward(op, given);
        return;
    }
    if (op.kind == Kind::LigerLoss)
        return ligerBackward(op);
    if (op.kind == Kind::CutLoss)
        return cutBackward(op);
    if (op.kind == Kind::InPlaceLoss)
        return inPlaceLossBackward(op);
    if (op.kind == Kind::NllLoss && op.attribute > 0)
        return dividedLossBackward(op);
    // Lookups, pooling and losses: one gradient of the whole input.
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (wants(inputs[i]))
            m_results[i] = freshFor(inputs[i], Layout(layoutOf(inputs[i]).shape), m_graph.tensors[inputs[i]].dtype);
    }
    if (op.kind == Kind::Embedding && m_rules.isOnCpu)
        embeddingScratch(op, given);
    const bool scatters = op.kind == Kind::Gather || op.kind == Kind::Maximum;
    if (scatters && m_rules.isOnCpu && !m_rules.isBefore2
        && elementBytes(given.dtype) < 4) // scatter_add sums in float, since 2.0
        m_live.release(scratch(layoutOf(inputs[0]).elements() * 4));
}

bool Autograd::viewBackward(const Operator& op, const Gradient& given)
{
    const TensorId input = m_graph.operands[op.first];
    Gradient& result = m_results[0];
    switch (op.kind) {
    case Kind::View:
        result = alias(given);
        reshape(result, layoutOf(input).shape);
        return true;
    case Kind::Permute: {
        std::array<int, maxRank> inverse{};
        const int rank = layoutOf(input).rank();
        for (int i = 0; i < rank; ++i)
            inverse[std::size_t((op.attribute >> (4 * i)) & 15)] = i;
        result = viewOf(given, given.layout.permuted({inverse.data(), std::size_t(rank)}));
        return true;
    }
    case Kind::AllReduce:
    case Kind::Expand: // summed by validate()
    case Kind::Clone:
    case Kind::Shift: result = alias(given); return true;
    case Kind::Narrow:
    case Kind::Select: result = freshFor(input, Layout(layoutOf(input).shape), given.dtype); return true;
    case Kind::Cast: {
        const Layout* const like = &given.layout;
        result = freshFor(input, elementwiseLayout(given.layout.shape, {&like, 1}), m_graph.tensors[input].dtype);
        return true;
    }
    case Kind::Cat:
    case Kind::Stack: {
        const auto inputs = m_graph.inputs(op);
        const int at = int(op.attribute);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (!wants(inputs[i]))
                continue;
            m_results[i] = viewOf(given,
                                  op.kind == Kind::Stack ? given.layout.selected(at)
                                                         : given.layout.narrowed(at, layoutOf(inputs[i])[at]));
        }
        return true;
    }
    case Kind::Sum:
    case Kind::Mean: {
        const Layout& whole = layoutOf(input);
        Layout spread = given.layout;
        if (spread.rank() + 1 == whole.rank() && op.attribute >= 0)
            spread = spread.unsqueezed(int(op.attribute));
        spread = spread.expanded(whole.shape);
        const Layout* const like = &spread;
        result = op.kind == Kind::Sum ? viewOf(given, spread)
                                      : meanBackward(input, elementwiseLayout(whole.shape, {&like, 1}), given);
        return true;
    }
    default: return false;
    }
}

bool Autograd::elementwiseBackward(const Operator& op, const Gradient& given)
{
    const TensorId input = m_graph.operands[op.first];
    if (op.kind == Kind::MaskedFill || op.kind == Kind::Where || op.kind == Kind::Dropout) {
        const Layout* const like = &given.layout;
        const bool hasNumber = m_rules.isOnCpu && op.kind == Kind::Where; // where(mask, grad, 0)
        const LiveId number = hasNumber ? scratch(elementBytes(given.dtype)) : 0;
        m_results[0] = fresh(elementwiseLayout(given.layout.shape, {&like, 1}), given.dtype);
        if (number)
            m_live.release(number);
        return true;
    }
    if (op.kind == Kind::Other && op.attribute > 0) {
        m_results[0] = elementwiseAfter(int(op.attribute), given, input);
        return true;
    }
    if (op.kind == Kind::LogSoftmax && op.attribute > 0) { // nll_loss has made it (fused_loss.cpp)
        m_results[0] = alias(given);
        return true;
    }
    if (op.kind == Kind::Softmax || op.kind == Kind::LogSoftmax) {
        m_results[0] = freshFor(input, Layout(given.layout.shape), m_graph.tensors[input].dtype);
        if (op.kind == Kind::Softmax && m_rules.softmaxHasProduct)
            m_live.release(scratch(given.layout.elements() * elementBytes(given.dtype)));
        return true;
    }
    if (op.kind < Kind::Scale || op.kind > Kind::Softplus)
        return false;
    if (m_rules.isOnCpu && numberBackward(op, given))
        return true;
    const TensorId other = op.saved > 0 ? m_graph.saved(op)[0] : input;
    const int count = op.kind == Kind::Square ? temporaries(Kind::Power) : temporaries(op.kind);
    m_results[0] = elementwiseAfter(count, given, other);
    return true;
}

bool Autograd::binaryBackward(const Operator& op, const Gradient& given)
{
    if (op.kind < Kind::Add || op.kind > Kind::Divide)
        return false;
    const auto inputs = m_graph.inputs(op);
    const bool isProduct = op.kind == Kind::Multiply || op.kind == Kind::Divide;
    // "other" comes before "self" in the generated code of products, after it in sums.
    if (isProduct && wants(inputs[1]))
        m_results[1] =
            op.kind == Kind::Multiply ? elementwise(given, inputs[0]) : elementwiseAfter(3, given, inputs[0]);
    if (wants(inputs[0]))
        m_results[0] = isProduct ? elementwise(given, inputs[1]) : alias(given);
    if (!isProduct && wants(inputs[1]))
        m_results[1] = op.kind == Kind::Add ? alias(given) : elementwise(given, m_graph.outputs(op)[0]);
    return true;
}

// What was gathered from other devices or dequantized was not packed: it is made once more. A weight in 8 bits is made
// in the type of the gradient.
Autograd::Gradient Autograd::remade(TensorId operand, DType dtype)
{
    if (m_graph.tensors[operand].dtype == DType::Int8)
        return fresh(layoutOf(operand), dtype);
    const Kind source = m_graph.storageOf(operand).source;
    if (source != Kind::AllGather && source != Kind::Dequantize)
        return {};
    const LiveId half = source == Kind::Dequantize ? halfCopy(operand, m_name, m_module) : 0;
    Gradient made = fresh(layoutOf(operand), m_graph.tensors[operand].dtype);
    if (half)
        m_live.release(half);
    return made;
}

LiveId Autograd::halfCopy(TensorId dequantized, NameId name, ModuleId module)
{
    if (!m_graph.dequantizesInHalf || m_graph.tensors[dequantized].dtype == DType::Float16)
        return 0;
    return m_live.allocate(2 * layoutOf(dequantized).elements(), Category::Temporary, name, module);
}

namespace {

/// Rows or columns of it lie side by side; another matrix, such as the expanded gradient of a sum, is copied for each
/// product (prepare_matrix_for_cublas and prepare_batch_matrix_for_cublas, aten/src/ATen/native/cuda/Blas.cpp).
bool isTakenByBlas(const Layout& matrix)
{
    const int rank = matrix.rank();
    return rank < 2 || matrix.strides[std::size_t(rank - 1)] == 1 || matrix.strides[std::size_t(rank - 2)] == 1;
}

} // namespace

bool Autograd::productBackward(const Operator& op, Gradient& given)
{
    const auto inputs = m_graph.inputs(op);
    const auto make = [&](std::size_t i) {
        if (!wants(inputs[i]))
            return;
        Gradient other = i < 2 ? remade(inputs[1 - i], given.dtype) : Gradient();
        m_results[i] = freshFor(inputs[i], Layout(layoutOf(inputs[i]).shape), given.dtype);
        if (!m_rules.isOnCpu && isMatrixProduct(op.kind) && !isTakenByBlas(given.layout))
            m_live.release(scratch(given.layout.elements() * elementBytes(given.dtype)));
        if (isMatrixProduct(op.kind))
            provideBlasWorkspace(m_module);
        if (other.live)
            drop(other);
        // A linear layer sees its input as rows: the gradient is seen as the input again.
        m_results[i].isView = (op.kind == Kind::Mm || op.kind == Kind::Addmm) && layoutOf(inputs[i]).rank() > 2;
        if (m_rules.isOnCpu && i == 1 && op.kind != Kind::Bmm) // of weight.t(): turned around again
            m_results[i].isView = true;
    };
    switch (op.kind) {
    case Kind::Bmm: make(1), make(0); return true;
    case Kind::Convolution:
        if (m_rules.isOnCpu) {
            convolutionBackward(op, given);
            return true;
        }
        for (std::size_t i = 0; i < inputs.size(); ++i)
            make(i);
        return true;
    case Kind::Mm:
    case Kind::Addmm: {
        const std::int64_t columns = given.layout.shape.last();
        const std::int64_t rows = columns > 0 ? given.layout.elements() / columns : 0;
        reshape(given, {rows, columns});
        if (op.kind == Kind::Mm) {
            make(1), make(0);
        } else {
            if (wants(inputs[2]))
                m_results[2] = alias(given); // validate() sums it over the rows
            make(0), make(1);
        }
        return true;
    }
    default: return false;
    }
}

bool Autograd::normBackward(const Operator& op, const Gradient& given)
{
    if (op.kind < Kind::LayerNorm || op.kind > Kind::BatchNorm)
        return false;
    const auto inputs = m_graph.inputs(op);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (wants(inputs[i]))
            m_results[i] = freshFor(inputs[i], Layout(layoutOf(inputs[i]).shape),
                                    i == 0 ? given.dtype : m_graph.tensors[inputs[i]].dtype);
    if (m_rules.isOnCpu)
        normScratch(op);
    return true;
}

// FlashAttention 2 (flash_attn/flash_api.cpp, mha_bwd) keeps the row sums of dO · O over blocks of 128
// rows and accumulates dq in float; fewer key and value heads get expanded gradients first.
void Autograd::flashScratch(const Layout& q, const Layout& k, DType dtype)
{
    const std::int64_t rows = q[0] * q[1] * roundedUp(q[2], 128);
    const LiveId sums = scratch(rows * 4), gradient = scratch(rows * roundedUp(q[3], 32) * 4);
    expandedScratch(q, k, dtype);
    m_live.release(gradient);
    m_live.release(sums);
}

/// Gradients of keys and values for each query head, which are summed over the heads that share them; the
/// memory-efficient kernel has them since PyTorch 2.14 (pull request 191085).
void Autograd::expandedScratch(const Layout& q, const Layout& k, DType dtype)
{
    if (k[1] == q[1])
        return;
    const std::int64_t expanded = k[0] * k[2] * q[1] * k[3] * elementBytes(dtype);
    const LiveId keys = scratch(expanded), values = scratch(expanded);
    m_live.release(values);
    m_live.release(keys);
}

// The memory-efficient kernel (mem_eff_attention/kernel_backward.h) keeps the row sums of dO · O, which
// only its form for halves computes itself, and accumulates dq in float tiles with a lock of 16 bytes.
void Autograd::efficientScratch(const Layout& q, DType dtype)
{
    const bool isHalf = elementBytes(dtype) < 4;
    const std::int64_t heads = q[0] * q[1], rows = heads * q[2], width = q[3];
    const std::int64_t tile = isHalf && width > 64 && width <= 128 ? 128 : 64;
    const LiveId product = isHalf ? 0 : scratch(rows * width * 4), sum = isHalf ? 0 : scratch(rows * 4);
    const LiveId sums = scratch(rows * 4);
    for (const LiveId used : {product, sum})
        if (used)
            m_live.release(used);
    const std::int64_t tiles = heads * quotientUp(q[2], tile) * quotientUp(width, tile);
    m_live.release(scratch(tiles * (tile * tile * 4 + 16)));
    m_live.release(sums);
}

LiveId Autograd::scratch(std::int64_t bytes)
{
    return m_live.allocate(bytes, Category::Workspace, m_name, m_module);
}

/// Ranks that share a sequence pass keys and values round (Liu et al. 2023; Transformer Engine's p2p): one block is
/// computed with while the next arrives.
void Autograd::ringScratch(const Operator& op, bool isBackward)
{
    if (!isAttentionKernel(op.kind) || attentionRanks(op.attribute) == 1)
        return;
    const auto bytes = [&](TensorId tensor) {
        return layoutOf(tensor).elements() * elementBytes(m_graph.tensors[tensor].dtype);
    };
    const auto inputs = m_graph.inputs(op);
    const std::int64_t block = bytes(inputs[1]) + bytes(inputs[2]);
    const std::int64_t rest =
        isBackward ? 2 * block : bytes(m_graph.outputs(op)[0]); // gradients, or a part of the result
    const auto& names = isBackward ? m_backwardNames : m_forwardNames;
    m_live.release(
        m_live.allocate(2 * block + rest, Category::Workspace, names[std::size_t(op.kind)], m_moduleIds[op.module]));
}

void Autograd::attentionBackward(const Operator& op, const Gradient& given)
{
    const auto inputs = m_graph.inputs(op);
    for (std::size_t i = 0; i < 3; ++i) {
        const Shape shape = layoutOf(inputs[i]).shape;
        const Layout dense = Layout(Shape{shape[0], shape[2], shape[1], shape[3]});
        m_results[i] = freshFor(inputs[i], dense.transposed(1, 2), given.dtype);
    }
    ringScratch(op, true);
    if (m_rules.isOnCpu)
        attentionTiles(layoutOf(inputs[0]), layoutOf(inputs[1]), given.dtype);
    else if (op.kind == Kind::FlashAttention)
        flashScratch(layoutOf(inputs[0]), layoutOf(inputs[1]), given.dtype);
    else {
        expandedScratch(layoutOf(inputs[0]), layoutOf(inputs[1]), given.dtype);
        efficientScratch(layoutOf(inputs[0]), given.dtype);
    }
}

} // namespace memscape
