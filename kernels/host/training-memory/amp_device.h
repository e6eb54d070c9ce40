// SPDX-License-Identifier: Apache-2.0
// Training steps on the host: the passes of amp_arrays.h on the threads of the team, products by a
// kernel of gemm.h; and the run of `precision`, operation=train.
#pragma once

#include "kernels/host/precision/gemm.h"
#include "kernels/programs/training-memory/amp_training.h"

#include <memory>

namespace memscape::host {

/// The batch of the task that was asked for last: what several trainers compare on is made once.
struct HostBatch
{
    TrainedNetwork network;
    std::uint64_t index = 0;
    std::vector<float> inputs;        ///< batch × inputs; empty: none yet
    std::vector<std::int64_t> labels; ///< batch

    /// Makes it, unless it is there.
    void fill(ThreadTeam& team, const TrainedNetwork& wanted, std::uint64_t wantedIndex);
};

/// Devices that multiply by `kernel`; the session must outlive them. A device's own errors are
/// run.memory and those of the kernel's plans.
AmpDeviceFactory hostAmpDevices(HostSession& session, const GemmKernel& kernel,
                                std::shared_ptr<HostBatch> batch = std::make_shared<HostBatch>());

/// `precision`, operation=train, on the host. Errors: run.skipped for formats that are not trained in, those of
/// runSweep().
Result<MeasuredRun> measureTraining(HostSession& session, const Experiment& experiment, const Parameters& parameters);

} // namespace memscape::host
