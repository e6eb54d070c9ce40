// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/checkpoint_tables.h"

#include "core/base/cancellation.h"
#include "core/base/stopwatch.h"
#include "core/checkpoint/periodic.h"
#include "core/checkpoint/replay.h"
#include "core/checkpoint/slot_chain.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace memscape {

namespace {

/// B that the table of the whole front may take.
constexpr std::int64_t frontTableLimit = std::int64_t(1) << 30;
/// B that the table of one budget may take.
constexpr std::int64_t budgetTableLimit = std::int64_t(2) << 30;
/// B that tables of budgets are kept in, for the next one.
constexpr std::int64_t keptTablesLimit = std::int64_t(256) << 20;
/// Steps of the recursion (L³ slots / 6) that the whole front may take: some seconds.
constexpr double frontWorkLimit = 5e10;

/// What the hungriest single operation takes: less than any schedule's peak.
std::int64_t largestOperation(const Chain& chain)
{
    std::int64_t largest = 0;
    for (int i = 0; i < chain.length(); ++i) {
        std::int64_t least = chainSizeLimit;
        for (const SaveOption& option : chain.stages[std::size_t(i)].options)
            least = std::min(least, option.saved + option.backwardOverhead);
        largest = std::max(largest,
                           chain.values[std::size_t(i)] + chain.values[std::size_t(i + 1)] + least);
    }
    return largest;
}

} // namespace

CheckpointTables::CheckpointTables(const Chain& chain, int slots)
    : m_chain(chain)
    , m_slotCount(slots)
    , m_isLeastExact(chain.length() <= exactMinimumLength)
{
}

Result<CheckpointTables> CheckpointTables::solve(const Chain& chain, int slots)
{
    CheckpointTables tables(chain, slots);
    MEMSCAPE_TRY(full, replay(chain, keepEverything(chain.length())));
    tables.m_fullMemory = full.peak;
    tables.m_fullTime = full.makespan;
    tables.m_leastMemory =
        tables.m_isLeastExact ? minimumPersistentBudget(chain) : largestOperation(chain);
    MEMSCAPE_CHECK(tables.solveFront());
    return tables;
}

Result<std::shared_ptr<CheckpointTables>> CheckpointTables::solve(const Chain& chain, int slots,
                                                                  std::any& kept)
{
    if (const auto* last = std::any_cast<std::shared_ptr<CheckpointTables>>(&kept);
        last && (*last)->isOf(chain, slots))
        return *last;
    MEMSCAPE_TRY(solved, solve(chain, slots));
    auto tables = std::make_shared<CheckpointTables>(std::move(solved));
    kept = tables;
    return tables;
}

Result<void> CheckpointTables::solveFront()
{
    const double length = m_chain.length();
    const std::int64_t slot = slotSize(m_chain, m_fullMemory, m_slotCount);
    if (length * length * length / 6 * double(m_fullMemory / slot) > frontWorkLimit) {
        m_frontMissing =
            Error{"checkpoint.size",
                  fmt::format("the whole front of {} stages would take minutes", length), "chain",
                  "strategy=optimal solves for one budget; fewer slots or joined stages make the "
                  "front quick"};
        return {};
    }
    PersistentSettings settings;
    settings.slotCount = m_slotCount;
    settings.tableLimit = frontTableLimit;
    settings.isCancelled = isCancelled;
    const Stopwatch watch;
    auto front = solvePersistent(m_chain, settings);
    m_frontTime = watch.seconds();
    if (front)
        m_front = std::move(*front);
    else
        m_frontMissing = front.error();
    return checkWanted(); // what was stopped is not missing
}

Result<PersistentSolution> CheckpointTables::solveLimited(std::int64_t limit, int slots)
{
    for (const Limited& known : m_limited) {
        if (known.limit == limit && known.slotCount == slots)
            return known.solution;
    }
    PersistentSettings settings;
    settings.slotCount = slots;
    settings.memoryLimit = limit;
    settings.tableLimit = budgetTableLimit;
    settings.isCancelled = isCancelled;
    MEMSCAPE_TRY(solution, solvePersistent(m_chain, settings));
    m_limited.push_back({limit, slots, solution});
    std::int64_t bytes = 0;
    for (const Limited& known : m_limited)
        bytes += known.solution.tableBytes();
    for (; bytes > keptTablesLimit && m_limited.size() > 1; m_limited.pop_front())
        bytes -= m_limited.front().solution.tableBytes();
    return solution;
}

Result<PersistentSolution> CheckpointTables::within(std::int64_t budget, int finer)
{
    double shared = double(m_fullMemory);
    while (shared > double(budget) * std::numbers::sqrt2)
        shared /= std::numbers::sqrt2;
    const auto limit = std::int64_t(std::ceil(shared));
    const int exactly = m_slotCount * finer;
    const int slots = limit < m_fullMemory ? int(std::ceil(exactly * std::numbers::sqrt2)) : exactly;
    if (m_front && slotSize(m_chain, limit, slots) == m_front->slot())
        return *m_front;
    auto solution = solveLimited(limit, slots);
    if (!solution && solution.error().code == "checkpoint.size") // what is above the budget may be too much
        return solveLimited(std::min(budget, m_fullMemory), exactly);
    return solution;
}

} // namespace memscape
