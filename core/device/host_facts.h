// SPDX-License-Identifier: Apache-2.0
// What Linux reports about its CPU, as plain facts: no judgement, no typical values. Read from
// /sys/devices/system/cpu (hwloc reads the same files; for one package of caches they suffice),
// /proc/cpuinfo, /proc/meminfo and the transparent-huge-page switch. Whatever is missing or broken
// is left unknown and said in `notes`; nothing here fails.
#pragma once

#include "core/device/numa.h"

#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace memscape {

struct CacheFacts
{
    int level = 0;
    int instances = 0;
    double bytes = std::numeric_limits<double>::quiet_NaN();
    double ways = std::numeric_limits<double>::quiet_NaN();
    double lineBytes = std::numeric_limits<double>::quiet_NaN();
    std::string place; ///< "/sys/devices/system/cpu/cpu0/cache/index0"
};

struct HostFacts
{
    std::string vendor; ///< "AuthenticAMD", "GenuineIntel"; empty on other architectures
    std::string name;   ///< "AMD EPYC 9654 96-Core Processor"
    int family = -1;
    int model = -1;
    bool virtualMachine = false;
    std::set<std::string, std::less<>> extensions; ///< of the instruction set: "avx2", "asimd"
    int threads = 1;                               ///< online
    int cores = 1;
    double infoHz = std::numeric_limits<double>::quiet_NaN();  ///< /proc/cpuinfo: nominal or current
    double boostHz = std::numeric_limits<double>::quiet_NaN(); ///< cpufreq: the highest
    double memoryBytes = std::numeric_limits<double>::quiet_NaN();
    std::string hugePages;          ///< "always", "madvise", "never"
    std::vector<NumaNode> nodes;    ///< of memory
    std::vector<CacheFacts> caches; ///< data and unified, of the first core, nearest first
    std::vector<std::string> notes;
};

HostFacts readHostFacts(const std::filesystem::path& root);

/// "0-3,8" → {0, 1, 2, 3, 8}; empty when it is not such a list or names more than 65536 CPUs.
std::vector<int> parseCpuList(const std::string& text);

} // namespace memscape
