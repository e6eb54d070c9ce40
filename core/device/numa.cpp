// SPDX-License-Identifier: Apache-2.0
#include "core/device/numa.h"

#include "core/base/number.h"
#include "core/base/text.h"
#include "core/device/host_facts.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

#include <fmt/format.h>

namespace memscape {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t mostNodes = 1024; ///< that Linux is built for

std::string firstLineOf(const fs::path& path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return std::string(trimmed(line));
}

/// "Node 0 MemTotal:       65536 kB"
double memoryOf(const fs::path& folder)
{
    std::ifstream file(folder / "meminfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t at = line.find("MemTotal:");
        if (at == std::string::npos)
            continue;
        const auto words = split(std::string(trimmed(line.substr(at + 9))), ' ');
        const auto kilobytes = parseNumber(words.front());
        return kilobytes && *kilobytes >= 0 && *kilobytes < 1e14 ? *kilobytes * 1024
                                                                 : std::numeric_limits<double>::quiet_NaN();
    }
    return std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> distancesOf(const fs::path& folder)
{
    std::vector<double> distances;
    for (const std::string& word : split(firstLineOf(folder / "distance"), ' ')) {
        const auto number = parseNumber(word);
        if (!number || !(*number >= ownDistance) || *number > 255)
            return {};
        distances.push_back(*number);
    }
    return distances;
}

} // namespace

std::vector<NumaNode> readNumaNodes(const fs::path& root)
{
    const fs::path folder = root / "sys/devices/system/node";
    std::vector<int> ids = parseCpuList(firstLineOf(folder / "online"));
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    ids.resize(std::min(ids.size(), mostNodes));
    std::vector<NumaNode> nodes;
    for (const int id : ids) {
        const fs::path inside = folder / fmt::format("node{}", id);
        nodes.push_back({id, parseCpuList(firstLineOf(inside / "cpulist")), memoryOf(inside), distancesOf(inside)});
    }
    for (NumaNode& node : nodes) {
        if (node.distances.size() != nodes.size())
            node.distances.clear(); // of which node each is cannot be said
    }
    return nodes;
}

const NumaNode* nodeOfProcessor(const std::vector<NumaNode>& nodes, int processor)
{
    for (const NumaNode& node : nodes) {
        if (std::ranges::find(node.processors, processor) != node.processors.end())
            return &node;
    }
    return nullptr;
}

double distanceBetween(const std::vector<NumaNode>& nodes, const NumaNode& from, const NumaNode& to)
{
    for (std::size_t i = 0; i < nodes.size() && i < from.distances.size(); ++i) {
        if (nodes[i].id == to.id)
            return from.distances[i];
    }
    return std::numeric_limits<double>::quiet_NaN();
}

const NumaNode* farthestNode(const std::vector<NumaNode>& nodes, const NumaNode& from)
{
    const NumaNode* farthest = nullptr;
    double most = 0;
    for (const NumaNode& node : nodes) {
        const double distance = distanceBetween(nodes, from, node);
        const double known = std::isfinite(distance) ? distance : ownDistance;
        if (node.id == from.id || !node.hasMemory() || (farthest && known <= most))
            continue;
        farthest = &node;
        most = known;
    }
    return farthest;
}

} // namespace memscape
