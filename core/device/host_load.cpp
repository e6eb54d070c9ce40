// SPDX-License-Identifier: Apache-2.0
#include "core/device/host_load.h"

#include "core/base/number.h"
#include "core/device/host_facts.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

namespace memscape {

bool HostLoad::isBusy() const
{
    const double half = threads / 2.0;
    return threads > 0 && load >= half && running >= std::max(1.0, half);
}

HostLoad readHostLoad(const std::filesystem::path& root)
{
    HostLoad load;
    std::string minute, five, fifteen, tasks, online; // "9.93 12.10 14.25 5/412 12345"
    if (!(std::ifstream(root / "proc/loadavg") >> minute >> five >> fifteen >> tasks)
        || !(std::ifstream(root / "sys/devices/system/cpu/online") >> online))
        return load;
    const auto mean = parseNumber(minute);
    const auto running = parseNumber(tasks.substr(0, tasks.find('/')));
    if (!mean || !running)
        return load;
    load.load = *mean;
    load.running = static_cast<int>(std::clamp(*running - 1, 0.0, 1e6));
    load.threads = static_cast<int>(parseCpuList(online).size());
    return load;
}

std::string busyText(const HostLoad& load)
{
    return fmt::format("machine busy (load {:.1f} on {} {})", load.load, load.threads,
                       load.threads == 1 ? "core" : "cores");
}

} // namespace memscape
