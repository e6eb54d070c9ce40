// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts, latent attention and sliding windows: where vendors differ most.
#include "core/network/config_parts.h"

#include "core/base/text.h"
#include "core/network/config_keys.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// 1 for each layer that has experts; empty when all have.
std::vector<std::uint8_t> sparseLayers(ConfigFields& fields, std::int64_t layers, std::int64_t firstDense)
{
    const std::int64_t step =
        fields.count({"decoder_sparse_step", "moe_layer_freq", "interleave_moe_layer_step"}).value_or(1);
    const std::vector<std::int64_t> dense = fields.counts({"mlp_only_layers"});
    if (firstDense == 0 && step == 1 && dense.empty())
        return {};
    const bool fromEnd = fields.has({"decoder_sparse_step", "interleave_moe_layer_step"});
    std::vector<std::uint8_t> sparse(static_cast<std::size_t>(layers), 1);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const bool listed = std::find(dense.begin(), dense.end(), layer) != dense.end();
        const bool skipped = (fromEnd ? layer + 1 : layer) % step != 0;
        sparse[static_cast<std::size_t>(layer)] = layer >= firstDense && !listed && !skipped;
    }
    return sparse;
}

/// Sentences of layer_types that are neither sliding nor full attention.
void readLayerTypes(ConfigFields& fields, ModelDescription& model)
{
    const auto types = fields.words({"layer_types"});
    if (types.empty())
        return;
    if (static_cast<std::int64_t>(types.size()) != model.layers)
        return fields.contradict("layer_types",
                                 fmt::format("{} layers and {} layer types", model.layers, types.size()));
    model.slidingLayers.clear();
    std::size_t others = 0;
    for (const std::string& type : types) {
        const bool sliding = type == "sliding_attention" || type == "chunked_attention";
        model.slidingLayers.push_back(sliding);
        others += !sliding && type != "full_attention";
    }
    if (others > 0)
        fields.assume(fmt::format("{} layers are neither full nor sliding attention (\"{}\"…); they are counted as "
                                  "full attention",
                                  others, quotedForMessage(types.front())));
    if (std::find(model.slidingLayers.begin(), model.slidingLayers.end(), 1) == model.slidingLayers.end()) {
        model.slidingWindow = 0;
        model.slidingLayers.clear();
    }
}

/// Every `pattern`-th layer sees everything, the others a window.
std::vector<std::uint8_t> everyNthFull(std::int64_t layers, std::int64_t pattern)
{
    std::vector<std::uint8_t> sliding;
    for (std::int64_t layer = 0; layer < layers; ++layer)
        sliding.push_back((layer + 1) % pattern != 0);
    return sliding;
}

} // namespace

