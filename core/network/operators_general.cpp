// SPDX-License-Identifier: Apache-2.0
// What programs that were not written for this builder need (network_program.h): products of plain matrices,
// convolutions and pools of any form, reductions over several dimensions, operators without a rule of their own. Under
// autocast the last argument of a C++ call is cast first: addmm(bias, x, y), conv(x, weight, bias)
// (operators_product.cpp).
#include "core/network/builder.h"

#include <fmt/format.h>

#include <array>

namespace memscape {

Variable NetworkBuilder::clone(Variable x)
{
    if (!ok())
        return {};
    const Layout* const like = &x.layout();
    const Layout layout = elementwiseLayout(x.shape(), {&like, 1});
    return settled(record(OperatorKind::Clone, {x.id()}, {layout, x.dtype()}), x);
}

Variable NetworkBuilder::permute(Variable x, std::span<const int> order)
{
    if (!ok())
        return {};
    std::int64_t attribute = 0;
    unsigned seen = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        attribute |= std::int64_t(order[i]) << (4 * i);
        seen |= 1u << order[i];
    }
    if (order.size() != std::size_t(x.shape().rank) || seen + 1 != 1u << order.size()) {
        refuse("network.shape", fmt::format("{} numbers are no order of {} dimensions", order.size(), x.shape().rank));
        return {};
    }
    return viewOf(OperatorKind::Permute, x, x.layout().permuted(order), attribute);
}

Variable NetworkBuilder::mm(Variable x, Variable y, Variable bias)
{
    const Variable heldX = x, heldY = y;
    y = lowPrecision(std::move(y)), x = lowPrecision(std::move(x)), bias = lowPrecision(std::move(bias));
    if (ok() && (x.shape().rank != 2 || y.shape().rank != 2 || x.size(1) != y.size(0)))
        refuse("network.shape", fmt::format("mm of {} columns with {} rows", x.size(-1), y.size(0)));
    if (!ok())
        return {};
    const Shape shape{x.size(0), y.size(1)};
    const DType dtype = x.dtype();
    const std::array<TensorId, 3> inputs{x.id(), y.id(), bias.id()};
    begin(bias ? OperatorKind::Addmm : OperatorKind::Mm, {inputs.data(), bias ? 3u : 2u});
    const TensorId result = addOutput({Layout(shape), dtype}, true);
    if (needsGradient(y))
        save(x.id());
    if (needsGradient(x))
        save(y.id());
    return settled(Variable(*this, result), x, y, bias);
}

Variable NetworkBuilder::convolution(Variable x, Variable weight, Variable bias, const Shape& result,
                                     std::int64_t groups)
{
    const Variable held = x;
    bias = lowPrecision(std::move(bias)), weight = lowPrecision(std::move(weight)), x = lowPrecision(std::move(x));
    if (!ok())
        return {};
    const DType dtype = x.dtype();
    const std::array<TensorId, 3> inputs{x.id(), weight.id(), bias.id()};
    begin(OperatorKind::Convolution, {inputs.data(), bias ? 3u : 2u}).attribute = groups;
    const TensorId output = addOutput({Layout(result), dtype}, true);
    save(x.id());
    save(weight.id());
    return settled(Variable(*this, output), x, weight, bias);
}

Variable NetworkBuilder::pool(OperatorKind kind, Variable x, const Shape& result)
{
    if (!ok())
        return {};
    const DType dtype = x.dtype();
    begin(kind, std::array{x.id()});
    const TensorId output = addOutput({Layout(result), dtype}, true);
    if (kind == OperatorKind::MaxPool) {
        const TensorId indices = addOutput({Layout(result), DType::Int64}, false);
        save(x.id());
        save(indices);
    } else if (kind == OperatorKind::AveragePool || kind == OperatorKind::AdaptiveAveragePool) {
        save(x.id());
    }
    return settled(Variable(*this, output), x);
}

Variable NetworkBuilder::reduced(OperatorKind kind, Variable x, const Shape& kept)
{
    if (!ok())
        return {};
    constexpr std::int64_t severalDimensions = -2;
    const bool savesInput = kind == OperatorKind::Variance;
    const TensorId input = x.id();
    begin(kind, std::array{input}).attribute = severalDimensions;
    const TensorId output = addOutput({Layout(kept), x.dtype()}, true);
    if (savesInput)
        save(input);
    return settled(Variable(*this, output), x);
}

Variable NetworkBuilder::other(std::vector<Variable> inputs, const Layout& layout, DType dtype, const OtherKeeps& keeps,
                               bool inPlace)
{
    if (!ok() || inputs.empty())
        return {};
    std::vector<TensorId> ids;
    for (const Variable& input : inputs)
        ids.push_back(input.id());
    Variable kept; // the clone that an in-place operator makes of what its rule needs
    if (inPlace && keeps.inputs && needsGradient(inputs[0])) {
        kept = record(OperatorKind::Clone, {ids[0]}, {inputs[0].layout(), inputs[0].dtype()});
        m_graph.operators.back().hasGradient = false;
    }
    Operator& op = begin(OperatorKind::Other, ids);
    op.inPlace = inPlace;
    op.attribute = keeps.temporaries;
    const TensorId result = addOutput({inPlace ? inputs[0].layout() : layout, dtype, !inPlace}, isFloating(dtype));
    if (keeps.inputs)
        for (std::size_t i = 0; i < ids.size(); ++i)
            save(i == 0 && kept ? kept.id() : ids[i]);
    if (keeps.result)
        save(result);
    Variable made(*this, result);
    kept.reset();
    inputs.clear();
    return made;
}

bool NetworkBuilder::recordGradient(bool wanted)
{
    return std::exchange(m_options.gradient, wanted);
}

std::optional<DType> NetworkBuilder::recordAutocast(std::optional<DType> wanted)
{
    return std::exchange(m_options.autocast, wanted);
}

} // namespace memscape
