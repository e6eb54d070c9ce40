// SPDX-License-Identifier: Apache-2.0
#include "core/network/config_parts.h"

#include "core/base/text.h"
#include "core/network/config_keys.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace memscape {

ActivationKind activationFrom(ConfigFields& fields, ActivationKind standard)
{
    const std::string word = fields.word({"hidden_activation", "hidden_act", "activation_function", "dense_act_fn"});
    if (word.empty())
        return standard;
    if (word == "silu" || word == "swish")
        return ActivationKind::Silu;
    if (word == "relu")
        return ActivationKind::Relu;
    if (word == "gelu_new")
        return ActivationKind::GeluNew;
    if (word == "gelu")
        return ActivationKind::Gelu;
    if (word == "quick_gelu")
        return ActivationKind::QuickGelu;
    if (word.starts_with("gelu"))
        return ActivationKind::GeluTanh;
    if (word == "tanh")
        return ActivationKind::Tanh;
    fields.assume(fmt::format("the activation \"{}\" is not known: SiLU is assumed", quotedForMessage(word)));
    return ActivationKind::Silu;
}

std::optional<std::int64_t> givenClasses(ConfigFields& fields)
{
    const auto labels = fields.find({"id2label"});
    const std::int64_t named =
        labels && labels->node().is_object() ? static_cast<std::int64_t>(labels->node().size()) : 0;
    return named > 0 && !fields.has(config_keys::classes) ? named : fields.count(config_keys::classes);
}

void readPicture(ConfigFields& fields, PictureInput& picture)
{
    picture.size = fields.countOr(config_keys::imageSize, picture.size);
    picture.patch = fields.countOr(config_keys::patch, picture.patch);
    picture.channels = fields.count(config_keys::channels).value_or(picture.channels);
}

