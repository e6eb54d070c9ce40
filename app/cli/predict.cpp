// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "app/cli/live_device.h"
#include "app/cli/output.h"

#include <nlohmann/json.hpp>

namespace memscape::cli {

namespace {

Result<Record> predicted(const Arguments& arguments)
{
    MEMSCAPE_TRY(experiment, findExperiment(arguments.experiment));
    MEMSCAPE_TRY(parameters, resolve(experiment->schema(), arguments.assignments));
    MEMSCAPE_TRY(device, findDeviceToPredict(arguments.device));
    return predictRecord(*experiment, device, parameters);
}

} // namespace

int runPredict(const Arguments& arguments)
{
    const auto record = predicted(arguments);
    if (!record)
        return refused(record.error());
    const bool json = arguments.json || arguments.output == "-";
    if (!json)
        printOut(recordText(*record));
    return deliver(arguments.output, jsonText(recordToJson(*record)), json, 0);
}

} // namespace memscape::cli
