// SPDX-License-Identifier: Apache-2.0
#include "core/device/datasheet.h"

namespace memscape {

namespace {

void keepSpecified(Sourced& value)
{
    if (value.evidence != Evidence::Specified)
        value = {};
}

void keepSpecified(std::optional<Sourced>& value)
{
    if (value && value->evidence != Evidence::Specified)
        value.reset();
}

} // namespace

Device datasheetOf(Device device)
{
    device.basis = "datasheet";
    device.calibration.reset();
    device.derating = {};
    keepSpecified(device.launch);
    keepSpecified(device.concurrency.linesInFlightPerUnit);
    for (MemoryLevel& level : device.levels) {
        keepSpecified(level.latency);
        keepSpecified(level.bandwidth);
        for (auto* rate : {&level.writeBandwidth, &level.copyBandwidth, &level.oneCoreBandwidth})
            keepSpecified(*rate);
    }
    for (TlbLevel& tlb : device.tlbs)
        keepSpecified(tlb.missPenalty);
    for (Link& link : device.links) {
        keepSpecified(link.bandwidth);
        keepSpecified(link.latency);
        keepSpecified(link.pageable);
        keepSpecified(link.farBandwidth);
        keepSpecified(link.ownBandwidth);
    }
    for (auto& [precision, rate] : device.rates)
        keepSpecified(rate.flops);
    return device;
}

} // namespace memscape
