// SPDX-License-Identifier: Apache-2.0
// Which experiments a device measures, and which kinds of devices measure an experiment: for lists and menus.
#pragma once

#include "core/experiment/experiment.h"

#include <string>
#include <utility>
#include <vector>

namespace memscape {

/// In the order of the rail. The device must be one that is here: nothing else measures.
inline std::vector<const Experiment*> experimentsMeasuredOn(const Device& device)
{
    std::vector<const Experiment*> found;
    for (const Experiment* experiment : experiments()) {
        if (experiment->notMeasuredOn(device).empty())
            found.push_back(experiment);
    }
    return found;
}

/// "cpu", "cuda", "pytorch": those whose devices measure it.
inline std::vector<std::string> kindsThatMeasure(const Experiment& experiment)
{
    Device host, gpu, pytorch;
    gpu.kind = DeviceKind::Gpu;
    pytorch.framework = Framework{"pytorch", {}};
    std::vector<std::string> kinds;
    for (const auto& [kind, device] : {std::pair{"cpu", &host}, {"cuda", &gpu}, {"pytorch", &pytorch}}) {
        if (experiment.notMeasuredOn(*device).empty())
            kinds.emplace_back(kind);
    }
    return kinds;
}

} // namespace memscape
