// SPDX-License-Identifier: Apache-2.0
// From the words after --device to a device: one to predict for, or one to measure on. The CUDA
// module is loaded only when the words ask for it.
#pragma once

#include "kernels/measure/backend.h"

#include <memory>
#include <string>
#include <vector>

namespace memscape::cli {

/// A device of this machine with the backend that drives it.
struct LiveDevice
{
    std::unique_ptr<Backend> backend;
    BackendDevice device; ///< with its calibration, when there is one
};

/// "cpu", "cuda:0", "pytorch:cpu", "replay:FILE". Errors: device.missing with the reason and remedy (a catalogue
/// device, a GPU that is not there), device.unknown with near names, and those of reading FILE.
Result<LiveDevice> findLiveDevice(const std::string& id);

/// Every device of this machine, those that cannot be used with their reason.
std::vector<BackendDevice> liveDevices();

/// The device to predict for: what findLiveDevice or findDevice knows; "" is "cpu".
Result<Device> findDeviceToPredict(const std::string& id);

/// Tells `sink` when others keep the CPU busy that is to be measured; a measurement asked for by a command continues.
void noteBusyMachine(const LiveDevice& live, RunSink& sink);

/// A usage error when --device was not given where it is required.
Result<void> requireDevice(const std::string& id);

} // namespace memscape::cli
