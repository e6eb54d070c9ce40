// SPDX-License-Identifier: Apache-2.0
// What the configurations of Whisper, DINOv2, Swin and Mamba say in keys of their own.
#include "core/base/text.h"
#include "core/network/config_keys.h"
#include "core/network/config_parts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Refuses another size than the encoder's, which one description cannot hold.
void sameAsEncoder(ConfigFields& fields, const char* key, std::int64_t encoder)
{
    const auto decoder = fields.count({key});
    if (decoder && *decoder != encoder)
        fields.contradict(key, fmt::format("{} differs from the encoder's {}", *decoder, encoder));
}

/// width × ratio; refuses a ratio that makes nothing.
std::int64_t widened(ConfigFields& fields, std::int64_t width, double standard)
{
    const double ratio = fields.number({"mlp_ratio"}, standard);
    if (!fields.failed() && !(ratio > 0 && ratio <= 1024 && ratio * double(width) >= 1))
        fields.contradict("mlp_ratio", fmt::format("{} times the hidden size is no width", ratio));
    return fields.failed() ? 1 : static_cast<std::int64_t>(ratio * double(width));
}

} // namespace

void readWhisper(ConfigFields& fields, ModelDescription& model)
{
    model.audio.channels = fields.count(config_keys::audioChannels).value_or(model.audio.channels);
    model.audio.positions = fields.count(config_keys::audioPositions).value_or(model.audio.positions);
    sameAsEncoder(fields, "decoder_attention_heads", model.heads);
    sameAsEncoder(fields, "decoder_ffn_dim", model.ffn);
}

void readDino(ConfigFields& fields, ModelDescription& model)
{
    model.gated = fields.flag({"use_swiglu_ffn"}, false);
    model.ffn = widened(fields, model.hidden, 4);
    if (!model.gated)
        return;
    model.activation = ActivationKind::Silu;
    model.ffn = (model.ffn * 2 / 3 + 7) / 8 * 8;
}

void readSwin(ConfigFields& fields, ModelDescription& model)
{
    WindowStages& windows = model.windows;
    readPicture(fields, model.picture);
    model.picture.classes = givenClasses(fields).value_or(model.picture.classes);
    model.hidden = fields.required({"embed_dim"});
    windows.depths = fields.counts(config_keys::depths);
    windows.heads = fields.counts({"num_heads"});
    windows.window = fields.count(config_keys::window).value_or(windows.window);
    model.activation = activationFrom(fields, model.activation);
    model.biases.query = model.biases.key = model.biases.value = fields.flag({"qkv_bias"}, true);
    if (fields.flag({"use_absolute_embeddings"}, false))
        fields.contradict("use_absolute_embeddings", "absolute positions are not modelled");
    model.ffn = widened(fields, model.hidden, 4);
    if (fields.failed())
        return;
    for (const auto& [key, list] : {std::pair{"depths", &windows.depths}, std::pair{"num_heads", &windows.heads}})
        if (list->empty())
            return fields.refuse(
                Error{"config.missing", "is missing", fields.within(key), "a list: one for each stage"});
    model.heads = model.kvHeads = std::max<std::int64_t>(1, windows.heads.front());
    model.headDim = std::max<std::int64_t>(1, model.hidden / model.heads);
    model.layers = 0;
    for (const std::int64_t depth : windows.depths)
        model.layers += depth;
}

void readVisionTower(const JsonReader& document, ConfigFields& fields, ModelDescription& model)
{
    const auto part = document.at("vision_config");
    if (!part)
        return fields.refuse(part.error());
    if (!part->node().is_object())
        return fields.refuse(part->expected("an object").value());
    ConfigFields said(*part), outer(document);
    VisionTower& tower = model.vision;
    const std::string type = said.word({"model_type"}, "clip_vision_model");
    if (type != "clip_vision_model")
        said.contradict(
            "model_type",
            fmt::format("a vision tower \"{}\" is not modelled, only clip_vision_model", quotedForMessage(type)));
    tower.hidden = said.required(config_keys::hidden);
    tower.layers = said.required(config_keys::layers);
    tower.heads = said.required(config_keys::heads);
    tower.ffn = said.required(config_keys::feedForward);
    tower.picture.size = said.required(config_keys::imageSize);
    tower.picture.patch = said.required(config_keys::patch);
    tower.picture.channels = said.count(config_keys::channels).value_or(3);
    tower.activation = activationFrom(said, ActivationKind::QuickGelu);
    tower.keepsClass = outer.word({"vision_feature_select_strategy"}, "default") == "full";
    const double layer = outer.number({"vision_feature_layer"}, -2); // counted from behind when it is below 0
    const auto layers = double(tower.layers);
    if (!(layer >= -1 - layers && layer <= layers) || layer != std::floor(layer))
        outer.contradict("vision_feature_layer", fmt::format("{} is no layer of the {} of the tower", layer, layers));
    else
        tower.taken = static_cast<std::int64_t>(layer < 0 ? layer + 1 + layers : layer);
    tower.projectorActivation =
        outer.word({"projector_hidden_act"}, "gelu") == "relu" ? ActivationKind::Relu : ActivationKind::Gelu;
    for (const ConfigFields* each : {&said, &outer})
        if (each->failed())
            return fields.refuse(each->error());
    if (tower.picture.patch <= tower.picture.size)
        fields.assume(
            fmt::format("every sequence has one picture of {} tokens, which count in its length (a prompt that "
                        "is shorter has none); the vision tower is trained like the rest",
                        tower.tokens()));
}

void readStateSpace(ConfigFields& fields, ModelDescription& model)
{
    StateSpace& space = model.stateSpace;
    model.hidden = fields.required(config_keys::hidden);
    model.layers = fields.required(config_keys::layers);
    model.vocab = fields.countOr(config_keys::vocab, model.vocab);
    space.state = fields.count(config_keys::stateSize).value_or(space.state);
    space.kernel = fields.count(config_keys::stateKernel).value_or(space.kernel);
    const std::int64_t expand = fields.count({"expand"}).value_or(2);
    // The published files name an intermediate_size; transformers takes expand × hidden where there is one.
    space.inner = fields.has({"expand"}) ? 0 : fields.count(config_keys::innerWidth).value_or(0);
    if (!fields.failed() && space.inner == 0 && __builtin_mul_overflow(expand, model.hidden, &space.inner))
        space.inner = -1; // out of range, which checkModel() says
    const auto rank = fields.find(config_keys::stepRank);
    const bool isAutomatic = !rank || rank->node().is_string();
    space.rank = isAutomatic ? (model.hidden + 15) / 16 : fields.count(config_keys::stepRank).value_or(1);
    space.hasProjectionBias = fields.flag({"use_bias"}, false);
    space.hasConvolutionBias = fields.flag({"use_conv_bias"}, true);
    space.residualInFloat = fields.flag({"residual_in_fp32"}, true);
    model.tied = fields.flag({"tie_word_embeddings"}, true);
    const auto classes = fields.words({"architectures"});
    if (!classes.empty() && classes.front() == "MambaModel")
        model.head = HeadKind::None;
}

} // namespace memscape
