// SPDX-License-Identifier: Apache-2.0
// The step of `training-memory` as the file that PyTorch writes of a recorded one, for pytorch.org/memory_viz.
#pragma once

#include "core/device/device.h"
#include "core/experiment/parameter.h"

namespace memscape {

/// Whether PyTorch keeps a memory history there: of a GPU's allocator alone.
bool hasMemoryHistory(std::string_view experiment, const Device& device);

/// The bytes of the pickle; a step that does not fit is there in full. Errors: those of the prediction, trace.length,
/// memory.history (a processor has none).
Result<std::string> memoryHistory(const Device& device, const Parameters& parameters);

} // namespace memscape
