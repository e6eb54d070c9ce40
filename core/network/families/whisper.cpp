// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/whisper.h"

#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/language_head.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// The layers of the encoder, or of the decoder, which read what the encoder made.
class WhisperStack
{
public:
    WhisperStack(NetworkBuilder& b, const ModelDescription& model, Variable mask, Variable encoded)
        : m_b(b)
        , m_model(model)
        , m_encoded(std::move(encoded))
    {
        m_self.mask = std::move(mask);
        m_self.softmaxInFloat = m_cross.softmaxInFloat = false;
    }

    Variable run(Variable x, std::int64_t layers)
    {
        x = m_b.rowOutput(m_b.dropout(std::move(x), m_b.options().dropout));
        m_b.repeat(x, "layers", 0, layers, [&](std::int64_t i, Variable& y) {
            const ModuleScope each(m_b, fmt::format("layers.{}", i), "WhisperLayer");
            y = m_b.layer([&] { return layer(y); });
        });
        return m_b.columnInput(m_b.layerNorm("layer_norm", std::move(x)));
    }

private:
    Variable attention(std::string_view name, const Variable& x, const Variable& origin, const AttentionStyle& style);
    Variable feedForward(const Variable& x);
    Variable layer(const Variable& x);

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    Variable m_encoded;
    AttentionStyle m_self, m_cross;
};

/// Queries are scaled before the product, and heads are copied into rows of their own.
Variable WhisperStack::attention(std::string_view name, const Variable& argument, const Variable& origin,
                                 const AttentionStyle& style)
{
    const ModuleScope scope(m_b, name, "WhisperAttention");
    const Variable x = m_b.columnInput(argument);
    const Variable source = origin.id() == argument.id() ? x : origin;
    const auto projected = [&](const char* part, const Variable& from, bool hasBias) {
        return m_b.linear(part, from, m_model.heads * m_model.headDim, hasBias);
    };
    const auto asHeads = [&](Variable y) {
        return m_b.ok() ? m_b.contiguous(splitHeads(m_b, std::move(y), m_model.heads, m_model.headDim)) : Variable();
    };
    const Variable q = asHeads(m_b.scale(projected("q_proj", x, m_model.biases.query)));
    const Variable k = asHeads(projected("k_proj", source, m_model.biases.key));
    const Variable v = asHeads(projected("v_proj", source, m_model.biases.value));
    Variable context = attend(m_b, q, k, v, style);
    return m_b.rowOutput(m_b.linear("out_proj", std::move(context), m_model.hidden, m_model.biases.attentionOutput));
}

Variable WhisperStack::feedForward(const Variable& argument)
{
    const Variable x = m_b.columnInput(argument);
    Variable inner = activated(m_b, m_model.activation, m_b.linear("fc1", x, m_model.ffn));
    return m_b.rowOutput(m_b.linear("fc2", std::move(inner), m_model.hidden));
}

Variable WhisperStack::layer(const Variable& argument)
{
    Variable x = argument;
    const auto step = [&](const char* norm, const auto& body) {
        const Variable residual = x;
        Variable y = m_b.layerNorm(norm, x);
        y = body(y);
        x = m_b.add(residual, m_b.dropout(std::move(y), m_b.options().dropout));
    };
    step("self_attn_layer_norm", [&](const Variable& y) { return attention("self_attn", y, y, m_self); });
    if (m_encoded)
        step("encoder_attn_layer_norm",
             [&](const Variable& y) { return attention("encoder_attn", y, m_encoded, m_cross); });
    step("final_layer_norm", [&](const Variable& y) { return feedForward(y); });
    return x;
}

/// The spectrogram through both convolutions, plus fixed positions.
Variable whisperFrames(NetworkBuilder& b, const ModelDescription& model)
{
    const AudioInput& audio = model.audio;
    const BuildOptions& options = b.options();
    const Variable frames = b.input("frames", {options.batch, audio.channels, 2 * audio.positions}, options.weights);
    Variable x = b.gelu(b.convolution1d("conv1", frames, model.hidden, {3, 1, 1, 1, true}));
    x = b.gelu(b.convolution1d("conv2", std::move(x), model.hidden, {3, 2, 1, 1, true}));
    x = b.permute(std::move(x), {0, 2, 1});
    const ModuleScope scope(b, "embed_positions", "Embedding");
    const Variable weight = b.parameter("weight", {audio.positions, model.hidden}, false);
    const Variable all = b.fill({audio.positions}, DType::Int64);
    return b.add(x, b.embedding(all, weight));
}

Variable whisperText(NetworkBuilder& b, const ModelDescription& model, const Variable& tokens, Variable& tokenWeight)
{
    {
        const ModuleScope scope(b, "embed_tokens", "Embedding");
        tokenWeight = b.parameter("weight", {model.vocab, model.hidden});
    }
    const Variable words = b.embedding(tokens, tokenWeight);
    const ModuleScope scope(b, "embed_positions", "Embedding");
    const Variable weight = b.parameter("weight", {model.maxPositions, model.hidden});
    const Variable positions = b.fill(tokens.shape(), DType::Int64);
    return b.add(words, b.index(weight, positions));
}

} // namespace

Result<Graph> whisper(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    b.refuseBeyond(model.maxPositions);
    const Variable tokens = tokenInput(b, "decoder_tokens");
    Variable encoded, x, tokenWeight;
    {
        const ModuleScope scope(b, "model.encoder", "WhisperEncoder");
        x = whisperFrames(b, model);
        if (b.ok())
            encoded = WhisperStack(b, model, {}, {}).run(std::move(x), model.layers);
    }
    if (!b.ok())
        return b.finish({});
    {
        const ModuleScope scope(b, "model.decoder", "WhisperDecoder");
        x = whisperText(b, model, tokens, tokenWeight);
        Variable mask;
        if (options.attention == AttentionKernel::Eager)
            mask = b.fill({options.batch, 1, options.sequence, options.sequence}, options.weights);
        x = WhisperStack(b, model, std::move(mask), std::move(encoded)).run(std::move(x), model.decoderLayers);
    }
    if (model.head == HeadKind::None)
        return b.finish(std::move(x));
    return finishLanguageModel(b, std::move(x),
                               {b.tiedWeight("proj_out", tokenWeight), {}, 0, false, {}, LogitsRule::AsTheyAre});
}

} // namespace memscape
