// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/unet.h"

#include "core/network/families/attention.h"
#include "core/network/families/diffusion_parts.h"

#include <fmt/format.h>

namespace memscape {

namespace {

class UNet
{
public:
    UNet(NetworkBuilder& b, const ModelDescription& model)
        : m_b(b)
        , m_model(model)
        , m_shape(model.diffusion)
    { }

    Variable noise();

private:
    std::string numbered(const char* name, std::size_t i) const { return fmt::format("{}.{}", name, i); }
    Variable groupNorm(std::string_view name, Variable x);
    Variable convolution(std::string_view name, Variable x, std::int64_t channels, std::int64_t stride = 1);
    Variable heads(Variable x, std::int64_t count);
    Variable attention(const char* name, const Variable& x, const Variable& source, std::int64_t count);
    Variable feedForward(const Variable& x);
    Variable transformerLayer(const Variable& x, std::int64_t count);
    Variable resnetBody(const Variable& x, std::int64_t width);
    Variable pixelsBody(const Variable& x, std::int64_t count);
    Variable resnet(std::size_t i, const Variable& x, std::int64_t width);
    Variable pixels(std::size_t i, const Variable& x, std::int64_t count);
    Variable down(std::size_t level, Variable x);
    Variable middle(const Variable& x);
    Variable up(std::size_t step, const Variable& x);

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    const Diffusion& m_shape;
    Variable m_time, m_text;
    std::vector<Variable> m_skipped; ///< what the way up joins again, the last one first
};

Variable UNet::groupNorm(std::string_view name, Variable x)
{
    const ModuleScope scope(m_b, name, "GroupNorm");
    if (!m_b.ok())
        return {};
    const Variable weight = m_b.parameter("weight", {x.size(1)}), bias = m_b.parameter("bias", {x.size(1)});
    return m_b.groupNorm(std::move(x), m_shape.groups, weight, bias);
}

Variable UNet::convolution(std::string_view name, Variable x, std::int64_t channels, std::int64_t stride)
{
    return m_b.convolution(name, std::move(x), channels, {3, stride, 1, 1, true});
}

/// Dense for the written-out form, whose heads are rows of a batch.
Variable UNet::heads(Variable x, std::int64_t count)
{
    if (!m_b.ok())
        return {};
    const std::int64_t width = x.size(-1) / count;
    Variable split = splitHeads(m_b, std::move(x), count, width);
    return m_b.options().attention == AttentionKernel::Eager ? m_b.contiguous(std::move(split)) : split;
}

Variable UNet::attention(const char* name, const Variable& x, const Variable& source, std::int64_t count)
{
    const ModuleScope scope(m_b, name, "Attention");
    if (!m_b.ok())
        return {};
    const std::int64_t width = x.size(-1);
    Variable q = m_b.linear("to_q", x, width, false), k = m_b.linear("to_k", source, width, false),
             v = m_b.linear("to_v", source, width, false);
    q = heads(std::move(q), count);
    k = heads(std::move(k), count);
    v = heads(std::move(v), count);
    AttentionStyle style;
    style.softmaxInFloat = style.scalesScores = false; // the product scales
    Variable result = m_b.linear("to_out.0", attend(m_b, q, k, v, style), width);
    return m_b.scale(m_b.dropout(std::move(result), m_b.options().dropout)); // divided by one
}

Variable UNet::feedForward(const Variable& x)
{
    const ModuleScope scope(m_b, "ff", "FeedForward");
    if (!m_b.ok())
        return {};
    const std::int64_t width = x.size(-1);
    Variable inner;
    {
        const Variable both = m_b.linear("net.0.proj", x, 8 * width);
        const std::vector<Variable> halves = m_b.chunk(both, 2, -1);
        if (!m_b.ok())
            return {};
        Variable gate = m_b.gelu(halves[1]);
        inner = m_b.multiply(halves[0], std::move(gate));
    }
    inner = m_b.dropout(std::move(inner), m_b.options().dropout);
    return m_b.linear("net.2", std::move(inner), width);
}

Variable UNet::transformerLayer(const Variable& argument, std::int64_t count)
{
    Variable normed = m_b.layerNorm("norm1", argument);
    Variable x = attention("attn1", normed, normed, count);
    x = m_b.add(std::move(x), argument);
    normed = m_b.layerNorm("norm2", x);
    Variable y = attention("attn2", normed, m_text, count);
    x = m_b.add(std::move(y), std::move(x));
    normed = m_b.layerNorm("norm3", x);
    y = feedForward(normed);
    return m_b.add(std::move(y), std::move(x));
}

Variable UNet::resnetBody(const Variable& argument, std::int64_t width)
{
    Variable x = m_b.silu(groupNorm("norm1", argument));
    x = convolution("conv1", std::move(x), width);
    Variable time = m_b.linear("time_emb_proj", m_b.silu(m_time), width);
    if (!m_b.ok())
        return {};
    time = m_b.view(std::move(time), {m_b.options().batch, width, 1, 1});
    x = m_b.add(std::move(x), std::move(time));
    x = m_b.dropout(m_b.silu(groupNorm("norm2", std::move(x))), m_b.options().dropout);
    x = convolution("conv2", std::move(x), width);
    if (!m_b.ok())
        return {};
    Variable residual = argument;
    if (argument.size(1) != width)
        residual = m_b.convolution("conv_shortcut", argument, width, {1, 1, 0, 1, true});
    return m_b.scale(m_b.add(std::move(residual), std::move(x))); // divided by one
}

Variable UNet::resnet(std::size_t i, const Variable& x, std::int64_t width)
{
    const ModuleScope scope(m_b, numbered("resnets", i), "ResnetBlock2D");
    return m_b.layer([&] { return resnetBody(x, width); });
}

/// (B, C, H, W) as H · W tokens and back.
Variable UNet::pixelsBody(const Variable& argument, std::int64_t count)
{
    if (!m_b.ok())
        return {};
    const std::int64_t batch = argument.size(0), width = argument.size(1), side = argument.size(2);
    const Shape tokens{batch, side * side, width};
    const ConvolutionShape one{1, 1, 0, 1, true};
    Variable x = groupNorm("norm", argument);
    if (!m_shape.isProjectionLinear)
        x = m_b.convolution("proj_in", std::move(x), width, one);
    if (m_b.ok())
        x = m_b.reshape(m_b.permute(std::move(x), {0, 2, 3, 1}), tokens);
    if (m_shape.isProjectionLinear)
        x = m_b.linear("proj_in", std::move(x), width);
    {
        const ModuleScope scope(m_b, "transformer_blocks.0", "BasicTransformerBlock");
        x = m_b.layer([&] { return transformerLayer(x, count); });
    }
    if (m_shape.isProjectionLinear)
        x = m_b.linear("proj_out", std::move(x), width);
    if (m_b.ok())
        x = m_b.contiguous(m_b.permute(m_b.reshape(std::move(x), {batch, side, side, width}), {0, 3, 1, 2}));
    if (!m_shape.isProjectionLinear)
        x = m_b.convolution("proj_out", std::move(x), width, one);
    return m_b.add(std::move(x), argument);
}

Variable UNet::pixels(std::size_t i, const Variable& x, std::int64_t count)
{
    const ModuleScope scope(m_b, numbered("attentions", i), "Transformer2DModel");
    return pixelsBody(x, count);
}

Variable UNet::down(std::size_t level, Variable x)
{
    const ModuleScope scope(m_b, numbered("down_blocks", level), "DownBlock2D");
    for (std::int64_t i = 0; i < m_shape.blockLayers && m_b.ok(); ++i) {
        x = resnet(std::size_t(i), x, m_shape.widths[level]);
        if (m_shape.attends[level])
            x = pixels(std::size_t(i), x, m_shape.heads[level]);
        m_skipped.push_back(x);
    }
    if (level + 1 < m_shape.widths.size()) {
        x = convolution("downsamplers.0.conv", std::move(x), m_shape.widths[level], 2);
        m_skipped.push_back(x);
    }
    return x;
}

Variable UNet::middle(const Variable& argument)
{
    const ModuleScope scope(m_b, "mid_block", "UNetMidBlock2DCrossAttn");
    const std::int64_t width = m_shape.widths.back();
    Variable x = resnet(0, argument, width);
    x = pixels(0, x, m_shape.heads.back());
    return resnet(1, x, width);
}

Variable UNet::up(std::size_t step, const Variable& argument)
{
    const ModuleScope scope(m_b, numbered("up_blocks", step), "UpBlock2D");
    const std::size_t level = m_shape.widths.size() - 1 - step;
    Variable x = argument;
    std::vector<Variable> joined; // the caller names them until this block has returned
    for (std::int64_t i = 0; i <= m_shape.blockLayers && m_b.ok(); ++i) {
        joined.push_back(std::move(m_skipped.back()));
        m_skipped.pop_back();
        x = m_b.cat({std::move(x), joined.back()}, 1);
        x = resnet(std::size_t(i), x, m_shape.widths[level]);
        if (m_shape.attends[level])
            x = pixels(std::size_t(i), x, m_shape.heads[level]);
    }
    if (level > 0)
        x = convolution("upsamplers.0.conv", m_b.interpolate(std::move(x), 2), m_shape.widths[level]);
    return x;
}

Variable UNet::noise()
{
    const PictureInput& picture = m_model.picture;
    const BuildOptions& options = m_b.options();
    const Variable latents =
        m_b.input("latents", {options.batch, picture.channels, picture.size, picture.size}, options.weights);
    m_text = m_b.input("texts", {options.batch, m_shape.textTokens, m_shape.textWidth}, options.weights);
    const std::int64_t width = m_shape.widths.front();
    {
        const ModuleScope scope(m_b, "time_embedding", "TimestepEmbedding");
        m_time = m_b.silu(m_b.linear("linear_1", timeWaves(m_b, width), 4 * width));
        m_time = m_b.linear("linear_2", std::move(m_time), 4 * width);
    }
    Variable x = convolution("conv_in", latents, width);
    m_skipped.push_back(x);
    for (std::size_t i = 0; i < m_shape.widths.size() && m_b.ok(); ++i)
        x = down(i, std::move(x));
    x = middle(x);
    for (std::size_t i = 0; i < m_shape.widths.size() && m_b.ok(); ++i)
        x = up(i, x);
    x = m_b.silu(groupNorm("conv_norm_out", std::move(x)));
    return convolution("conv_out", std::move(x), m_shape.outputs);
}

} // namespace

Result<Graph> unet(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    Variable noise = UNet(b, model).noise();
    return finishNoise(b, std::move(noise));
}

} // namespace memscape
