// SPDX-License-Identifier: Apache-2.0
// Encoders (BERT, ViT) and encoder-decoders (T5), as transformers' modeling_bert.py,
// modeling_vit.py and modeling_t5.py define them.
#include "core/network/inventory_writer.h"

#include <fmt/format.h>

namespace memscape {

namespace {

/// Names of one encoder layer that BERT and ViT share the shapes of.
struct LayerNames
{
    std::string root;
    const char* attention;
    const char* beforeAttention; ///< a norm, or empty
    const char* afterAttention;
    const char* last;
};

void writeEncoderLayer(const ModelDescription& model, const LayerNames& names, std::int64_t layer, InventoryWriter& out)
{
    const std::int64_t hidden = model.hidden, inner = model.heads * model.headDim;
    const auto norm = [&](const char* name) {
        if (*name)
            out.norm(name, hidden, model.biases.norm);
    };
    out.enter(names.root, layer);
    norm(names.beforeAttention);
    for (const char* part : {"query", "key", "value"})
        out.linear(fmt::format("{}.{}", names.attention, part), inner, hidden, model.biases.query);
    out.linear("attention.output.dense", hidden, inner, model.biases.attentionOutput);
    norm(names.afterAttention);
    out.linear("intermediate.dense", model.ffn, hidden, model.biases.feedForward);
    out.linear("output.dense", hidden, model.ffn, model.biases.feedForward);
    norm(names.last);
}

void writeBertHead(const ModelDescription& model, const std::string& root, InventoryWriter& out)
{
    const std::int64_t hidden = model.hidden;
    if (model.head == HeadKind::Pooler || model.head == HeadKind::Classifier) {
        out.enter(root);
        out.linear("pooler.dense", hidden, hidden, true);
        out.enter("");
        if (model.head == HeadKind::Classifier)
            out.linear("classifier", model.picture.classes, hidden, true);
    } else if (model.head == HeadKind::MaskedLanguageModel) {
        out.enter("cls.predictions.");
        out.add("bias", {model.vocab}, TensorRole::Bias);
        out.linear("transform.dense", hidden, hidden, true);
        out.norm("transform.LayerNorm", hidden, true);
        if (!model.tied)
            out.add("decoder.weight", {model.vocab, hidden}, TensorRole::Matrix);
    }
}

class T5Inventory
{
public:
    T5Inventory(const ModelDescription& model, const char* name, bool crossAttention, InventoryWriter& out)
        : m_model(model)
        , m_name(name)
        , m_crossAttention(crossAttention)
        , m_out(out)
    { }

    void write(std::int64_t layers)
    {
        for (std::int64_t layer = 0; layer < layers && !m_out.failed(); ++layer) {
            enter(layer, 0);
            attention("SelfAttention", layer == 0);
            if (m_crossAttention) {
                enter(layer, 1);
                attention("EncDecAttention", false);
            }
            enter(layer, m_crossAttention ? 2 : 1);
            feedForward();
        }
        m_out.enter(fmt::format("{}.", m_name));
        m_out.norm("final_layer_norm", m_model.hidden, false);
    }

private:
    void enter(std::int64_t layer, int part)
    {
        m_out.enter(fmt::format("{}.block.{}.layer.{}.", m_name, layer, part), layer);
    }

    void attention(std::string_view name, bool hasRelativeBias)
    {
        const std::int64_t inner = m_model.heads * m_model.headDim;
        for (const char* part : {"q", "k", "v"})
            m_out.linear(fmt::format("{}.{}", name, part), inner, m_model.hidden, false);
        m_out.linear(fmt::format("{}.o", name), m_model.hidden, inner, false);
        if (hasRelativeBias)
            m_out.embedding(fmt::format("{}.relative_attention_bias", name), m_model.relativeBuckets, m_model.heads);
        m_out.norm("layer_norm", m_model.hidden, false);
    }

    void feedForward()
    {
        for (const char* part : {"wi_0", "wi_1"}) {
            if (m_model.gated)
                m_out.linear(fmt::format("DenseReluDense.{}", part), m_model.ffn, m_model.hidden, false);
        }
        if (!m_model.gated)
            m_out.linear("DenseReluDense.wi", m_model.ffn, m_model.hidden, false);
        m_out.linear("DenseReluDense.wo", m_model.hidden, m_model.ffn, false);
        m_out.norm("layer_norm", m_model.hidden, false);
    }

    const ModelDescription& m_model;
    const char* m_name;
    bool m_crossAttention;
    InventoryWriter& m_out;
};

} // namespace

void writeEncoder(const ModelDescription& model, InventoryWriter& out)
{
    const bool bare = model.head == HeadKind::Pooler || model.head == HeadKind::None;
    const std::string root = bare ? "" : "bert.";
    out.enter(root + "embeddings.");
    out.embedding("word_embeddings", model.vocab, model.hidden);
    out.embedding("position_embeddings", model.maxPositions, model.hidden);
    if (model.tokenTypes > 0)
        out.embedding("token_type_embeddings", model.tokenTypes, model.hidden);
    out.norm("LayerNorm", model.hidden, model.biases.norm);
    for (std::int64_t layer = 0; layer < model.layers && !out.failed(); ++layer)
        writeEncoderLayer(model,
                          {fmt::format("{}encoder.layer.{}.", root, layer), "attention.self", "",
                           "attention.output.LayerNorm", "output.LayerNorm"},
                          layer, out);
    writeBertHead(model, root, out);
}

void writeVisionTransformer(const ModelDescription& model, InventoryWriter& out)
{
    const PictureInput& picture = model.picture;
    const std::int64_t side = picture.size / picture.patch, hidden = model.hidden;
    out.enter("vit.embeddings.");
    out.add("cls_token", {1, 1, hidden}, TensorRole::Other);
    out.add("position_embeddings", {1, side * side + 1, hidden}, TensorRole::Other);
    out.add("patch_embeddings.projection.weight", {hidden, picture.channels, picture.patch, picture.patch},
            TensorRole::Convolution);
    out.add("patch_embeddings.projection.bias", {hidden}, TensorRole::Bias);
    for (std::int64_t layer = 0; layer < model.layers && !out.failed(); ++layer)
        writeEncoderLayer(model,
                          {fmt::format("vit.encoder.layer.{}.", layer), "attention.attention", "layernorm_before",
                           "layernorm_after", ""},
                          layer, out);
    out.enter("vit.");
    out.norm("layernorm", hidden, true);
    if (model.head == HeadKind::Pooler)
        out.linear("pooler.dense", hidden, hidden, true);
    out.enter("");
    if (model.head == HeadKind::Classifier && picture.classes > 0)
        out.linear("classifier", picture.classes, hidden, true);
}

void writeEncoderDecoder(const ModelDescription& model, InventoryWriter& out)
{
    out.enter("");
    out.embedding("shared", model.vocab, model.hidden);
    T5Inventory(model, "encoder", false, out).write(model.layers);
    T5Inventory(model, "decoder", true, out).write(model.decoderLayers);
    out.enter("");
    if (model.head == HeadKind::LanguageModel && !model.tied)
        out.linear("lm_head", model.vocab, model.hidden, false);
}

} // namespace memscape
