// SPDX-License-Identifier: Apache-2.0
// A host whose operations run slower than they were calibrated: another machine of the hypervisor takes a share of its
// cores and caches.
#pragma once

#include "core/device/device.h"

namespace memscape {

/// The same device with each operation (host_operations.h) `factor` times as long, and the ways of a product's
/// operands from far (walk_rates.h, columns). `factor` is positive.
Device withSlowerOperations(Device device, double factor);

} // namespace memscape
