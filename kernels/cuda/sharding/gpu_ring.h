// SPDX-License-Identifier: Apache-2.0
// Ring collectives between the GPUs of one machine, a rank on each: the session's own first, then the others in turn.
// In every step a rank copies a piece of its left neighbour, over the link between them or through pinned memory of the
// host, and adds it to its own or keeps it. One thread of the host queues for all; events order the ranks' streams.
//
// Left out: several ranks on one GPU, whose bytes would never leave its memory; kernels that read the neighbour's
// memory themselves, as NCCL's do; several rings at once.
#pragma once

#include "kernels/cuda/session.h"
#include "kernels/programs/sharding/sharding_measurement.h"

#include <functional>
#include <memory>
#include <string>

namespace memscape::cuda {

class GpuRing final : public RankRing
{
public:
    /// `session` must outlive it; `cancelled` is asked before each run.
    GpuRing(GpuSession& session, int ranks, std::vector<RingOperation> operations, std::function<bool()> cancelled);
    ~GpuRing() override;

    /// `isStaged`: through the host whether the GPUs reach each other or not. Errors: run.skipped where there are fewer
    /// GPUs than ranks, run.memory, those of CUDA.
    Result<void> open(bool isStaged, std::size_t memory);
    /// Why pieces go through the host although that was not asked for; empty where they do not.
    const std::string& whyStaged() const { return m_whyStaged; }

    Result<void> check() override;
    Result<double> run(std::size_t repeats) override;
    std::uint64_t sentBytes() const override { return m_sent; }
    std::uint64_t comparedElements() const override;

private:
    struct Rank;
    class HomeAgain;
    Rank& left(std::size_t rank) { return *m_ranks[(rank + m_ranks.size() - 1) % m_ranks.size()]; }
    Rank& right(std::size_t rank) { return *m_ranks[(rank + 1) % m_ranks.size()]; }
    Result<void> openRank(Rank& rank, std::size_t memory, std::size_t piece);
    Result<void> openWays();
    Result<void> settle();
    Result<void> queue(const RingOperation& operation);
    Result<void> reduceScatter(const RingOperation& operation);
    Result<void> allGather(const RingOperation& operation);
    Result<void> send(const std::vector<std::size_t>& from, std::size_t bytes);
    Result<void> receive(std::size_t rank, std::size_t from, char* to, std::size_t bytes);
    Result<void> stepDone();
    Result<void> waitOn(Rank& rank, Rank& neighbour);
    Result<void> moveNow(Rank& rank, void* to, const void* from, std::size_t bytes, bool isUp);

    GpuSession& m_session;
    std::vector<RingOperation> m_operations;
    std::function<bool()> m_cancelled;
    std::vector<std::unique_ptr<Rank>> m_ranks;
    bool m_isStaged = false;
    std::string m_whyStaged;
    std::size_t m_step = 0;    ///< of all collectives so far
    std::uint64_t m_taken = 0; ///< B by one rank of its neighbour, ever
    std::uint64_t m_sent = 0;
};

} // namespace memscape::cuda
