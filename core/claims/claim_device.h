// SPDX-License-Identifier: Apache-2.0
// What a device is made of, by a name that a table of claims uses: "clock", "units", "L2.capacity", "DRAM.bandwidth",
// "host.bandwidth" (a link), "rate.fp32", "registers_per_unit". NaN where the device does not have it or it is not
// known.
#pragma once

#include "core/device/device.h"
#include "core/expression/expression_value.h"

namespace memscape {

/// Levels (registers shared L1 L2 L3 DRAM SSD, lastcache) have .capacity .latency .bandwidth .copy (B/s of what a copy
/// reads and writes) .cycles (latency at the device's clock) .total (capacity × instances); the links host and peer
/// .bandwidth (one direction) and .latency. Errors: claims.device for a name that no device has.
Result<ExpressionValue> claimDeviceValue(const Device& device, std::string_view name);

} // namespace memscape
