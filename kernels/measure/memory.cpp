// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>

#include <sys/resource.h>

namespace memscape {

void MemoryMeter::add(std::int64_t bytes)
{
    const std::int64_t used = m_used += bytes;
    std::int64_t high = m_highWater;
    while (used > high && !m_highWater.compare_exchange_weak(high, used)) { }
}

namespace {

/// The value of a "Key:   123 kB" line of a /proc file, in bytes.
std::optional<std::int64_t> kilobytesOf(const std::string& path, const std::string& key)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, key.size(), key) != 0 || line.size() <= key.size() || line[key.size()] != ':')
            continue;
        const std::size_t digits = line.find_first_of("0123456789");
        if (digits == std::string::npos)
            return std::nullopt;
        std::int64_t kilobytes = 0;
        const auto [end, error] = std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes);
        if (error != std::errc())
            return std::nullopt;
        return kilobytes * 1024;
    }
    return std::nullopt;
}

/// The number that a file holds, or that stands after `key` on a line of it; none for "max".
std::optional<std::int64_t> numberOf(const std::string& path, const std::string& key = {})
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key))
            continue;
        std::int64_t number = 0;
        const char* const begin = line.data() + key.size();
        if (std::from_chars(begin, line.data() + line.size(), number).ec == std::errc())
            return number;
    }
    return std::nullopt;
}

std::optional<std::int64_t> lesser(std::optional<std::int64_t> a, std::optional<std::int64_t> b)
{
    return a && b ? std::min(*a, *b) : a ? a : b;
}

/// Of the control group (version 2) that this process is in, and of those around it. Pages of files
/// that are not in use are counted there, and given back when they are needed.
std::optional<std::int64_t> leftOfGroups(const std::string& root)
{
    std::ifstream groups(root + "proc/self/cgroup");
    std::string group;
    for (std::string line; std::getline(groups, line);) {
        if (line.starts_with("0::/"))
            group = line.substr(3);
    }
    std::optional<std::int64_t> left;
    while (!group.empty()) {
        const std::string folder = root + "sys/fs/cgroup" + group + (group.ends_with('/') ? "" : "/");
        const auto most = numberOf(folder + "memory.max"), used = numberOf(folder + "memory.current");
        if (most && used) {
            const auto spare = numberOf(folder + "memory.stat", "inactive_file ").value_or(0);
            left = lesser(left, std::max<std::int64_t>(0, *most - std::max<std::int64_t>(0, *used - spare)));
        }
        group = group == "/" ? std::string() : group.substr(0, std::max<std::size_t>(1, group.rfind('/')));
    }
    return left;
}

} // namespace

std::optional<std::int64_t> processHighWater()
{
    return kilobytesOf("/proc/self/status", "VmHWM");
}

bool resetProcessHighWater()
{
    std::ofstream file("/proc/self/clear_refs");
    file << '5' << std::flush;
    return file.good();
}

std::optional<std::int64_t> availableAddresses(const std::string& root)
{
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return std::nullopt;
    const auto most = std::int64_t(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<std::int64_t>::max()));
    return std::max<std::int64_t>(0, most - kilobytesOf(root + "proc/self/status", "VmSize").value_or(0));
}

std::optional<std::int64_t> availableMemory(const std::string& root)
{
    return lesser(kilobytesOf(root + "proc/meminfo", "MemAvailable"),
                  lesser(leftOfGroups(root), availableAddresses(root)));
}

} // namespace memscape
