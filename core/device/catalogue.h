// SPDX-License-Identifier: Apache-2.0
// Where devices come from: the catalogue in resources/devices/, this machine, a file.
#pragma once

#include "core/device/device.h"

#include <filesystem>
#include <vector>

namespace memscape {

/// Folder of what the program ships (devices/, records/ …): $MEMSCAPE_RESOURCES, else beside the
/// program (../share/memscape), else the source tree it was built from, else where it is installed.
std::filesystem::path resourcesFolder();

/// Every readable device of resourcesFolder()/devices, sorted by id. A broken file is reported in
/// `problems` and left out. Reads all files: keep the answer rather than asking again.
std::vector<Device> catalogue(std::vector<Error>* problems = nullptr);

/// B. A larger device file is not read, and a larger calibration not kept.
inline constexpr std::size_t deviceFileLimit = 16u << 20;

/// "cpu" describes this machine (applying the saved calibration when there is one); "nvidia-h200" is
/// looked up in the catalogue; anything with a slash or ending in .json is read as a device file.
/// "cuda:0" is answered by the CUDA backend, not here: device.missing with that hint.
/// Errors: device.unknown (with near names), device.missing, file.*, json.*.
Result<Device> findDevice(const std::string& id);

/// Where the calibration of a live device is kept: $XDG_DATA_HOME/memscape/devices/cpu.json, else
/// ~/.local/share/memscape/devices/cpu.json; "cuda:0" becomes cuda-0.json.
std::filesystem::path calibrationPath(const std::string& id);

/// As far as descriptions allow: by name, by cores, and by what the caches hold, for a virtual machine says "AMD EPYC"
/// of several processors.
bool isSameProcessor(const Device& device, const Device& other);

/// `device` as calibrated by the file at calibrationPath(device.id), when there is one and it was
/// made on this processor (isSameProcessor); else `device` with a note that says why it was not used.
Device withCalibration(Device device);

/// This machine's CPU from sysfs and /proc: cores, caches with ways and lines, clock, memory, pages.
/// Rates and latencies are taken from the catalogue host of the same CPU family when there is one,
/// else left unknown or derived, and marked so. `root` is "/" except in tests.
Device describeHost(const std::filesystem::path& root = "/");

/// The CUDA runtime's attributes of a GPU that is not in the catalogue.
struct GpuAttributes
{
    std::string name;
    int major = 0, minor = 0;
    int multiprocessors = 0;
    double clockHz = 0, memoryClockHz = 0;
    int memoryBusBits = 0;
    double memoryBytes = 0, l2Bytes = 0;
    double sharedBytesPerUnit = 0, registersPerUnit = 0, maxThreadsPerUnit = 0, maxBlocksPerUnit = 0;
};

/// The catalogue entry of the same product name with the live sizes put in (MIG, power-limited
/// clocks), else an entry derived from the attributes and the table of its compute capability,
/// every value marked derived.
Device deviceFromAttributes(const GpuAttributes& attributes, const std::string& id);

} // namespace memscape
