// SPDX-License-Identifier: Apache-2.0
// Matrix products as PyTorch reduces them: a linear layer is one addmm or mm over all leading
// dimensions, matmul of heads is a bmm over operands that were copied unless they are already a
// batch of matrices (ATen/native/LinearAlgebra.cpp, _matmul_impl), einsum is a permutation, a
// reshape and a bmm (ATen/native/Linear.cpp, sumproduct_pair). Under autocast all of them run in
// the low precision; the cast of a parameter is cached.
#include "core/network/builder.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace memscape {

/// Autocast casts the arguments of a C++ call, which gcc evaluates from the last; where it is written
/// out in Python, they come in their order.
void NetworkBuilder::castEach(std::vector<Variable*> operands)
{
    if (!m_options.rules.emulatedAutocast)
        std::reverse(operands.begin(), operands.end());
    for (Variable* const operand : operands)
        *operand = lowPrecision(std::move(*operand));
}

Variable NetworkBuilder::lowPrecision(Variable x)
{
    if (!ok() || !x || !m_options.autocast || x.dtype() != DType::Float32)
        return x;
    const TensorId source = x.id();
    if (m_graph.storageOf(source).role != Role::Parameter)
        return cast(std::move(x), *m_options.autocast);
    const bool isCached = source < m_castOf.size() && m_castOf[source] != noTensor;
    if (isCached)
        return {*this, m_castOf[source]};
    Variable result = cast(std::move(x), *m_options.autocast);
    if (!ok())
        return {};
    m_graph.storages[m_graph.tensors[result.id()].storage].role = Role::WeightCast;
    if (m_graph.tensors[source].needsGradient || !m_options.gradient) {
        m_castOf.resize(std::max<std::size_t>(m_castOf.size(), source + 1), noTensor);
        m_castOf[source] = result.id();
        m_casts.push_back(result);
    }
    return result;
}

Variable NetworkBuilder::linear(Variable x, Variable weight, Variable bias)
{
    const Variable held = x; // named by the caller until the operator is done, beside its cast
    castEach({&x, &weight, &bias});
    if (ok() && x.size(-1) != weight.size(1))
        refuse("network.shape", fmt::format("a linear layer for {} inputs was given {}", weight.size(1), x.size(-1)));
    if (ok() && weight.dtype() != x.dtype())
        refuse("network.dtype",
               fmt::format("a linear layer in {} was given {}", dtypeText(weight.dtype()), dtypeText(x.dtype())));
    if (!ok())
        return {};
    Shape rows{x.layout().elements() / std::max<std::int64_t>(x.size(-1), 1), x.size(-1)};
    if (!x.layout().viewed(rows))
        x = contiguous(std::move(x));
    const Variable copy = fp8Copy(x);
    Variable result = product(x, weight, copy && m_options.keepsFp8 ? copy : x, weight, bias);
    return settled(std::move(result), x, weight, bias);
}

// The product with `operand`; what is packed for backward are `kept` and `weight`.
Variable NetworkBuilder::product(Variable& x, const Variable& operand, const Variable& kept, const Variable& weight,
                                 const Variable& bias)
{
    Shape shape = x.shape();
    shape[shape.rank - 1] = operand.size(0);
    const DType dtype = x.dtype();
    const std::array<TensorId, 3> inputs{x.id(), operand.id(), bias.id()};
    // 1: the bias is copied first (eager_kernels.h).
    begin(bias ? OperatorKind::Addmm : OperatorKind::Mm, {inputs.data(), bias ? 3u : 2u}).attribute =
        bias && m_options.rules.copiesBias ? 1 : 0;
    const TensorId result = addOutput({Layout(shape), dtype}, true);
    if (needsGradient(weight))
        save(kept.id());
    if (needsGradient(x))
        save(weight.id());
    return {*this, result};
}

Variable NetworkBuilder::bmm(Variable x, Variable y, const Variable& offsets)
{
    if (!ok())
        return {};
    const Shape shape{x.size(0), x.size(1), y.size(2)};
    const DType dtype = x.dtype();
    begin(OperatorKind::Bmm, std::array{x.id(), y.id()});
    const TensorId result = addOutput({Layout(shape), dtype}, true);
    if (needsGradient(y))
        save(x.id());
    if (needsGradient(x))
        save(y.id());
    if (offsets && (needsGradient(x) || needsGradient(y)))
        save(offsets.id());
    return settled(Variable(*this, result), x, y);
}

