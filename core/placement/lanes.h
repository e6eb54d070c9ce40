// SPDX-License-Identifier: Apache-2.0
// Work in lanes: a lane does one thing at a time, in the order in which it was given; a task also waits for others.
// With that order fixed the time of the whole is the longest path, found in one pass. This is what streams of a GPU and
// a thread for each lane do.
//
// Left out: lanes that slow each other down.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace memscape {

/// Up: host to device. Disk: between host memory and a disk.
enum class Lane : std::uint8_t { Device, Host, Up, Down, Disk };
inline constexpr std::size_t laneCount = 5;
std::string_view laneText(Lane lane); ///< "device", "host", "copies up", …

/// Which lanes are one: on a processor "device" and "host" are the same core, and one other copies.
enum class LaneSharing : std::uint8_t {
    Apart,  ///< a GPU: two processors, a copy engine in each direction
    Worker, ///< one core computes, another copies
    Single, ///< one core does all, in turn
};

struct PlacedTask
{
    Lane lane = Lane::Device;
    double seconds = 0;
    std::vector<std::uint32_t> after = {}; ///< earlier tasks that have to end first
};

struct LaneSpan
{
    double begin = 0, end = 0; ///< s
};

/// When each task runs, in the order of the tasks; `after` names earlier ones.
std::vector<LaneSpan> laneSpans(const std::vector<PlacedTask>& tasks, LaneSharing sharing);

} // namespace memscape
