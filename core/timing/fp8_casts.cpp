// SPDX-License-Identifier: Apache-2.0
#include "core/timing/fp8_casts.h"

#include <algorithm>

namespace memscape {

namespace {

/// B for each element.
constexpr double readForMaximum = 2, oneCast = 2 + 1, castBothWays = 2 + 1 + 1, castByNorm = 1 + 1 + 1 - 2, turned = 2;

/// Of what ranks cast before they gather it; `hasMaximum`: the kernel that wrote it has found its maximum.
double gatheredBytes(const Plan& plan, bool hasMaximum)
{
    return (oneCast + (hasMaximum ? 0 : readForMaximum)) / plan.tensorParallel + turned;
}

/// The product in FP8 whose result a collective scatters, or that reads what it gathered.
bool servesFp8(const Graph& graph, std::size_t product, std::size_t collective, const Plan& plan)
{
    const Operator &op = graph.operators[product], &other = graph.operators[collective];
    const TensorId own = product > collective ? graph.inputs(op)[0] : graph.outputs(op)[0];
    const TensorId theirs = product > collective ? graph.outputs(other)[0] : graph.inputs(other)[0];
    return isInFp8(graph, product, plan) && graph.tensors[own].storage == graph.tensors[theirs].storage;
}

/// The product's result is scattered, so that its gradient is gathered.
bool isScattered(const Graph& graph, std::size_t product)
{
    const StorageId result = graph.tensors[graph.outputs(graph.operators[product])[0]].storage;
    for (std::size_t i = product + 1; i < graph.operators.size() && !isMatrixProduct(graph.operators[i].kind); ++i)
        if (const Operator& op = graph.operators[i]; op.kind == OperatorKind::ReduceScatter)
            return graph.tensors[graph.inputs(op)[0]].storage == result;
    return false;
}

double elementsIn(const Graph& graph, TensorId tensor)
{
    return double(graph.layoutOf(tensor).elements());
}

/// B for each element of a product's input.
double inputBytes(const Graph& graph, std::size_t product, const Plan& plan)
{
    const bool isDelayed = plan.fp8Scaling == Fp8Scaling::Delayed;
    const bool findsInNorms = plan.fp8Scaling != Fp8Scaling::Tensorwise;
    const TensorId input = graph.inputs(graph.operators[product])[0];
    for (std::size_t i = product; i-- > 0;) {
        const Operator& op = graph.operators[i];
        if (isMatrixProduct(op.kind) && graph.inputs(op)[0] == input)
            return 0; // which has cast it
        const auto outputs = graph.outputs(op);
        if (std::find(outputs.begin(), outputs.end(), input) == outputs.end())
            continue;
        if (op.kind == OperatorKind::AllGather)
            return gatheredBytes(plan, findsInNorms); // of a norm's result
        const bool isNorm = op.kind == OperatorKind::LayerNorm || op.kind == OperatorKind::RmsNorm;
        if (isDelayed)
            return isNorm ? castByNorm : castBothWays;
        return isNorm && findsInNorms ? castBothWays : readForMaximum + castBothWays;
    }
    return isDelayed ? castBothWays : readForMaximum + castBothWays;
}

} // namespace

bool isInFp8(const Graph& graph, std::size_t op, const Plan& plan)
{
    if (plan.precision != Precision::Fp8 || op == 0 || op >= graph.operators.size()
        || !isMatrixProduct(graph.operators[op].kind))
        return false;
    const Operator& cast = graph.operators[op - 1];
    return cast.kind == OperatorKind::Cast && graph.tensors[graph.outputs(cast)[0]].dtype == DType::Float8E4M3
        && graph.inputs(cast)[0] == graph.inputs(graph.operators[op])[0];
}

Fp8Casts fp8CastsForward(const Graph& graph, std::size_t product, const Plan& plan)
{
    const auto inputs = graph.inputs(graph.operators[product]);
    const double input = inputBytes(graph, product, plan) * elementsIn(graph, inputs[0]);
    const double weight = elementsIn(graph, inputs[1]);
    const double once = 1.0 / plan.accumulation;
    switch (plan.fp8Scaling) {
    case Fp8Scaling::Delayed: return {input + castBothWays * weight * once, 1 + once};
    case Fp8Scaling::Current: return {input + (readForMaximum + castBothWays) * weight * once, 2 + 2 * once};
    default: return {input + (readForMaximum + oneCast) * weight, 6};
    }
}

Fp8Casts fp8CastsBackward(const Graph& graph, std::size_t product, const Plan& plan)
{
    const Operator& op = graph.operators[product];
    const double gradient = elementsIn(graph, graph.outputs(op)[0]), weight = elementsIn(graph, graph.inputs(op)[1]);
    const bool isGathered = isScattered(graph, product);
    if (plan.fp8Scaling == Fp8Scaling::Delayed)
        return {(isGathered ? gatheredBytes(plan, true) : castBothWays) * gradient, 1};
    const double cast = (isGathered ? gatheredBytes(plan, false) : readForMaximum + castBothWays) * gradient;
    return plan.fp8Scaling == Fp8Scaling::Current ? Fp8Casts{cast, 2} : Fp8Casts{cast + oneCast * weight, 4};
}

double sharedAs(const Graph& graph, std::size_t collective, const Plan& plan, bool isBackward)
{
    const OperatorKind kind = graph.operators[collective].kind; // a scattered result's gradient is gathered
    if (kind != (isBackward ? OperatorKind::ReduceScatter : OperatorKind::AllGather))
        return 1;
    const std::size_t step = isBackward ? std::size_t(-1) : 1;
    for (std::size_t i = collective + step; i < graph.operators.size() && !isCollective(graph.operators[i].kind);
         i += step)
        if (servesFp8(graph, i, collective, plan))
            return 0.5;
    return 1;
}

} // namespace memscape
