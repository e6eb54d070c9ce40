// SPDX-License-Identifier: Apache-2.0
#include "core/network/config_keys.h"

#include <utility>

namespace memscape::config_keys {

namespace {

/// A field of the description, and the keys that it is read from, most likely first.
constexpr std::pair<std::string_view, ConfigFields::Keys> keysOfFields[] = {
    {"layers", layers},
    {"decoder layers", decoderLayers},
    {"hidden", hidden},
    {"heads", heads},
    {"kv heads", keyValueHeads},
    {"head dim", headDim},
    {"ffn", feedForward},
    {"vocab", vocab},
    {"max positions", maxPositions},
    {"token types", tokenTypes},
    {"embedding width", embeddingWidth},
    {"relative buckets", relativeBuckets},
    {"sliding window", slidingWindow},
    {"rotary share", rotaryShare},
    {"experts", experts},
    {"experts per token", activeExperts},
    {"expert ffn", expertFeedForward},
    {"shared expert ffn", sharedFeedForward},
    {"shared expert ffn", sharedExperts},
    {"query rank", queryRank},
    {"key/value rank", keyValueRank},
    {"rope head dim", ropeHeadDim},
    {"plain head dim", plainHeadDim},
    {"value head dim", valueHeadDim},
    {"image size", imageSize},
    {"patch", patch},
    {"channels", channels},
    {"classes", classes},
    {"audio channels", audioChannels},
    {"audio positions", audioPositions},
    {"window", window},
    {"inner width", innerWidth},
    {"state", stateSize},
    {"state kernel", stateKernel},
    {"step rank", stepRank},
    {"depths", depths},
    {"widths", widths},
    {"width multiplier", widthMultiplier},
    {"depth multiplier", depthMultiplier},
    {"growth", growth},
    {"stem", stem},
    {"output channels", outputChannels},
    {"block layers", blockLayers},
    {"groups", groups},
    {"text width", textWidth},
};

} // namespace

std::string placeOf(const ConfigFields& fields, std::string_view field)
{
    constexpr std::string_view tower = "vision ";
    const auto part = fields.find({"vision_config"});
    if (field.starts_with(tower) && part)
        return placeOf(ConfigFields(*part), field.substr(tower.size()));
    std::string missing;
    for (const auto& [name, keys] : keysOfFields) {
        if (name != field)
            continue;
        if (const auto found = fields.find(keys))
            return found->path();
        if (missing.empty())
            missing = fields.within(*keys.begin());
    }
    return missing.empty() ? std::string(field) : missing;
}

} // namespace memscape::config_keys
