// SPDX-License-Identifier: Apache-2.0
// What is solved of a chain once and asked for at every budget: the least memory, the whole front,
// and tables of finer slots for small budgets.
//
// A table's slots are as fine as its memory limit allows, and it holds every budget up to the limit.
// So budgets share the limits full / √2^k, and a budget takes the table of the smallest limit above
// it: what it answers does not depend on what was asked before. The first table is the front's own;
// the others have √2 times the slots, so that no slot is coarser than budget / slots. Where such a
// table would be too large, the budget has one of its own.
#pragma once

#include "core/checkpoint/persistent.h"

#include <any>
#include <deque>
#include <memory>
#include <optional>

namespace memscape {

class CheckpointTables
{
public:
    /// Solves for `slots` of memory. The chain has passed checkChain. Errors: predict.cancelled, and
    /// those of its replay.
    static Result<CheckpointTables> solve(const Chain& chain, int slotCount);
    /// The same, or what `kept` has of it from the last time; it is kept there.
    static Result<std::shared_ptr<CheckpointTables>> solve(const Chain& chain, int slotCount,
                                                           std::any& kept);

    bool isOf(const Chain& chain, int slotCount) const { return m_slotCount == slotCount && m_chain == chain; }

    std::int64_t leastMemory() const { return m_leastMemory; } ///< of a persistent schedule, or a bound
    bool isLeastExact() const { return m_isLeastExact; }
    std::int64_t fullMemory() const { return m_fullMemory; } ///< that keeping everything takes
    double fullTime() const { return m_fullTime; }
    const std::optional<PersistentSolution>& front() const { return m_front; }
    const std::optional<Error>& frontMissing() const { return m_frontMissing; }
    double frontTime() const { return m_frontTime; } ///< s that solving it took

    /// The table that answers a budget, in slots `finer` times as fine. Errors: those of
    /// solvePersistent.
    Result<PersistentSolution> within(std::int64_t budget, int finer = 1);

private:
    struct Limited
    {
        std::int64_t limit = 0;
        int slotCount = 0;
        PersistentSolution solution;
    };

    CheckpointTables(const Chain& chain, int slotCount);
    Result<void> solveFront();
    Result<PersistentSolution> solveLimited(std::int64_t limit, int slotCount);

    Chain m_chain;
    int m_slotCount;
    std::int64_t m_leastMemory = 0;
    bool m_isLeastExact = true;
    std::int64_t m_fullMemory = 0;
    double m_fullTime = 0;
    std::optional<PersistentSolution> m_front; ///< missing on chains too long for it
    std::optional<Error> m_frontMissing;
    double m_frontTime = 0;
    std::deque<Limited> m_limited; ///< the newest last
};

} // namespace memscape
