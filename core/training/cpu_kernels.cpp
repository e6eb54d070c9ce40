// SPDX-License-Identifier: Apache-2.0
#include "core/training/cpu_kernels.h"

#include <algorithm>

namespace memscape {

namespace {

using Kind = OperatorKind;

class KernelWriter
{
public:
    explicit KernelWriter(KernelSteps& steps)
        : m_steps(steps)
    { }
    std::uint32_t temporary(std::int64_t bytes)
    {
        m_steps.push_back({KernelStep::Kind::Temporary, m_count, bytes});
        return m_count++;
    }
    void output(std::uint32_t index) { m_steps.push_back({KernelStep::Kind::Output, index, 0}); }
    void free(std::uint32_t temporary) { m_steps.push_back({KernelStep::Kind::Free, temporary, 0}); }

private:
    KernelSteps& m_steps;
    std::uint32_t m_count = 0;
};

/// The operands whose type is not the result's: their copies exist before it and end behind it.
void castOperands(const Graph& graph, const Operator& op, KernelWriter& kernel)
{
    Few<std::uint32_t, 2> casts;
    const std::int64_t bytes = elementBytes(graph.tensors[graph.outputs(op)[0]].dtype);
    for (const TensorId input : graph.inputs(op)) {
        const Tensor& operand = graph.tensors[input];
        if (graph.layoutOf(input).rank() > 0 && elementBytes(operand.dtype) != bytes)
            casts.push_back(kernel.temporary(graph.layoutOf(input).elements() * bytes));
    }
    kernel.output(0);
    for (const std::uint32_t cast : casts)
        kernel.free(cast);
}

void dropoutKernel(std::int64_t elementSize, KernelWriter& kernel)
{
    kernel.output(1);
    const std::uint32_t number = kernel.temporary(numberTensorBytes), cast = kernel.temporary(elementSize);
    kernel.free(cast);
    kernel.free(number);
    kernel.output(0);
}

/// With a number: x * 2, x + 2, mask == 0 (`wide`: B of x in the type that both are compared in).
void numberKernel(bool keepsNumber, std::int64_t cast, KernelWriter& kernel)
{
    std::uint32_t number = 0;
    if (keepsNumber)
        kernel.output(1);
    else
        number = kernel.temporary(numberTensorBytes);
    const std::uint32_t converted = cast > 0 ? kernel.temporary(cast) : 0;
    kernel.output(0);
    if (cast > 0)
        kernel.free(converted);
    if (!keepsNumber)
        kernel.free(number);
}

/// torch.where(mask, x, number): the number in x's type.
void chosenNumberKernel(std::int64_t elementSize, KernelWriter& kernel)
{
    const std::uint32_t number = kernel.temporary(elementSize);
    kernel.output(0);
    kernel.free(number);
}

/// A sum, divided by a number in place; of halves in float beside the result, since 2.0.
void meanKernel(const Layout& input, const Layout& result, std::int64_t elementSize, bool isBefore2,
                KernelWriter& kernel)
{
    kernel.output(0);
    const bool isHalf = elementSize < 4 && !isBefore2;
    const std::uint32_t sum = isHalf ? kernel.temporary(4 * result.elements()) : 0;
    if (isHalf)
        kernel.free(kernel.temporary(4 * input.elements()));
    const std::uint32_t number = kernel.temporary(numberTensorBytes),
                        cast = kernel.temporary(isBefore2 ? elementSize : 4);
    kernel.free(cast);
    kernel.free(number);
    if (isHalf)
        kernel.free(sum);
}

/// The squares, their mean: a sum divided by a number in place; of halves in float.
void squaredErrorKernel(std::int64_t bytes, bool isHalf, KernelWriter& kernel)
{
    kernel.output(0);
    const std::uint32_t squares = kernel.temporary(bytes);
    const std::uint32_t sum = isHalf ? kernel.temporary(4) : 0;
    if (isHalf)
        kernel.free(kernel.temporary(2 * bytes));
    const std::uint32_t number = kernel.temporary(numberTensorBytes), cast = kernel.temporary(4);
    kernel.free(cast);
    kernel.free(number);
    if (isHalf)
        kernel.free(sum);
    kernel.free(squares);
}

/// PyTorch 1 makes the result between the pairs.
void batchNormKernel(std::int64_t statistics, bool isBefore2, KernelWriter& kernel)
{
    kernel.free(kernel.temporary(numberTensorBytes)); // num_batches_tracked += 1
    if (!isBefore2)
        kernel.output(0);
    kernel.output(1);
    kernel.output(2);
    for (int pair = 0; pair < 2; ++pair) {
        if (isBefore2 && pair > 0)
            kernel.output(0);
        const std::uint32_t first = kernel.temporary(statistics), second = kernel.temporary(statistics);
        kernel.free(first);
        kernel.free(second);
    }
}

/// oneDNN computes a picture of less than four channels as it lies.
void convolutionKernel(const Graph& graph, const Operator& op, KernelWriter& kernel)
{
    const CpuConvolution sizes = cpuConvolution(graph, op);
    const std::uint32_t input = sizes.reordersInput ? kernel.temporary(sizes.input) : 0;
    const std::uint32_t weight = kernel.temporary(sizes.weight), result = kernel.temporary(sizes.output);
    kernel.free(weight);
    if (sizes.reordersInput)
        kernel.free(input);
    kernel.output(0);
    kernel.free(result);
}

/// Indices that do not lie in a row are copied.
void embeddingKernel(const Layout& indices, KernelWriter& kernel)
{
    const bool isCopied = !indices.viewed({indices.elements()});
    const std::uint32_t copy = isCopied ? kernel.temporary(indices.elements() * 8) : 0;
    kernel.output(0);
    if (isCopied)
        kernel.free(copy);
}

/// Elements of halves are gathered as float, since 2.0.
void gatherKernel(const Graph& graph, TensorId result, bool isBefore2, KernelWriter& kernel)
{
    kernel.output(0);
    if (!isBefore2 && elementBytes(graph.tensors[result].dtype) < 4)
        kernel.free(kernel.temporary(graph.layoutOf(result).elements() * 4));
}

void attentionKernel(const Graph& graph, const Operator& op, std::int64_t threads, KernelWriter& kernel)
{
    const auto inputs = graph.inputs(op);
    const CpuAttentionTiles tiles = cpuAttentionTiles(graph.layoutOf(inputs[0]), graph.layoutOf(inputs[1]),
                                                      graph.tensors[inputs[0]].dtype, threads);
    kernel.output(0);
    kernel.output(1);
    const std::uint32_t scores = kernel.temporary(tiles.forward);
    if (tiles.forwardReduced > 0)
        kernel.free(kernel.temporary(tiles.forwardReduced));
    kernel.free(scores);
}

} // namespace

CpuConvolution cpuConvolution(const Graph& graph, const Operator& op)
{
    const auto inputs = graph.inputs(op);
    const auto bytesOf = [&](TensorId tensor) {
        return graph.layoutOf(tensor).elements() * elementBytes(graph.tensors[tensor].dtype);
    };
    const Layout &input = graph.layoutOf(inputs[0]), &kernel = graph.layoutOf(inputs[1]);
    const std::int64_t undivided = input[2] - kernel[2] + 1; // rows of the result with a stride of 1, at least
    const bool isStrided = graph.layoutOf(graph.outputs(op)[0])[2] < undivided;
    return {bytesOf(inputs[0]), bytesOf(inputs[1]), bytesOf(graph.outputs(op)[0]), input[1] >= 4,
            isStrided && op.attribute == 1};
}

std::int64_t transposingTile(const Layout& layout, DType dtype)
{
    const std::int64_t side = elementBytes(dtype) == 1 ? 120 : 60;
    const bool isTransposed = layout.rank() == 2 && layout.strides[0] == 1 && layout.strides[1] == layout[0];
    return isTransposed && layout.elements() >= 60 * 60 ? side * side * elementBytes(dtype) : 0;
}

CpuAttentionTiles cpuAttentionTiles(const Layout& query, const Layout& key, DType dtype, std::int64_t threads)
{
    const std::int64_t length = query[2], width = query[3];
    const std::int64_t rows = std::min<std::int64_t>(length, length >= 768 ? 256 : length >= 192 ? 64 : 32);
    const std::int64_t columns = std::min<std::int64_t>(key[2], 512);
    const std::int64_t tile = rows * columns;
    CpuAttentionTiles tiles;
    tiles.forward = threads * 4 * (tile + 2 * rows + rows * width);
    tiles.backward = threads * 4 * 2 * tile;
    tiles.backwardSums = 4 * rows;
    if (elementBytes(dtype) < 4) {
        tiles.forwardReduced = threads * elementBytes(dtype) * tile;
        tiles.backwardReduced = 2 * tiles.forwardReduced;
    }
    return tiles;
}

KernelSteps cpuKernelSteps(const Graph& graph, const Operator& op, const EagerRules& rules)
{
    KernelSteps steps;
    KernelWriter kernel(steps);
    const auto sizeOf = [&](TensorId tensor) { return elementBytes(graph.tensors[tensor].dtype); };
    switch (op.kind) {
    case Kind::Scale: numberKernel(op.outputs > 1, sizeOf(graph.outputs(op)[0]), kernel); break;
    case Kind::Shift:
        numberKernel(false, isFloating(graph.tensors[graph.outputs(op)[0]].dtype) ? sizeOf(graph.outputs(op)[0]) : 0,
                     kernel);
        break;
    case Kind::Where: chosenNumberKernel(sizeOf(graph.outputs(op)[0]), kernel); break;
    case Kind::Compare:
        if (op.attribute == comparesWithNumber)
            numberKernel(false, graph.layoutOf(graph.inputs(op)[0]).elements() * numberTensorBytes, kernel);
        break;
    case Kind::Add:
    case Kind::Subtract:
    case Kind::Multiply:
    case Kind::Divide: castOperands(graph, op, kernel); break;
    case Kind::Dropout: dropoutKernel(sizeOf(graph.inputs(op)[0]), kernel); break;
    case Kind::Mean:
        meanKernel(graph.layoutOf(graph.inputs(op)[0]), graph.layoutOf(graph.outputs(op)[0]),
                   sizeOf(graph.outputs(op)[0]), rules.isBefore2, kernel);
        break;
    case Kind::Convolution: convolutionKernel(graph, op, kernel); break;
    case Kind::Embedding: embeddingKernel(graph.layoutOf(graph.inputs(op)[1]), kernel); break;
    case Kind::Gather: gatherKernel(graph, graph.outputs(op)[0], rules.isBefore2, kernel); break;
    case Kind::MseLoss:
        squaredErrorKernel(graph.storageOf(graph.outputs(op)[0]).bytes, sizeOf(graph.outputs(op)[0]) < 4, kernel);
        break;
    case Kind::BatchNorm: batchNormKernel(graph.storageOf(graph.outputs(op)[1]).bytes, rules.isBefore2, kernel); break;
    case Kind::FlashAttention: attentionKernel(graph, op, rules.threads, kernel); break;
    default: break;
    }
    return steps;
}

} // namespace memscape
