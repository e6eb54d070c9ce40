// SPDX-License-Identifier: Apache-2.0
// One question answered whole: this model, trained (or run) like this, on a device of that size.
//
//   model ─ network/ ─▶ operators ─ training/ ─▶ events ─ trace/ ─▶ peak, live tensors, what does not fit
//                                                 └─ allocator ─▶ reserved;  + context = device total
//
// allocated  bytes of blocks in the program's hands, each rounded up to 512 B (torch.cuda.memory_allocated)
// reserved   what the caching allocator took from the driver for them
// device     reserved + the driver's context, which is a setting: it depends on driver and kernels
//
// Left out: other programs on the device, NCCL's own buffers, cuDNN's workspaces.
#pragma once

#include "core/network/recorded_networks.h"
#include "core/trace/allocator_replay.h"
#include "core/trace/peak.h"
#include "core/training/optimizer_state.h"
#include "core/training/step.h"

namespace memscape {

struct TrainingSetup
{
    BuildOptions build;
    StepSettings step;
    AllocatorOptions allocator;
    std::int64_t context = 0;          ///< B outside of the allocator
    double linkBandwidth = 0;          ///< B/s between devices; 0: the device's own
    double nvmeBandwidth = 0;          ///< B/s of the NVMe that offloaded state lies on; 0: it is in the host's memory
    std::int64_t shortestSequence = 0; ///< batches are from here to build.sequence long; 0: all are as long as that
};

struct Simulation
{
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const PreparedNetwork> network;
    Trace trace;
    Moment peak;
    AllocatorStatistics allocator; ///< without a limit: what the step would take
    KeptBytes kept;                ///< between steps

    const std::vector<ParameterTensor>& parameters() const { return network->parameters; }
    std::int64_t allocatedBytes() const { return allocator.peak.allocated; }
    std::int64_t reservedBytes() const { return allocator.peak.reserved; }
    std::int64_t deviceBytes(const TrainingSetup& setup) const { return reservedBytes() + setup.context; }
};

/// Errors: those of checkModel, checkPlan, the network's builder and the trace.
Result<Simulation> simulate(const ModelDescription& model, const TrainingSetup& setup);
/// The same, with networks that were recorded before.
Result<Simulation> simulate(RecordedNetworks& networks, const TrainingSetup& setup);

/// The most bytes that a category holds at one moment.
std::int64_t highestBytes(const Trace& trace, Category category);

} // namespace memscape
