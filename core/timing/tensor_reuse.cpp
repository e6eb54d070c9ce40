// SPDX-License-Identifier: Apache-2.0
#include "core/timing/tensor_reuse.h"

#include <algorithm>
#include <limits>

namespace memscape {

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

class ReuseWalk
{
public:
    ReuseWalk(const Graph& graph, double cache)
        : m_graph(graph)
        , m_cache(cache)
        , m_values(graph.storages.size(), never)
        , m_gradients(graph.storages.size(), never)
    { }

    double forward(const Operator& op)
    {
        double far = 0;
        for (const TensorId tensor : m_graph.inputs(op))
            far += used(m_values, tensor, true);
        for (const TensorId tensor : m_graph.outputs(op))
            far += isNew(op, tensor) ? made(m_values, tensor, true) : used(m_values, tensor, true);
        return far;
    }

    double backward(const Operator& op)
    {
        if (!op.hasGradient)
            return 0;
        double far = 0;
        const auto outputs = m_graph.outputs(op), inputs = m_graph.inputs(op);
        if (!outputs.empty())
            far += used(m_gradients, outputs[0], true);
        for (const TensorId tensor : m_graph.saved(op))
            far += used(m_values, tensor, true);
        for (const TensorId tensor : inputs)
            if (m_graph.tensors[tensor].needsGradient)
                far += made(m_gradients, tensor, isParameter(tensor));
        return far;
    }

    double touched() const { return m_touched; }

    void markParameters()
    {
        m_isParameter.assign(m_graph.storages.size(), false);
        for (const NamedTensor& parameter : m_graph.parameters)
            m_isParameter[storageOf(parameter.tensor)] = true;
    }

private:
    StorageId storageOf(TensorId tensor) const { return m_graph.tensors[tensor].storage; }
    bool isParameter(TensorId tensor) const { return m_isParameter[storageOf(tensor)]; }
    double bytesOf(TensorId tensor) const
    {
        const double dense = double(m_graph.layoutOf(tensor).elements() * elementBytes(m_graph.tensors[tensor].dtype));
        return std::min(dense, double(m_graph.storageOf(tensor).bytes));
    }
    /// A view or a result in place is no new memory.
    bool isNew(const Operator& op, TensorId tensor) const
    {
        const auto inputs = m_graph.inputs(op);
        return std::none_of(inputs.begin(), inputs.end(),
                            [&](TensorId input) { return storageOf(input) == storageOf(tensor); });
    }
    double used(std::vector<double>& last, TensorId tensor, bool countsFar)
    {
        const double bytes = bytesOf(tensor);
        double& at = last[storageOf(tensor)];
        const bool isFar = m_touched - at + bytes > m_cache;
        m_touched += bytes;
        at = m_touched;
        return isFar && countsFar ? bytes : 0;
    }
    double made(std::vector<double>& last, TensorId tensor, bool goesToMemory)
    {
        const double bytes = bytesOf(tensor);
        m_touched += bytes;
        last[storageOf(tensor)] = m_touched;
        return goesToMemory || bytes > m_cache ? bytes : 0;
    }

    const Graph& m_graph;
    double m_cache;
    double m_touched = 0;                      ///< B so far
    std::vector<double> m_values, m_gradients; ///< by storage: the bytes touched when it was last used
    std::vector<bool> m_isParameter;
};

bool touchesNothing(const Operator& op)
{
    return op.kind == OperatorKind::Release || isView(op.kind);
}

} // namespace

std::vector<FarBytes> farBytes(const Graph& graph, double held, double cache, bool isTraining, Copies copies)
{
    std::vector<FarBytes> all(graph.operators.size());
    if (held <= cache)
        return all;
    std::vector<std::size_t> walked;
    auto copied = graph.copies.begin();
    for (std::size_t i = 0; i < all.size(); ++i) {
        while (copied != graph.copies.end() && i >= copied->last)
            ++copied;
        const bool isCopy = copied != graph.copies.end() && i >= copied->first;
        if (!touchesNothing(graph.operators[i]) && !(isCopy && copies == Copies::Skipped))
            walked.push_back(i);
    }
    ReuseWalk walk(graph, cache);
    walk.markParameters();
    for (const std::size_t i : walked) {
        const double before = walk.touched();
        all[i].forward = walk.forward(graph.operators[i]);
        all[i].forwardAll = walk.touched() - before;
    }
    for (auto i = walked.rbegin(); isTraining && i != walked.rend(); ++i) {
        const double before = walk.touched();
        all[*i].backward = walk.backward(graph.operators[*i]);
        all[*i].backwardAll = walk.touched() - before;
    }
    return all;
}

} // namespace memscape
