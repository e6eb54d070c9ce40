// SPDX-License-Identifier: Apache-2.0
// What the configurations of Whisper, DINOv2, Swin, DiT, the UNet and Mamba say in keys of their own.
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

void readDit(ConfigFields& fields, ModelDescription& model)
{
    readPicture(fields, model.picture);
    model.picture.classes = givenClasses(fields).value_or(model.picture.classes);
    model.hidden = fields.required(config_keys::hidden);
    model.layers = fields.required(config_keys::layers);
    model.heads = model.kvHeads = fields.required(config_keys::heads);
    model.ffn = widened(fields, model.hidden, 4);
    model.diffusion.outputs = (fields.flag({"learn_sigma"}, true) ? 2 : 1) * model.picture.channels;
    if (fields.failed())
        return;
    if (model.hidden % model.heads != 0)
        return fields.contradict("num_heads",
                                 fmt::format("{} channels cannot be shared by {} heads", model.hidden, model.heads));
    model.headDim = model.hidden / model.heads;
}

namespace {

/// What of a UNet2DConditionModel is another network.
void refuseOtherUnets(ConfigFields& fields)
{
    for (const char* key :
         {"addition_embed_type", "class_embed_type", "num_class_embeds", "encoder_hid_dim_type", "time_cond_proj_dim"})
        if (fields.has({key}))
            return fields.contradict(key, "only the UNet of Stable Diffusion 1 and 2 is modelled");
    for (const auto& [key, standard] :
         {std::pair{"mid_block_type", "UNetMidBlock2DCrossAttn"}, std::pair{"resnet_time_scale_shift", "default"},
          std::pair{"time_embedding_type", "positional"}, std::pair{"act_fn", "silu"}})
        if (fields.word({key}, standard) != standard)
            return fields.contradict(key, fmt::format("only \"{}\" is modelled", standard));
    for (const char* key : {"dual_cross_attention", "only_cross_attention", "transformer_layers_per_block",
                            "downsample_padding", "mid_block_scale_factor", "conv_in_kernel", "conv_out_kernel"}) {
        const double standard = std::string_view(key).ends_with("kernel") ? 3 : 1;
        const auto given = fields.find({key});
        const bool isOther = given && !(given->node().is_number() && fields.number({key}, standard) == standard)
            && !(given->node().is_boolean() && !given->node().get<bool>());
        if (isOther)
            return fields.contradict(key, "only what Stable Diffusion 1 and 2 say is modelled");
    }
}

/// Down blocks with attention or without, and up blocks that mirror them.
void readLevels(ConfigFields& fields, Diffusion& diffusion)
{
    std::vector<std::string> down = fields.words({"down_block_types"}), up = fields.words({"up_block_types"});
    if (down.empty())
        down = {"CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"};
    if (up.empty())
        up = {"UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"};
    for (std::size_t i = 0; i < down.size(); ++i) {
        const bool attends = down[i] == "CrossAttnDownBlock2D";
        if (!attends && down[i] != "DownBlock2D")
            return fields.contradict("down_block_types",
                                     fmt::format("a block \"{}\" is not modelled", quotedForMessage(down[i])));
        if (up.size() != down.size() || up[up.size() - 1 - i] != (attends ? "CrossAttnUpBlock2D" : "UpBlock2D"))
            return fields.contradict("up_block_types", "the way up does not mirror the way down");
        diffusion.attends.push_back(attends);
    }
    // diffusers' attention_head_dim is a number of heads here (its issue 2011).
    const auto heads = fields.find({"num_attention_heads", "attention_head_dim"});
    if (heads && heads->node().is_array())
        diffusion.heads = fields.counts({"num_attention_heads", "attention_head_dim"});
    else
        diffusion.heads.assign(diffusion.widths.size(),
                               fields.count({"num_attention_heads", "attention_head_dim"}).value_or(8));
}

} // namespace

void readUnet(ConfigFields& fields, ModelDescription& model)
{
    Diffusion& diffusion = model.diffusion;
    model.picture.size = fields.countOr(config_keys::imageSize, 64);
    model.picture.channels = fields.count(config_keys::channels).value_or(4);
    model.picture.patch = 1;
    diffusion.outputs = fields.count(config_keys::outputChannels).value_or(4);
    diffusion.widths = fields.counts(config_keys::widths);
    if (diffusion.widths.empty() && !fields.failed())
        diffusion.widths = {320, 640, 1280, 1280};
    diffusion.blockLayers = fields.count(config_keys::blockLayers).value_or(2);
    diffusion.groups = fields.count(config_keys::groups).value_or(32);
    diffusion.textWidth = fields.count(config_keys::textWidth).value_or(1280);
    diffusion.isProjectionLinear = fields.flag({"use_linear_projection"}, false);
    refuseOtherUnets(fields);
    readLevels(fields, diffusion);
    if (fields.failed())
        return;
    model.hidden = diffusion.widths.front();
    model.layers = std::int64_t(diffusion.widths.size());
    model.heads = model.kvHeads = diffusion.heads.empty() ? 1 : diffusion.heads.front();
    model.headDim = std::max<std::int64_t>(1, model.hidden / std::max<std::int64_t>(1, model.heads));
    fields.assume("a text is 77 tokens, whose encoder is not counted");
}

