// SPDX-License-Identifier: Apache-2.0
#include "core/timing/operator_cost.h"

#include "core/training/fused_loss.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

double elements(const Graph& graph, TensorId tensor)
{
    return double(graph.layoutOf(tensor).elements());
}

/// Bytes that reading or writing a tensor moves; a broadcast one is no larger than its storage.
double bytesOf(const Graph& graph, TensorId tensor)
{
    const double dense = elements(graph, tensor) * double(elementBytes(graph.tensors[tensor].dtype));
    return std::min(dense, double(graph.storageOf(tensor).bytes));
}

double bytesOf(const Graph& graph, std::span<const TensorId> tensors)
{
    double sum = 0;
    for (const TensorId tensor : tensors)
        sum += bytesOf(graph, tensor);
    return sum;
}

bool isLookup(OperatorKind kind)
{
    return kind >= OperatorKind::Embedding && kind <= OperatorKind::Gather;
}

bool isProduct(OperatorKind kind)
{
    return (kind >= OperatorKind::Addmm && kind <= OperatorKind::Convolution) || isAttentionKernel(kind);
}

/// Nothing runs on the device.
bool isFree(OperatorKind kind)
{
    return kind == OperatorKind::Release || kind == OperatorKind::Receive || isView(kind) || isCollective(kind);
}

double productFlops(const Graph& graph, const Operator& op)
{
    const auto inputs = graph.inputs(op);
    const double results = elements(graph, graph.outputs(op)[0]);
    const Layout& x = graph.layoutOf(inputs[0]);
    const Layout& y = graph.layoutOf(inputs[1]);
    if (isAttentionKernel(op.kind))
        return 4 * double(x.elements()) * double(y[2])
            * double(attentionRanks(op.attribute)); // (B, H, S, D) against S_k keys, those of a ring one by one
    if (op.kind == OperatorKind::Convolution)
        return 2 * results * double(y.elements()) / double(std::max<std::int64_t>(y[0], 1));
    return 2 * results * double(x.shape.last());
}

std::int64_t groupsOf(const Operator& convolution)
{
    return std::max<std::int64_t>(convolution.attribute, 1);
}

/// Groups too narrow for tiles: it multiplies element by element.
bool isDirect(const Graph& graph, const Operator& op)
{
    constexpr std::int64_t leastChannels = 16;
    return op.kind == OperatorKind::Convolution
        && graph.layoutOf(graph.outputs(op)[0])[1] / groupsOf(op) < leastChannels;
}

/// 36 multiplications of four neighbours' windows by 16.
double winogradSaves(const Layout& x, const Layout& kernels, const Layout& result, std::int64_t groups)
{
    const bool isSquare = x.rank() == 4 && kernels[2] == 3 && kernels[3] == 3;
    const bool hasStride = isSquare && (result[2] + 2 < x[2] || result[3] + 2 < x[3]);
    return isSquare && !hasStride && groups == 1 ? 36.0 / 16 : 1;
}

/// x (N, C, …) with kernels (C_out, C / groups, …): every position is a row.
ProductPart convolutionPart(const Graph& graph, const Operator& op)
{
    const TensorId x = graph.inputs(op)[0];
    const Layout& kernels = graph.layoutOf(graph.inputs(op)[1]);
    const Layout& result = graph.layoutOf(graph.outputs(op)[0]);
    const std::int64_t groups = groupsOf(op), channels = result[1] / groups;
    if (isDirect(graph, op) || kernels[0] == 0 || kernels[1] == 0)
        return {};
    const std::int64_t quantum = std::max<std::int64_t>(1, 16 / elementBytes(graph.tensors[x].dtype));
    const std::int64_t padded = (kernels[1] + quantum - 1) / quantum * quantum;
    return {HostOperation::Forward,
            {double(result.elements()) / double(result[1]), double(channels), double(padded) * windowSize(kernels)},
            double(groups),
            true,
            winogradSaves(graph.layoutOf(x), kernels, result, groups)};
}

/// Rows of a matrix product's operands and results, `columns` long, start at multiples of 16 bytes. Inductor pads them
/// to (torch/_inductor/fx_passes/pad_mm.py; by default since PyTorch 2.1, torch/_inductor/config.py, shape_padding).
bool isAligned(const Graph& graph, const Operator& op, double columns)
{
    const std::int64_t bytes = std::int64_t(columns) * elementBytes(graph.tensors[graph.inputs(op)[0]].dtype);
    return graph.padsProducts || bytes % 16 == 0;
}

