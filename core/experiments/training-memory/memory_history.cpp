// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/training-memory/memory_history.h"

#include "core/experiments/training-memory/training_memory.h"
#include "core/snapshot/predicted_snapshot.h"
#include "core/snapshot/snapshot_export.h"

#include <memory>
#include <utility>

namespace memscape {

bool hasMemoryHistory(std::string_view experiment, const Device& device)
{
    return experiment == "training-memory" && device.isGpu();
}

Result<std::string> memoryHistory(const Device& device, const Parameters& parameters)
{
    if (!device.isGpu())
        return fail("memory.history", "PyTorch records the memory of GPUs, not of processors", "choose a GPU");
    MEMSCAPE_TRY(answer, answerTraining(device, parameters));
    MEMSCAPE_TRY(snapshot, predictedSnapshot(answer.simulation.trace, answer.setup.allocator));
    const std::size_t events = snapshot.events.size();
    MEMSCAPE_TRY(analysed, SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(snapshot)), 0));
    std::string bytes;
    MEMSCAPE_CHECK(writeMemoryViz(*analysed, {0, events}, [&](std::string_view piece) {
        bytes += piece;
        return true;
    }));
    return bytes;
}

} // namespace memscape
