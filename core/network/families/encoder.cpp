// SPDX-License-Identifier: Apache-2.0
#include "core/network/families/encoder.h"

#include "core/network/families/attention.h"
#include "core/network/families/decoder_parts.h"
#include "core/network/families/language_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// What transformers' functions name until they return; nothing on a GPU, where these names are not recorded.
struct AttentionNames
{
    Variable probabilities, context;
};

/// Attention and its output projection with dropout; `inner` is the module of q, k and v.
Variable selfAttention(NetworkBuilder& b, const ModelDescription& model, const char* inner, const Variable& argument,
                       bool softmaxInFloat, AttentionNames& names, const Variable& mask = {})
{
    const ModuleScope scope(b, "attention", "Attention");
    const Variable x = b.columnInput(argument);
    Variable context;
    {
        const ModuleScope heads(b, inner, "SelfAttention");
        const auto projected = [&](const char* name) {
            Variable y = b.linear(name, x, model.heads * model.headDim, model.biases.query);
            return b.ok() ? splitHeads(b, std::move(y), model.heads, model.headDim) : Variable();
        };
        const Variable q = projected("query"), k = projected("key"), v = projected("value");
        AttentionStyle style;
        style.softmaxInFloat = softmaxInFloat;
        style.mask = mask;
        style.probabilities = &names.probabilities;
        context = attend(b, q, k, v, style);
        if (b.options().rules.isOnCpu)
            names.context = context;
    }
    const ModuleScope output(b, "output", "SelfOutput");
    context = b.rowOutput(b.linear("dense", std::move(context), model.hidden, model.biases.attentionOutput));
    return b.dropout(std::move(context), b.options().dropout);
}

Variable feedForward(NetworkBuilder& b, const ModelDescription& model, const Variable& argument)
{
    const Variable x = b.columnInput(argument);
    Variable inner;
    {
        const ModuleScope scope(b, "intermediate", "Intermediate");
        inner = activated(b, model.activation, b.linear("dense", x, model.ffn, model.biases.feedForward));
    }
    const ModuleScope scope(b, "output", "Output");
    inner = b.rowOutput(b.linear("dense", std::move(inner), model.hidden, model.biases.feedForward));
    return b.dropout(std::move(inner), b.options().dropout);
}

/// A norm over the sum. transformers names the branch until the norm has run; on a GPU it is recorded without the name.
Variable normedSum(NetworkBuilder& b, std::string_view name, Variable branch, const Variable& x)
{
    const Variable named = b.options().rules.isOnCpu ? branch : Variable();
    return b.layerNorm(name, b.add(std::move(branch), x));
}

Variable bertLayer(NetworkBuilder& b, const ModelDescription& model, const Variable& x, const Variable& mask)
{
    AttentionNames names;
    Variable attended = selfAttention(b, model, "self", x, false, names, mask);
    const Variable between = normedSum(b, "attention.output.LayerNorm", std::move(attended), x);
    names.context.reset();
    return normedSum(b, "output.LayerNorm", feedForward(b, model, between), between);
}

Variable visionLayer(NetworkBuilder& b, const ModelDescription& model, const Variable& x)
{
    Variable attended = NetworkBuilder::call(b.layerNorm("layernorm_before", x), [&](const Variable& y) {
        AttentionNames names;
        return selfAttention(b, model, "attention", y, true, names);
    });
    const Variable between = b.add(std::move(attended), x);
    const Variable normed = b.layerNorm("layernorm_after", between);
    return b.add(feedForward(b, model, normed), between);
}

/// DINOv2: each part is scaled by a vector, and added in the order of the code.
Variable dinoLayer(NetworkBuilder& b, const ModelDescription& model, const Variable& argument)
{
    const auto scaled = [&](const char* name, Variable y) {
        const ModuleScope scope(b, name, "Dinov2LayerScale");
        return b.multiply(std::move(y), b.parameter("lambda1", {model.hidden}));
    };
    const Variable attended = NetworkBuilder::call(b.layerNorm("norm1", argument), [&](const Variable& y) {
        AttentionNames names;
        return selfAttention(b, model, "attention", y, false, names);
    });
    const Variable x = b.add(scaled("layer_scale1", attended), argument);
    Variable y = b.layerNorm("norm2", x);
    {
        const ModuleScope scope(b, "mlp", "Dinov2MLP");
        const DecoderNames names = {
            .gate = "gate_proj", .up = model.gated ? "up_proj" : "fc1", .down = model.gated ? "down_proj" : "fc2"};
        const Variable whole = b.columnInput(std::move(y));
        y = b.rowOutput(decoderFeedForward(b, model, names, whole, model.ffn, true));
    }
    return b.add(scaled("layer_scale2", std::move(y)), x);
}

