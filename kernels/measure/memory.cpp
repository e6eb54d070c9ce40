// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/memory.h"

#include <charconv>
#include <fstream>
#include <string>

namespace memscape {

void MemoryMeter::add(std::int64_t bytes)
{
    const std::int64_t used = m_used += bytes;
    std::int64_t high = m_highWater;
    while (used > high && !m_highWater.compare_exchange_weak(high, used)) { }
}

namespace {

/// The value of a "Key:   123 kB" line of a /proc file, in bytes.
std::optional<std::int64_t> kilobytesOf(const char* path, const std::string& key)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, key.size(), key) != 0 || line.size() <= key.size()
            || line[key.size()] != ':')
            continue;
        const std::size_t digits = line.find_first_of("0123456789");
        if (digits == std::string::npos)
            return std::nullopt;
        std::int64_t kilobytes = 0;
        const auto [end, error]
            = std::from_chars(line.data() + digits, line.data() + line.size(), kilobytes);
        if (error != std::errc())
            return std::nullopt;
        return kilobytes * 1024;
    }
    return std::nullopt;
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

std::optional<std::int64_t> availableMemory()
{
    return kilobytesOf("/proc/meminfo", "MemAvailable");
}

} // namespace memscape
