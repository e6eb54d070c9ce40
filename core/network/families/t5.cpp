// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/t5.h"

#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/language_head.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// Only the variance is computed in float; x itself is scaled as it is.
Variable t5Norm(NetworkBuilder& b, const ModelDescription& model, std::string_view name, const Variable& x)
{
    const ModuleScope scope(b, name, "T5LayerNorm");
    const Variable weight = b.parameter("weight", {model.hidden});
    const Variable variance = b.mean(b.unary(OperatorKind::Power, b.cast(x, DType::Float32)), -1);
    Variable y = b.multiply(x, b.unary(OperatorKind::ReciprocalRoot, b.shift(variance)));
    if (b.ok() && elementBytes(b.options().weights) < 4)
        y = b.cast(std::move(y), b.options().weights);
    return b.multiply(weight, std::move(y));
}

/// One stack of layers and what its attention layers share.
class T5Stack
{
public:
    T5Stack(NetworkBuilder& b, const ModelDescription& model, const char* name, bool causal)
        : m_b(b)
        , m_model(model)
        , m_name(name)
        , m_causal(causal)
    { }

    /// `encoded` is the encoder's output, or nothing in the encoder itself.
    Variable run(Variable x, std::int64_t layers, const Variable& encoded);

private:
    Variable attention(std::string_view name, const Variable& x, const Variable& source, const AttentionStyle& style);
    Variable feedForward(const Variable& x);
    Variable layer(std::int64_t index, const Variable& x, const Variable& encoded);
    void makeRelativeBias();

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    const char* m_name;
    bool m_causal;
    AttentionStyle m_self, m_cross;
};

/// Embeds the bucket of every distance: (1, heads, S, S), a view of (S, S, heads).
void T5Stack::makeRelativeBias()
{
    const std::int64_t length = m_b.options().sequence;
    const ModuleScope scope(m_b, fmt::format("{}.block.0.layer.0.SelfAttention", m_name), "T5Attention");
    const Variable buckets = m_b.fill({length, length}, DType::Int64);
    Variable bias = m_b.embedding("relative_attention_bias", buckets, m_model.relativeBuckets, m_model.heads);
    m_self.bias = m_b.unsqueeze(m_b.permute(std::move(bias), {2, 0, 1}), 0);
}

Variable T5Stack::attention(std::string_view name, const Variable& argument, const Variable& origin,
                            const AttentionStyle& style)
{
    const ModuleScope scope(m_b, name, "T5Attention");
    const Variable x = m_b.columnInput(argument);
    const Variable source = origin.id() == argument.id() ? x : m_b.columnInput(origin);
    const auto projected = [&](const char* part, const Variable& from) {
        Variable y = m_b.linear(part, from, m_model.heads * m_model.headDim, false);
        return m_b.ok() ? splitHeads(m_b, std::move(y), m_model.heads, m_model.headDim) : Variable();
    };
    const Variable q = projected("q", x), k = projected("k", source), v = projected("v", source);
    return m_b.rowOutput(m_b.linear("o", attend(m_b, q, k, v, style), m_model.hidden, false));
}

Variable T5Stack::feedForward(const Variable& argument)
{
    const ModuleScope scope(m_b, "DenseReluDense", "T5Dense");
    const Variable x = m_b.columnInput(argument);
    const ActivationKind activation = m_model.activation;
    Variable inner;
    if (m_model.gated) {
        const Variable gate = activated(m_b, activation, m_b.linear("wi_0", x, m_model.ffn, false));
        const Variable up = m_b.linear("wi_1", x, m_model.ffn, false);
        inner = m_b.multiply(gate, up);
        inner = m_b.dropout(std::move(inner), m_b.options().dropout);
        return m_b.rowOutput(m_b.linear("wo", std::move(inner), m_model.hidden, false));
    }
    inner = activated(m_b, activation, m_b.linear("wi", x, m_model.ffn, false));
    inner = m_b.dropout(std::move(inner), m_b.options().dropout);
    return m_b.rowOutput(m_b.linear("wo", std::move(inner), m_model.hidden, false));
}

Variable T5Stack::layer(std::int64_t index, const Variable& argument, const Variable& encoded)
{
    Variable x = argument;
    int part = 0;
    const auto step = [&](const auto& body) {
        const ModuleScope scope(m_b, fmt::format("{}.block.{}.layer.{}", m_name, index, part++), "T5Layer");
        Variable y = t5Norm(m_b, m_model, "layer_norm", x);
        y = body(y);
        x = m_b.add(std::move(x), m_b.dropout(std::move(y), m_b.options().dropout));
    };
    step([&](const Variable& y) { return attention("SelfAttention", y, y, m_self); });
    if (encoded)
        step([&](const Variable& y) { return attention("EncDecAttention", y, encoded, m_cross); });
    step([&](const Variable& y) { return feedForward(y); });
    return x;
}

Variable T5Stack::run(Variable x, std::int64_t layers, const Variable& encoded)
{
    const BuildOptions& options = m_b.options();
    x = m_b.dropout(m_b.rowOutput(std::move(x)), options.dropout);
    m_self.softmaxInFloat = m_cross.softmaxInFloat = false;
    makeRelativeBias();
    if (m_causal)
        m_self.mask = m_b.fill({options.batch, 1, options.sequence, options.sequence}, options.weights);
    if (encoded)
        m_cross.bias = m_b.fill({1, m_model.heads, options.sequence, options.sequence}, options.weights);
    for (std::int64_t i = 0; i < layers && m_b.ok(); ++i)
        x = m_b.layer([&] { return layer(i, x, encoded); });
    if (!m_b.ok())
        return {};
    x = t5Norm(m_b, m_model, fmt::format("{}.final_layer_norm", m_name), x);
    return m_b.dropout(std::move(x), options.dropout);
}

} // namespace

Result<Graph> t5(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    const Variable tokens = tokenInput(b);
    const Variable decoderTokens = tokenInput(b, "decoder_tokens");
    Variable weight;
    {
        const ModuleScope scope(b, "shared", "Embedding");
        weight = b.parameter("weight", {model.vocab, model.hidden});
    }
    const Variable encoded = T5Stack(b, model, "encoder", false).run(b.embedding(tokens, weight), model.layers, {});
    if (!b.ok())
        return b.finish({});
    Variable x =
        T5Stack(b, model, "decoder", true).run(b.embedding(decoderTokens, weight), model.decoderLayers, encoded);
    x = b.columnInput(std::move(x));
    if (model.head == HeadKind::None)
        return b.finish(std::move(x));
    if (!model.tied)
        return finishLanguageModel(b, std::move(x), {{}, "lm_head", model.vocab, false, {}, LogitsRule::AsTheyAre});
    return finishLanguageModel(
        b, b.scale(std::move(x)),
        {b.tiedWeight("lm_head", weight), {}, 0, false, {}, LogitsRule::AsTheyAre}); // by hidden^-1/2
}

} // namespace memscape
