// SPDX-License-Identifier: Apache-2.0
#include "core/network/model.h"

#include "core/network/network_file.h"

#include <fmt/format.h>

namespace memscape {

namespace {

struct Bound
{
    const char* field;
    std::int64_t value;
    std::int64_t low, high;
};

// Far beyond any model, far below what overflows a product of three of them.
constexpr std::int64_t layerLimit = 10'000;
constexpr std::int64_t widthLimit = std::int64_t(1) << 24;
constexpr std::int64_t vocabLimit = std::int64_t(1) << 31;
constexpr std::int64_t headLimit = 1 << 16;
constexpr std::int64_t expertLimit = 1 << 16;

Result<void> checkBounds(std::initializer_list<Bound> bounds)
{
    for (const Bound& bound : bounds) {
        if (bound.value < bound.low || bound.value > bound.high)
            return fail("model.range", fmt::format("{} is out of range", bound.value),
                        fmt::format("allowed: {} to {}", bound.low, bound.high), bound.field);
    }
    return {};
}

tl::unexpected<Error> contradiction(const char* field, std::string message)
{
    return fail("model.contradiction", std::move(message), "check the configuration", field);
}

Result<void> checkTransformer(const ModelDescription& model)
{
    const bool text = model.family != Family::VisionTransformer && model.family != Family::Diffusion;
    MEMSCAPE_CHECK(checkBounds({{"layers", model.layers, 1, layerLimit},
                                {"decoder layers", model.decoderLayers, 0, layerLimit},
                                {"hidden", model.hidden, 1, widthLimit},
                                {"heads", model.heads, 1, headLimit},
                                {"kv heads", model.kvHeads, 1, headLimit},
                                {"head dim", model.headDim, 1, widthLimit},
                                {"ffn", model.ffn, 1, widthLimit},
                                {"vocab", model.vocab, text ? 1 : 0, vocabLimit},
                                {"max positions", model.maxPositions, 0, vocabLimit},
                                {"token types", model.tokenTypes, 0, vocabLimit},
                                {"remainder", model.remainder, 0, std::int64_t(1) << 40},
                                {"embedding width", model.embeddingWidth, 0, widthLimit},
                                {"relative buckets", model.relativeBuckets, 0, widthLimit},
                                {"sliding window", model.slidingWindow, 0, std::int64_t(1) << 40}}));
    if (model.heads % model.kvHeads != 0)
        return contradiction(
            "kv heads",
            fmt::format("{} query heads cannot share {} key/value heads evenly", model.heads, model.kvHeads));
    if (!(model.rotaryShare > 0 && model.rotaryShare <= 1))
        return fail("model.range", fmt::format("{} is out of range", model.rotaryShare), "allowed: above 0, at most 1",
                    "rotary share");
    if (model.positions == PositionKind::Learned && text && model.maxPositions == 0)
        return contradiction("max positions", "learned positions need their number");
    const auto perLayer = [&](const std::vector<std::uint8_t>& flags) {
        return flags.empty() || static_cast<std::int64_t>(flags.size()) == model.layers;
    };
    if (!perLayer(model.slidingLayers) || !perLayer(model.sparseLayers))
        return contradiction("layers", "the list of layer kinds has another length");
    return {};
}

Result<void> checkExperts(const ModelDescription& model)
{
    const Experts& experts = model.experts;
    MEMSCAPE_CHECK(checkBounds(
        {{"experts", experts.count, 0, expertLimit}, {"shared expert ffn", experts.sharedFfn, 0, widthLimit}}));
    if (experts.count > 0)
        MEMSCAPE_CHECK(checkBounds(
            {{"experts per token", experts.active, 1, experts.count}, {"expert ffn", experts.ffn, 1, widthLimit}}));
    const LatentAttention& latent = model.latent;
    MEMSCAPE_CHECK(checkBounds(
        {{"query rank", latent.queryRank, 0, widthLimit}, {"key/value rank", latent.keyValueRank, 0, widthLimit}}));
    if (latent.keyValueRank > 0)
        MEMSCAPE_CHECK(checkBounds({{"rope head dim", latent.ropeHeadDim, 1, widthLimit},
                                    {"plain head dim", latent.plainHeadDim, 1, widthLimit},
                                    {"value head dim", latent.valueHeadDim, 1, widthLimit}}));
    return {};
}

Result<void> checkPicture(const ModelDescription& model)
{
    const PictureInput& picture = model.picture;
    MEMSCAPE_CHECK(checkBounds({{"image size", picture.size, 1, 1 << 16},
                                {"patch", picture.patch, 1, picture.size},
                                {"channels", picture.channels, 1, 1 << 16},
                                {"classes", picture.classes, 0, 1 << 28}}));
    const bool isCut = model.family == Family::VisionTransformer || model.family == Family::Diffusion;
    if (isCut && picture.size % picture.patch != 0)
        return contradiction(
            "patch", fmt::format("an image of {} cannot be cut into patches of {}", picture.size, picture.patch));
    return {};
}

Result<void> checkSizes(const char* field, const std::vector<std::int64_t>& sizes, std::size_t least)
{
    if (sizes.size() < least || sizes.size() > static_cast<std::size_t>(layerLimit))
        return fail("model.range", fmt::format("{} sizes are out of range", sizes.size()),
                    fmt::format("allowed: {} to {}", least, layerLimit), field);
    for (const std::int64_t size : sizes)
        MEMSCAPE_CHECK(checkBounds({{field, size, 1, widthLimit}}));
    return {};
}

Result<void> checkWindows(const ModelDescription& model)
{
    const WindowStages& windows = model.windows;
    MEMSCAPE_CHECK(checkSizes("depths", windows.depths, 1));
    MEMSCAPE_CHECK(checkSizes("heads", windows.heads, 1));
    MEMSCAPE_CHECK(checkBounds({{"window", windows.window, 1, 4096}}));
    if (windows.depths.size() != windows.heads.size() || windows.depths.size() > 16)
        return contradiction("depths",
                             fmt::format("{} stages have a depth and {} heads; at most 16 are read",
                                         windows.depths.size(), windows.heads.size()));
    std::int64_t side = model.picture.size / model.picture.patch;
    for (std::size_t i = 0; i < windows.heads.size(); ++i, side /= 2) {
        const std::int64_t width = model.hidden << i;
        if (width % windows.heads[i] != 0)
            return contradiction(
                "heads",
                fmt::format("{} channels cannot be shared by {} heads of stage {}", width, windows.heads[i], i + 1));
        const bool isHalved = i + 1 < windows.heads.size();
        if (side < 1 || (side > windows.window && side % windows.window != 0) || (isHalved && side % 2 != 0))
            return contradiction("image size",
                                 fmt::format("stage {} of {} × {} patches cannot be cut into windows of "
                                             "{} and halved: padding is not modelled",
                                             i + 1, side, side, windows.window));
    }
    return {};
}

Result<void> checkTower(const ModelDescription& model)
{
    const VisionTower& tower = model.vision;
    MEMSCAPE_CHECK(checkBounds({{"vision layers", tower.layers, 0, layerLimit}}));
    if (tower.layers == 0)
        return {};
    MEMSCAPE_CHECK(checkBounds({{"vision hidden", tower.hidden, 1, widthLimit},
                                {"vision heads", tower.heads, 1, headLimit},
                                {"vision ffn", tower.ffn, 1, widthLimit},
                                {"vision layers taken", tower.taken, 0, tower.layers},
                                {"vision image size", tower.picture.size, 1, 1 << 16},
                                {"vision patch", tower.picture.patch, 1, tower.picture.size},
                                {"vision channels", tower.picture.channels, 1, 1 << 16},
                                {"vision merge", tower.merged, 1, 64},
                                {"vision frames", tower.frames, 1, 64},
                                {"vision window", tower.window, 0, 1 << 16}}));
    const std::int64_t unit = std::max(tower.picture.patch * tower.merged, tower.window);
    if (tower.hasGrid() && tower.picture.size % unit != 0)
        return contradiction("vision image size",
                             fmt::format("a side of {} pixels is no multiple of {}: cut windows and padding are not "
                                         "modelled",
                                         tower.picture.size, unit));
    if (tower.window % (tower.picture.patch * tower.merged) != 0)
        return contradiction("vision window",
                             fmt::format("{} pixels are no multiple of the {} of a token", tower.window,
                                         tower.picture.patch * tower.merged));
    if (tower.hidden % tower.heads != 0)
        return contradiction(
            "vision heads",
            fmt::format("{} channels cannot be shared by {} heads of the vision tower", tower.hidden, tower.heads));
    return {};
}

/// The levels of a UNet; `side` of the picture.
Result<void> checkLevels(const Diffusion& diffusion, std::int64_t side)
{
    MEMSCAPE_CHECK(checkSizes("widths", diffusion.widths, 1));
    MEMSCAPE_CHECK(checkSizes("heads", diffusion.heads, 1));
    MEMSCAPE_CHECK(checkBounds({{"block layers", diffusion.blockLayers, 1, 100},
                                {"groups", diffusion.groups, 1, widthLimit},
                                {"text tokens", diffusion.textTokens, 1, 1 << 20},
                                {"text width", diffusion.textWidth, 1, widthLimit}}));
    const std::size_t levels = diffusion.widths.size();
    if (levels > 16 || diffusion.heads.size() != levels || diffusion.attends.size() != levels)
        return contradiction("widths",
                             fmt::format("{} levels have a width, {} heads and {} a kind; at most 16 are read", levels,
                                         diffusion.heads.size(), diffusion.attends.size()));
    for (std::size_t i = 0; i < levels; ++i) {
        const std::int64_t width = diffusion.widths[i];
        for (const auto& [count, what] :
             {std::pair{diffusion.heads[i], "heads"}, std::pair{diffusion.groups, "groups"}})
            if (width % count != 0)
                return contradiction(what, fmt::format("{} channels cannot be shared by {} {}", width, count, what));
    }
    if (side % (std::int64_t(1) << (levels - 1)) != 0)
        return contradiction("image size", fmt::format("a side of {} cannot be halved {} times", side, levels - 1));
    return {};
}

Result<void> checkStateSpace(const ModelDescription& model)
{
    const StateSpace& space = model.stateSpace;
    return checkBounds({{"layers", model.layers, 1, layerLimit},
                        {"hidden", model.hidden, 1, widthLimit},
                        {"vocab", model.vocab, 1, vocabLimit},
                        {"inner width", space.inner, 1, widthLimit},
                        {"state", space.state, 1, widthLimit},
                        {"state kernel", space.kernel, 1, 1 << 16},
                        {"step rank", space.rank, 1, widthLimit}});
}

Result<void> checkDepths(const std::vector<std::int64_t>& depths)
{
    MEMSCAPE_CHECK(checkSizes("depths", depths, 1));
    std::int64_t layers = 0;
    for (const std::int64_t depth : depths)
        layers += depth;
    return checkBounds({{"depths", layers, 1, layerLimit}});
}

Result<void> checkCnn(const ModelDescription& model)
{
    MEMSCAPE_CHECK(checkPicture(model));
    const CnnDescription& cnn = model.cnn;
    for (const auto& [field, factor] :
         {std::pair{"width multiplier", cnn.widthMultiplier}, std::pair{"depth multiplier", cnn.depthMultiplier}})
        if (!(factor > 0 && factor <= 64))
            return fail("model.range", fmt::format("{} is out of range", factor), "allowed: above 0, at most 64",
                        field);
    MEMSCAPE_CHECK(checkBounds({{"growth", cnn.growth, 1, widthLimit}, {"stem", cnn.stem, 1, widthLimit}}));
    if (cnn.kind == CnnKind::DenseNet)
        return checkDepths(cnn.depths);
    if (cnn.kind != CnnKind::ResNet && cnn.kind != CnnKind::Vgg)
        return {};
    MEMSCAPE_CHECK(checkSizes("widths", cnn.widths, 1));
    if (cnn.depths.size() != cnn.widths.size())
        return contradiction(
            "depths", fmt::format("{} stages have a depth and {} a width", cnn.depths.size(), cnn.widths.size()));
    return checkDepths(cnn.depths);
}

} // namespace

std::string_view familyText(Family family)
{
    switch (family) {
    case Family::Decoder: return "decoder";
    case Family::Encoder: return "encoder";
    case Family::EncoderDecoder: return "encoder-decoder";
    case Family::VisionTransformer: return "vision transformer";
    case Family::Diffusion: return "diffusion model";
    case Family::StateSpace: return "state space model";
    case Family::Cnn: return "convolutional network";
    case Family::Traced: return "traced network";
    case Family::Mlp: break;
    }
    return "MLP chain";
}

bool ModelDescription::isSparse(std::int64_t layer) const
{
    if (experts.count == 0)
        return false;
    return sparseLayers.empty() || sparseLayers[static_cast<std::size_t>(layer)] != 0;
}

bool ModelDescription::isSliding(std::int64_t layer) const
{
    if (slidingWindow == 0)
        return false;
    return slidingLayers.empty() || slidingLayers[static_cast<std::size_t>(layer)] != 0;
}

std::int64_t ModelDescription::queryHeadDim() const
{
    return latent.keyValueRank > 0 ? latent.ropeHeadDim + latent.plainHeadDim : headDim;
}

std::int64_t ModelDescription::valueHeadDim() const
{
    return latent.keyValueRank > 0 ? latent.valueHeadDim : headDim;
}

std::int64_t ModelDescription::tokenLimit() const
{
    if (program)
        return program->sequence < 1 ? 0 : maxPositions;
    return positions == PositionKind::Learned && architecture != "from-scratch" ? maxPositions : 0;
}

Error beyondPositions(std::string_view key, std::int64_t tokens, std::int64_t positions)
{
    Error error{"network.shape",
                fmt::format("a {} of {} is longer than the {} positions of this model", key, tokens, positions),
                std::string(key), fmt::format("take at most {0} tokens: {1}={0}", positions, key)};
    error.remedy = Remedy{std::string(key), fmt::format("{}", positions)};
    return error;
}

Result<void> checkModel(const ModelDescription& model)
{
    switch (model.family) {
    case Family::Mlp: return checkSizes("sizes", model.mlpSizes, 2);
    case Family::Cnn: return checkCnn(model);
    case Family::Traced: return {}; // checked when it was read
    case Family::StateSpace: return checkStateSpace(model);
    case Family::Diffusion:
        MEMSCAPE_CHECK(checkPicture(model));
        MEMSCAPE_CHECK(checkBounds({{"output channels", model.diffusion.outputs, 1, 1 << 16}}));
        if (model.architecture == "unet")
            return checkLevels(model.diffusion, model.picture.size);
        break;
    case Family::VisionTransformer: MEMSCAPE_CHECK(checkPicture(model)); break;
    default: break;
    }
    MEMSCAPE_CHECK(checkTransformer(model));
    MEMSCAPE_CHECK(checkBounds({{"audio channels", model.audio.channels, 1, widthLimit},
                                {"audio positions", model.audio.positions, 1, widthLimit}}));
    MEMSCAPE_CHECK(checkTower(model));
    if (!model.windows.depths.empty())
        MEMSCAPE_CHECK(checkWindows(model));
    return checkExperts(model);
}

} // namespace memscape
