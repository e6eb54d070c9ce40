// SPDX-License-Identifier: Apache-2.0
// Linear layers whose weights are not simply the parameter.
//
// Adapters, after peft's lora.Linear: result + B(A(x)) · alpha / r. The base is frozen, so its
// product keeps the weight for the gradient of x, but not x; A keeps x, B keeps the r columns
// between them, and both their weights.
//
// 4-bit weights, after bitsandbytes' MatMul4Bit: the weight is dequantized to the dtype of x for the
// product and again for its backward; what is packed is the quantized weight alone.
//
// FP8, after Transformer Engine's Linear (transformer_engine/pytorch/module/linear.py): x is cast to
// FP8, one byte an element, and that copy is packed instead of x; gradients of x are in half. Left
// out: its scales, a few floats a layer.
//
// Left out: dropout in front of A; DoRA; adapters of convolutions.
#include "core/network/builder.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

bool NetworkBuilder::hasAdapter(std::string_view name) const
{
    if (!m_options.adapters)
        return false;
    const std::vector<std::string>& targets = m_options.adapters->targets;
    if (targets.empty())
        return isInLayer();
    const std::string_view last = name.substr(name.rfind('.') + 1);
    return std::find(targets.begin(), targets.end(), last) != targets.end();
}

Variable NetworkBuilder::adapted(std::string_view name, Variable x, Variable result)
{
    if (!ok() || !hasAdapter(name))
        return result;
    const std::int64_t rank = m_options.adapters->rank;
    const std::int64_t inputs = x.size(-1), outputs = result.size(-1);
    if (rank < 1 || rank > std::min(inputs, outputs)) {
        refuse("plan.range",
               fmt::format("rank {} exceeds the smaller side of {} ({} x {})", rank, name, outputs, inputs));
        return {};
    }
    const auto matrix = [&](std::string_view part, const Shape& shape) {
        const ModuleScope scope(*this, part, "Linear");
        m_isAdapter = true;
        Variable weight = parameter("weight", shape);
        m_isAdapter = false;
        return weight;
    };
    if (!m_options.autocast)
        x = cast(std::move(x), m_options.weights);
    const Variable a = matrix("lora_A", {rank, inputs});
    const Variable b = matrix("lora_B", {outputs, rank});
    Variable low = scale(linear(linear(std::move(x), a), b));
    return add(std::move(result), std::move(low));
}

Variable NetworkBuilder::storedLinear(Variable x, Variable weight, Variable bias)
{
    const bool isQuantized = m_options.adapters && m_options.adapters->isQuantized && isInLayer();
    return isQuantized ? quantizedLinear(std::move(x), std::move(weight), std::move(bias))
                       : linear(std::move(x), std::move(weight), std::move(bias));
}

Variable NetworkBuilder::quantizedLinear(Variable x, Variable weight, Variable bias)
{
    const Variable held = x;
    x = lowPrecision(std::move(x));
    bias = lowPrecision(std::move(bias));
    if (!ok())
        return {};
    const Shape rows{x.layout().elements() / std::max<std::int64_t>(x.size(-1), 1), x.size(-1)};
    if (!x.layout().viewed(rows))
        x = contiguous(std::move(x));
    const Variable whole = record(OperatorKind::Dequantize, {weight.id()}, {Layout(weight.shape()), x.dtype()});
    m_graph.storages[m_graph.tensors[whole.id()].storage].role = Role::WeightCast;
    Variable result = product(x, whole, x, weight, bias);
    return settled(std::move(result), x, weight, bias);
}

Variable NetworkBuilder::fp8Copy(const Variable& x)
{
    if (!m_options.isProductInFp8 || !isInLayer() || !ok())
        return {};
    Variable copy = record(OperatorKind::Cast, {x.id()}, {Layout(x.shape()), DType::Float8E4M3});
    m_graph.operators.back().hasGradient = false;
    m_graph.tensors[copy.id()].needsGradient = false;
    return copy;
}

} // namespace memscape
