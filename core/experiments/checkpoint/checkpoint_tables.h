// SPDX-License-Identifier: Apache-2.0
// What is solved of a chain once and asked for at every budget: the least memory, the whole front,
// and the optimum with its proof.
//
// Most chains are solved on exact sizes: a network's layers are alike (persistent_exact.h), and equal
// stages are whole numbers of slots. The rest is enclosed. Slots with sizes rounded up give schedules
// that fit; rounded down they give a time that no persistent schedule is below, and at times a
// schedule that fits in bytes all the same. Short chains are refined until the two meet; where a gap
// is left the answer carries it.
//
// A table of slots is as fine as its memory limit allows, and it holds every budget up to the limit.
// So budgets share the limits full / √2^k, and a budget takes the table of the smallest limit above
// it: what it answers does not depend on what was asked before. The first table is the front's own;
// the others have √2 times the slots, so that no slot is coarser than budget / slots. Where such a
// table would be too large, the budget has one of its own.
#pragma once

#include "core/checkpoint/periodic.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/replay.h"

#include <any>
#include <deque>
#include <memory>
#include <optional>

namespace memscape {

/// The best schedule that was found at a budget, and what no persistent schedule is below.
struct ProvenSchedule
{
    Schedule schedule; ///< within the budget on exact sizes
    Replay replay;
    double bound = 0;      ///< time
    std::int64_t slot = 0; ///< the size of a slot that sizes were rounded to, 0: not rounded
    std::int64_t tableBytes = 0;
    double tableTime = 0; ///< s that its table took, where it was solved before
};

class CheckpointTables
{
public:
    /// Solves for `slots` of memory. The chain has passed checkChain. Errors: predict.cancelled, and
    /// those of its replay.
    static Result<CheckpointTables> solve(const Chain& chain, int slotCount);
    /// The same, or what `kept` has of it from the last time; it is kept there.
    static Result<std::shared_ptr<CheckpointTables>> solve(const Chain& chain, int slotCount, std::any& kept);

    bool isOf(const Chain& chain, int slotCount) const { return m_slotCount == slotCount && m_chain == chain; }

    std::int64_t leastMemory() const { return m_leastMemory; } ///< of a persistent schedule, or a bound
    bool isLeastExact() const { return m_isLeastExact; }
    std::int64_t fullMemory() const { return m_fullMemory; } ///< that keeping everything takes
    double fullTime() const { return m_fullTime; }
    const std::optional<PersistentSolution>& front() const { return m_front; }
    const std::optional<Error>& frontMissing() const { return m_frontMissing; }

    /// The best persistent schedule within a budget. Errors: those of solvePersistent.
    Result<ProvenSchedule> optimum(std::int64_t budget);
    /// The table that answers a budget, in slots `finer` times as fine; exactly where it is solved
    /// exactly. Its makespans count quanta of time, unless it is the front. Errors: those of solvePersistent.
    Result<PersistentSolution> within(std::int64_t budget, int finer = 1, SlotRounding rounding = SlotRounding::Up);

private:
    struct Limited
    {
        PersistentSettings settings;
        PersistentSolution solution;
    };

    CheckpointTables(const Chain& chain, int slotCount);
    Result<void> solveFront();
    Result<PersistentSolution> solveLimited(std::int64_t limit, int slotCount, SlotRounding rounding);
    Result<ProvenSchedule> enclose(std::int64_t budget, int finer);
    Result<std::optional<std::pair<Schedule, Replay>>> shrinkToFit(const PersistentSolution& below,
                                                                   std::int64_t budget);
    double work(double slots) const;
    /// The quickest of equal segments, of every length, that fits. Errors: checkpoint.budget.
    Result<Schedule> bestSegments(std::int64_t budget);

    Chain m_chain;
    double m_quantum; ///< s, or 1 where times are whole
    Chain m_counted;  ///< the chain with times in quanta
    int m_slotCount;
    std::int64_t m_leastMemory = 0;
    bool m_isLeastExact = true;
    std::int64_t m_fullMemory = 0;
    double m_fullTime = 0;
    double m_leastTime = 0;                    ///< of any schedule: nothing runs twice, every stage in its fastest way
    std::optional<PersistentSolution> m_front; ///< missing on chains too long for it
    std::optional<Error> m_frontMissing;
    double m_frontTime = 0;        ///< s that solving it took
    std::deque<Limited> m_limited; ///< the newest last
    /// everyStages(every, last), replayed.
    struct Segmented
    {
        int every = 1;
        LastSegment last = LastSegment::Kept;
        std::int64_t peak = 0;
        double makespan = 0;
    };
    std::vector<Segmented> m_segmented; ///< found when first asked for
};

} // namespace memscape
