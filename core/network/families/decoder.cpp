// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/decoder.h"

#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/language_head.h"
#include "core/network/families/pictures.h"
#include "core/network/litgpt.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Gemma's: everything in float, times (1 + weight), back. LitGPT's: times the weight.
Variable normInFloat(NetworkBuilder& b, std::string_view name, const Variable& argument, const ModelDescription& model)
{
    const ModuleScope scope(b, name, "RMSNorm");
    const Variable weight = b.parameter("weight", {argument.size(-1)});
    const Variable x = b.cast(argument, DType::Float32);
    Variable normed =
        b.multiply(x, b.unary(OperatorKind::ReciprocalRoot, b.shift(b.mean(b.unary(OperatorKind::Power, x), -1))));
    const bool isGptOss = model.architecture == "gpt_oss"; // whose weight multiplies as it is
    Variable factor = isGptOss ? weight : b.cast(weight, DType::Float32);
    if (!isGptOss && !isLitGpt(model))
        factor = b.shift(std::move(factor));
    normed = b.multiply(std::move(normed), std::move(factor));
    return b.cast(std::move(normed), argument.dtype());
}

class DecoderNetwork
{
public:
    DecoderNetwork(NetworkBuilder& b, const ModelDescription& model)
        : m_b(b)
        , m_model(model)
        , m_names(decoderNames(model))
    { }

    Result<Graph> record();

private:
    Variable embedded(const Variable& tokens);
    void makeMasks();
    void makeTables();
    Variable mask(bool isSliding);
    Variable norm(const char* name, Variable x) { return decoderNorm(m_b, m_model, name, std::move(x)); }
    Variable dropped(Variable x);
    Variable attention(std::int64_t index, const Variable& x);
    Variable feedForward(std::int64_t index, const Variable& x);
    Variable sequential(std::int64_t index, const Variable& x);
    Variable parallel(std::int64_t index, const Variable& x);
    Variable afterNorm(std::int64_t index, const Variable& x);
    void layer(std::int64_t index, Variable& x);
    std::int64_t alikeFrom(std::int64_t index) const;
    LanguageHead head() const;

    NetworkBuilder& m_b;
    const ModelDescription& m_model;
    DecoderNames m_names;
    DecoderTables m_tables;
    std::vector<LayerPrefix> m_prefixes;
    Variable m_tokenWeight;
};

Variable DecoderNetwork::embedded(const Variable& tokens)
{
    const std::int64_t width = m_model.embeddingWidth > 0 ? m_model.embeddingWidth : m_model.hidden;
    {
        const ModuleScope scope(m_b, m_names.embedding, "Embedding");
        m_tokenWeight = m_b.parameter("weight", {m_model.vocab, width});
    }
    Variable x = withPrompt(m_b, m_b.embedding(tokens, m_tokenWeight));
    if (m_model.architecture.starts_with("gemma"))
        x = m_b.scale(std::move(x)); // by the root of the hidden size
    if (width != m_model.hidden)
        x = m_b.linear("project_in", std::move(x), m_model.hidden, false);
    if (m_model.vision.layers > 0)
        x = withPictures(m_b, m_model, tokens, std::move(x));
    if (m_model.remainder > 0)
        x = m_b.add(std::move(x), m_b.meanAll(m_b.parameter("remainder", {m_model.remainder})));
    if (m_model.embeddingNorm)
        x = norm(m_names.embeddingNorm, std::move(x));
    if (m_model.positions != PositionKind::Learned)
        return x;
    const std::int64_t rows = m_model.maxPositions + (m_model.architecture == "opt" ? 2 : 0);
    // OPT counts its positions along the attention mask, so every sequence has its own.
    const std::int64_t each = m_model.architecture == "opt" ? m_b.options().batch : 1;
    const Variable positions = m_b.fill({each, m_b.options().sequence}, DType::Int64);
    return m_b.add(std::move(x), m_b.embedding(m_names.positions, positions, rows, m_model.hidden));
}

