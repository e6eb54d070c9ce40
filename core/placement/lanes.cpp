// SPDX-License-Identifier: Apache-2.0
#include "core/placement/lanes.h"

#include <algorithm>
#include <array>

namespace memscape {

namespace {

std::size_t resourceOf(Lane lane, LaneSharing sharing)
{
    const bool computes = lane == Lane::Device || lane == Lane::Host;
    switch (sharing) {
    case LaneSharing::Apart: return std::size_t(lane);
    case LaneSharing::Worker: return computes ? 0 : 1;
    case LaneSharing::Single: break;
    }
    return 0;
}

} // namespace

std::string_view laneText(Lane lane)
{
    switch (lane) {
    case Lane::Device: return "device";
    case Lane::Host: return "host";
    case Lane::Up: return "copies up";
    case Lane::Down: return "copies down";
    case Lane::Disk: break;
    }
    return "disk";
}

std::vector<LaneSpan> laneSpans(const std::vector<PlacedTask>& tasks, LaneSharing sharing)
{
    std::vector<LaneSpan> spans;
    spans.reserve(tasks.size());
    std::array<double, laneCount> idle{};
    for (const PlacedTask& task : tasks) {
        double& free = idle[resourceOf(task.lane, sharing)];
        double begin = free;
        for (const std::uint32_t before : task.after)
            begin = std::max(begin, spans[before].end);
        free = begin + task.seconds;
        spans.push_back({begin, free});
    }
    return spans;
}

} // namespace memscape
