// SPDX-License-Identifier: Apache-2.0
#include "core/training/vllm_profile.h"

#include <algorithm>

namespace memscape {

VllmProfile vllmProfile(bool isRecent, std::int64_t capacity, bool isA100, std::int64_t context)
{
    constexpr std::int64_t chunk = 2048, longContext = 32768;
    if (!isRecent)
        return {context > longContext ? chunk : std::max(context, chunk), 256};
    const bool isLarge = capacity >= std::int64_t(70) << 30 && !isA100;
    return isLarge ? VllmProfile{8192, 1024} : VllmProfile{chunk, 256};
}

std::int64_t samplerBytes(const ModelDescription& model, const VllmProfile& profile, std::int64_t element)
{
    constexpr std::int64_t fp32 = 4, place = 8;
    const std::int64_t sorting = (fp32 + place) + place + (fp32 + place); // results, places before, CUB's buffers
    const std::int64_t logits = profile.sequences * model.vocab * (element + fp32 + sorting);
    return logits + profile.tokens * model.hidden * element;
}

} // namespace memscape
