// SPDX-License-Identifier: Apache-2.0
// How busy this machine is before something is measured on it. /proc/loadavg holds the load of the
// last minute (a run that has just ended is still in it) and how many tasks run at this moment (which is no average of
// the minute): the machine is busy when both are at least half of its hardware threads. Left out: another program among
// many cores that uses memory bandwidth (the grade of a measurement shows it), other virtual machines, GPUs.
#pragma once

#include <filesystem>
#include <limits>
#include <string>

namespace memscape {

struct HostLoad
{
    double load = std::numeric_limits<double>::quiet_NaN(); ///< mean of the last minute
    int running = 0;                                        ///< tasks at this moment, without the one that asks
    int threads = 0;                                        ///< hardware threads that are online

    bool isBusy() const;
};

/// Not busy where the load is not known. `root` is "/" except in tests.
HostLoad readHostLoad(const std::filesystem::path& root = "/");

std::string busyText(const HostLoad& load); ///< "machine busy (load 9.9 on 2 cores)"

} // namespace memscape