Variable DecoderNetwork::mask(bool isSliding)
{
    const BuildOptions& options = m_b.options();
    const std::int64_t keys = options.sequence + options.virtualTokens(AdapterKind::Prefix);
    if (options.attention != AttentionKernel::Eager && m_model.attentionSoftcap == 0) {
        // FlashAttention called by itself and engines take the window as a number; ranks pass keys round.
        const bool isElsewhere =
            options.attention == AttentionKernel::Flash || !options.gradient || options.contextParallel > 1;
        if (isLitGpt(m_model))
            return {};
        const bool isCut = isSliding && keys >= m_model.slidingWindow;
        return isCut && !isElsewhere ? windowMask(m_b, keys) : paddingMask(m_b, keys);
    }
    return m_b.fill({options.batch, 1, options.sequence, keys},
                    m_model.architecture == "mpt" ? DType::Bool : options.weights);
}

void DecoderNetwork::makeMasks()
{
    bool full = false, sliding = false;
    for (std::int64_t i = 0; i < m_model.layers; ++i)
        (m_model.isSliding(i) ? sliding : full) = true;
    if (full)
        m_tables.mask = mask(false);
    if (sliding)
        m_tables.slidingMask = mask(true);
}

void DecoderNetwork::makeTables()
{
    const BuildOptions& options = m_b.options();
    if (m_model.positions == PositionKind::Alibi && options.attention == AttentionKernel::Eager) {
        const bool isOnce = m_model.architecture == "mpt"; // for all sequences, in float
        m_tables.slopes = m_b.fill({isOnce ? 1 : options.batch, m_model.heads, 1, options.sequence},
                                   isOnce ? DType::Float32 : options.weights);
    }
    if (m_model.positions != PositionKind::Rotary)
        return;
    const std::int64_t full = m_model.latent.keyValueRank > 0 ? m_model.latent.ropeHeadDim : m_model.headDim;
    const bool areHalves = m_model.architecture == "gpt_oss"; // the same for both halves of a head
    const auto share = static_cast<std::int64_t>(static_cast<double>(full) * m_model.rotaryShare) / (areHalves ? 2 : 1);
    // Where positions are of time, height and width (Qwen2-VL), every sequence has its own.
    const std::int64_t tables = m_model.vision.hasGrid() ? options.batch : 1;
    const Shape table{tables, 1, options.sequence, std::max<std::int64_t>(2, share)};
    if (options.transformers == Transformers::Before445 && hadTablesInLayers(m_model)) {
        // Loaded with the model, before what is not quantized was cast to float.
        const bool isQuantized = options.adapters && options.adapters->isQuantized();
        const DType dtype = isQuantized ? options.autocast.value_or(options.weights) : options.weights;
        for (std::int64_t i = 0; i < m_model.layers && m_b.ok(); ++i)
            for (const char* name : {"cos_cached", "sin_cached"}) {
                const ModuleScope scope(m_b, fmt::format("{}.{}.self_attn.rotary_emb", m_names.layers, i), "Rotary");
                m_b.buffer(name, {std::max(m_model.maxPositions, options.sequence), table[3]}, dtype);
            }
    }
    if (rotatesInFloat(m_model, options.transformers))
        for (std::int64_t i = 0; i < m_model.layers && m_b.ok(); ++i) { // GPTNeoXAttention's causal mask
            const ModuleScope scope(m_b, fmt::format("{}.{}.attention", m_names.layers, i), "GPTNeoXAttention");
            m_b.buffer("bias", {1, 1, m_model.maxPositions, m_model.maxPositions}, DType::Bool);
        }
    const DType tableType = rotatesInFloat(m_model, options.transformers) ? DType::Float32 : options.weights;
    m_tables.cosine = m_b.fill(table, tableType);
    m_tables.sine = m_b.fill(table, tableType);
    if (m_model.architecture == "gemma3_text" && m_model.slidingWindow > 0) {
        m_tables.slidingCosine = m_b.fill(table, options.weights);
        m_tables.slidingSine = m_b.fill(table, options.weights);
    }
}

