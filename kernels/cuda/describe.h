// SPDX-License-Identifier: Apache-2.0
// Which GPUs are there and what they are, without opening a context on any of them.
#pragma once

#include "kernels/measure/backend.h"

#include <vector>

namespace memscape::cuda {

/// "cuda:0"…; when there is none, one entry that says why and what to do.
std::vector<BackendDevice> listDevices();

/// The number in "cuda:1". Errors: device.missing.
Result<int> ordinalOf(const BackendDevice& device);

} // namespace memscape::cuda