namespace {

void readHeads(ConfigFields& fields, ModelDescription& model)
{
    model.heads = fields.countOr(config_keys::heads, model.heads);
    const bool isFalcon = model.architecture == "falcon";
    const bool oneKey = fields.flag({"multi_query"}, isFalcon || model.architecture == "gpt_bigcode")
        && !fields.flag({"new_decoder_architecture"}, false);
    // Falcon-7B's file says 71 key/value heads and has one: multi_query decides.
    const auto kvHeads = isFalcon && oneKey ? std::optional<std::int64_t>(1) : fields.count(config_keys::keyValueHeads);
    const std::int64_t standard = oneKey ? 1 : model.kvHeads > 0 ? model.kvHeads : model.heads;
    if (!kvHeads && !oneKey && standard != model.heads)
        fields.assume(fmt::format("num_key_value_heads is not given: {} is assumed", standard));
    model.kvHeads = kvHeads.value_or(standard);
    const auto headDim = fields.count(config_keys::headDim);
    if (fields.failed())
        return;
    if (model.heads % model.kvHeads != 0)
        return fields.contradict(
            "num_key_value_heads",
            fmt::format("{} query heads cannot share {} key/value heads evenly", model.heads, model.kvHeads));
    if (!headDim && model.headDim == 0 && model.latent.keyValueRank == 0 && model.hidden % model.heads != 0)
        return fields.contradict("num_attention_heads",
                                 fmt::format("hidden size {} is not divisible by {} heads, and head_dim is not given",
                                             model.hidden, model.heads));
    if (!headDim && model.headDim > 0)
        fields.assume(fmt::format("head_dim is not given: {} is assumed", model.headDim));
    model.headDim =
        headDim.value_or(model.headDim > 0 ? model.headDim : std::max<std::int64_t>(1, model.hidden / model.heads));
}

void readFeedForward(ConfigFields& fields, ModelDescription& model)
{
    const bool expertsOnly =
        model.experts.count > 0 && !fields.has({"intermediate_size"}) && fields.has({"moe_intermediate_size"});
    if (model.architecture == "dinov2")
        return; // said by its ratio (readDino)
    if (expertsOnly && model.ffn == 0) {
        model.ffn = fields.required({"moe_intermediate_size"});
    } else if (model.ffn > 0) {
        model.ffn = fields.countOr({"intermediate_size", "n_inner", "d_ff", "ffn_dim"}, model.ffn);
    } else {
        const auto ffn = fields.count(config_keys::feedForward);
        static constexpr std::string_view fourTimes[] = {"gpt2", "gpt_bigcode", "gptj", "bloom", "falcon", "mpt"};
        const bool isMeant = std::find(std::begin(fourTimes), std::end(fourTimes), model.architecture)
            != std::end(fourTimes); // nothing means four times, by definition
        if (!ffn && !isMeant)
            fields.assume(fmt::format("intermediate_size is not given: four times the hidden size, {}, is assumed",
                                      4 * model.hidden));
        model.ffn = ffn.value_or(4 * model.hidden);
    }
    if (model.architecture == "qwen" && fields.has({"intermediate_size"}))
        model.ffn /= 2; // counts both of its matrices (modeling_qwen.py: QWenMLP)
    const std::string projection = fields.word({"feed_forward_proj"});
    if (projection.starts_with("gated")) {
        model.gated = true;
        model.activation = projection == "gated-silu" ? ActivationKind::Silu : ActivationKind::GeluTanh;
    }
}

void readBiases(ConfigFields& fields, ModelDescription& model)
{
    Biases& biases = model.biases;
    if (fields.has({"attention_bias"})) {
        const bool has = fields.flag({"attention_bias"}, false);
        biases.query = biases.key = biases.value = biases.attentionOutput = has;
    }
    if (fields.has({"qkv_bias"}))
        biases.query = biases.key = biases.value = fields.flag({"qkv_bias"}, true);
    biases.feedForward = fields.flag({"mlp_bias"}, biases.feedForward);
    if (fields.has({"use_qkv_bias"}))
        biases.query = biases.key = biases.value = fields.flag({"use_qkv_bias"}, false);
    if (model.architecture == "starcoder2" || model.architecture == "falcon") {
        const bool has = fields.flag({"use_bias", "bias"}, model.architecture == "starcoder2");
        biases.query = biases.key = biases.value = biases.attentionOutput = biases.feedForward = has;
    }
    if (model.architecture == "opt" && !fields.flag({"enable_bias"}, true))
        biases.query = biases.key = biases.value = biases.attentionOutput = biases.feedForward = false;
}

/// What the class name of the checkpoint says about the head.
void readHead(ConfigFields& fields, ModelDescription& model)
{
    const auto classes = fields.words({"architectures"});
    const std::string name = classes.empty() ? "" : classes.front();
    const bool bare = name.ends_with("Model") && name.find("LMHead") == std::string::npos;
    if (model.family == Family::Encoder) {
        if (name.find("MaskedLM") != std::string::npos || name.find("PreTraining") != std::string::npos)
            model.head = HeadKind::MaskedLanguageModel;
        else if (name.find("Classification") != std::string::npos)
            model.head = HeadKind::Classifier;
    } else if (bare) {
        model.head = model.family == Family::VisionTransformer ? HeadKind::Pooler : HeadKind::None;
    }
    if (model.head != HeadKind::Classifier)
        return;
    if (const auto given = givenClasses(fields))
        model.picture.classes = *given;
    else
        model.picture.classes = fields.countOr(config_keys::classes, model.family == Family::Encoder ? 2 : 1000);
}

void readNorms(ConfigFields& fields, ModelDescription& model)
{
    if (!fields.flag({"do_layer_norm_before"}, true)) {
        model.normPlacement = NormPlacement::After;
        model.finalNorm = false;
    }
    if (fields.flag({"_remove_final_layer_norm"}, false))
        model.finalNorm = false;
    model.parallelResidual = fields.flag({"use_parallel_residual"}, model.parallelResidual);
    if (model.architecture == "falcon") {
        const bool isNew = fields.flag({"new_decoder_architecture"}, false);
        model.parallelResidual = isNew || fields.flag({"parallel_attn"}, true);
        model.sharedNorm =
            model.parallelResidual && fields.count({"num_ln_in_parallel_attn"}).value_or(isNew ? 2 : 1) == 1;
        if (fields.flag({"alibi"}, false))
            model.positions = PositionKind::Alibi;
    }
    if (model.architecture == "gptj")
        model.rotaryShare = double(fields.count({"rotary_dim"}).value_or(model.headDim)) / double(model.headDim);
    if (fields.flag({"qk_layernorm"}, false))
        fields.assume("qk_layernorm is not counted: a norm of its own for each head");
    model.attentionSoftcap = fields.number({"attn_logit_softcapping"}, model.architecture == "gemma2" ? 50 : 0);
    model.logitSoftcap = fields.number({"final_logit_softcapping"}, model.architecture == "gemma2" ? 30 : 0);
    model.rotaryShare = fields.number(config_keys::rotaryShare, model.rotaryShare);
}

void readTransformer(ConfigFields& fields, ModelDescription& model)
{
    model.hidden = fields.countOr(config_keys::hidden, model.hidden);
    model.layers = fields.countOr(config_keys::layers, model.layers);
    const bool text = model.family != Family::VisionTransformer;
    if (text) {
        model.vocab = fields.countOr(config_keys::vocab, model.vocab);
        const bool matters = model.positions == PositionKind::Learned;
        model.maxPositions = matters
            ? fields.countOr({"max_position_embeddings", "n_positions", "n_ctx", "max_target_positions"},
                             model.maxPositions)
            : fields.count(config_keys::maxPositions).value_or(model.maxPositions);
    } else {
        readPicture(fields, model.picture);
    }
    readLatentAttention(fields, model);
    readHeads(fields, model);
    readExperts(fields, model);
    readFeedForward(fields, model);
    model.activation = activationFrom(fields, model.activation);
    readBiases(fields, model);
    readNorms(fields, model);
    readHead(fields, model);
    readSlidingWindow(fields, model);
    model.tied = fields.flag({"tie_word_embeddings"}, model.tied);
}

} // namespace

void readConfig(ConfigFields& fields, ModelDescription& model)
{
    model.storedDtype = fields.word({"torch_dtype", "dtype"});
    if (model.family == Family::Cnn)
        return readCnn(fields, model);
    if (model.family == Family::StateSpace)
        return readStateSpace(fields, model);
    if (model.architecture == "swin")
        return readSwin(fields, model);
    if (model.family == Family::Diffusion)
        return model.architecture == "dit" ? readDit(fields, model) : readUnet(fields, model);
    readTransformer(fields, model);
    if (model.family == Family::Encoder)
        model.tokenTypes = fields.count(config_keys::tokenTypes, 0).value_or(model.tokenTypes);
    if (model.family == Family::EncoderDecoder) {
        model.decoderLayers = fields.count(config_keys::decoderLayers).value_or(model.layers);
        model.relativeBuckets = fields.count(config_keys::relativeBuckets).value_or(model.relativeBuckets);
    }
    if (model.architecture == "whisper")
        readWhisper(fields, model);
    if (model.architecture == "dinov2")
        readDino(fields, model);
    const auto projected = fields.count(config_keys::embeddingWidth);
    if (projected && *projected != model.hidden)
        model.embeddingWidth = *projected;
}

} // namespace memscape