/// A matrix product C (m × n) = A (m × k) · B; batched ones many times.
ProductPart productPart(const Graph& graph, const Operator& op)
{
    if (op.kind == OperatorKind::Convolution)
        return convolutionPart(graph, op);
    if (!isMatrixProduct(op.kind))
        return {};
    const Layout& x = graph.layoutOf(graph.inputs(op)[0]);
    const Layout& result = graph.layoutOf(graph.outputs(op)[0]);
    const double count = op.kind == OperatorKind::Bmm ? double(std::max<std::int64_t>(result[0], 1)) : 1;
    const double n = double(std::max<std::int64_t>(result.shape.last(), 1));
    const double k = double(x.shape.last());
    return {HostOperation::Forward,
            {double(result.elements()) / n / count, n, k},
            count,
            isAligned(graph, op, n) && isAligned(graph, op, k)};
}

/// dA = dC · Bᵀ for the first operand, dB = Aᵀ · dC (the transpose for weights) for the second. Of a convolution the
/// first sums up a window of all channels for each of C_in.
ProductPart gradientPart(const ProductPart& forward, std::size_t operand, double window)
{
    const auto& [m, n, k] = forward.shape;
    if (operand == 0)
        return {
            HostOperation::InputGradient, {m, k / window, n * window}, forward.count, forward.isAligned, forward.saved};
    return {HostOperation::WeightGradient, {n, k, m}, forward.count, forward.isAligned};
}

/// q (B, H, S, D) against keys and values of as many or fewer heads.
std::optional<AttentionProblem> attentionPart(const Graph& graph, const Operator& op, AttentionPass pass)
{
    if (!isAttentionKernel(op.kind))
        return std::nullopt;
    const Layout& q = graph.layoutOf(graph.inputs(op)[0]);
    const Layout& k = graph.layoutOf(graph.inputs(op)[1]);
    AttentionProblem problem;
    const bool isCausal = isCausalAttention(op.attribute);
    const std::int64_t ranks = attentionRanks(op.attribute);
    problem.shape = {q[0], q[1], k[1], q[2], k[2], q[3], isCausal && ranks == 1 && k[2] >= q[2]};
    if (ranks > 1) // a rank's queries lie early and late: half of all keys, one block after the other
        problem.shape.keys = ranks * k[2] / (isCausal ? 2 : 1);
    problem.dtype = graph.tensors[graph.inputs(op)[0]].dtype;
    problem.pass = pass;
    return problem;
}

/// A product of pictures as they lie in NCHW: windows of one pixel each, whose rows tensor cores load 16 bytes at a
/// time.
bool isPointwise(const Graph& graph, const Operator& convolution)
{
    const Layout& x = graph.layoutOf(graph.inputs(convolution)[0]);
    const Layout& result = graph.layoutOf(graph.outputs(convolution)[0]);
    const std::int64_t pixels = x[2] * x[3], each = elementBytes(graph.tensors[graph.inputs(convolution)[0]].dtype);
    return groupsOf(convolution) == 1 && windowSize(graph.layoutOf(graph.inputs(convolution)[1])) == 1
        && result[2] * result[3] == pixels && pixels * each % 16 == 0;
}

/// B that copies between NCHW and NHWC move for so many of a convolution. Pictures of a few channels are turned while
/// they are padded.
double turnedBytes(const Graph& graph, const Operator& op, double bytes)
{
    if (op.kind != OperatorKind::Convolution || isDirect(graph, op))
        return 0;
    const Layout& x = graph.layoutOf(graph.inputs(op)[0]);
    return x.rank() == 4 && x[1] >= 16 && !isPointwise(graph, op) ? 2 * bytes : 0;
}

/// What a group norm turns in NHWC: its operand and its result.
void turnNorm(const Graph& graph, const Operator& op, OperatorCost& cost)
{
    const TensorId x = graph.inputs(op)[0];
    if (op.kind == OperatorKind::GroupNorm && graph.layoutOf(x).rank() == 4)
        cost.turnedInNhwc = 2 * (bytesOf(graph, x) + bytesOf(graph, graph.outputs(op)[0]));
}

/// A training's batch norm of pictures in NCHW (cuDNN): a block for each channel.
void waitByChannels(const Graph& graph, const Operator& op, bool isBackward, OperatorCost& cost)
{
    constexpr double kept = 64 * channelThreads; // an element in each of 64 registers
    const Layout& x = graph.layoutOf(graph.inputs(op)[0]);
    if (op.kind != OperatorKind::BatchNorm || !op.hasGradient || x.rank() != 4 || x[1] == 0)
        return;
    const double ofChannel = double(x.elements()) / double(x[1]);
    if (ofChannel <= kept)
        return;
    cost.blocks = double(x[1]);
    cost.roundTrips = (isBackward ? 3 : 2) * std::ceil(ofChannel / channelThreads);
}

/// Bytes of a view's backward: parts that are joined, or one that is put into zeros.
double viewBackwardBytes(const Graph& graph, const Operator& op)
{
    const double whole = bytesOf(graph, graph.inputs(op)[0]);
    if (op.kind == OperatorKind::Split)
        return 2 * whole;
    if (op.kind == OperatorKind::Narrow || op.kind == OperatorKind::Select)
        return whole + 2 * bytesOf(graph, graph.outputs(op)[0]);
    return 0;
}

