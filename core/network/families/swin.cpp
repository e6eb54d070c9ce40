// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/swin.h"

#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/language_head.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// One stage: its picture is side × side patches of `width` channels.
class SwinStage
{
public:
    SwinStage(NetworkBuilder& b, const ModelDescription& model, std::int64_t side, std::size_t index)
        : m_b(b)
        , m_model(model)
        , m_batch(b.options().batch)
        , m_side(side)
        , m_width(model.hidden << index)
        , m_ffn(model.ffn << index)
        , m_heads(model.windows.heads[index])
        , m_window(std::min(model.windows.window, side))
    { }

    Variable layer(const Variable& x, bool isShifted);
    Variable merged(const Variable& x); ///< four neighbours joined, and narrowed by half

private:
    Variable attention(const Variable& x, const Variable& mask);
    Variable positionBias();
    Variable shiftMask();
    Variable rolled(Variable x) { return m_b.clone(m_b.clone(std::move(x))); } ///< torch.roll: each side is one copy
    Variable partitioned(Variable x, std::int64_t channels);
    std::int64_t area() const { return m_window * m_window; }
    std::int64_t windows() const { return m_side / m_window; } ///< in a row

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    std::int64_t m_batch, m_side, m_width, m_ffn, m_heads, m_window;
};

/// (B, side, side, C) to (B · windows, area, C).
Variable SwinStage::partitioned(Variable x, std::int64_t channels)
{
    const std::int64_t batch = x.size(0);
    x = m_b.view(std::move(x), {batch, windows(), m_window, windows(), m_window, channels});
    x = m_b.contiguous(m_b.transpose(std::move(x), 2, 3));
    return m_b.view(std::move(x), {batch * windows() * windows(), area(), channels});
}

/// Looked up from a table of distances: (1, heads, area, area).
Variable SwinStage::positionBias()
{
    const std::int64_t distances = 2 * m_window - 1;
    const Variable table = m_b.parameter("relative_position_bias_table", {distances * distances, m_heads});
    const Variable index = m_b.buffer("relative_position_index", {area() * area()}, DType::Int64);
    Variable bias = m_b.view(m_b.index(table, index), {area(), area(), m_heads});
    return m_b.unsqueeze(m_b.contiguous(m_b.permute(std::move(bias), {2, 0, 1})), 0);
}

/// Which patches of a shifted window were neighbours before: one mask a window, made again by every layer.
Variable SwinStage::shiftMask()
{
    const Variable regions = partitioned(m_b.fill({1, m_side, m_side, 1}, m_b.options().weights), 1);
    const Variable rows = m_b.view(regions, {windows() * windows(), 1, area()});
    const Variable columns = m_b.view(regions, {windows() * windows(), area(), 1});
    Variable mask = m_b.subtract(rows, columns);
    mask = m_b.maskedFill(mask, m_b.equalsNumber(mask));
    return m_b.maskedFill(mask, m_b.equalsNumber(mask));
}

Variable SwinStage::attention(const Variable& x, const Variable& shifts)
{
    const std::int64_t headDim = m_width / m_heads;
    Variable context;
    {
        const ModuleScope scope(m_b, "attention.self", "SwinAttention");
        const auto projected = [&](const char* name) {
            Variable y = m_b.linear(name, x, m_width, m_model.biases.query);
            return m_b.ok() ? splitHeads(m_b, std::move(y), m_heads, headDim) : Variable();
        };
        const Variable q = projected("query"), k = projected("key"), v = projected("value");
        AttentionStyle style;
        style.mask = positionBias();
        if (shifts && m_b.ok()) {
            const std::int64_t count = windows() * windows();
            const Variable each = m_b.view(shifts, {1, count, 1, area(), area()});
            const Variable all = m_b.reshape(m_b.expand(each, {m_batch, count, 1, area(), area()}),
                                             {m_batch * count, 1, area(), area()});
            style.mask = m_b.add(style.mask, all);
        }
        context = attend(m_b, q, k, v, style);
    }
    return m_b.linear("attention.output.dense", std::move(context), m_width);
}

