// SPDX-License-Identifier: Apache-2.0
// What the operations of a training step cost on this machine where arrays are small: calls, rearranging, and
// what is left for the arithmetic. Each is the trainer's own (batch_program.h), repeated within one dispatch, on
// sizes that no sweep by doubling compares on.
#pragma once

#include "core/timing/host_operations.h"
#include "kernels/host/batch-size/batch_program.h"

namespace memscape::host {

/// How fast threads meet changes while a hypervisor moves them, so passes lie apart in time.
class OperationProber
{
public:
    /// `session` must outlive it.
    OperationProber(HostSession& session, const ProductKernel& product);
    ~OperationProber();

    /// A few samples of every operation, on all threads. Errors: run.memory, run.cancelled.
    Result<void> pass();
    /// Medians over all passes, s of one operation (of the step itself for Start).
    std::vector<OperationProbe> probes() const;
    const ProductKernel& product() const { return m_team.product(); }

private:
    struct Task;
    double secondsOf(const BatchOperations& step);

    HostSession& m_session;
    BatchTeam m_team;
    std::vector<Task> m_tasks;
};

} // namespace memscape::host