/// Beyond one reading of each input, forward, and of gradient and saved tensors, backward.
double normBytes(const Graph& graph, const Operator& op, bool isBackward)
{
    const bool spansPixels = op.kind == OperatorKind::BatchNorm || op.kind == OperatorKind::GroupNorm;
    const bool isNorm = spansPixels || op.kind == OperatorKind::LayerNorm || op.kind == OperatorKind::RmsNorm;
    const double x = bytesOf(graph, graph.inputs(op)[0]);
    if (!isNorm)
        return 0;
    const bool hasStatistics = op.kind == OperatorKind::BatchNorm && !op.hasGradient; // of the training
    return isBackward ? 2 * x : spansPixels && !hasStatistics ? x : 0;
}

/// sum[rows] += x (index_add_): x, or noTensor. x is shorter than the sum, and no broadcast one.
TensorId addedRows(const Graph& graph, const Operator& op)
{
    if (op.kind != OperatorKind::Add || !op.inPlace)
        return noTensor;
    const TensorId x = graph.inputs(op)[1];
    const Layout &sum = graph.layoutOf(graph.inputs(op)[0]), &rows = graph.layoutOf(x);
    const bool isShorter = sum.rank() == rows.rank() && rows[0] > 1 && rows[0] < sum[0];
    return isShorter ? x : noTensor;
}

/// Operands that a product's backward makes gradients of, a bias apart.
int wantedOperands(const Graph& graph, const Operator& op)
{
    const std::size_t operands = isAttentionKernel(op.kind) ? 3 : 2;
    const auto inputs = graph.inputs(op);
    int wanted = 0;
    for (std::size_t i = 0; i < std::min(operands, inputs.size()); ++i)
        wanted += graph.tensors[inputs[i]].needsGradient;
    return wanted;
}

OperatorCost productBackward(const Graph& graph, const Operator& op)
{
    const auto inputs = graph.inputs(op);
    const double given = bytesOf(graph, graph.outputs(op)[0]);
    OperatorCost cost;
    cost.isProduct = true;
    cost.isConvolution = cost.mayUseTf32 = op.kind == OperatorKind::Convolution;
    cost.dtype = graph.tensors[inputs[0]].dtype;
    const int wanted = wantedOperands(graph, op);
    if (wanted == 0)
        return cost;
    if (isAttentionKernel(op.kind)) { // one kernel for dq, dk, dv that computes the scores again
        cost.flops = 2.5 * productFlops(graph, op);
        cost.bytes = 2 * bytesOf(graph, inputs) + 2 * given;
        cost.kernels = 2;
        cost.attention = attentionPart(graph, op, AttentionPass::Backward);
        cost.isFirstGeneration = op.kind == OperatorKind::EfficientAttention;
        return cost;
    }
    const double window = op.kind == OperatorKind::Convolution ? windowSize(graph.layoutOf(inputs[1])) : 1;
    for (std::size_t i = 0; i < 2; ++i) {
        if (!graph.tensors[inputs[i]].needsGradient)
            continue;
        cost.flops += productFlops(graph, op);
        cost.products[i] = gradientPart(productPart(graph, op), i, window);
        cost.instructions += isDirect(graph, op) ? productFlops(graph, op) / 2 * (i == 0 ? 14 : 32) : 0;
        cost.bytes += given + bytesOf(graph, inputs[0]) + bytesOf(graph, inputs[1]);
        ++cost.kernels;
    }
    if (inputs.size() > 2 && graph.tensors[inputs[2]].needsGradient) { // the bias: a sum of rows
        cost.bytes += given;
        ++cost.kernels;
    }
    cost.turned = turnedBytes(graph, op, cost.bytes);
    return cost;
}

double headFlops(const HeadShape& shape)
{
    return 2 * double(shape.rows) * double(shape.vocabulary) * double(shape.hidden);
}

/// Logits are written, read and overwritten by the loss, and read by two products; every chunk reads the matrix for
/// each and adds to its gradient.
OperatorCost ligerCost(const Graph& graph, const Operator& op)
{
    const HeadShape shape = headShape(graph, op);
    const auto inputs = graph.inputs(op);
    const double products = 2 + double(graph.outputs(op).size() > 2);
    const auto chunks = double(ligerChunks(shape.rows, shape.hidden, shape.vocabulary).count);
    const double logits = double(shape.rows) * double(shape.vocabulary) * double(elementBytes(DType(op.attribute)));
    const double matrix = bytesOf(graph, inputs[1]);
    OperatorCost cost;
    cost.isProduct = true;
    cost.dtype = DType(op.attribute);
    cost.flops = products * headFlops(shape);
    cost.bytes =
        (products + 2) * logits + chunks * matrix * (products > 2 ? 4 : 2) + products * bytesOf(graph, inputs[0]);
    cost.kernels = chunks * (products + 1);
    return cost;
}

