// SPDX-License-Identifier: Apache-2.0
// What an allocator of blocks does whatever its rules are: it counts what is asked for, given and taken from the
// driver, and a block that record_stream() named is freed once the streams are synchronized.
#pragma once

#include "core/trace/memory_policy.h"

#include <map>
#include <set>
#include <vector>

namespace memscape {

class BlockPolicy : public MemoryPolicy
{
public:
    PolicyAct play(const Request& request, const RequestedBlock& block) final;
    PolicyCounts counts() const final { return m_counts; }
    PolicyTotals totals() const final { return m_totals; }

protected:
    struct Held
    {
        std::uint64_t address = 0;
        std::int64_t requested = 0, given = 0; ///< B
        bool isPending = false;                ///< freed, and another stream still uses it
    };

    /// A block for `bytes`, or an act of the kind Refused.
    virtual PolicyAct allocate(BlockId id, std::int64_t bytes) = 0;
    /// Gives up a block whose Held is still there.
    virtual PolicyAct free(BlockId id) = 0;
    virtual PolicyAct emptyCache() = 0;

    void take(std::int64_t bytes, PolicyAct& act);
    void giveBack(std::int64_t bytes, PolicyAct& act);
    const std::map<BlockId, Held>& held() const { return m_held; }

    PolicyCounts m_counts;

private:
    PolicyAct freed(BlockId id);

    PolicyTotals m_totals;
    std::map<BlockId, Held> m_held;
    std::set<BlockId> m_recorded;
    std::vector<BlockId> m_pending; ///< freed, and not complete
};

} // namespace memscape
