// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/console_sink.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"
#include "core/device/catalogue.h"
#include "core/report/summary.h"
#include "core/timing/calibration_check.h"
#include "core/timing/calibration_store.h"

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

/// To FILE as it is, or where predictions look for it, when it is good enough for that.
int keep(const Arguments& arguments, const Device& device)
{
    const bool onOutput = arguments.output == "-";
    if (!onOutput)
        printOut(fmt::format("{}\n\n{}\n", basisText(device), levelsText(device)));
    if (!arguments.output.empty()) {
        if (const auto possible = checkPossible(device); !possible)
            return refused(possible.error());
        return deliver(arguments.output, jsonText(deviceToJson(device)), onOutput, 0);
    }
    const auto kept = keepCalibration(arguments.device, device, arguments.anyway ? Keep::Anyway : Keep::WhenGood);
    if (!kept && kept.error().code == "run.grade") {
        Error error = kept.error();
        error.hint += " with --use-anyway";
        return refused(error);
    }
    return kept ? finishedOutput(0) : refused(kept.error());
}

int forget(const std::string& id)
{
    const auto forgotten = forgetCalibration(id);
    if (!forgotten)
        return refused(forgotten.error());
    note(*forgotten ? fmt::format("the calibration of {} was removed", id)
                    : fmt::format("there is no calibration of {}", id));
    return 0;
}

/// Where it will go can be written to: asked before the minute, not after it.
Result<void> checkOutput(const Arguments& arguments)
{
    if (!arguments.output.empty())
        return writable(arguments.output);
    const std::filesystem::path path = calibrationPath(arguments.device);
    std::error_code ignored; // said by what follows
    std::filesystem::create_directories(path.parent_path(), ignored);
    return writable(path.string());
}

} // namespace

int runCalibrate(const Arguments& arguments)
{
    if (const auto required = requireDevice(arguments.device); !required)
        return refused(required.error());
    if (arguments.forget)
        return forget(arguments.device);
    const auto live = findLiveDevice(arguments.device);
    if (!live)
        return refused(live.error());
    if (const auto possible = checkOutput(arguments); !possible)
        return refused(possible.error());

    const InterruptGuard guard;
    ConsoleSink sink;
    noteBusyMachine(*live, sink);
    const auto device = live->backend->calibrate(live->device, sink);
    sink.clearBar();
    return device ? keep(arguments, *device) : refused(device.error());
}

} // namespace memscape::cli
