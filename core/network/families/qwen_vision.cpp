// SPDX-License-Identifier: Apache-2.0
// The vision tower of Qwen2-VL (Wang et al. 2024) and of Qwen2.5-VL (Bai et al. 2025) as transformers 5.24 writes it:
// the patches of all pictures stand in one sequence (P, width), whose rotary tables are of float; attention splits it
// into pictures, or in most layers of Qwen2.5-VL into windows of a picture; four neighbours become one token.
// A fused kernel is recorded once for all splits, eager attention split by split.
//
// Left out: videos, and windows that a picture's side cuts off.
#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/vision_towers.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

class QwenVision
{
public:
    QwenVision(NetworkBuilder& b, const ModelDescription& model)
        : m_b(b)
        , m_model(model)
        , m_tower(model.vision)
        , m_patches(m_tower.patches() * b.options().batch)
    { }

    Variable record();

private:
    Variable patches();
    Variable permuted(Variable x, const Variable& order);
    Variable turned(const Variable& x);
    Variable attendSplit(const Variable& q, const Variable& k, const Variable& v, std::int64_t splits);
    Variable attention(const Variable& x, std::int64_t splits);
    Variable feedForward(const Variable& x);
    Variable layer(const Variable& argument, std::int64_t splits);
    Variable merged(const Variable& x);
    Variable norm(const char* name, Variable x)
    {
        return isFirst() ? m_b.layerNorm(name, std::move(x)) : m_b.rmsNorm(name, std::move(x));
    }
    bool isFirst() const { return m_tower.kind == VisionTower::Kind::Qwen2; }
    std::int64_t splitsOf(std::int64_t layer) const;

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    const VisionTower& m_tower;
    std::int64_t m_patches; ///< of all pictures
    Variable m_cosine, m_sine;
};

Variable QwenVision::patches()
{
    const ModuleScope scope(m_b, "patch_embed", "PatchEmbed");
    const PictureInput& picture = m_tower.picture;
    const Shape one{picture.channels, m_tower.frames, picture.patch, picture.patch};
    const Variable pixels =
        m_b.input("pictures", {m_patches, picture.channels * m_tower.frames * picture.patch * picture.patch},
                  m_b.options().weights);
    const ModuleScope projection(m_b, "proj", "Conv3d");
    const Variable weight = m_b.parameter("weight", {m_tower.hidden, one[0], one[1], one[2], one[3]});
    Variable x = m_b.view(pixels, {m_patches, one[0], one[1], one[2], one[3]});
    x = m_b.convolution(std::move(x), weight, {}, {m_patches, m_tower.hidden, 1, 1, 1}, 1);
    return m_b.view(std::move(x), {m_patches, m_tower.hidden});
}

/// Rows of four neighbours each in the order of the windows: a copy.
Variable QwenVision::permuted(Variable x, const Variable& order)
{
    if (!m_b.ok())
        return {};
    const std::int64_t unit = m_tower.merged * m_tower.merged, width = x.size(-1);
    x = m_b.index(m_b.view(std::move(x), {m_patches / unit, unit, width}), order);
    return m_b.view(std::move(x), {m_patches, width});
}

Variable QwenVision::turned(const Variable& x)
{
    const Variable cosine = m_b.unsqueeze(m_cosine, 1), sine = m_b.unsqueeze(m_sine, 1);
    return rotated(m_b, x, cosine, sine);
}

/// q, k and v (P, heads, width of a head), attended within each of `splits` parts: (P, width).
Variable QwenVision::attendSplit(const Variable& q, const Variable& k, const Variable& v, std::int64_t splits)
{
    if (!m_b.ok())
        return {};
    const bool isFused = m_b.options().attention != AttentionKernel::Eager;
    const std::int64_t heads = m_tower.heads, width = m_tower.hidden / heads, length = m_patches / splits;
    const auto asHeads = [&](const Variable& x) {
        return m_b.transpose(m_b.view(x, {isFused ? splits : 1, isFused ? length : m_patches, heads, width}), 1, 2);
    };
    const Variable q4 = asHeads(q), k4 = asHeads(k), v4 = asHeads(v);
    std::vector<Variable> parts;
    if (isFused) {
        parts.push_back(attend(m_b, q4, k4, v4, {}));
    } else {
        for (std::int64_t i = 0; i < splits && m_b.ok(); ++i) {
            const Variable each[] = {m_b.narrow(q4, 2, length), m_b.narrow(k4, 2, length), m_b.narrow(v4, 2, length)};
            parts.push_back(attend(m_b, each[0], each[1], each[2], {}));
        }
    }
    return m_b.view(m_b.cat(parts, isFused ? 0 : 1), {m_patches, m_tower.hidden});
}

