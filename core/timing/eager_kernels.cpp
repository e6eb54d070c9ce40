// SPDX-License-Identifier: Apache-2.0
#include "core/timing/eager_kernels.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double unlikeOperands = 67, dropout = 42, softmax = 26;
constexpr double layerNorm = 64, layerNormInput = 65, layerNormWeights = 40;
constexpr double poolForward = 47, poolBackward = 188;
constexpr double columnsOfBlock = 32;
constexpr double keptRow = 48 * 1024; ///< B of shared memory that any block may have

const Layout& resultOf(const Graph& graph, const Operator& op)
{
    return graph.layoutOf(graph.outputs(op)[0]);
}

double resultElements(const Graph& graph, const Operator& op)
{
    return double(resultOf(graph, op).elements());
}

bool wantsGradient(const Graph& graph, TensorId tensor)
{
    return graph.tensors[tensor].needsGradient;
}

/// Operands that one loop over memory goes through side by side.
bool hasLikeOperands(const Graph& graph, const Operator& op)
{
    const Layout& first = graph.layoutOf(graph.inputs(op)[0]);
    const auto isLike = [&](TensorId tensor) {
        const Layout& layout = graph.layoutOf(tensor);
        return layout.elements() == 1 || (layout == first && layout.isDense());
    };
    const auto inputs = graph.inputs(op);
    return std::all_of(inputs.begin(), inputs.end(), isLike);
}

bool isElementwise(OperatorKind kind)
{
    return kind >= OperatorKind::Add && kind <= OperatorKind::Where;
}

/// Backward, the rule of a product or a quotient multiplies by the other operand; a smaller operand's gradient is a
/// sum.
double elementwiseBackward(const Graph& graph, const Operator& op)
{
    double instructions = 0;
    const bool multiplies = op.kind == OperatorKind::Multiply || op.kind == OperatorKind::Divide;
    for (const TensorId input : graph.inputs(op)) {
        if (!wantsGradient(graph, input))
            continue;
        const bool isSmaller = graph.layoutOf(input).elements() < resultOf(graph, op).elements();
        instructions += (multiplies ? unlikeOperands : 0) + (isSmaller ? rowSumInstructions : 0);
    }
    return instructions * resultElements(graph, op);
}

EagerKernels softmaxKernels(const Graph& graph, const Operator& op, bool isBackward, int units, double cache)
{
    const TensorId result = graph.outputs(op)[0];
    const double each = double(elementBytes(graph.tensors[result].dtype)), elements = resultElements(graph, op);
    const double row = double(resultOf(graph, op).shape.last()) * each, pass = elements * each;
    const bool isKept = row <= keptRow;
    EagerKernels kernels;
    if (!isBackward) {
        kernels.instructions = isKept ? softmax * elements : 0;
        kernels.bytes = isKept ? 0 : 2 * pass;
        return kernels;
    }
    if (op.kind == OperatorKind::Softmax) {
        kernels.bytes += 3 * pass;
        kernels.kernels = 1;
    }
    if (!isKept && units * row > cache)
        kernels.bytes += pass;
    return kernels;
}

/// Reads and writes of the logits beside the one read that any loss has; backward is as it is counted for any.
EagerKernels lossInPlace(const Graph& graph, const Operator& op, bool isBackward)
{
    const Tensor& logits = graph.tensors[graph.inputs(op)[0]];
    if (isBackward || logits.dtype != DType::Float32)
        return {};
    constexpr double difference = 2, exponential = 2, sum = 1, quotient = 2;
    const double pass = double(graph.layoutOf(graph.inputs(op)[0]).elements()) * double(elementBytes(logits.dtype));
    return {.bytes = (difference + exponential + sum + quotient) * pass, .kernels = 4};
}

double layerNormBackward(double elements, double columns, int units)
{
    const double busy = std::min(1.0, std::ceil(columns / columnsOfBlock) / std::max(units, 1));
    return elements * (layerNormInput + layerNormWeights / busy);
}

/// Elements that all windows of a pooling have; windows that do not overlap where their size is not known.
double pooledElements(const Graph& graph, const Operator& op)
{
    const double window = double(op.attribute);
    return window > 0 ? window * window * resultElements(graph, op)
                      : double(graph.layoutOf(graph.inputs(op)[0]).elements());
}

/// A product's: a row of as many columns as the result has.
EagerKernels biasKernels(const Graph& graph, const Operator& op, bool isBackward)
{
    const auto inputs = graph.inputs(op);
    const bool isLinear = op.kind == OperatorKind::Addmm, isCopied = isLinear && op.attribute == 1;
    const bool hasBias = inputs.size() > 2 && (isLinear || op.kind == OperatorKind::Convolution);
    EagerKernels kernels;
    if (isBackward && hasBias && wantsGradient(graph, inputs[2]))
        kernels.summed = resultElements(graph, op);
    if (isBackward || !hasBias || !isCopied)
        return kernels;
    constexpr double copyAndOperand = 2; // what the copy writes, and what the product reads
    kernels.summed = resultElements(graph, op);
    kernels.bytes = copyAndOperand * kernels.summed * double(elementBytes(graph.tensors[graph.outputs(op)[0]].dtype));
    kernels.kernels = 1;
    return kernels;
}

} // namespace

EagerKernels eagerKernels(const Graph& graph, const Operator& op, bool isBackward, int units, double cache)
{
    EagerKernels kernels;
    if (isBackward && !op.hasGradient)
        return kernels;
    if (op.kind == OperatorKind::Softmax || op.kind == OperatorKind::LogSoftmax)
        return softmaxKernels(graph, op, isBackward, units, cache);
    if (op.kind == OperatorKind::InPlaceLoss)
        return lossInPlace(graph, op, isBackward);
    if (op.kind == OperatorKind::LayerNorm) {
        const double elements = resultElements(graph, op);
        kernels.instructions = isBackward ? layerNormBackward(elements, double(resultOf(graph, op).shape.last()), units)
                                          : layerNorm * elements;
    } else if (op.kind == OperatorKind::GroupNorm && !isBackward) {
        kernels.kernels = 2; // beside the statistics
    } else if (op.kind == OperatorKind::Dropout) {
        kernels.instructions = isBackward ? 0 : dropout * resultElements(graph, op);
    } else if (op.kind == OperatorKind::MaxPool) {
        kernels.instructions = (isBackward ? poolBackward : poolForward) * pooledElements(graph, op);
    } else if (op.kind == OperatorKind::Clone && !graph.layoutOf(graph.inputs(op)[0]).isContiguous()) {
        kernels.instructions = permutedCopyInstructions * resultElements(graph, op);
    } else if (isElementwise(op.kind) && !op.inPlace && !hasLikeOperands(graph, op)) {
        kernels.instructions = isBackward ? elementwiseBackward(graph, op) : unlikeOperands * resultElements(graph, op);
    } else if (isBackward && (op.kind == OperatorKind::Narrow || op.kind == OperatorKind::Select)) {
        kernels.instructions = permutedCopyInstructions * resultElements(graph, op); // into a part of zeros
    } else {
        return biasKernels(graph, op, isBackward);
    }
    return kernels;
}

} // namespace memscape