void readExperts(ConfigFields& fields, ModelDescription& model)
{
    Experts& experts = model.experts;
    const bool known = experts.count > 0;
    const auto count = fields.count(config_keys::experts, 0);
    experts.count = count.value_or(experts.count);
    if (experts.count <= 1 || fields.failed()) {
        experts = {};
        return;
    }
    experts.active = fields.countOr(config_keys::activeExperts, experts.active);
    const auto width = fields.count(config_keys::expertFeedForward);
    experts.ffn = width.value_or(experts.ffn > 0 ? experts.ffn : model.ffn);
    const auto shared = fields.count(config_keys::sharedExperts, 0);
    if (shared)
        experts.sharedFfn = std::min(*shared, std::int64_t(1) << 20) * experts.ffn;
    else if (const auto sharedWidth = fields.count(config_keys::sharedFeedForward, 0))
        experts.sharedFfn = *sharedWidth;
    if (!fields.failed() && experts.active > experts.count)
        return fields.contradict("num_experts_per_tok", fmt::format("{} of {} experts", experts.active, experts.count));
    if (!known)
        fields.assume(fmt::format("{} experts, {} for each token, in every layer unless the configuration differs",
                                  experts.count, experts.active));
    if (model.layers <= 100'000) // what is larger is refused later
        model.sparseLayers = sparseLayers(fields, model.layers, fields.count({"first_k_dense_replace"}, 0).value_or(0));
}

void readLatentAttention(ConfigFields& fields, ModelDescription& model)
{
    LatentAttention& latent = model.latent;
    const bool known = latent.keyValueRank > 0;
    if (!known && !fields.has(config_keys::keyValueRank))
        return;
    latent.keyValueRank = fields.countOr(config_keys::keyValueRank, latent.keyValueRank);
    const bool says = fields.node().has("q_lora_rank"); // null: queries are made directly
    latent.queryRank = says ? fields.count(config_keys::queryRank, 0).value_or(0) : latent.queryRank;
    latent.ropeHeadDim = fields.countOr(config_keys::ropeHeadDim, latent.ropeHeadDim);
    latent.plainHeadDim = fields.countOr(config_keys::plainHeadDim, latent.plainHeadDim);
    latent.valueHeadDim = fields.countOr(config_keys::valueHeadDim, latent.valueHeadDim);
}

void readSlidingWindow(ConfigFields& fields, ModelDescription& model)
{
    if (fields.failed() || model.layers > 100'000)
        return;
    const std::string& kind = model.architecture;
    std::int64_t standard = model.slidingWindow;
    if (kind == "gemma2" || kind == "gemma3_text" || kind == "mistral")
        standard = 4096;
    const bool saysNone = fields.node().has("sliding_window") && !fields.has({"sliding_window"});
    const auto window = fields.count(config_keys::slidingWindow, 0);
    if (!window && !saysNone && standard > 0)
        fields.assume(fmt::format("sliding_window is not given: {} tokens are assumed", standard));
    model.slidingWindow = saysNone ? 0 : window.value_or(standard);
    if (model.slidingWindow == 0)
        return;
    const std::int64_t pattern =
        fields.count({"sliding_window_pattern", "_sliding_window_pattern"}).value_or(kind == "gemma3_text" ? 6 : 2);
    if (kind == "gemma2" || kind == "gpt_oss" || kind == "gemma3_text") {
        model.slidingLayers = everyNthFull(model.layers, pattern);
    } else if (kind.starts_with("qwen")) {
        const std::int64_t full = fields.count({"max_window_layers"}, 0).value_or(28);
        if (!fields.flag({"use_sliding_window"}, false) || full >= model.layers) {
            model.slidingWindow = 0;
        } else {
            model.slidingLayers.assign(static_cast<std::size_t>(model.layers), 1);
            std::fill_n(model.slidingLayers.begin(), full, std::uint8_t(0));
        }
    }
    readLayerTypes(fields, model);
}

void readCnn(ConfigFields& fields, ModelDescription& model)
{
    CnnDescription& cnn = model.cnn;
    cnn.depths = fields.counts(config_keys::depths);
    cnn.widths = fields.counts(config_keys::widths);
    const bool isDense = cnn.kind == CnnKind::DenseNet;
    const bool staged = cnn.kind == CnnKind::ResNet || cnn.kind == CnnKind::Vgg;
    if ((staged || isDense) && cnn.depths.empty() && !fields.failed())
        fields.refuse(Error{"config.missing", "is missing", isDense ? "block_config" : "depths",
                            "a list: how many blocks each stage has"});
    if (staged && cnn.widths.empty() && !fields.failed())
        fields.refuse(
            Error{"config.missing", "is missing", "hidden_sizes", "a list: how many channels each stage has"});
    cnn.bottleneck = fields.word({"layer_type"}, "bottleneck") == "bottleneck";
    cnn.batchNorm = fields.flag({"batch_norm"}, false);
    cnn.separable = fields.flag({"separable"}, true);
    cnn.widthMultiplier = fields.number(config_keys::widthMultiplier, 1);
    cnn.depthMultiplier = fields.number(config_keys::depthMultiplier, 1);
    cnn.growth = fields.count(config_keys::growth).value_or(cnn.growth);
    cnn.stem = fields.count(config_keys::stem).value_or(cnn.stem);
    PictureInput& picture = model.picture;
    picture.size = fields.count(config_keys::imageSize).value_or(picture.size);
    picture.channels = fields.count(config_keys::channels).value_or(picture.channels);
    picture.classes = givenClasses(fields).value_or(picture.classes);
    for (const std::int64_t width : cnn.widths) {
        if (cnn.kind == CnnKind::ResNet && cnn.bottleneck && width % 4 != 0)
            return fields.contradict("hidden_sizes",
                                     fmt::format("{} is not divisible by 4, as a bottleneck needs", width));
    }
}

} // namespace memscape
