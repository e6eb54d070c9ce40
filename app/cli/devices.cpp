// SPDX-License-Identifier: Apache-2.0
// Three kinds: live ones are here and can be measured; catalogue ones can be predicted; calibrated
// ones are files that an earlier `calibrate` left on this machine.
#include "app/cli/commands.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/device/catalogue.h"
#include "core/experiment/measured_by.h"
#include "core/report/text_table.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

struct Calibrated
{
    std::string path;
    Device device;
};

std::vector<Calibrated> calibratedDevices()
{
    std::vector<Calibrated> found;
    for (const std::filesystem::path& path : entriesOf(calibrationPath("cpu").parent_path(), ".json")) {
        const auto text = readFile(path);
        const auto json = text ? parseJson(*text) : Result<Json>(tl::unexpected(text.error()));
        const auto device = json ? deviceFromJson(*json) : Result<Device>(tl::unexpected(json.error()));
        if (device)
            found.push_back({path.string(), *device});
        else
            complain({device.error().code,
                      path.string() + ": " + device.error().text(),
                      {},
                      "calibrate again, or delete the file"});
    }
    return found;
}

std::string memoryText(const Device& device)
{
    const MemoryLevel* dram = device.dram();
    return dram ? quantityText(dram->capacity.value, Unit::Byte) : "–";
}

std::string bandwidthText(const Device& device)
{
    const MemoryLevel* dram = device.dram();
    return dram ? quantityText(dram->bandwidth.value, Unit::BytePerSecond) : "–";
}

Json deviceJson(const std::string& id, const std::string& kind, const Device& device)
{
    const MemoryLevel* dram = device.dram();
    return {{"id", id},
            {"name", device.name},
            {"kind", kind},
            {"type", device.isGpu() ? "gpu" : "host"},
            {"basis", device.basis},
            {"memory", dram ? jsonNumber(dram->capacity.value) : Json()},
            {"bandwidth", dram ? jsonNumber(dram->bandwidth.value) : Json()}};
}

struct Devices
{
    std::vector<BackendDevice> live;
    std::vector<Device> catalogue;
    std::vector<Calibrated> calibrated;
};

std::vector<std::string> idsMeasuredOn(const Device& device)
{
    std::vector<std::string> ids;
    for (const Experiment* experiment : experimentsMeasuredOn(device))
        ids.push_back(experiment->id());
    return ids;
}

/// Of the devices that measure some of the experiments only, which those are.
std::string measuredText(const std::vector<BackendDevice>& devices)
{
    std::string text;
    for (const BackendDevice& device : devices) {
        if (device.missing.empty() && device.device.framework)
            text += fmt::format("  {} measures {}\n", device.id, join(idsMeasuredOn(device.device), ", "));
    }
    return text;
}

Json devicesJson(const Devices& devices)
{
    Json list = Json::array();
    for (const BackendDevice& live : devices.live) {
        Json line = deviceJson(live.id, "live", live.device);
        line["name"] = live.name;
        line["available"] = live.missing.empty();
        line["measures"] = live.missing.empty() ? Json(idsMeasuredOn(live.device)) : Json::array();
        line["missing"] = live.missing.empty() ? Json() : Json(live.missing);
        list.push_back(line);
    }
    for (const Device& device : devices.catalogue)
        list.push_back(deviceJson(device.id, "catalogue", device));
    for (const Calibrated& file : devices.calibrated) {
        list.push_back(deviceJson(file.device.id, "calibrated", file.device));
        list.back()["path"] = file.path;
    }
    return {{"devices", list}};
}

std::string devicesText(const Devices& devices)
{
    TextTable table{{{"device", false}, {"name", false}, {"memory", true}, {"bandwidth", true}}, {}};
    std::string out = "Live: can be measured here\n", missing;
    for (const BackendDevice& live : devices.live) {
        if (live.missing.empty())
            table.rows.push_back({live.id, live.name, memoryText(live.device), bandwidthText(live.device)});
        else
            missing += fmt::format("  {}: {}\n", live.id, printable(live.missing));
    }
    out += alignedText(table, 2) + measuredText(devices.live) + missing;
    table.rows.clear();
    for (const Device& device : devices.catalogue)
        table.rows.push_back({device.id, device.name, memoryText(device), bandwidthText(device)});
    out += "\nCatalogue: can be predicted anywhere\n" + alignedText(table, 2);
    if (devices.calibrated.empty())
        return out + "\nNo calibrated devices yet: memscape-cli calibrate --device cpu\n";
    table.columns.push_back({"file", false});
    table.rows.clear();
    for (const Calibrated& file : devices.calibrated)
        table.rows.push_back(
            {file.device.id, file.device.name, memoryText(file.device), bandwidthText(file.device), file.path});
    return out + "\nCalibrated: predictions for these use measured rates\n" + alignedText(table, 2);
}

} // namespace

int runDevices(const Arguments& arguments)
{
    std::vector<Error> problems;
    const Devices devices{liveDevices(), catalogue(&problems), calibratedDevices()};
    for (const Error& problem : problems)
        complain(problem);
    printOut(arguments.json ? jsonText(devicesJson(devices)) : devicesText(devices));
    return 0;
}

} // namespace memscape::cli
