// SPDX-License-Identifier: Apache-2.0
// What nodes of the autograd graph take on a CPU beside the gradients that they hand on (backward_rules.cpp): numbers
// that are tensors and the kernels' own blocks. cpu_kernels.h explains them.
#include "core/training/autograd.h"

namespace memscape {

namespace {

using Kind = OperatorKind;

} // namespace

/// Formulas with a number in them; false where there is none.
bool Autograd::numberBackward(const Operator& op, const Gradient& given)
{
    const TensorId input = m_graph.operands[op.first];
    switch (op.kind) {
    case Kind::Scale: {        // grad * number, which was kept as a tensor
        if (op.outputs == 1) { // or as a number
            m_results[0] = timesNumber(given, input);
            return true;
        }
        const LiveId cast = scratch(elementBytes(given.dtype));
        m_results[0] = elementwise(given, input);
        m_live.release(cast);
        return true;
    }
    case Kind::Square:
    case Kind::Power:            // grad * (2 * x.pow(1))
    case Kind::ReciprocalRoot: { // (-0.5 * grad) * result.pow(3), the second factor first
        Gradient power = elementwise(given, input), product = timesNumber(given, input);
        m_results[0] = elementwise(given, input);
        drop(product);
        drop(power);
        return true;
    }
    case Kind::SquareRoot: { // grad / (2 * result)
        Gradient product = timesNumber(given, input);
        m_results[0] = elementwise(given, input);
        drop(product);
        return true;
    }
    default: return false;
    }
}

/// A temporary tensor times a new number.
Autograd::Gradient Autograd::timesNumber(const Gradient& given, TensorId like)
{
    const LiveId number = scratch(numberTensorBytes), cast = scratch(elementBytes(given.dtype));
    const Gradient product = elementwise(given, like);
    m_live.release(cast);
    m_live.release(number);
    return product;
}

/// grad / n, with n as a new number on a CPU.
Autograd::Gradient Autograd::meanBackward(TensorId input, const Layout& layout, const Gradient& given)
{
    if (!m_rules.isOnCpu)
        return freshFor(input, layout, given.dtype);
    const LiveId number = scratch(numberTensorBytes), cast = scratch(elementBytes(given.dtype));
    const Gradient result = freshFor(input, layout, given.dtype);
    m_live.release(cast);
    m_live.release(number);
    return result;
}

/// Layer norm sums the gradients of weight and bias for each thread (cpu/layer_norm_kernel.cpp), batch norm needs
/// a block of its input's size (cpu/batch_norm_kernel.cpp).
void Autograd::normScratch(const Operator& op)
{
    const TensorId tensor = m_graph.inputs(op)[0];
    const Layout& input = layoutOf(tensor);
    const std::int64_t size = elementBytes(m_graph.tensors[tensor].dtype);
    if (op.kind == Kind::LayerNorm)
        m_live.release(scratch(2 * m_rules.threads * input.shape.last() * size));
    if (op.kind == Kind::BatchNorm)
        m_live.release(scratch(input.elements() * size));
}

void Autograd::attentionTiles(const Layout& query, const Layout& key, DType dtype)
{
    const CpuAttentionTiles tiles = cpuAttentionTiles(query, key, dtype, m_rules.threads);
    const LiveId scores = scratch(tiles.backward);
    const LiveId reduced = tiles.backwardReduced > 0 ? scratch(tiles.backwardReduced) : 0;
    m_live.release(scratch(tiles.backwardSums));
    if (reduced)
        m_live.release(reduced);
    m_live.release(scores);
}

// mkldnn_convolution_backward: gradient and weight go into oneDNN's layout and the input's gradient out of it, then
// gradient and input go in and the gradients of bias and weight come out.
void Autograd::convolutionBackward(const Operator& op, const Gradient& given)
{
    const CpuConvolution sizes = cpuConvolution(m_graph, op);
    const auto inputs = m_graph.inputs(op);
    const auto make = [&](std::size_t i) {
        m_results[i] = freshFor(inputs[i], Layout(layoutOf(inputs[i]).shape), given.dtype);
    };
    const auto end = [&](std::initializer_list<LiveId> blocks) {
        for (const LiveId block : blocks)
            if (block)
                m_live.release(block);
    };
    const LiveId rows = given.layout.isContiguous() ? 0 : scratch(sizes.output);
    if (wants(inputs[0])) {
        const LiveId gradient = scratch(sizes.output), weight = scratch(sizes.weight), result = scratch(sizes.input);
        end({weight, gradient});
        const LiveId last = sizes.isChannelsLast ? scratch(sizes.input) : 0;
        make(0);
        end({last, result});
    }
    const bool hasBias = inputs.size() > 2 && wants(inputs[2]);
    if (!wants(inputs[1]) && !hasBias)
        return end({rows});
    const LiveId gradient = scratch(sizes.output), input = sizes.reordersInput ? scratch(sizes.input) : 0;
    const LiveId weight = scratch(sizes.weight);
    const LiveId bias = hasBias ? scratch(layoutOf(inputs[2]).elements() * elementBytes(given.dtype)) : 0;
    end({input, gradient});
    if (hasBias)
        make(2);
    make(1);
    end({weight, bias, rows});
}

/// Indices and gradient are copied where they do not lie in a row.
void Autograd::embeddingScratch(const Operator& op, const Gradient& given)
{
    const Layout& indices = layoutOf(m_graph.inputs(op)[1]);
    if (!indices.isContiguous())
        m_live.release(scratch(indices.elements() * 8));
    if (!given.layout.isContiguous())
        m_live.release(scratch(given.layout.elements() * elementBytes(given.dtype)));
}

} // namespace memscape
