// SPDX-License-Identifier: Apache-2.0
// Media by their data sheets: the sequential rate that a maker states, and what a request waits. A drive reaches its
// rate with several requests on their way; what one thread gets of it is a calibration's to say.
#include "core/experiments/loading/loading.h"

#include <fmt/format.h>

namespace memscape {

namespace {

Sourced stated(double value, std::string source)
{
    return {value, Evidence::Specified, std::move(source), {}};
}

Sourced typicalOf(double value, std::string what)
{
    return {value, Evidence::Unverified, "typical value: " + std::move(what), {}};
}

/// Frames of 1500 bytes: 1460 of data in 1538 on the wire.
LoadingRates ethernet(double gigabits, double latency)
{
    const Sourced rate{gigabits * 1e9 / 8 * 1460 / 1538,
                       Evidence::Derived,
                       fmt::format("{} Gbit/s × 1460 / 1538: TCP in Ethernet frames of 1500 bytes", gigabits),
                       {}};
    return {fmt::format("network, {} Gbit/s", gigabits), rate, typicalOf(latency, "a request to a storage server")};
}

} // namespace

LoadingRates loadingMediumRates(LoadingMedium medium)
{
    switch (medium) {
    case LoadingMedium::Hdd:
        return {"hard disk",
                stated(270e6, "Seagate Exos X18 data sheet, 18 TB: 270 MB/s sustained at most"),
                {60.0 / 7200 / 2, Evidence::Derived, "half a turn at 7200 turns a minute", {}}};
    case LoadingMedium::Sata:
        return {"SSD, SATA", stated(560e6, "Samsung 870 EVO data sheet: 560 MB/s sequential reads"),
                typicalOf(100e-6, "a request to a SATA SSD")};
    case LoadingMedium::Nvme3:
        return {"SSD, PCIe 3.0", stated(3.5e9, "Samsung 970 EVO Plus data sheet: 3,500 MB/s sequential reads"),
                typicalOf(80e-6, "a request to an NVMe SSD")};
    case LoadingMedium::Nvme5:
        return {"SSD, PCIe 5.0", stated(14.5e9, "Crucial T705 data sheet: 14,500 MB/s sequential reads"),
                typicalOf(60e-6, "a request to an NVMe SSD")};
    case LoadingMedium::Network10: return ethernet(10, 500e-6);
    case LoadingMedium::Network100: return ethernet(100, 200e-6);
    case LoadingMedium::Host:
    case LoadingMedium::PageCache:
    case LoadingMedium::Nvme4: break;
    }
    return {"SSD, PCIe 4.0", stated(7e9, "Samsung 980 PRO data sheet: 7,000 MB/s sequential reads"),
            typicalOf(80e-6, "a request to an NVMe SSD")};
}

} // namespace memscape
