// SPDX-License-Identifier: GPL-3.0-or-later
// A lane at work, as the details of transfers and loads say it: [lane, first chunk, last chunk, begin, end].
#pragma once

#include "app/pictures/common/json_values.h"
#include "core/timing/pipeline.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace memscape {

/// Nothing where a number is missing or makes no sense.
inline std::optional<LanePiece> readLanePiece(const Json& json, std::size_t lanes)
{
    if (!json.is_array() || json.size() != 5)
        return std::nullopt;
    const std::vector<double> values = numbers(json);
    const bool isFinite = std::all_of(values.begin(), values.end(), [](double one) { return std::isfinite(one); });
    if (!isFinite || values[0] < 0 || values[0] >= double(lanes) || values[1] < 0 || values[2] < values[1]
        || values[2] > 1e9 || values[3] < 0 || values[4] < values[3])
        return std::nullopt;
    return LanePiece{std::size_t(values[0]), std::uint64_t(values[1]), std::uint64_t(values[2]), values[3], values[4]};
}

} // namespace memscape