Variable DecoderNetwork::dropped(Variable x)
{
    return m_b.options().dropsBranches ? m_b.dropout(std::move(x), m_b.options().dropout) : x;
}

Variable DecoderNetwork::attention(std::int64_t index, const Variable& argument)
{
    const Variable x = m_b.columnInput(argument);
    return dropped(m_b.rowOutput(m_model.latent.keyValueRank > 0
                                     ? latentAttention(m_b, m_model, m_names, m_tables, x)
                                     : decoderAttention(m_b, m_model, m_names, m_tables, m_model.isSliding(index), x)));
}

Variable DecoderNetwork::feedForward(std::int64_t index, const Variable& argument)
{
    if (m_model.isSparse(index) && !m_b.options().dividesExperts)
        return dropped(decoderExperts(m_b, m_model, m_names, argument));
    const Variable x = m_b.columnInput(argument);
    if (m_model.isSparse(index))
        return dropped(m_b.rowOutput(decoderExperts(m_b, m_model, m_names, x)));
    std::optional<ModuleScope> scope;
    if (*m_names.feedForward)
        scope.emplace(m_b, m_names.feedForward, "MLP");
    return dropped(
        m_b.rowOutput(decoderFeedForward(m_b, m_model, m_names, x, m_model.ffn, m_model.biases.feedForward)));
}

Variable DecoderNetwork::sequential(std::int64_t index, const Variable& argument)
{
    const bool sandwich = m_model.normPlacement == NormPlacement::Both;
    Variable residual = argument;
    Variable x = norm(m_names.firstNorm, residual);
    x = attention(index, x);
    if (sandwich)
        x = norm(m_names.secondNorm, std::move(x));
    x = m_b.add(std::move(residual), std::move(x));
    residual = x;
    x = norm(sandwich ? "pre_feedforward_layernorm" : m_names.secondNorm, std::move(x));
    x = feedForward(index, x);
    if (sandwich)
        x = norm("post_feedforward_layernorm", std::move(x));
    return m_b.add(std::move(residual), std::move(x));
}

Variable DecoderNetwork::parallel(std::int64_t index, const Variable& argument)
{
    if (m_model.sharedNorm) {
        const Variable x = norm(m_names.firstNorm, argument);
        Variable attended = attention(index, x);
        Variable forwarded = feedForward(index, x);
        return m_b.add(m_b.add(std::move(attended), std::move(forwarded)), argument);
    }
    const auto attending = [&](const Variable& x) { return attention(index, x); };
    const auto forwarding = [&](const Variable& x) { return feedForward(index, x); };
    Variable attended = NetworkBuilder::call(norm(m_names.firstNorm, argument), attending);
    Variable forwarded = NetworkBuilder::call(norm(m_names.secondNorm, argument), forwarding);
    return m_b.add(m_b.add(std::move(forwarded), std::move(attended)), argument);
}

Variable DecoderNetwork::afterNorm(std::int64_t index, const Variable& argument)
{
    Variable x = attention(index, argument);
    x = norm(m_names.firstNorm, m_b.add(argument, std::move(x)));
    Variable residual = x;
    x = feedForward(index, x);
    return norm(m_names.secondNorm, m_b.add(std::move(residual), std::move(x)));
}

LanguageHead DecoderNetwork::head() const
{
    LanguageHead head{m_model.tied ? m_b.tiedWeight(m_names.head, m_tokenWeight) : Variable(),
                      m_names.head,
                      m_model.vocab,
                      m_model.biases.head,
                      {},
                      isLitGpt(m_model)               ? LogitsRule::Loop
                          : isOlderThanLlama(m_model) ? LogitsRule::OldDecoder
                                                      : LogitsRule::Decoder,
                      isLitGpt(m_model)};
    if (m_model.logitSoftcap > 0)
        head.after = [this](Variable logits) { return m_b.scale(m_b.tanh(m_b.scale(std::move(logits)))); };
    return head;
}

