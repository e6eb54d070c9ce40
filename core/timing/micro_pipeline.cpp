// SPDX-License-Identifier: Apache-2.0
#include "core/timing/micro_pipeline.h"

#include "core/timing/fp8_casts.h"

#include <algorithm>

namespace memscape {

namespace {

/// The products that read what a collective gathered, or the one that wrote what it scatters.
struct Products
{
    double forward = 0, backward = 0; ///< s; backward of the input's gradient alone
    int count = 0;
};

StorageId storageBehind(const Graph& graph, TensorId tensor)
{
    return graph.tensors[tensor].storage;
}

void addProduct(Products& products, const OperatorRuns& runs, std::size_t op)
{
    products.forward += runs.forward(op).parts.total();
    products.backward += runs.backward(op).parts.total() / 2; // of the weight's gradient as much
    ++products.count;
}

Products readersOf(const Graph& graph, const OperatorRuns& runs, std::size_t gather)
{
    Products products;
    const StorageId whole = storageBehind(graph, graph.outputs(graph.operators[gather])[0]);
    for (std::size_t i = gather + 1; i < graph.operators.size() && !isCollective(graph.operators[i].kind); ++i)
        if (const Operator& op = graph.operators[i];
            isMatrixProduct(op.kind) && storageBehind(graph, graph.inputs(op)[0]) == whole)
            addProduct(products, runs, i);
    return products;
}

Products writerOf(const Graph& graph, const OperatorRuns& runs, std::size_t scatter)
{
    Products products;
    const StorageId whole = storageBehind(graph, graph.inputs(graph.operators[scatter])[0]);
    for (std::size_t i = scatter; i-- > 0 && !isCollective(graph.operators[i].kind);)
        if (const Operator& op = graph.operators[i];
            isMatrixProduct(op.kind) && storageBehind(graph, graph.outputs(op)[0]) == whole) {
            addProduct(products, runs, i);
            break;
        }
    return products;
}

} // namespace

double hiddenByPieces(const Graph& graph, const Plan& plan, const OperatorRuns& runs,
                      std::span<const RecomputedRange> recomputed,
                      const std::function<double(const Collective&)>& seconds)
{
    if (!plan.asyncTensorParallel || plan.tensorParallel < 2)
        return 0;
    const bool isTraining = plan.phase == StepPhase::Training;
    const double ranks = plan.tensorParallel;
    double hidden = 0;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator& op = graph.operators[i];
        while (!recomputed.empty() && i >= recomputed.front().last)
            recomputed = recomputed.subspan(1);
        const bool isGather = op.kind == OperatorKind::AllGather;
        if (!isGather && op.kind != OperatorKind::ReduceScatter)
            continue;
        const TensorId whole = isGather ? graph.outputs(op)[0] : graph.inputs(op)[0];
        const double bytes = double(graph.layoutOf(whole).elements() * elementBytes(graph.tensors[whole].dtype));
        const CollectiveKind kind = isGather ? CollectiveKind::AllGather : CollectiveKind::ReduceScatter;
        const Products products = isGather ? readersOf(graph, runs, i) : writerOf(graph, runs, i);
        const auto beside = [&](double computing, bool isBackward) {
            const double payload = bytes * sharedAs(graph, i, plan, isBackward);
            return std::min(seconds({"activations", kind, payload, 1, plan.tensorParallel}),
                            (ranks - 1) / ranks * computing);
        };
        const bool isReplayed = isTraining && !recomputed.empty() && i >= recomputed.front().first;
        hidden += (isReplayed ? 2 : 1) * beside(products.forward, false);
        if (isTraining && (!isGather || products.count == 1))
            hidden += beside(products.backward, true);
    }
    return hidden * (isTraining ? plan.accumulation : 1);
}

} // namespace memscape
