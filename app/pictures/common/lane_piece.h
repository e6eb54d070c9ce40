// SPDX-License-Identifier: GPL-3.0-or-later
// A way of moving bytes, as the details of transfers and loads say it: its lanes by name, and what they do:
// [lane, first chunk, last chunk, begin, end].
#pragma once

#include "app/pictures/common/json_values.h"
#include "core/timing/pipeline.h"

#include <QStringList>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace memscape {

/// Nothing where a number is missing or makes no sense.
inline std::optional<LanePiece> readLanePiece(const Json& json, std::size_t lanes)
{
    if (!json.is_array() || json.size() != 5)
        return std::nullopt;
    const std::vector<double> values = numbers(json);
    const bool isFinite = std::ranges::all_of(values, [](double one) { return std::isfinite(one); });
    if (!isFinite || values[0] < 0 || values[0] >= double(lanes) || values[1] < 0 || values[2] < values[1]
        || values[2] > 1e9 || values[3] < 0 || values[4] < values[3])
        return std::nullopt;
    return LanePiece{std::size_t(values[0]), std::uint64_t(values[1]), std::uint64_t(values[2]), values[3], values[4]};
}

struct LaneWay
{
    QString key, label;                  ///< "overlapped"; "pinned, 16 chunks, 2 buffers"
    double time = 0;                     ///< s
    std::optional<double> measured = {}; ///< s
    QStringList lanes;                   ///< "disk", "conversion", "link to the GPU"
    std::vector<LanePiece> pieces;
};

/// At most so many lanes and pieces. False where there is nothing to draw.
inline bool readLaneWay(const Json& json, LaneWay& way, std::size_t mostLanes, std::size_t mostPieces)
{
    way.key = textOf(json, "key");
    way.label = textOf(json, "label");
    way.time = number(json, "time");
    for (const Json& lane : listOf(json, "lanes")) {
        if (std::size_t(way.lanes.size()) < mostLanes)
            way.lanes << textOf(lane);
    }
    for (const Json& piece : listOf(json, "pieces")) {
        if (way.pieces.size() == mostPieces)
            break;
        if (const auto read = readLanePiece(piece, std::size_t(way.lanes.size())))
            way.pieces.push_back(*read);
    }
    return way.time > 0 && std::isfinite(way.time) && !way.pieces.empty();
}

} // namespace memscape
