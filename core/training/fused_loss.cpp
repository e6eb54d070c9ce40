// SPDX-License-Identifier: Apache-2.0
// What fused losses allocate. Liger's kernel, forward, in its order (fused_linear_cross_entropy_forward, 0.8.5):
//
//   the gradients of rows and matrix; 4 B a row of losses, 1 B of mask; then for each chunk
//     logits, which become their gradient in place; one buffer serves all chunks where nothing is cast
//     in fp32 a product as large as the matrix, which is added to its gradient
//     under autocast casts of rows and matrix for the logits, the matrix once more for the gradient of the rows
//     (which autocast keeps for the next chunk), that gradient, and the rows for the gradient of the matrix
//
// Backward hands on the two gradients. A loss in place (Unsloth's cross_entropy_loss.py, Megatron's
// tensor_parallel/cross_entropy.py) keeps the logits it is given and hands them on as their gradient. Cut
// cross-entropy's backward orders the vocabulary (argsort) and makes the gradients with a lock for every 128 rows and
// 64 columns (cce_backward.py). Of a vocabulary that devices divide, loss_parallel() computes in Python
// (grad_input + exp(log_probs)) * grad_output, where grad_input is as large and zero but for the targets
// (torch/distributed/tensor/parallel/loss.py, _nll_loss_and_log_softmax_backward, PyTorch 2.15): three such tensors
// beside the log-probabilities.
#include "core/training/fused_loss.h"

#include "core/base/rounding.h"
#include "core/training/autograd.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace memscape {

namespace {

bool needsCasts(const Graph& graph, const Operator& op)
{
    const auto differs = [&](TensorId tensor) { return graph.tensors[tensor].dtype != DType(op.attribute); };
    return differs(graph.inputs(op)[0]) || differs(graph.inputs(op)[1]);
}

} // namespace

LigerChunks ligerChunks(std::int64_t rows, std::int64_t hidden, std::int64_t vocabulary)
{
    if (rows < 1 || hidden < 1 || vocabulary < 1)
        return {};
    const std::int64_t wanted = quotientUp(rows, quotientUp(vocabulary, hidden));
    const std::int64_t chunk = std::min(std::int64_t(std::bit_ceil(std::uint64_t(wanted))), rows);
    return {chunk, quotientUp(rows, chunk)};
}

HeadShape headShape(const Graph& graph, const Operator& op)
{
    const Layout& rows = graph.layoutOf(graph.inputs(op)[0]);
    const Layout& matrix = graph.layoutOf(graph.inputs(op)[1]);
    return {rows[0], rows[1], matrix[0]};
}

void Autograd::runLigerLoss(const Operator& op)
{
    const auto outputs = m_graph.outputs(op);
    m_name = m_forwardNames[std::size_t(op.kind)];
    m_module = m_moduleIds[op.module];
    const HeadShape shape = headShape(m_graph, op);
    const LigerChunks chunks = ligerChunks(shape.rows, shape.hidden, shape.vocabulary);

    const TensorId matrix = m_graph.inputs(op)[1];
    const auto make = [&](std::size_t i) {
        const StorageId storage = m_graph.tensors[outputs[i]].storage;
        const bool isKept = i == 2 && m_isLeaf[matrix] && !m_parameterGradient[matrix] && !isReduced(matrix);
        m_bound[storage] =
            m_live.allocate(m_graph.storages[storage].bytes, isKept ? Category::Gradients : Category::Activations,
                            isKept ? m_gradientNames[matrix] : m_name,
                            isKept ? m_moduleIds[m_graph.storageOf(matrix).module] : m_module);
    };
    for (std::size_t i = 1; i < outputs.size(); ++i)
        make(i);
    const LiveId losses = scratch(shape.rows * 4), mask = scratch(shape.rows);
    m_live.release(scratch(8)); // how many targets count
    const LiveId logits = needsCasts(m_graph, op) ? 0 : ligerLogits(op, chunks.rows);
    LiveId cachedCast = 0;
    for (std::int64_t first = 0; first < shape.rows; first += chunks.rows)
        ligerChunk(op, std::min(chunks.rows, shape.rows - first), cachedCast);
    if (logits)
        m_live.release(logits);
    make(0);
    name(outputs[0]);
    for (const LiveId live : {cachedCast, losses, mask})
        if (live)
            m_live.release(live);
    pack(op);
    for (const TensorId output : outputs) // the operator's own reference ends
        m_live.release(m_bound[m_graph.tensors[output].storage]);
    if (m_units)
        m_units->ran();
}

