// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/console_sink.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "core/device/catalogue.h"
#include "core/report/summary.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

std::string levelsText(const Device& device)
{
    TextTable table{{{"level", false}, {"capacity", true}, {"latency", true}, {"read bandwidth", true}}, {}};
    for (const MemoryLevel& level : device.levels)
        table.rows.push_back({level.label, quantityText(level.capacity.value, Unit::Byte),
                              quantityText(level.latency.value, Unit::Second),
                              quantityText(level.bandwidth.value, Unit::BytePerSecond)});
    return alignedText(table);
}

/// Where the device file goes; the standard place is made when it is not there yet.
Result<std::string> outputPath(const Arguments& arguments)
{
    std::string path = arguments.output;
    if (path.empty()) {
        path = calibrationPath(arguments.device).string();
        std::error_code problem;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path(), problem);
    }
    MEMSCAPE_CHECK(writable(path));
    return path;
}

} // namespace

int runCalibrate(const Arguments& arguments)
{
    if (const auto required = requireDevice(arguments.device); !required)
        return refused(required.error());
    const auto live = findLiveDevice(arguments.device);
    if (!live)
        return refused(live.error());
    const auto path = outputPath(arguments);
    if (!path)
        return refused(path.error());

    const InterruptGuard guard;
    ConsoleSink sink;
    const auto device = live->backend->calibrate(live->device, sink);
    sink.clearBar();
    if (!device)
        return refused(device.error());
    const std::string text = jsonText(deviceToJson(*device));
    const bool onOutput = *path == "-";
    if (!onOutput)
        printOut(fmt::format("{}\n\n{}\n", basisText(*device), levelsText(*device)));
    return deliver(*path, text, onOutput, 0);
}

} // namespace memscape::cli
