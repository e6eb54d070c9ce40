// SPDX-License-Identifier: Apache-2.0
// Models whose list of parameters is that of their recorded network (Whisper, DINOv2, Swin, DiT, the UNet, Mamba,
// LLaVA): written once, by their family.
#include "core/network/inventory_writer.h"
#include "core/network/network.h"

#include <algorithm>
#include <charconv>

namespace memscape {

namespace {

TensorRole roleOf(const Graph& graph, const NamedTensor& parameter)
{
    const int rank = graph.layoutOf(parameter.tensor).rank();
    const std::string& type = graph.modules[parameter.module].type;
    if (parameter.name.ends_with("bias"))
        return TensorRole::Bias;
    if (type == "Embedding")
        return TensorRole::Embedding;
    if (rank == 1)
        return TensorRole::Norm;
    if (!parameter.name.ends_with("weight"))
        return TensorRole::Other; // tables of positions, tokens
    return rank == 2 ? TensorRole::Matrix : TensorRole::Convolution;
}

/// The number behind "layers." or "layer." in a path; −1: there is none.
std::int64_t layerOf(std::string_view path)
{
    for (const std::string_view word : {"layers.", "layer."}) {
        const std::size_t at = path.find(word);
        std::int64_t index = -1;
        if (at == std::string_view::npos)
            continue;
        std::from_chars(path.data() + at + word.size(), path.data() + path.size(), index);
        return index;
    }
    return -1;
}

} // namespace

void writeRecorded(const ModelDescription& model, InventoryWriter& out)
{
    BuildOptions options;
    options.gradient = options.loss = false;
    options.sequence = std::max<std::int64_t>(1, model.vision.tokens());
    const auto graph = buildNetwork(model, options);
    if (!graph)
        return out.refuse(graph.error());
    const std::vector<std::string> paths = graph->paths();
    for (const NamedTensor& parameter : graph->parameters) {
        const std::string& path = paths[parameter.module];
        out.enter(path.empty() ? "" : path + ".", layerOf(path));
        const Shape& shape = graph->layoutOf(parameter.tensor).shape;
        out.add(parameter.name, {shape.sizes.begin(), shape.sizes.begin() + shape.rank}, roleOf(*graph, parameter));
    }
}

} // namespace memscape