Variable QwenVision::attention(const Variable& x, std::int64_t splits)
{
    const ModuleScope scope(m_b, "attn", "VisionAttention");
    const std::int64_t heads = m_tower.heads, width = m_tower.hidden / heads;
    Variable fused = m_b.view(m_b.linear("qkv", x, 3 * m_tower.hidden), {m_patches, 3, heads, width});
    if (!m_b.ok())
        return {};
    std::vector<Variable> parts = m_b.unbind(std::move(fused), 1);
    const DType dtype = parts[0].dtype();
    {
        const Variable q = m_b.cast(parts[0], DType::Float32), k = m_b.cast(parts[1], DType::Float32);
        const Variable turnedQuery = turned(q), turnedKey = turned(k);
        parts[0] = m_b.cast(turnedQuery, dtype);
        parts[1] = m_b.cast(turnedKey, dtype);
    }
    return m_b.linear("proj", attendSplit(parts[0], parts[1], parts[2], splits), m_tower.hidden);
}

Variable QwenVision::feedForward(const Variable& x)
{
    const ModuleScope scope(m_b, "mlp", "VisionMlp");
    if (isFirst())
        return m_b.linear("fc2", activated(m_b, m_tower.activation, m_b.linear("fc1", x, m_tower.ffn)), m_tower.hidden);
    Variable gate = activated(m_b, m_tower.activation, m_b.linear("gate_proj", x, m_tower.ffn));
    Variable up = m_b.linear("up_proj", x, m_tower.ffn);
    return m_b.linear("down_proj", m_b.multiply(std::move(gate), std::move(up)), m_tower.hidden);
}

Variable QwenVision::layer(const Variable& argument, std::int64_t splits)
{
    Variable x = NetworkBuilder::call(norm("norm1", argument), [&](const Variable& y) { return attention(y, splits); });
    x = m_b.add(argument, std::move(x));
    Variable y = NetworkBuilder::call(norm("norm2", x), [&](const Variable& z) { return feedForward(z); });
    return m_b.add(std::move(x), std::move(y));
}

/// Four neighbours, side by side, become one token of the decoder's width.
Variable QwenVision::merged(const Variable& argument)
{
    const ModuleScope scope(m_b, "merger", "PatchMerger");
    const std::int64_t unit = m_tower.merged * m_tower.merged, width = unit * m_tower.hidden;
    Variable x = m_b.view(norm("ln_q", argument), {m_patches / unit, width});
    const ModuleScope layers(m_b, "mlp", "Sequential");
    x = m_b.gelu(m_b.linear("0", std::move(x), width));
    return m_b.linear("2", std::move(x), m_model.hidden);
}

/// Parts in which the patches of all pictures attend to each other.
std::int64_t QwenVision::splitsOf(std::int64_t layer) const
{
    const auto& whole = m_tower.wholeLayers;
    if (isFirst() || std::find(whole.begin(), whole.end(), layer) != whole.end())
        return m_b.options().batch;
    const std::int64_t side = m_tower.picture.size / m_tower.window;
    return m_b.options().batch * side * side;
}

Variable QwenVision::record()
{
    const ModuleScope scope(m_b, "visual", "Qwen2VisionTransformer");
    Variable x = patches();
    const Shape table{m_patches, m_tower.hidden / m_tower.heads};
    m_cosine = m_b.fill(table, DType::Float32), m_sine = m_b.fill(table, DType::Float32);
    if (!isFirst()) {
        const Variable order = m_b.fill({m_patches / (m_tower.merged * m_tower.merged)}, DType::Int64);
        x = permuted(std::move(x), order);
        m_cosine = permuted(std::move(m_cosine), order), m_sine = permuted(std::move(m_sine), order);
    }
    for (std::int64_t first = 0, end = 0; first < m_tower.layers && m_b.ok(); first = end) {
        const std::int64_t splits = splitsOf(first);
        while (end < m_tower.layers && splitsOf(end) == splits)
            ++end;
        m_b.repeat(x, "blocks", first, end - first, [&](std::int64_t i, Variable& y) {
            const ModuleScope each(m_b, fmt::format("blocks.{}", i), "Qwen2VLVisionBlock");
            y = m_b.layer([&] { return layer(y, splits); });
        });
    }
    m_cosine.reset(), m_sine.reset();
    const Variable tokens = merged(x);
    return isFirst() || !m_b.ok() ? tokens : m_b.index(tokens, m_b.fill({tokens.size(0)}, DType::Int64));
}

} // namespace

Variable qwenTokens(NetworkBuilder& b, const ModelDescription& model)
{
    return QwenVision(b, model).record();
}

} // namespace memscape
