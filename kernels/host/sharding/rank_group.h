// SPDX-License-Identifier: Apache-2.0
// N ranks that do the same list of collectives: rank 0 is the caller, on the first core of the session; the others are
// threads of this process, or processes of their own (transfer/forked_child.h), on the other cores in turn. They live
// as long as the group; processes are killed with it, and by the kernel when this process dies.
#pragma once

#include "kernels/host/session.h"
#include "kernels/host/sharding/ring.h"
#include "kernels/host/transfer/forked_child.h"

#include <memory>
#include <optional>
#include <thread>

namespace memscape::host {

class RankGroup
{
public:
    /// `memory`: B of each rank, that the operations lie in.
    RankGroup(HostSession& session, int ranks, bool areProcesses, std::size_t memory,
              std::vector<RingOperation> operations);
    ~RankGroup();
    RankGroup(const RankGroup&) = delete;
    RankGroup& operator=(const RankGroup&) = delete;

    /// Errors: run.memory, run.failed where a rank cannot be started.
    Result<void> start();
    /// Every collective once, of numbers whose results are compared. Errors: check.failed, and those of whole().
    Result<void> check();
    /// Seconds of all collectives, `repeats` times, one after the other; before each time, untimed, every rank writes
    /// its memory. Clocked from when all ranks are there until all have ended.
    double run(std::size_t repeats);
    /// Errors: run.cancelled, run.failed when a rank was lost.
    Result<void> whole();

    std::uint64_t sentBytes() const { return m_sent; } ///< by each rank in check(), counted where they are read
    std::uint64_t comparedElements() const { return m_compared; }
    pid_t processOf(int rank) const; ///< of a rank that is a process; for tests

private:
    struct Lost;
    void serve(int rank);
    /// Seconds; none when the ring was stopped. 0 repeats: checks once.
    std::optional<double> work(RingRank& ring, std::uint32_t repeats) const;

    HostSession& m_session;
    int m_ranks;
    bool m_areProcesses;
    std::size_t m_used, m_memory; ///< B of a rank: of its operations, and as far as the next rank's
    std::vector<RingOperation> m_operations;
    std::uint64_t m_sent = 0, m_compared = 0;
    std::unique_ptr<SharedMapping> m_mapping;
    RingState* m_state = nullptr;
    std::unique_ptr<Lost> m_lost;
    std::vector<std::thread> m_threads;
    std::vector<std::unique_ptr<ForkedChild>> m_children; // the last: they end before what they use
};

} // namespace memscape::host
