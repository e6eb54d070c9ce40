// SPDX-License-Identifier: Apache-2.0
#include "core/timing/tensor_reuse.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

/// The bytes touched, and the time, when a storage was last used.
struct LastUse
{
    double bytes = never, seconds = never;
};

class ReuseWalk
{
public:
    ReuseWalk(const Graph& graph, const ReuseCache& cache)
        : m_graph(graph)
        , m_cache(cache)
        , m_values(graph.storages.size())
        , m_gradients(graph.storages.size())
    { }

    void pass(std::size_t op, bool isBackward)
    {
        if (std::isfinite(m_cache.retention) && m_cache.seconds)
            m_now += m_cache.seconds(op, isBackward);
    }

    double forward(const Operator& op)
    {
        double far = 0;
        for (const TensorId tensor : m_graph.inputs(op))
            far += used(m_values, tensor);
        for (const TensorId tensor : m_graph.outputs(op))
            far += isNew(op, tensor) ? made(m_values, tensor, true) : used(m_values, tensor);
        return far;
    }

    double backward(const Operator& op)
    {
        if (!op.hasGradient)
            return 0;
        double far = 0;
        const auto outputs = m_graph.outputs(op), inputs = m_graph.inputs(op);
        if (!outputs.empty())
            far += used(m_gradients, outputs[0]);
        for (const TensorId tensor : m_graph.saved(op))
            far += used(m_values, tensor);
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
    double used(std::vector<LastUse>& last, TensorId tensor)
    {
        const double bytes = bytesOf(tensor);
        LastUse& at = last[storageOf(tensor)];
        const bool isFar = m_touched - at.bytes + bytes > m_cache.bytes || m_now - at.seconds > m_cache.retention;
        touch(at, bytes);
        return isFar ? bytes : 0;
    }
    double made(std::vector<LastUse>& last, TensorId tensor, bool goesToMemory)
    {
        const double bytes = bytesOf(tensor);
        touch(last[storageOf(tensor)], bytes);
        return goesToMemory || bytes > m_cache.bytes ? m_cache.perResult * bytes : 0;
    }
    void touch(LastUse& at, double bytes)
    {
        m_touched += bytes;
        at = {m_touched, m_now};
    }

    const Graph& m_graph;
    const ReuseCache& m_cache;
    double m_touched = 0, m_now = 0;            ///< B and s so far
    std::vector<LastUse> m_values, m_gradients; ///< by storage
    std::vector<bool> m_isParameter;
};

bool touchesNothing(const Operator& op)
{
    return op.kind == OperatorKind::Release || isView(op.kind);
}

} // namespace

std::vector<FarBytes> farBytes(const Graph& graph, double held, const ReuseCache& cache, bool isTraining, Copies copies)
{
    std::vector<FarBytes> all(graph.operators.size());
    if (held <= cache.bytes && !std::isfinite(cache.retention))
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
        walk.pass(i, false);
    }
    for (auto i = walked.rbegin(); isTraining && i != walked.rend(); ++i) {
        const double before = walk.touched();
        all[*i].backward = walk.backward(graph.operators[*i]);
        all[*i].backwardAll = walk.touched() - before;
        walk.pass(*i, true);
    }
    return all;
}

} // namespace memscape
