// SPDX-License-Identifier: Apache-2.0
// Nodes of memory as Linux lists them under /sys/devices/system/node: which processors and how much memory each has,
// and how far it says that the others are (the firmware's table of distances, 10 for a node's own memory). Where
// nothing is listed there is no node.
//
// Left out: nodes that come and go while the program runs.
#pragma once

#include <filesystem>
#include <limits>
#include <vector>

namespace memscape {

struct NumaNode
{
    int id = 0;
    std::vector<int> processors; ///< none: a node of memory alone
    double memoryBytes = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> distances; ///< to the nodes in the order in which they are listed; empty where it is not told

    bool hasMemory() const { return memoryBytes > 0; }
};

inline constexpr double ownDistance = 10; ///< of a node to its own memory

/// In ascending order of their ids. `root` is "/" except in tests.
std::vector<NumaNode> readNumaNodes(const std::filesystem::path& root = "/");

/// The node of that processor; null where none lists it.
const NumaNode* nodeOfProcessor(const std::vector<NumaNode>& nodes, int processor);
/// The node whose memory is farthest from `from`, which is one of them; null where no other has memory.
const NumaNode* farthestNode(const std::vector<NumaNode>& nodes, const NumaNode& from);
/// From one to another; NaN where it is not told.
double distanceBetween(const std::vector<NumaNode>& nodes, const NumaNode& from, const NumaNode& to);

} // namespace memscape
