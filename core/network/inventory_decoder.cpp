// SPDX-License-Identifier: Apache-2.0
// Decoders: one list of tensors for all of them, and a table of how each architecture calls them.
// Shapes follow transformers' modeling_*.py; what differs between architectures is in the
// description (gated, biases, norms around a layer, latent attention, experts), not here.
#include "core/network/decoder_names.h"
#include "core/network/inventory_writer.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// "model." for "model", nothing for nothing.
std::string prefixed(const char* name)
{
    return *name ? std::string(name) + "." : std::string();
}

class DecoderLayers
{
public:
    DecoderLayers(const ModelDescription& model, InventoryWriter& out)
        : m_model(model)
        , m_names(decoderNames(model))
        , m_out(out)
    { }

    void write(std::int64_t layer)
    {
        m_layer = layer;
        m_root = fmt::format("{}{}.{}.", prefixed(m_names.root), m_names.layers, layer);
        enter("");
        norm(m_names.firstNorm);
        m_model.latent.keyValueRank > 0 ? latentAttention() : attention();
        enter("");
        if (!m_model.sharedNorm)
            norm(m_names.secondNorm);
        if (m_model.normPlacement == NormPlacement::Both) {
            norm("pre_feedforward_layernorm");
            norm("post_feedforward_layernorm");
        }
        m_model.isSparse(layer) ? mixture() : dense();
    }

private:
    void enter(const std::string& part) { m_out.enter(m_root + part, m_layer); }

    void norm(std::string_view name) { m_out.norm(name, m_model.hidden, m_model.biases.norm); }

    void linear(std::string_view name, std::int64_t outputs, std::int64_t inputs, bool hasBias)
    {
        if (m_names.transposed)
            m_out.transposedLinear(name, outputs, inputs);
        else
            m_out.linear(name, outputs, inputs, hasBias);
    }

    void attention()
    {
        const ModelDescription& model = m_model;
        const std::int64_t queries = model.heads * model.headDim, keys = model.kvHeads * model.headDim;
        enter(prefixed(m_names.attention));
        if (*m_names.fusedQkv) {
            linear(m_names.fusedQkv, queries + 2 * keys, model.hidden, model.biases.query);
        } else {
            linear("q_proj", queries, model.hidden, model.biases.query);
            linear("k_proj", keys, model.hidden, model.biases.key);
            linear("v_proj", keys, model.hidden, model.biases.value);
        }
        linear(m_names.output, model.hidden, queries, model.biases.attentionOutput);
        if (model.queryKeyNorm || model.queryKeyNormWhole) {
            m_out.norm("q_norm", model.queryKeyNormWhole ? queries : model.headDim, false);
            m_out.norm("k_norm", model.queryKeyNormWhole ? keys : model.headDim, false);
        }
        if (model.attentionSinks)
            m_out.add("sinks", {model.heads}, TensorRole::Other);
    }

    void latentAttention()
    {
        const ModelDescription& model = m_model;
        const LatentAttention& latent = model.latent;
        const std::int64_t queries = model.heads * model.queryHeadDim();
        const bool bias = model.biases.query;
        enter(prefixed(m_names.attention));
        if (latent.queryRank > 0) {
            linear("q_a_proj", latent.queryRank, model.hidden, bias);
            m_out.norm("q_a_layernorm", latent.queryRank, false);
            linear("q_b_proj", queries, latent.queryRank, false);
        } else {
            linear("q_proj", queries, model.hidden, false);
        }
        linear("kv_a_proj_with_mqa", latent.keyValueRank + latent.ropeHeadDim, model.hidden, bias);
        m_out.norm("kv_a_layernorm", latent.keyValueRank, false);
        linear("kv_b_proj", model.heads * (latent.plainHeadDim + latent.valueHeadDim), latent.keyValueRank, false);
        linear(m_names.output, model.hidden, model.heads * latent.valueHeadDim, bias);
    }

    void feedForward(std::int64_t width, bool hasBias)
    {
        const std::int64_t hidden = m_model.hidden;
        if (*m_names.fusedGateUp && m_model.gated) {
            linear(m_names.fusedGateUp, 2 * width, hidden, hasBias);
        } else {
            if (m_model.gated)
                linear(m_names.gate, width, hidden, hasBias);
            linear(m_names.up, width, hidden, hasBias);
        }
        linear(m_names.down, hidden, width, hasBias);
    }

    void dense()
    {
        enter(prefixed(m_names.feedForward));
        feedForward(m_model.ffn, m_model.biases.feedForward);
    }

    void mixture()
    {
        const Experts& experts = m_model.experts;
        const bool mixtral = m_model.architecture == "mixtral";
        const std::string part = mixtral ? "block_sparse_moe." : "mlp.";
        const bool router = m_model.architecture == "gpt_oss";
        enter(part);
        m_out.linear(router ? "router" : "gate", experts.count, m_model.hidden, experts.routerBias);
        enter(part + "experts.*.");
        m_out.repeat(experts.count, experts.active);
        const char* gate = mixtral ? "w1" : "gate_proj";
        const char* up = mixtral ? "w3" : "up_proj";
        const char* down = mixtral ? "w2" : "down_proj";
        m_out.linear(gate, experts.ffn, m_model.hidden, experts.expertBiases);
        m_out.linear(up, experts.ffn, m_model.hidden, experts.expertBiases);
        m_out.linear(down, m_model.hidden, experts.ffn, experts.expertBiases);
        if (experts.sharedFfn == 0)
            return;
        enter(part + (experts.sharedGate ? "shared_expert." : "shared_experts."));
        feedForward(experts.sharedFfn, false);
        enter(part);
        if (experts.sharedGate)
            m_out.linear("shared_expert_gate", 1, m_model.hidden, false);
    }

    const ModelDescription& m_model;
    DecoderNames m_names;
    InventoryWriter& m_out;
    std::string m_root;
    std::int64_t m_layer = 0;
};

} // namespace

void writeDecoder(const ModelDescription& model, InventoryWriter& out)
{
    const DecoderNames names = decoderNames(model);
    const std::int64_t width = model.embeddingWidth > 0 ? model.embeddingWidth : model.hidden;
    out.enter(prefixed(names.root));
    out.embedding(names.embedding, model.vocab, width);
    if (model.positions == PositionKind::Learned) // OPT keeps two rows before the first position
        out.embedding(names.positions, model.maxPositions + (model.architecture == "opt" ? 2 : 0), model.hidden);
    if (model.remainder > 0)
        out.add("remainder", {model.remainder}, TensorRole::Other);
    if (width != model.hidden) {
        out.linear("project_out", width, model.hidden, false);
        out.linear("project_in", model.hidden, width, false);
    }
    if (model.embeddingNorm)
        out.norm(names.embeddingNorm, model.hidden, model.biases.norm);
    DecoderLayers layers(model, out);
    for (std::int64_t layer = 0; layer < model.layers && !out.failed(); ++layer)
        layers.write(layer);
    out.enter(prefixed(names.root));
    if (model.finalNorm)
        out.norm(names.finalNorm, model.hidden, model.biases.norm);
    out.enter("");
    if (model.head == HeadKind::LanguageModel && !model.tied)
        out.linear(names.head, model.vocab, width, model.biases.head);
}

} // namespace memscape