Variable NetworkBuilder::matmul(Variable x, Variable y)
{
    const Variable heldX = x, heldY = y;
    castEach({&x, &y});
    const Variable castX = x, castY = y; // arguments of the function that autocast wraps
    if (!ok())
        return {};
    const int rank = x.shape().rank;
    if (rank < 3 || y.shape().rank != rank || x.size(-1) != y.size(-2)) {
        refuse("network.shape", fmt::format("matmul of {} columns with {} rows", x.size(-1), y.size(-2)));
        return {};
    }
    Shape left, right, result;
    std::int64_t batch = 1;
    for (int i = 0; i < rank - 2; ++i) {
        const std::int64_t size = std::max(x.shape()[i], y.shape()[i]);
        batch *= size;
        for (Shape* const shape : {&left, &right, &result})
            shape->append(size);
    }
    const std::int64_t rows = x.size(-2), inner = x.size(-1), columns = y.size(-1);
    left.append(rows), left.append(inner);
    right.append(inner), right.append(columns);
    result.append(rows), result.append(columns);
    x = reshape(expand(std::move(x), left), {batch, rows, inner});
    y = reshape(expand(std::move(y), right), {batch, inner, columns});
    return view(bmm(std::move(x), std::move(y)), result);
}

namespace {

/// The letters of an einsum by what happens to them, in the order that sumproduct_pair gives them.
struct EinsumPlan
{
    std::string both, left, right, summed;
};

EinsumPlan planned(std::string_view x, std::string_view y, std::string_view result)
{
    EinsumPlan plan;
    for (const char letter : result) {
        const bool inX = x.find(letter) != x.npos;
        const bool inY = y.find(letter) != y.npos;
        (inX && inY ? plan.both : inX ? plan.left : plan.right) += letter;
    }
    for (const char letter : x)
        if (y.find(letter) != y.npos && result.find(letter) == result.npos)
            plan.summed += letter;
    return plan;
}

std::int64_t attributeOf(std::string_view from, std::string_view to)
{
    std::int64_t attribute = 0;
    for (std::size_t i = 0; i < to.size(); ++i)
        attribute |= std::int64_t(from.find(to[i])) << (4 * i);
    return attribute;
}

Layout permutedAs(const Layout& layout, std::string_view from, std::string_view to)
{
    std::array<int, maxRank> order{};
    for (std::size_t i = 0; i < to.size(); ++i)
        order[i] = int(from.find(to[i]));
    return layout.permuted({order.data(), to.size()});
}

} // namespace

Variable NetworkBuilder::einsum(std::string_view equation, Variable x, Variable y)
{
    const Variable heldX = x, heldY = y;
    if (!m_options.rules.isOnCpu) {
        x = lowPrecision(std::move(x));
        y = lowPrecision(std::move(y));
    }
    const auto comma = equation.find(',');
    const auto arrow = equation.find("->");
    const std::string_view xs = equation.substr(0, comma);
    const std::string_view ys = equation.substr(comma + 1, arrow - comma - 1);
    const std::string_view rs = equation.substr(arrow + 2);
    const Variable castX = x, castY = y; // arguments of the function that autocast wraps
    if (ok() && (int(xs.size()) != x.shape().rank || int(ys.size()) != y.shape().rank))
        refuse("network.shape",
               fmt::format("einsum {} of {} and {} dimensions", equation, x.shape().rank, y.shape().rank));
    if (!ok())
        return {};
    const EinsumPlan plan = planned(xs, ys, rs);
    const auto sizeOf = [&](char letter) {
        const auto at = xs.find(letter);
        return at != xs.npos ? x.shape()[int(at)] : y.shape()[int(ys.find(letter))];
    };
    const auto product = [&](const std::string& letters) {
        std::int64_t sum = 1;
        for (const char letter : letters)
            sum *= sizeOf(letter);
        return sum;
    };
    const std::int64_t batch = product(plan.both), rows = product(plan.left), inner = product(plan.summed),
                       columns = product(plan.right);
    const std::string order = plan.both + plan.left + plan.right;
    Shape shape;
    for (const char letter : order)
        shape.append(sizeOf(letter));
    Variable result;
    const std::string xOrder = plan.both + plan.left + plan.summed;
    const std::string yOrder = plan.both + plan.summed + plan.right;
    if (xOrder != xs)
        x = viewOf(OperatorKind::Permute, x, permutedAs(x.layout(), xs, xOrder), attributeOf(xs, xOrder));
    x = reshape(std::move(x), {batch, rows, inner}); // its last node runs after those of y
    if (yOrder != ys)
        y = viewOf(OperatorKind::Permute, y, permutedAs(y.layout(), ys, yOrder), attributeOf(ys, yOrder));
    y = reshape(std::move(y), {batch, inner, columns});
    if (m_options.rules.isOnCpu && m_options.autocast && ok()) // einsum is on CUDA's list alone: its bmm casts, a view
        result = castProduct(std::move(x), std::move(y));
    else
        result = bmm(std::move(x), std::move(y));
    result = view(std::move(result), shape);
    if (order != rs && ok())
        result = viewOf(OperatorKind::Permute, result, permutedAs(result.layout(), order, rs), attributeOf(order, rs));
    return result;
}

/// A bmm that autocast wraps; the cast of a view is not cached, be it of a parameter.
Variable NetworkBuilder::castProduct(Variable x, Variable y)
{
    const Variable heldX = x, heldY = y;
    y = cast(std::move(y), *m_options.autocast);
    x = cast(std::move(x), *m_options.autocast);
    const Variable castX = x, castY = y;
    return bmm(std::move(x), std::move(y));
}

} // namespace memscape