template <typename Layer> Variable stack(NetworkBuilder& b, const ModelDescription& model, Variable x, Layer layer)
{
    const ModuleScope scope(b, "encoder", "Encoder");
    x = b.rowOutput(std::move(x));
    b.repeat(x, "layer", 0, model.layers, [&](std::int64_t i, Variable& y) {
        const ModuleScope each(b, fmt::format("layer.{}", i), "Layer");
        y = b.layer([&] { return layer(b, model, y); });
    });
    return b.columnInput(std::move(x));
}

Variable bertEmbeddings(NetworkBuilder& b, const ModelDescription& model, Variable& tokenWeight)
{
    const ModuleScope scope(b, "embeddings", "BertEmbeddings");
    const BuildOptions& options = b.options();
    const Variable tokens = tokenInput(b);
    {
        const ModuleScope words(b, "word_embeddings", "Embedding");
        tokenWeight = b.parameter("weight", {model.vocab, model.hidden});
    }
    const Shape row{1, options.sequence};
    Variable types; // made before the words are looked up; on a GPU it is recorded behind it
    if (options.rules.isOnCpu)
        types = b.fill(row, DType::Int64);
    Variable x = b.embedding(tokens, tokenWeight);
    const Variable all = b.buffer("position_ids", {1, model.maxPositions}, DType::Int64);
    b.buffer("token_type_ids", {1, model.maxPositions}, DType::Int64);
    if (!types)
        types = b.fill(row, DType::Int64);
    types = b.expand(std::move(types), {options.batch, options.sequence});
    std::vector<Variable> named; // by transformers' forward function until it returns; on a GPU none is recorded
    const auto found = [&](Variable one) {
        if (options.rules.isOnCpu)
            named.push_back(one);
        return one;
    };
    x = found(std::move(x));
    if (model.tokenTypes > 0)
        x = b.add(std::move(x), found(b.embedding("token_type_embeddings", types, model.tokenTypes, model.hidden)));
    const Variable positions = b.narrow(all, 1, options.sequence);
    x = b.add(std::move(x), found(b.embedding("position_embeddings", positions, model.maxPositions, model.hidden)));
    return b.dropout(b.layerNorm("LayerNorm", std::move(x)), options.dropout);
}

Variable maskedLanguageHead(NetworkBuilder& b, const ModelDescription& model, Variable x, const Variable& tokenWeight)
{
    const ModuleScope scope(b, "cls.predictions", "MaskedLanguageHead");
    x = activated(b, model.activation, b.linear("transform.dense", std::move(x), model.hidden));
    x = b.layerNorm("transform.LayerNorm", std::move(x));
    const Variable bias = b.parameter("bias", {model.vocab});
    const Variable weight =
        model.tied ? b.tiedWeight("decoder", tokenWeight) : b.parameter("decoder.weight", {model.vocab, model.hidden});
    return b.linear(std::move(x), weight, bias);
}

/// Rows of hidden states and their labels.
struct MaskedTokens
{
    Variable hidden, targets;
};

/// hidden[labels != -100] and labels[labels != -100], as ModernBERT's sparse_prediction has them
/// (transformers/models/modernbert/modeling_modernbert.py). nonzero() makes indices of the mask for each; the mask is
/// kept. Left out: that the host waits for nonzero().
MaskedTokens maskedTokens(NetworkBuilder& b, const Variable& hidden)
{
    const std::int64_t tokens = hidden.size(0) * hidden.size(1);
    const auto count = std::int64_t(std::llround(double(tokens) * b.options().maskedShare));
    const Shape chosen{std::clamp<std::int64_t>(count, 1, tokens)};
    const Variable labels = b.view(b.target("targets", {hidden.size(0), hidden.size(1)}, DType::Int64), {tokens});
    const Variable rows = b.view(hidden, {tokens, hidden.size(2)});
    const Variable mask = b.compare(labels);
    MaskedTokens masked;
    masked.hidden = b.index(rows, b.fill(chosen, DType::Int64), mask);
    masked.targets = b.index(labels, b.fill(chosen, DType::Int64), mask);
    return masked;
}