LiveId Autograd::ligerLogits(const Operator& op, std::int64_t rows)
{
    return scratch(rows * headShape(m_graph, op).vocabulary * elementBytes(DType(op.attribute)));
}

void Autograd::ligerChunk(const Operator& op, std::int64_t rows, LiveId& cachedCast)
{
    const auto inputs = m_graph.inputs(op);
    const HeadShape shape = headShape(m_graph, op);
    const auto product = DType(op.attribute); // autocast's, else that of both
    const std::int64_t matrix = shape.vocabulary * shape.hidden, input = rows * shape.hidden;
    const bool isTrained = m_graph.outputs(op).size() > 2;
    const auto castOf = [&](std::size_t i, std::int64_t elements) {
        return m_graph.tensors[inputs[i]].dtype == product ? LiveId(0) : scratch(elements * elementBytes(product));
    };
    const auto end = [&](LiveId live) {
        if (live)
            m_live.release(live);
    };
    if (!needsCasts(m_graph, op)) {
        provideBlasWorkspace(m_module);
        if (isTrained && product == DType::Float32)
            end(scratch(matrix * 4));
        return;
    }
    const LiveId castMatrix = castOf(1, matrix), castInput = castOf(0, input), logits = ligerLogits(op, rows);
    provideBlasWorkspace(m_module);
    end(castMatrix), end(castInput);
    if (!cachedCast)
        cachedCast = castOf(1, matrix);
    const LiveId made = scratch(input * elementBytes(product)); // copied into the gradient of the rows
    if (!isTrained)
        end(std::exchange(cachedCast, 0)); // autocast keeps casts of trained weights
    end(made);
    if (isTrained)
        end(castOf(0, input));
    end(logits);
}

void Autograd::ligerBackward(const Operator& op)
{
    m_live.release(scratch(4)); // torch.tensor(1.0), which the given gradient is compared with
    const std::uint32_t first = op.first + op.inputs + op.outputs;
    for (std::uint32_t i = 0; i < op.saved; ++i) {
        const TensorId input = m_graph.inputs(op)[i];
        if (!wants(input))
            continue;
        m_live.retain(m_saved[first + i]);
        m_results[i] = {m_saved[first + i], m_graph.tensors[input].dtype, Layout(layoutOf(input).shape)};
    }
}

/// The gradient is the logits that were kept.
void Autograd::inPlaceLossBackward(const Operator& op)
{
    const TensorId logits = m_graph.inputs(op)[0];
    const LiveId kept = m_saved[op.first + op.inputs + op.outputs];
    m_live.retain(kept);
    m_results[0] = {kept, m_graph.tensors[logits].dtype, Layout(layoutOf(logits).shape)};
}

void Autograd::dividedLossBackward(const Operator& op)
{
    const TensorId logProbabilities = m_graph.inputs(op)[0];
    const Layout layout(layoutOf(logProbabilities).shape);
    const DType dtype = m_graph.tensors[logProbabilities].dtype;
    const std::int64_t bytes = layout.elements() * elementBytes(dtype);
    const LiveId targets = scratch(bytes), exponentials = scratch(bytes), sum = scratch(bytes);
    m_live.release(exponentials);
    m_results[0] = freshFor(logProbabilities, layout, dtype);
    m_live.release(sum);
    m_live.release(targets);
}

void Autograd::cutBackward(const Operator& op)
{
    const auto inputs = m_graph.inputs(op);
    const HeadShape shape = headShape(m_graph, op);
    const LiveId sorted = scratch(shape.vocabulary * 4), indices = scratch(shape.vocabulary * 8);
    const LiveId order = scratch(shape.vocabulary * 4);
    m_live.release(sorted);
    m_live.release(indices);
    for (std::size_t i = 0; i < 2; ++i)
        if (wants(inputs[i]))
            m_results[i] = freshFor(inputs[i], Layout(layoutOf(inputs[i]).shape), m_graph.tensors[inputs[i]].dtype);
    for (const std::int64_t count : {shape.rows, shape.vocabulary})
        m_live.release(scratch(quotientUp(count, 128) * quotientUp(shape.hidden, 64) * 4));
    m_live.release(order);
}

} // namespace memscape