void DecoderNetwork::layer(std::int64_t index, Variable& x)
{
    const ModuleScope scope(m_b, fmt::format("{}.{}", m_names.layers, index), "DecoderLayer");
    if (std::size_t(index) < m_prefixes.size())
        m_tables.prefix = std::move(m_prefixes[std::size_t(index)]);
    x = m_b.layer([&] {
        Variable probabilities; // hidden_states, _ = self.self_attn(…)
        m_tables.probabilities = &probabilities;
        if (m_model.parallelResidual)
            return parallel(index, x);
        return m_model.normPlacement == NormPlacement::After ? afterNorm(index, x) : sequential(index, x);
    });
}

/// How many layers from this one on are of its kind.
std::int64_t DecoderNetwork::alikeFrom(std::int64_t index) const
{
    std::int64_t end = index + 1;
    while (end < m_model.layers && m_model.isSparse(end) == m_model.isSparse(index)
           && m_model.isSliding(end) == m_model.isSliding(index))
        ++end;
    return end - index;
}

Result<Graph> DecoderNetwork::record()
{
    const Variable tokens = tokenInput(m_b);
    Variable x;
    {
        std::optional<ModuleScope> root;
        if (*m_names.root)
            root.emplace(m_b, m_names.root, "Decoder");
        x = dropped(m_b.rowOutput(embedded(tokens)));
        const Variable embeddings = x; // a variable of the model's forward function, as are the tables
        const bool countsPositions = m_b.options().rules.isOnCpu && m_model.positions == PositionKind::Rotary;
        Variable positions; // torch.arange(…) + number
        if (countsPositions)
            positions = m_b.shift(m_b.fill({1, m_b.options().sequence}, DType::Int64));
        m_prefixes = learnedPrefix(m_b, m_model.layers, m_model.kvHeads, m_model.headDim);
        makeMasks();
        makeTables();
        for (std::int64_t i = 0; i < m_model.layers && m_b.ok();) {
            const std::int64_t alike = alikeFrom(i);
            m_b.repeat(x, m_names.layers, i, alike, [this](std::int64_t index, Variable& y) { layer(index, y); });
            i += alike;
        }
        if (m_model.finalNorm)
            x = norm(m_names.finalNorm, std::move(x));
        m_tables = {};
    }
    x = m_b.columnInput(std::move(x));
    if (m_model.head == HeadKind::None)
        return m_b.finish(std::move(x));
    if (m_model.embeddingWidth > 0)
        x = m_b.linear("project_out", std::move(x), m_model.embeddingWidth, false);
    return finishLanguageModel(m_b, std::move(x), head());
}

} // namespace

bool isOlderThanLlama(const ModelDescription& model)
{
    const std::string& name = model.architecture;
    return name == "opt" || name == "bloom" || name == "gpt_neox" || name == "gpt_bigcode" || name == "falcon"
        || name == "mpt" || name == "stablelm" || name == "qwen";
}

bool rotatesInFloat(const ModelDescription& model, Transformers version)
{
    return version < Transformers::Before454 && model.architecture == "gpt_neox";
}

bool hadTablesInLayers(const ModelDescription& model)
{
    const std::string& name = model.architecture;
    return name == "qwen2" || name == "mistral" || name == "mixtral" || name == "phi" || name == "stablelm"
        || name == "starcoder2" || name == "gpt_neox" || name == "falcon";
}

Variable decoderNorm(NetworkBuilder& b, const ModelDescription& model, std::string_view name, Variable x)
{
    if (!b.ok())
        return {};
    if (model.norm == NormKind::LayerNorm)
        return b.layerNorm(name, std::move(x), model.biases.norm);
    if (model.architecture.starts_with("gemma") || (model.architecture == "gpt_oss" && !b.options().isAllFused)
        || isLitGpt(model))
        return normInFloat(b, name, x, model);
    return b.rmsNorm(name, std::move(x));
}

Result<Graph> decoder(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    if (model.positions == PositionKind::Learned)
        b.refuseBeyond(model.maxPositions);
    return DecoderNetwork(b, model).record();
}

} // namespace memscape
