// SPDX-License-Identifier: Apache-2.0
// Media: the sequential rate that makers state, and what a request waits; what was not looked up is unverified. A drive
// reaches its rate with several requests on their way; what one thread gets of it is a calibration's to say.
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
                stated(270e6, "Seagate Exos X18: at most 270 MB/s (computerbase.de, 2022-11, on the Exos 2X18)"),
                {60.0 / 7200 / 2, Evidence::Derived, "half a turn at 7200 turns a minute", {}}};
    case LoadingMedium::Sata:
        return {"SSD, SATA", stated(560e6, "Samsung 870 EVO: 560 MB/s sequential reads (tomshardware.com, 2021-01-19)"),
                typicalOf(100e-6, "a request to a SATA SSD")};
    case LoadingMedium::Nvme3:
        return {"SSD, PCIe 3.0",
                stated(3.5e9, "Samsung 970 PRO: 3,500 MB/s sequential reads (pugetsystems.com, part 12735)"),
                typicalOf(80e-6, "a request to an NVMe SSD")};
    case LoadingMedium::Nvme5:
        return {"SSD, PCIe 5.0",
                stated(12.4e9, "Crucial T700: 12,400 MB/s sequential reads (tomshardware.com, preview of the T700)"),
                typicalOf(60e-6, "a request to an NVMe SSD")};
    case LoadingMedium::Network10: return ethernet(10, 500e-6);
    case LoadingMedium::Network100: return ethernet(100, 200e-6);
    case LoadingMedium::Host:
    case LoadingMedium::PageCache:
    case LoadingMedium::Nvme4: break;
    }
    return {"SSD, PCIe 4.0", stated(7e9, "Samsung 980 PRO: 7,000 MB/s sequential reads (pugetsystems.com, part 13816)"),
            typicalOf(80e-6, "a request to an NVMe SSD")};
}

} // namespace memscape
