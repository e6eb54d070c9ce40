// SPDX-License-Identifier: Apache-2.0
// Which of this program's kernels a recorded run has shown to be the fastest on a kind of GPU. A device
// document says so, in the catalogue (resources/devices/) or a calibrated file:
//
//     "kernels": {"attention.forward": {"version": 8, "source": "record …, 2026-11-24"},
//                 "attention.backward": {"version": 9, "source": "record …, 2026-11-24"}}
//
// A choice without a source is refused. The document keeps it (Device::extra); nothing else of a device
// depends on it.
#pragma once

#include "core/device/device.h"
#include "core/device/device_fields.h"

namespace memscape {

/// Errors, kept by `fields`: json.missing, json.type, json.range.
void checkKernels(const Fields& fields);
/// The version of `kernel` that was the fastest; 0 where no run has been recorded.
int recordedVersion(const Device& device, const std::string& kernel);

} // namespace memscape
