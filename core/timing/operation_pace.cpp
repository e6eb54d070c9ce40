// SPDX-License-Identifier: Apache-2.0
#include "core/timing/operation_pace.h"

#include "core/timing/host_operations.h"

#include <nlohmann/json.hpp>

namespace memscape {

Device withSlowerOperations(Device device, double factor)
{
    HostOperations slower = hostOperations(device);
    for (double* const one : {&slower.start, &slower.call, &slower.perByte})
        *one *= factor;
    for (HostProductCost& cost : slower.products) {
        for (double* const one : {&cost.perProduct, &cost.perFlop, &cost.perOperand, &cost.perResult})
            *one *= factor;
    }
    if (!device.calibration)
        device.calibration.emplace();
    if (!device.calibration->raw.is_object())
        device.calibration->raw = Json::object();
    device.calibration->raw["operations"] = hostOperationsToJson(slower);
    for (WalkRate& rate : device.calibration->walkRates)
        rate.seconds *= rate.kind.starts_with("column ") ? factor : 1;
    return device;
}

} // namespace memscape
