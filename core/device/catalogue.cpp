// SPDX-License-Identifier: Apache-2.0
// Finding devices. Looking up one id reads one file: the command line must start in 50 ms, and the
// whole catalogue is only read by those who list it. Nothing is cached here; there are no globals.
#include "core/device/catalogue.h"

#include "core/base/file.h"
#include "core/base/json_file.h"
#include "core/base/text.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace memscape {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name)
{
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool isFolder(const fs::path& path)
{
    std::error_code error;
    return fs::is_directory(path, error);
}

Result<Device> readDevice(const fs::path& path)
{
    MEMSCAPE_TRY(json, readJsonFile(path, deviceFileLimit));
    return deviceFromJson(json, path.filename().string());
}

/// The ids of the catalogue without reading any of its files.
std::vector<std::string> catalogueIds()
{
    std::vector<std::string> ids;
    for (const fs::path& file : entriesOf(resourcesFolder() / "devices", ".json"))
        ids.push_back(file.stem().string());
    return ids;
}

bool namesFile(const std::string& id)
{
    // Not id.find('/'): with precompiled headers g++ 12 warns of an overread inside it.
    return std::ranges::find(id, '/') != id.end() || (id.size() > 5 && id.compare(id.size() - 5, 5, ".json") == 0);
}

} // namespace

fs::path resourcesFolder()
{
    if (const std::string given = environment("MEMSCAPE_RESOURCES"); !given.empty())
        return given;
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (!error) {
        const fs::path beside = program.parent_path().parent_path() / "share/memscape";
        if (isFolder(beside / "devices"))
            return beside;
    }
    if (isFolder(MEMSCAPE_SOURCE_RESOURCES))
        return MEMSCAPE_SOURCE_RESOURCES;
    return MEMSCAPE_INSTALL_RESOURCES;
}

std::vector<Device> catalogue(std::vector<Error>* problems)
{
    std::vector<Device> devices;
    for (const std::string& id : catalogueIds()) {
        auto device = readDevice(resourcesFolder() / "devices" / (id + ".json"));
        if (device)
            devices.push_back(std::move(*device));
        else if (problems)
            problems->push_back(device.error());
    }
    return devices;
}

Result<Device> findDevice(const std::string& id)
{
    if (id == "cpu")
        return withCalibration(describeHost());
    if (namesFile(id))
        return readDevice(id);
    if (id.rfind("cuda:", 0) == 0) {
        return fail("device.missing", fmt::format("{} is not here", quotedForMessage(id)),
                    "a live GPU is described by the CUDA module; to predict for a GPU that is not in "
                    "this machine name one of the catalogue, for example nvidia-h200");
    }
    std::vector<std::string> ids = catalogueIds();
    if (std::ranges::find(ids, id) != ids.end())
        return readDevice(resourcesFolder() / "devices" / (id + ".json"));
    if (ids.empty()) {
        return fail("device.missing", fmt::format("no catalogue of devices in {}", resourcesFolder().string()),
                    "set MEMSCAPE_RESOURCES to the folder that holds devices/");
    }
    ids.insert(ids.begin(), "cpu");
    return fail("device.unknown", fmt::format("there is no device \"{}\"", quotedForMessage(id)), didYouMean(id, ids));
}

fs::path calibrationPath(const std::string& id)
{
    std::string name = id;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ':' || c == '/'; }, '-');
    fs::path data = environment("XDG_DATA_HOME");
    if (!data.is_absolute()) // the XDG specification: relative paths are ignored
        data = fs::path(environment("HOME")) / ".local/share";
    return data / "memscape/devices" / (name + ".json");
}

bool isSameProcessor(const Device& device, const Device& other)
{
    const auto holdsTheSame = [&](const MemoryLevel& level) {
        const MemoryLevel* twin = level.kind == LevelKind::Cache ? other.level(level.id) : nullptr;
        return !twin || !twin->capacity.known() || !level.capacity.known()
            || twin->capacity.value == level.capacity.value;
    };
    return device.name == other.name && device.units == other.units && std::ranges::all_of(device.levels, holdsTheSame);
}

Device withCalibration(Device device)
{
    const fs::path path = calibrationPath(device.id);
    std::error_code error;
    if (!fs::exists(path, error))
        return device;
    auto calibrated = readDevice(path);
    if (!calibrated) {
        device.notes.push_back("the calibration is not used: " + calibrated.error().text());
        return device;
    }
    if (!isSameProcessor(*calibrated, device)) {
        const MemoryLevel* cache = calibrated->lastCache();
        device.notes.push_back(fmt::format(
            "the calibration {} is not used: it was made on {} with {} cores{}", path.string(),
            quotedForMessage(calibrated->name), calibrated->units,
            cache ? fmt::format(" and {} of {}", quantityText(cache->capacity.value, Unit::Byte), cache->id) : ""));
        return device;
    }
    calibrated->id = device.id;
    return std::move(*calibrated);
}

} // namespace memscape
