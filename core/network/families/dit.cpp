// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/dit.h"

#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/diffusion_parts.h"

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t timeChannels = 256;

/// Time and class of each picture: (B, hidden).
Variable ditCondition(NetworkBuilder& b, const ModelDescription& model)
{
    Variable time;
    {
        const ModuleScope scope(b, "t_embedder.mlp", "TimestepEmbedder");
        time = b.silu(b.linear("0", timeWaves(b, timeChannels), model.hidden));
        time = b.linear("2", std::move(time), model.hidden);
    }
    const ModuleScope scope(b, "y_embedder", "LabelEmbedder");
    Variable labels = b.input("labels", {b.options().batch}, DType::Int64);
    if (b.options().gradient) { // some are dropped, so that guidance has something to compare with
        const Variable dropped = b.compare(b.fill({b.options().batch}, DType::Float32));
        labels = b.where(dropped, std::move(labels));
    }
    return b.add(std::move(time),
                 b.embedding("embedding_table", std::move(labels), model.picture.classes + 1, model.hidden));
}

/// `count` vectors for each picture out of its condition: (B, 1, hidden) each, views of one tensor.
std::vector<Variable> modulation(NetworkBuilder& b, const Variable& condition, int count)
{
    const ModuleScope scope(b, "adaLN_modulation", "Sequential");
    const std::int64_t hidden = b.ok() ? condition.size(-1) : 1;
    Variable all = b.linear("1", b.silu(condition), count * hidden);
    return b.chunk(std::move(all), count, 1);
}

/// norm(x) · (1 + scale) + shift; the norm has no weights of its own.
Variable modulated(NetworkBuilder& b, const Variable& x, const Variable& shift, const Variable& scale)
{
    const Variable normed = b.layerNorm(x, Variable(), Variable());
    Variable factor = b.shift(b.unsqueeze(scale, 1));
    Variable result = b.multiply(normed, std::move(factor));
    return b.add(std::move(result), b.unsqueeze(shift, 1));
}

Variable ditAttention(NetworkBuilder& b, const ModelDescription& model, const Variable& x)
{
    const ModuleScope scope(b, "attn", "Attention");
    if (!b.ok())
        return {};
    const std::int64_t batch = x.size(0), length = x.size(1);
    Variable joined = b.linear("qkv", x, 3 * model.hidden, true);
    joined = b.permute(b.view(std::move(joined), {batch, length, 3, model.heads, model.headDim}), {2, 0, 3, 1, 4});
    std::vector<Variable> parts = b.unbind(std::move(joined), 0);
    if (!b.ok())
        return {};
    AttentionStyle style;
    style.softmaxInFloat = style.scalesScores = false;
    if (b.options().attention == AttentionKernel::Eager)
        parts[0] = b.scale(std::move(parts[0]));
    return b.linear("proj", attend(b, parts[0], parts[1], parts[2], style), model.hidden);
}

Variable ditLayer(NetworkBuilder& b, const ModelDescription& model, const Variable& argument, const Variable& condition)
{
    const std::vector<Variable> vectors = modulation(b, condition, 6); // shift, scale, gate; the same for the MLP
    if (!b.ok())
        return {};
    const auto gated = [&](const Variable& x, std::size_t first, const auto& body) {
        Variable y = modulated(b, x, vectors[first], vectors[first + 1]);
        y = NetworkBuilder::call(std::move(y), body);
        Variable gate = b.unsqueeze(vectors[first + 2], 1);
        return b.add(x, b.multiply(std::move(gate), std::move(y)));
    };
    const Variable x = gated(argument, 0, [&](const Variable& y) { return ditAttention(b, model, y); });
    return gated(x, 3, [&](const Variable& y) {
        const ModuleScope scope(b, "mlp", "Mlp");
        Variable inner = activated(b, model.activation, b.linear("fc1", y, model.ffn));
        return b.linear("fc2", std::move(inner), model.hidden);
    });
}

/// (B, patches, patch² · C) to (B, C, size, size).
Variable unpatched(NetworkBuilder& b, const ModelDescription& model, Variable x)
{
    if (!b.ok())
        return {};
    const std::int64_t patch = model.picture.patch, side = model.picture.size / patch,
                       channels = model.diffusion.outputs;
    const std::int64_t batch = x.size(0);
    x = b.view(std::move(x), {batch, side, side, patch, patch, channels});
    return b.reshape(b.permute(std::move(x), {0, 5, 1, 3, 2, 4}), {batch, channels, side * patch, side * patch});
}

} // namespace

Result<Graph> dit(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    const PictureInput& picture = model.picture;
    const std::int64_t side = picture.size / picture.patch;
    const Variable latents =
        b.input("latents", {options.batch, picture.channels, picture.size, picture.size}, options.weights);
    Variable x = b.convolution("x_embedder.proj", latents, model.hidden, {picture.patch, picture.patch, 0, 1, true});
    if (b.ok())
        x = b.transpose(b.flatten(std::move(x), 2), 1, 2);
    x = b.add(std::move(x), b.parameter("pos_embed", {1, side * side, model.hidden}, false)); // sines, not trained
    const Variable condition = ditCondition(b, model);
    b.repeat(x, "blocks", 0, model.layers, [&](std::int64_t i, Variable& y) {
        const ModuleScope scope(b, fmt::format("blocks.{}", i), "DiTBlock");
        y = b.layer([&] { return ditLayer(b, model, y, condition); });
    });
    {
        const ModuleScope scope(b, "final_layer", "FinalLayer");
        const std::vector<Variable> vectors = modulation(b, condition, 2);
        if (b.ok())
            x = modulated(b, x, vectors[0], vectors[1]);
        x = b.linear("linear", std::move(x), picture.patch * picture.patch * model.diffusion.outputs);
    }
    return finishNoise(b, unpatched(b, model, std::move(x)));
}

} // namespace memscape