namespace {

void readClip(ConfigFields& said, ConfigFields& outer, VisionTower& tower)
{
    tower.ffn = said.required(config_keys::feedForward);
    tower.picture.size = said.required(config_keys::imageSize);
    tower.keepsClass = outer.word({"vision_feature_select_strategy"}, "default") == "full";
    const double layer = outer.number({"vision_feature_layer"}, -2); // counted from behind when it is below 0
    const auto layers = double(tower.layers);
    if (!(layer >= -1 - layers && layer <= layers) || layer != std::floor(layer))
        outer.contradict("vision_feature_layer", fmt::format("{} is no layer of the {} of the tower", layer, layers));
    else
        tower.taken = static_cast<std::int64_t>(layer < 0 ? layer + 1 + layers : layer);
    tower.projectorActivation =
        outer.word({"projector_hidden_act"}, "gelu") == "relu" ? ActivationKind::Relu : ActivationKind::Gelu;
}

/// The files of Qwen2-VL leave the size of pictures to the processor: any. `decoder`: the width of its tokens.
void readQwen(ConfigFields& said, std::int64_t decoder, VisionTower& tower)
{
    const bool isFirst = tower.kind == VisionTower::Kind::Qwen2;
    const ConfigFields::Keys made = {isFirst ? "hidden_size" : "out_hidden_size"};
    if (said.count(made).value_or(decoder) != decoder)
        said.contradict(*made.begin(), fmt::format("is not the {} of the decoder", decoder));
    tower.ffn = isFirst ? static_cast<std::int64_t>(double(tower.hidden) * said.number({"mlp_ratio"}, 4))
                        : said.required(config_keys::feedForward);
    tower.merged = said.count({"spatial_merge_size"}).value_or(2);
    tower.frames = said.count({"temporal_patch_size"}).value_or(2);
    if (!isFirst) {
        tower.activation = activationFrom(said, ActivationKind::Silu);
        tower.window = said.count(config_keys::window).value_or(112);
        tower.wholeLayers = said.has({"fullatt_block_indexes"}) ? said.counts({"fullatt_block_indexes"})
                                                                : std::vector<std::int64_t>{7, 15, 23, 31};
    }
    const bool isGiven = said.has(config_keys::imageSize);
    tower.picture.size = said.count(config_keys::imageSize).value_or(448);
    if (!isGiven)
        said.assume(fmt::format("pictures are of {0} x {0} pixels, as the model takes any: a key image_size in "
                                "vision_config says another side",
                                tower.picture.size));
}

} // namespace

void readVisionTower(const JsonReader& document, ConfigFields& fields, ModelDescription& model)
{
    const auto part = document.at("vision_config");
    if (!part)
        return fields.refuse(part.error());
    if (!part->node().is_object())
        return fields.refuse(part->expected("an object").value());
    ConfigFields said(*part), outer(document);
    VisionTower& tower = model.vision;
    const std::string type = outer.word({"model_type"});
    tower.kind = type == "llava" ? VisionTower::Kind::Clip
        : type == "qwen2_vl"     ? VisionTower::Kind::Qwen2
                                 : VisionTower::Kind::Qwen25;
    const std::string kind = said.word({"model_type"}, "clip_vision_model");
    if (tower.kind == VisionTower::Kind::Clip && kind != "clip_vision_model")
        said.contradict(
            "model_type",
            fmt::format("a vision tower \"{}\" is not modelled, only clip_vision_model", quotedForMessage(kind)));
    tower.hidden =
        said.required(tower.kind == VisionTower::Kind::Qwen2 ? config_keys::patchWidth : config_keys::hidden);
    tower.layers = said.required(config_keys::layers);
    tower.heads = said.required(config_keys::heads);
    tower.picture.patch = said.required(config_keys::patch);
    tower.picture.channels = said.count(config_keys::channels).value_or(3);
    tower.activation = activationFrom(said, ActivationKind::QuickGelu);
    if (tower.kind == VisionTower::Kind::Clip)
        readClip(said, outer, tower);
    else
        readQwen(said, model.hidden, tower);
    for (const ConfigFields* each : {&said, &outer})
        if (each->failed())
            return fields.refuse(each->error());
    for (std::string& sentence : said.takeAssumptions())
        fields.assume(std::move(sentence));
    if (tower.picture.patch * tower.merged <= tower.picture.size)
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
