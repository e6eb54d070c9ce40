// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/vision_towers.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// CLIP's patches and class token with their positions: (B, patches + 1, width).
Variable clipPatches(NetworkBuilder& b, const VisionTower& tower)
{
    const ModuleScope scope(b, "embeddings", "CLIPVisionEmbeddings");
    const PictureInput& picture = tower.picture;
    const std::int64_t batch = b.options().batch, count = tower.patches() + 1;
    const Variable pictures =
        b.input("pictures", {batch, picture.channels, picture.size, picture.size}, b.options().weights);
    const Variable first = b.parameter("class_embedding", {tower.hidden});
    Variable x = b.convolution("patch_embedding", pictures, tower.hidden, {picture.patch, picture.patch});
    if (!b.ok())
        return {};
    x = b.transpose(b.flatten(std::move(x), 2), 1, 2);
    Variable tokens = b.expand(b.view(first, {1, 1, tower.hidden}), {batch, 1, tower.hidden});
    x = b.cat({std::move(tokens), std::move(x)}, 1);
    const Variable positions = b.buffer("position_ids", {1, count}, DType::Int64);
    return b.add(std::move(x), b.embedding("position_embedding", positions, count, tower.hidden));
}

Variable clipAttention(NetworkBuilder& b, const VisionTower& tower, const Variable& x)
{
    const ModuleScope scope(b, "self_attn", "CLIPAttention");
    const Variable q = b.linear("q_proj", x, tower.hidden), k = b.linear("k_proj", x, tower.hidden),
                   v = b.linear("v_proj", x, tower.hidden);
    const auto asHeads = [&](const Variable& y) {
        return b.ok() ? splitHeads(b, y, tower.heads, tower.hidden / tower.heads) : Variable();
    };
    const Variable heads[] = {asHeads(q), asHeads(k), asHeads(v)};
    return b.linear("out_proj", attend(b, heads[0], heads[1], heads[2], {}), tower.hidden);
}

Variable clipLayer(NetworkBuilder& b, const VisionTower& tower, const Variable& argument)
{
    Variable x = NetworkBuilder::call(b.layerNorm("layer_norm1", argument),
                                      [&](const Variable& y) { return clipAttention(b, tower, y); });
    x = b.add(argument, std::move(x));
    const Variable residual = x;
    x = b.layerNorm("layer_norm2", std::move(x));
    const ModuleScope scope(b, "mlp", "CLIPMLP");
    x = activated(b, tower.activation, b.linear("fc1", std::move(x), tower.ffn));
    return b.add(residual, b.linear("fc2", std::move(x), tower.hidden));
}

/// What the tower's chosen layer made of every patch; the layers behind it run all the same.
Variable clipFeatures(NetworkBuilder& b, const VisionTower& tower)
{
    const ModuleScope scope(b, "vision_tower", "CLIPVisionModel");
    Variable x = b.layerNorm("pre_layrnorm", clipPatches(b, tower));
    const auto run = [&](std::int64_t first, std::int64_t count) {
        const ModuleScope encoder(b, "encoder", "CLIPEncoder");
        b.repeat(x, "layers", first, count, [&](std::int64_t i, Variable& y) {
            const ModuleScope each(b, fmt::format("layers.{}", i), "CLIPEncoderLayer");
            y = b.layer([&] { return clipLayer(b, tower, y); });
        });
    };
    run(0, tower.taken);
    const Variable features = x;
    run(tower.taken, tower.layers - tower.taken);
    if (!b.ok())
        return {};
    b.layerNorm("post_layernorm", b.select(x, 1));
    return tower.keepsClass ? features : b.narrow(features, 1, tower.patches());
}

} // namespace

Variable clipTokens(NetworkBuilder& b, const ModelDescription& model)
{
    const Variable features = clipFeatures(b, model.vision);
    const ModuleScope scope(b, "multi_modal_projector", "LlavaMultiModalProjector");
    Variable x = activated(b, model.vision.projectorActivation, b.linear("linear_1", features, model.hidden));
    return b.linear("linear_2", std::move(x), model.hidden);
}

} // namespace memscape
