// SPDX-License-Identifier: Apache-2.0
#include "core/timing/activation_copies.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

Result<void> addActivationCopies(StepTime& time, const Device& device, double bytes)
{
    if (bytes <= 0)
        return {};
    MEMSCAPE_TRY(rates, deviceRates(device));
    if (rates.host <= 0)
        return fail("predict.device", fmt::format("the bandwidth between {} and its host is not known", device.name),
                    "choose a device with that link, or activation_offload=false", "activation_offload");
    const double copy = bytes / rates.host;
    const double exposed =
        std::max(0.0, copy - time.forward) + std::max(0.0, copy - time.backward - time.recomputation);
    time.communication += 2 * copy;
    time.exposed += exposed;
    time.total += exposed;
    return {};
}

} // namespace memscape