Variable SwinStage::layer(const Variable& argument, bool isShifted)
{
    const bool shifts = isShifted && m_side > m_window;
    const double dropout = m_b.options().dropout;
    const Shape picture{m_batch, m_side, m_side, m_width};
    Variable x;
    {
        Variable y = m_b.view(m_b.layerNorm("layernorm_before", argument), picture);
        y = m_b.clone(std::move(y)); // padded by nothing
        y = partitioned(shifts ? rolled(y) : y, m_width);
        const Variable mask = shifts ? shiftMask() : Variable();
        y = m_b.dropout(attention(y, mask), dropout);
        y = m_b.view(std::move(y), {m_batch, windows(), windows(), m_window, m_window, m_width});
        y = m_b.view(m_b.contiguous(m_b.transpose(std::move(y), 2, 3)), picture);
        if (shifts)
            y = rolled(std::move(y));
        y = m_b.view(std::move(y), argument.shape());
        x = m_b.add(argument, std::move(y));
    }
    Variable y = m_b.layerNorm("layernorm_after", x);
    y = activated(m_b, m_model.activation, m_b.linear("intermediate.dense", std::move(y), m_ffn));
    y = m_b.linear("output.dense", std::move(y), m_width);
    return m_b.add(m_b.dropout(std::move(y), dropout), x);
}

Variable SwinStage::merged(const Variable& x)
{
    const ModuleScope scope(m_b, "downsample", "SwinPatchMerging");
    const std::int64_t half = m_side / 2;
    const Variable pairs = m_b.view(x, {m_batch, half, 2, half, 2, m_width});
    std::vector<Variable> neighbours;
    for (int i = 0; i < 4; ++i) {
        const Variable row = m_b.select(pairs, 2);
        neighbours.push_back(m_b.ok() ? m_b.select(row, 3) : Variable());
    }
    Variable y = m_b.ok() ? m_b.cat(std::move(neighbours), -1) : Variable();
    y = m_b.layerNorm("norm", m_b.view(std::move(y), {m_batch, half * half, 4 * m_width}));
    return m_b.linear("reduction", std::move(y), 2 * m_width, false);
}

Variable swinPatches(NetworkBuilder& b, const ModelDescription& model)
{
    const PictureInput& picture = model.picture;
    const ModuleScope scope(b, "embeddings", "SwinEmbeddings");
    const Variable pictures =
        b.input("pictures", {b.options().batch, picture.channels, picture.size, picture.size}, b.options().weights);
    Variable x = b.convolution("patch_embeddings.projection", pictures, model.hidden,
                               {picture.patch, picture.patch, 0, 1, true});
    if (!b.ok())
        return {};
    x = b.transpose(b.flatten(std::move(x), 2), 1, 2);
    return b.dropout(b.layerNorm("norm", std::move(x)), b.options().dropout);
}

Variable swinStages(NetworkBuilder& b, const ModelDescription& model, Variable x)
{
    const ModuleScope scope(b, "encoder", "SwinEncoder");
    const std::vector<std::int64_t>& depths = model.windows.depths;
    std::int64_t side = model.picture.size / model.picture.patch;
    Variable reshaped; // what a stage gives back beside its result: channels first
    for (std::size_t i = 0; i < depths.size() && b.ok(); ++i, side /= 2) {
        const ModuleScope each(b, fmt::format("layers.{}", i), "SwinStage");
        SwinStage stage(b, model, side, i);
        for (std::int64_t k = 0; k < depths[i] && b.ok(); ++k) {
            const ModuleScope block(b, fmt::format("blocks.{}", k), "SwinLayer");
            x = b.layer([&] { return stage.layer(x, k % 2 == 1); });
        }
        if (!b.ok())
            return {};
        const bool isHalved = i + 1 < depths.size();
        if (isHalved)
            x = stage.merged(x);
        const std::int64_t now = isHalved ? side / 2 : side;
        if (b.ok())
            reshaped = b.contiguous(b.permute(b.view(x, {b.options().batch, now, now, x.size(2)}), {0, 3, 1, 2}));
    }
    return x;
}

} // namespace

Result<Graph> swin(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    Variable x;
    {
        const ModuleScope scope(b, "swin", "SwinModel");
        x = b.layerNorm("layernorm", swinStages(b, model, swinPatches(b, model)));
    }
    if (!b.ok())
        return b.finish({});
    x = b.flatten(b.mean(b.transpose(std::move(x), 1, 2), -1), 1);
    return finishClassifier(b, b.linear("classifier", std::move(x), model.picture.classes));
}

} // namespace memscape
