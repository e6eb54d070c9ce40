// SPDX-License-Identifier: Apache-2.0
#include "core/network/graph.h"

#include <array>

namespace memscape {

std::string_view operatorText(OperatorKind kind)
{
    static constexpr std::array<std::string_view, std::size_t(OperatorKind::Count)> texts{"release",
                                                                                          "view",
                                                                                          "permute",
                                                                                          "expand",
                                                                                          "slice",
                                                                                          "select",
                                                                                          "split",
                                                                                          "detach",
                                                                                          "clone",
                                                                                          "to",
                                                                                          "dequantize",
                                                                                          "cat",
                                                                                          "stack",
                                                                                          "pad",
                                                                                          "fill",
                                                                                          "compare",
                                                                                          "add",
                                                                                          "sub",
                                                                                          "mul",
                                                                                          "div",
                                                                                          "mul",
                                                                                          "add",
                                                                                          "neg",
                                                                                          "pow",
                                                                                          "square",
                                                                                          "sqrt",
                                                                                          "rsqrt",
                                                                                          "exp",
                                                                                          "log",
                                                                                          "sigmoid",
                                                                                          "tanh",
                                                                                          "relu",
                                                                                          "gelu",
                                                                                          "silu",
                                                                                          "hardswish",
                                                                                          "hardtanh",
                                                                                          "leaky_relu",
                                                                                          "elu",
                                                                                          "mish",
                                                                                          "softplus",
                                                                                          "masked_fill",
                                                                                          "where",
                                                                                          "dropout",
                                                                                          "sum",
                                                                                          "mean",
                                                                                          "max",
                                                                                          "var",
                                                                                          "softmax",
                                                                                          "log_softmax",
                                                                                          "layer_norm",
                                                                                          "rms_norm",
                                                                                          "group_norm",
                                                                                          "batch_norm",
                                                                                          "addmm",
                                                                                          "mm",
                                                                                          "bmm",
                                                                                          "convolution",
                                                                                          "flash_attention",
                                                                                          "efficient_attention",
                                                                                          "embedding",
                                                                                          "index",
                                                                                          "index_select",
                                                                                          "gather",
                                                                                          "max_pool2d",
                                                                                          "avg_pool2d",
                                                                                          "adaptive_avg_pool2d",
                                                                                          "upsample_nearest2d",
                                                                                          "upsample_bilinear2d",
                                                                                          "nll_loss",
                                                                                          "mse_loss",
                                                                                          "liger_cross_entropy",
                                                                                          "cut_cross_entropy",
                                                                                          "in_place_cross_entropy",
                                                                                          "gated_activation",
                                                                                          "all_reduce",
                                                                                          "all_gather",
                                                                                          "reduce_scatter",
                                                                                          "all_to_all",
                                                                                          "receive",
                                                                                          "fused",
                                                                                          "other"};
    return texts[std::size_t(kind)];
}

std::span<const TensorId> Graph::inputs(const Operator& op) const
{
    return {operands.data() + op.first, op.inputs};
}

std::span<const TensorId> Graph::outputs(const Operator& op) const
{
    return {operands.data() + op.first + op.inputs, op.outputs};
}

std::span<const TensorId> Graph::saved(const Operator& op) const
{
    return {operands.data() + op.first + op.inputs + op.outputs, op.saved};
}

std::string Graph::path(ModuleIndex module) const
{
    if (module == 0)
        return {};
    const ModuleCall& own = modules[module];
    if (own.parent == 0)
        return own.name;
    return path(own.parent) + '.' + own.name;
}

std::vector<std::string> Graph::paths() const
{
    std::vector<std::string> all(modules.size());
    for (std::size_t i = 1; i < modules.size(); ++i) { // parents come before their children
        const std::string& parent = all[modules[i].parent];
        all[i].reserve(parent.size() + 1 + modules[i].name.size());
        all[i] += parent;
        if (!parent.empty())
            all[i] += '.';
        all[i] += modules[i].name;
    }
    return all;
}

std::size_t Graph::recordedOperators() const
{
    std::size_t count = operators.size();
    for (const CopiedOperators& copied : copies)
        count -= copied.last - copied.first;
    return count;
}

std::int64_t Graph::parameterCount() const
{
    std::int64_t count = 0;
    for (const NamedTensor& parameter : parameters)
        count += layoutOf(parameter.tensor).elements();
    return count;
}

std::int64_t Graph::parameterBytes() const
{
    std::int64_t bytes = 0;
    for (const NamedTensor& parameter : parameters)
        bytes += storageOf(parameter.tensor).bytes;
    return bytes;
}

namespace {

/// Adds storages to a sum, each once.
class SavedSum
{
public:
    explicit SavedSum(const Graph& graph)
        : m_graph(graph)
        , m_seen(graph.storages.size(), false)
    { }

    void add(TensorId tensor)
    {
        const StorageId id = m_graph.tensors[tensor].storage;
        if (m_seen[id])
            return;
        m_seen[id] = true;
        const Storage& storage = m_graph.storages[id];
        const bool isScalar = m_graph.layoutOf(tensor).rank() == 0 && storage.bytes <= 8;
        switch (storage.role) {
        case Role::Parameter: m_sum.parameters += storage.bytes; break;
        case Role::Buffer: m_sum.buffers += storage.bytes; break;
        case Role::Input:
        case Role::Target: m_sum.inputs += storage.bytes; break;
        case Role::WeightCast: m_sum.weightCasts += storage.bytes; break;
        case Role::Activation:
            (isScalar ? m_sum.scalars : m_sum.activations) += storage.bytes;
            m_sum.activationStorages += isScalar ? 0 : 1;
        }
    }

    const SavedBytes& sum() const { return m_sum; }

private:
    const Graph& m_graph;
    std::vector<bool> m_seen;
    SavedBytes m_sum;
};

} // namespace

SavedBytes savedBytes(const Graph& graph)
{
    SavedSum sum(graph);
    for (const Operator& op : graph.operators)
        for (const TensorId tensor : graph.saved(op))
            sum.add(tensor);
    return sum.sum();
}

SavedBytes savedBytesOfLayers(const Graph& graph)
{
    SavedSum sum(graph);
    std::size_t next = 0; // block that starts here or later
    for (std::uint32_t i = 0; i < graph.operators.size(); ++i) {
        while (next < graph.blocks.size()
               && (graph.blocks[next].first < i || graph.blocks[next].kind != Block::Kind::Layer))
            ++next;
        if (next == graph.blocks.size() || graph.blocks[next].first != i) {
            for (const TensorId tensor : graph.saved(graph.operators[i]))
                sum.add(tensor);
            continue;
        }
        const Block& block = graph.blocks[next++];
        for (; i < block.last; ++i)
            for (const TensorId tensor : graph.inputs(graph.operators[i]))
                if (tensor < block.firstTensor && graph.operators[i].kind != OperatorKind::Release
                    && graph.storageOf(tensor).role == Role::Activation)
                    sum.add(tensor);
        --i;
    }
    return sum.sum();
}

} // namespace memscape