/// One kernel that goes through the logits tile by tile, `products` times.
OperatorCost cutCost(const Graph& graph, const Operator& op, int products)
{
    OperatorCost cost;
    cost.isProduct = true;
    cost.dtype = graph.tensors[graph.inputs(op)[0]].dtype;
    cost.flops = products * headFlops(headShape(graph, op));
    cost.bytes = products * bytesOf(graph, graph.inputs(op));
    cost.kernels = 1;
    return cost;
}

} // namespace

double windowSize(const Layout& kernels)
{
    return double(kernels.elements()) / double(std::max<std::int64_t>(kernels[0] * kernels[1], 1));
}

OperatorCost forwardCost(const Graph& graph, const Operator& op)
{
    if (isFree(op.kind))
        return {};
    if (op.kind == OperatorKind::LigerLoss)
        return ligerCost(graph, op);
    if (op.kind == OperatorKind::CutLoss)
        return cutCost(graph, op, 1);
    const auto inputs = graph.inputs(op);
    const auto outputs = graph.outputs(op);
    OperatorCost cost;
    cost.kernels = 1;
    cost.bytes = bytesOf(graph, outputs);
    if (isProduct(op.kind)) {
        cost.flops = productFlops(graph, op);
        cost.bytes += bytesOf(graph, inputs);
        cost.isProduct = true;
        cost.products[0] = productPart(graph, op);
        cost.attention = attentionPart(graph, op, AttentionPass::Forward);
        cost.isFirstGeneration = op.kind == OperatorKind::EfficientAttention;
        cost.isConvolution = cost.mayUseTf32 = op.kind == OperatorKind::Convolution;
        cost.turned = turnedBytes(graph, op, cost.bytes);
        cost.instructions = isDirect(graph, op) ? cost.flops / 2 * 10 : 0;
        cost.dtype = graph.tensors[inputs[0]].dtype;
        return cost;
    }
    if (const TensorId rows = addedRows(graph, op); rows != noTensor)
        return {elements(graph, rows), 3 * bytesOf(graph, rows), 1};
    for (const TensorId output : outputs)
        cost.flops += elements(graph, output);
    if (isLookup(op.kind)) // reads the rows that it returns
        cost.bytes += bytesOf(graph, outputs[0]) + bytesOf(graph, inputs[1]);
    else
        cost.bytes += bytesOf(graph, inputs) + normBytes(graph, op, false);
    turnNorm(graph, op, cost);
    waitByChannels(graph, op, false, cost);
    return cost;
}

OperatorCost backwardCost(const Graph& graph, const Operator& op)
{
    if (!op.hasGradient || op.kind == OperatorKind::LigerLoss) // that has made its gradients
        return {};
    if (op.kind == OperatorKind::CutLoss)
        return cutCost(graph, op, 1 + wantedOperands(graph, op));
    if (isFree(op.kind)) {
        OperatorCost copies;
        copies.bytes = isView(op.kind) ? viewBackwardBytes(graph, op) : 0;
        copies.kernels = copies.bytes > 0 ? 1 : 0;
        return copies;
    }
    if (isProduct(op.kind))
        return productBackward(graph, op);
    if (const TensorId rows = addedRows(graph, op); rows != noTensor)
        return graph.tensors[rows].needsGradient ? OperatorCost{0, 2 * bytesOf(graph, rows), 1} : OperatorCost();
    const auto inputs = graph.inputs(op);
    const bool isFused = op.kind == OperatorKind::Fused;
    const double given = isFused ? bytesOf(graph, graph.outputs(op)) : bytesOf(graph, graph.outputs(op)[0]);
    OperatorCost cost;
    const bool reorders = op.kind == OperatorKind::Clone && !graph.layoutOf(inputs[0]).isContiguous();
    const bool passesOn =
        op.kind == OperatorKind::Add || op.kind == OperatorKind::Shift || (op.kind == OperatorKind::Clone && !reorders);
    for (const TensorId input : inputs) {
        const bool isSameSize = elements(graph, input) == elements(graph, graph.outputs(op)[0]);
        if (!graph.tensors[input].needsGradient || (passesOn && isSameSize))
            continue;
        cost.bytes += bytesOf(graph, input);
        cost.flops += elements(graph, input);
        cost.kernels = 1;
    }
    if (cost.kernels > 0)
        cost.bytes += given + bytesOf(graph, graph.saved(op)) + normBytes(graph, op, true);
    if (cost.kernels > 0) {
        turnNorm(graph, op, cost);
        waitByChannels(graph, op, true, cost);
    }
    return cost;
}

} // namespace memscape