Result<Graph> finishMaskedModel(NetworkBuilder& b, const ModelDescription& model, Variable x,
                                const Variable& tokenWeight)
{
    MaskedTokens masked;
    if (b.options().loss && b.options().maskedShare > 0 && b.ok()) {
        masked = maskedTokens(b, x);
        x = std::move(masked.hidden);
    }
    return finishLanguageModel(b, maskedLanguageHead(b, model, std::move(x), tokenWeight), LogitsRule::Bert,
                               std::move(masked.targets));
}

/// x[:, 0] through a linear layer and tanh.
Variable pooled(NetworkBuilder& b, const ModelDescription& model, const Variable& x)
{
    const ModuleScope scope(b, "pooler", "Pooler");
    return b.tanh(b.linear("dense", b.select(x, 1), model.hidden));
}

Result<Graph> finishPooled(NetworkBuilder& b, Variable output)
{
    if (!b.options().loss || !b.ok())
        return b.finish(std::move(output));
    Variable loss = b.sumAll(output);
    return b.finish(std::move(output), std::move(loss));
}

} // namespace

Result<Graph> bert(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    b.refuseBeyond(model.maxPositions);
    Variable tokenWeight;
    Variable x = bertEmbeddings(b, model, tokenWeight);
    Variable mask = paddingMask(b, options.sequence);
    const auto layer = [&mask](NetworkBuilder& to, const ModelDescription& of, const Variable& y) {
        return bertLayer(to, of, y, mask);
    };
    x = stack(b, model, std::move(x), layer);
    mask.reset();
    if (model.head == HeadKind::MaskedLanguageModel)
        return finishMaskedModel(b, model, std::move(x), tokenWeight);
    if (model.head == HeadKind::None || !b.ok())
        return finishPooled(b, std::move(x));
    Variable output = pooled(b, model, x);
    if (model.head != HeadKind::Classifier)
        return finishPooled(b, std::move(output));
    output = b.dropout(std::move(output), options.dropout);
    return finishClassifier(b, b.linear("classifier", std::move(output), model.picture.classes));
}

Result<Graph> visionTransformer(const ModelDescription& model, const BuildOptions& options)
{
    MEMSCAPE_CHECK(checkModel(model));
    NetworkBuilder b(options);
    const PictureInput& picture = model.picture;
    const std::int64_t side = picture.size / picture.patch;
    const bool isDino = model.architecture == "dinov2";
    const std::string root = isDino ? "dinov2" : "vit";
    const Variable pictures =
        b.input("pictures", {options.batch, picture.channels, picture.size, picture.size}, options.weights);
    Variable x;
    {
        const ModuleScope scope(b, root + ".embeddings", "ViTEmbeddings");
        Variable first = b.parameter("cls_token", {1, 1, model.hidden});
        if (isDino)
            b.parameter("mask_token", {1, model.hidden}); // of pretraining; nothing reads it here
        const Variable positions = b.parameter("position_embeddings", {1, side * side + 1, model.hidden});
        x = b.convolution("patch_embeddings.projection", pictures, model.hidden,
                          {picture.patch, picture.patch, 0, 1, true});
        if (b.ok())
            x = b.transpose(b.flatten(std::move(x), 2), 1, 2);
        first = b.expand(std::move(first), {options.batch, 1, model.hidden});
        x = b.add(b.cat({std::move(first), std::move(x)}, 1), positions);
        x = b.dropout(std::move(x), options.dropout);
    }
    {
        const ModuleScope scope(b, root, "ViT");
        x = b.layerNorm("layernorm", stack(b, model, std::move(x), isDino ? dinoLayer : visionLayer));
    }
    if (isDino && model.head != HeadKind::Classifier)
        return finishPooled(b, b.ok() ? b.select(x, 1) : Variable());
    if (isDino && b.ok()) { // the class token beside the mean of the patches
        Variable first = b.select(x, 1);
        Variable patches = b.mean(b.narrow(x, 1, side * side), 1, false);
        x = b.cat({std::move(first), std::move(patches)}, 1);
        return finishClassifier(b, b.linear("classifier", std::move(x), picture.classes));
    }
    if (model.head == HeadKind::Classifier && b.ok())
        return finishClassifier(b, b.linear("classifier", b.select(x, 1), picture.classes));
    return finishPooled(b, b.ok() ? pooled(b, model, x) : Variable());
}

} // namespace memscape
