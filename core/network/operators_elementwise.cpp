// SPDX-License-Identifier: Apache-2.0
// Elementwise operators and reductions, and what autograd saves for each (derivatives.yaml; checked
// operator by operator): sigmoid, tanh, relu, exp, sqrt, rsqrt keep their result, the other
// activations their input, a product the other factor, a sum nothing. An in-place activation whose
// rule needs the input keeps a clone of it.
#include "core/network/builder.h"

#include <fmt/format.h>

#include <array>

namespace memscape {

namespace {

bool savesResult(OperatorKind kind)
{
    switch (kind) {
    case OperatorKind::Relu:
    case OperatorKind::Sigmoid:
    case OperatorKind::Tanh:
    case OperatorKind::Exponential:
    case OperatorKind::SquareRoot:
    case OperatorKind::ReciprocalRoot: return true;
    default: return false;
    }
}

bool savesNothing(OperatorKind kind)
{
    return kind == OperatorKind::Scale || kind == OperatorKind::Shift || kind == OperatorKind::Negate;
}

/// Their in-place forms read the result: the sign, or the value, is still there.
bool worksFromResultInPlace(OperatorKind kind)
{
    return kind == OperatorKind::LeakyRelu || kind == OperatorKind::Elu;
}

/// Autocast's list of CUDA (aten/src/ATen/autocast_mode.h).
bool runsInFloat(OperatorKind kind)
{
    switch (kind) {
    case OperatorKind::Power:
    case OperatorKind::ReciprocalRoot:
    case OperatorKind::Exponential:
    case OperatorKind::Logarithm:
    case OperatorKind::Softplus: return true;
    default: return false;
    }
}

Layout reducedLayout(const Layout& layout, int dimension, bool keep)
{
    Shape shape;
    for (int i = 0; i < layout.rank(); ++i) {
        if (i != dimension)
            shape.append(layout[i]);
        else if (keep)
            shape.append(1);
    }
    return Layout(shape);
}

} // namespace

Variable NetworkBuilder::unary(OperatorKind kind, Variable x, bool inPlace)
{
    const Variable held = runsInFloat(kind) ? x : Variable(); // the caller's name, beside its cast
    if (runsInFloat(kind))
        x = highPrecisionOnGpu(std::move(x));
    if (!ok())
        return {};
    const Layout* const like = &x.layout();
    const Layout layout = inPlace ? x.layout() : elementwiseLayout(x.shape(), {&like, 1});
    const bool fromResult = savesResult(kind) || (inPlace && worksFromResultInPlace(kind));
    Variable kept; // the clone that an in-place activation makes of its input
    if (inPlace && !fromResult && !savesNothing(kind) && needsGradient(x)) {
        kept = record(OperatorKind::Clone, {x.id()}, {layout, x.dtype()});
        m_graph.operators.back().hasGradient = false;
    }
    begin(kind, std::array{x.id()});
    m_graph.operators.back().inPlace = inPlace;
    const TensorId result = addOutput({layout, x.dtype(), !inPlace}, true);
    if (!savesNothing(kind))
        save(fromResult ? result : kept ? kept.id() : x.id());
    if (kind == OperatorKind::Scale && m_options.rules.isOnCpu) // the factor is a tensor there
        save(addOutput({Layout(Shape{}), DType::Int64}, false));
    return settled(Variable(*this, result), kept, x);
}

Variable NetworkBuilder::scale(Variable x)
{
    return unary(OperatorKind::Scale, std::move(x));
}
Variable NetworkBuilder::shift(Variable x)
{
    return unary(OperatorKind::Shift, std::move(x));
}
Variable NetworkBuilder::negate(Variable x)
{
    return unary(OperatorKind::Negate, std::move(x));
}

Variable NetworkBuilder::elementwise(OperatorKind kind, Variable& x, Variable& y, bool savesOther)
{
    if (!ok())
        return {};
    const auto shape = Shape::broadcast(x.shape(), y.shape());
    if (!shape) {
        refuse(
            "network.shape",
            fmt::format("operands of {} do not fit: last sizes {} and {}", operatorText(kind), x.size(-1), y.size(-1)));
        return {};
    }
    const std::array<const Layout*, 2> like{&x.layout(), &y.layout()};
    const Layout layout = elementwiseLayout(*shape, like);
    // Type promotion: float beats bfloat16, a 0-dimensional operand does not count.
    const bool xWins =
        y.shape().rank == 0 || (x.shape().rank > 0 && elementBytes(x.dtype()) >= elementBytes(y.dtype()));
    const DType dtype = xWins ? x.dtype() : y.dtype();
    const bool xGradient = needsGradient(x);
    const bool yGradient = needsGradient(y);
    begin(kind, std::array{x.id(), y.id()});
    const TensorId result = addOutput({layout, dtype}, true);
    if (savesOther && yGradient)
        save(x.id());
    if ((savesOther && xGradient) || (kind == OperatorKind::Divide && yGradient))
        save(y.id());
    return settled(Variable(*this, result), x, y);
}

Variable NetworkBuilder::add(Variable x, Variable y)
{
    return elementwise(OperatorKind::Add, x, y, false);
}

Variable NetworkBuilder::addInPlace(Variable x, Variable y)
{
    if (!ok())
        return {};
    begin(OperatorKind::Add, std::array{x.id(), y.id()});
    m_graph.operators.back().inPlace = true;
    Variable result{*this, addOutput({x.layout(), x.dtype(), false}, true)};
    return settled(std::move(result), x, y);
}

Variable NetworkBuilder::subtract(Variable x, Variable y)
{
    return elementwise(OperatorKind::Subtract, x, y, false);
}

Variable NetworkBuilder::multiply(Variable x, Variable y)
{
    return elementwise(OperatorKind::Multiply, x, y, true);
}

Variable NetworkBuilder::divide(Variable x, Variable y)
{
    return elementwise(OperatorKind::Divide, x, y, true);
}

Variable NetworkBuilder::maskedFill(Variable x, Variable mask)
{
    if (!ok())
        return {};
    const Layout* const like = &x.layout();
    const Layout layout = elementwiseLayout(x.shape(), {&like, 1});
    Variable result = record(OperatorKind::MaskedFill, {x.id(), mask.id()}, {layout, x.dtype()}, {mask.id()});
    return settled(std::move(result), x, mask);
}

Variable NetworkBuilder::where(Variable mask, Variable x)
{
    if (!ok())
        return {};
    const auto shape = Shape::broadcast(x.shape(), mask.shape());
    if (!shape) {
        refuse("network.shape", "the mask of where() does not fit");
        return {};
    }
    const Layout* const like = &x.layout();
    Variable result = record(OperatorKind::Where, {x.id(), mask.id()},
                             {elementwiseLayout(*shape, {&like, 1}), x.dtype()}, {mask.id()});
    return settled(std::move(result), mask, x);
}

Variable NetworkBuilder::dropout(Variable x, double probability)
{
    if (!ok() || probability == 0)
        return x;
    const Layout* const like = &x.layout();
    const Layout layout = elementwiseLayout(x.shape(), {&like, 1});
    const DType mask = m_options.rules.dropoutSavesNoise ? x.dtype() : DType::Bool;
    begin(OperatorKind::Dropout, std::array{x.id()});
    const TensorId result = addOutput({layout, x.dtype()}, true);
    save(addOutput({layout, mask}, false));
    return settled(Variable(*this, result), x);
}

// --- reductions -----------------------------------------------------------------------------------

Variable NetworkBuilder::reduction(OperatorKind kind, Variable& x, int dimension, bool keep, bool savesInput)
{
    if (!ok())
        return {};
    const int at = x.shape().at(dimension);
    const Layout layout = reducedLayout(x.layout(), at, keep);
    Variable result = savesInput ? record(kind, {x.id()}, {layout, x.dtype()}, {x.id()}, at)
                                 : record(kind, {x.id()}, {layout, x.dtype()}, {}, at);
    return settled(std::move(result), x);
}

Variable NetworkBuilder::sum(Variable x, int dimension, bool keep)
{
    Variable result = reduction(OperatorKind::Sum, x, dimension, keep, false);
    sumInFloat();
    return result;
}

/// Autocast makes it sum(x, dtype=torch.float32), which reads the low precision as it is.
void NetworkBuilder::sumInFloat()
{
    if (!ok() || !m_options.autocast || m_options.rules.isOnCpu)
        return;
    Tensor& result = m_graph.tensors.back();
    if (!isFloating(result.dtype) || elementBytes(result.dtype) >= 4)
        return;
    result.dtype = DType::Float32;
    Storage& storage = m_graph.storages[result.storage];
    storage.bytes = m_graph.layouts[result.layout].elements() * elementBytes(result.dtype);
}

Variable NetworkBuilder::mean(Variable x, int dimension, bool keep)
{
    if (m_options.rules.meanIsSumAndQuotient)
        return settled(scale(sum(x, dimension, keep)), x);
    return reduction(OperatorKind::Mean, x, dimension, keep, m_options.rules.meanSavesInput);
}

Variable NetworkBuilder::variance(Variable x, int dimension)
{
    return reduction(OperatorKind::Variance, x, dimension, false, true);
}

Variable NetworkBuilder::sumAll(Variable x)
{
    if (!ok())
        return {};
    Variable result = record(OperatorKind::Sum, {x.id()}, {Layout(Shape{}), x.dtype()}, {}, -1);
    sumInFloat();
    return settled(std::move(result), x);
}

Variable NetworkBuilder::meanAll(Variable x)
{
    if (!ok())
        return {};
    return settled(record(OperatorKind::Mean, {x.id()}, {Layout(Shape{}), x.dtype()}, {}, -1), x);
}

Variable NetworkBuilder::maximum(Variable x, int dimension, bool keep)
{
    if (!ok())
        return {};
    const int at = x.shape().at(dimension);
    const Layout layout = reducedLayout(x.layout(), at, keep);
    begin(OperatorKind::Maximum, std::array{x.id()}).attribute = at;
    const TensorId result = addOutput({layout, x.dtype()}, true);
    save(addOutput({layout, DType::Int64}, false));
    return settled(Variable(*this, result), x);
}

Variable NetworkBuilder::gatedActivation(Variable gate, Variable x)
{
    if (!ok())
        return {};
    Variable result = record(OperatorKind::GatedActivation, {gate.id(), x.id()}, {Layout(gate.shape()), gate.dtype()},
                             {gate.id(), x.id()});
    return settled(std::move(result), gate, x);
}

} // namespace memscape
