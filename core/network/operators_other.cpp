// SPDX-License-Identifier: Apache-2.0
// Lookups and pictures. Lookups keep their indices, max pooling eight bytes of index per output beside its input.
// gather() keeps its input too, for its sizes only.
#include "core/network/builder.h"

#include <array>

#include <fmt/format.h>

namespace memscape {

Variable NetworkBuilder::embedding(Variable indices, Variable weight)
{
    if (!ok())
        return {};
    Shape shape = indices.shape();
    shape.append(weight.size(1));
    const DType dtype = weight.dtype();
    Variable result = record(OperatorKind::Embedding, {weight.id(), indices.id()}, {Layout(shape), dtype},
                             {indices.id(), weight.id()});
    return settled(std::move(result), indices, weight);
}

Variable NetworkBuilder::index(Variable x, Variable indices, const Variable& mask)
{
    if (!ok())
        return {};
    Shape shape = indices.shape();
    for (int i = 1; i < x.shape().rank; ++i)
        shape.append(x.shape()[i]);
    Variable result = record(OperatorKind::Index, {x.id(), indices.id()}, {Layout(shape), x.dtype()},
                             {mask ? mask.id() : indices.id()});
    return settled(std::move(result), x, indices);
}

Variable NetworkBuilder::indexSelect(Variable x, int dimension, Variable indices)
{
    if (!ok())
        return {};
    Shape shape = x.shape();
    shape[shape.at(dimension)] = indices.size(0);
    Variable result = record(OperatorKind::IndexSelect, {x.id(), indices.id()}, {Layout(shape), x.dtype()},
                             {indices.id()}, shape.at(dimension));
    return settled(std::move(result), x, indices);
}

Variable NetworkBuilder::gather(Variable x, Variable indices)
{
    if (!ok())
        return {};
    Variable result = record(OperatorKind::Gather, {x.id(), indices.id()}, {Layout(indices.shape()), x.dtype()},
                             {x.id(), indices.id()});
    return settled(std::move(result), x, indices);
}

// --- pictures, (N, C, H, W) -----------------------------------------------------------------------

namespace {

std::int64_t windows(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding)
{
    return stride > 0 && size + 2 * padding >= kernel ? (size + 2 * padding - kernel) / stride + 1 : 0;
}

} // namespace

Variable NetworkBuilder::convolution(Variable x, Variable weight, Variable bias, const ConvolutionShape& shape)
{
    const Variable held = x;
    x = lowPrecision(std::move(x));
    weight = lowPrecision(std::move(weight));
    bias = lowPrecision(std::move(bias));
    if (!ok())
        return {};
    const std::int64_t height = windows(x.size(2), shape.kernel, shape.stride, shape.padding);
    const std::int64_t width = windows(x.size(3), shape.kernel, shape.stride, shape.padding);
    if (height == 0 || width == 0) {
        refuse("network.shape",
               fmt::format("a {0} x {0} kernel does not fit on {1} x {2}", shape.kernel, x.size(2), x.size(3)),
               "the picture is too small for this network");
        return {};
    }
    const Layout layout(Shape{x.size(0), weight.size(0), height, width});
    const DType dtype = x.dtype();
    const std::array<TensorId, 3> inputs{x.id(), weight.id(), bias.id()};
    begin(OperatorKind::Convolution, {inputs.data(), bias ? 3u : 2u}).attribute = shape.groups;
    const TensorId result = addOutput({layout, dtype}, true);
    save(x.id());
    save(weight.id());
    return settled(Variable(*this, result), x, weight, bias);
}

Variable NetworkBuilder::maxPool(Variable x, std::int64_t kernel, std::int64_t stride, std::int64_t padding)
{
    if (!ok())
        return {};
    const Layout layout(Shape{x.size(0), x.size(1), windows(x.size(2), kernel, stride, padding),
                              windows(x.size(3), kernel, stride, padding)});
    const DType dtype = x.dtype();
    begin(OperatorKind::MaxPool, std::array{x.id()}).attribute = kernel;
    const TensorId result = addOutput({layout, dtype}, true);
    const TensorId indices = addOutput({layout, DType::Int64}, false);
    save(x.id());
    save(indices);
    return settled(Variable(*this, result), x);
}

Variable NetworkBuilder::pooled(OperatorKind kind, Variable& x, std::int64_t height, std::int64_t width,
                                bool savesInput)
{
    const Layout layout(Shape{x.size(0), x.size(1), height, width});
    Variable result = savesInput ? record(kind, {x.id()}, {layout, x.dtype()}, {x.id()})
                                 : record(kind, {x.id()}, {layout, x.dtype()});
    return settled(std::move(result), x);
}

Variable NetworkBuilder::averagePool(Variable x, std::int64_t kernel)
{
    if (!ok())
        return {};
    return pooled(OperatorKind::AveragePool, x, windows(x.size(2), kernel, kernel, 0),
                  windows(x.size(3), kernel, kernel, 0), true);
}

Variable NetworkBuilder::adaptiveAveragePool(Variable x, std::int64_t size)
{
    if (!ok())
        return {};
    if (size == 1 && m_options.rules.meanIsSumAndQuotient)
        return scale(pooled(OperatorKind::Sum, x, 1, 1, false));
    if (size == 1) // PyTorch calls mean() for it
        return pooled(OperatorKind::Mean, x, 1, 1, m_options.rules.meanSavesInput);
    return pooled(OperatorKind::AdaptiveAveragePool, x, size, size, true);
}

Variable NetworkBuilder::interpolate(Variable x, std::int64_t factor, bool bilinear)
{
    if (!ok())
        return {};
    return pooled(bilinear ? OperatorKind::InterpolateBilinear : OperatorKind::InterpolateNearest, x,
                  x.size(2) * factor, x.size(3) * factor, false);
}

} // namespace memscape
