// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/checkpoint/checkpoint_tables.h"

#include "core/base/cancellation.h"
#include "core/base/stopwatch.h"
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
/// As many as are quicker than looking for another way: some hundredths of a second.
constexpr double quickWorkLimit = 5e8;
/// How far the slots of a budget are refined, while its tables take a hundredth of a second and the gap
/// is above `closed`.
constexpr int finestSlots = 16;
constexpr double refinedWorkLimit = 2e8;
constexpr double closed = 1e-3;

/// Times are counted in so many seconds where a table is only looked through for schedules and a
/// bound: whole numbers that no sum over a schedule takes past 2^29, so the table is half as large.
double quantumOf(const Chain& chain)
{
    const double sum = chain.timeWithoutRecomputation();
    bool isWhole = sum == std::floor(sum);
    double most = 0;
    for (const Stage& stage : chain.stages) {
        isWhole = isWhole && stage.forward == std::floor(stage.forward);
        for (const SaveOption& option : stage.options) {
            isWhole = isWhole && option.forward == std::floor(option.forward)
                && option.backward == std::floor(option.backward);
            most += option.forward + option.backward;
        }
        most += stage.forward;
    }
    return isWhole || most == 0 ? 1 : (most + chain.lossTime) * (chain.length() + 2) / 0x1p29;
}

/// Times in whole quanta, rounded down: a bound of these is one of the chain.
Chain countedIn(Chain chain, double quantum)
{
    const auto count = [quantum](double& time) { time = std::floor(time / quantum); };
    if (quantum == 1)
        return chain;
    count(chain.lossTime);
    for (Stage& stage : chain.stages) {
        count(stage.forward);
        for (SaveOption& option : stage.options) {
            count(option.forward);
            count(option.backward);
        }
    }
    return chain;
}

/// The memory of the largest single operation: less than any schedule's peak.
std::int64_t largestOperation(const Chain& chain)
{
    std::int64_t largest = 0;
    for (int i = 0; i < chain.length(); ++i) {
        std::int64_t least = chainSizeLimit;
        for (const SaveOption& option : chain.stages[std::size_t(i)].options)
            least = std::min(least, option.saved + option.backwardOverhead);
        largest = std::max(largest, chain.values[std::size_t(i)] + chain.values[std::size_t(i + 1)] + least);
    }
    return largest;
}

} // namespace

CheckpointTables::CheckpointTables(const Chain& chain, int slots)
    : m_chain(chain)
    , m_quantum(quantumOf(chain))
    , m_counted(countedIn(chain, m_quantum))
    , m_slotCount(slots)
    , m_isLeastExact(chain.length() <= exactMinimumLength)
{ }

Result<CheckpointTables> CheckpointTables::solve(const Chain& chain, int slots)
{
    CheckpointTables tables(chain, slots);
    MEMSCAPE_TRY(full, replay(chain, keepEverything(chain.length())));
    tables.m_fullMemory = full.peak;
    tables.m_fullTime = full.makespan;
    tables.m_leastTime = discretise(chain, 1).base;
    tables.m_leastMemory = tables.m_isLeastExact ? minimumPersistentBudget(chain) : largestOperation(chain);
    MEMSCAPE_CHECK(tables.solveFront());
    return tables;
}

Result<std::shared_ptr<CheckpointTables>> CheckpointTables::solve(const Chain& chain, int slots, std::any& kept)
{
    if (const auto* last = std::any_cast<std::shared_ptr<CheckpointTables>>(&kept); last && (*last)->isOf(chain, slots))
        return *last;
    MEMSCAPE_TRY(solved, solve(chain, slots));
    auto tables = std::make_shared<CheckpointTables>(std::move(solved));
    kept = tables;
    return tables;
}

double CheckpointTables::work(double slots) const
{
    const double length = m_chain.length();
    return length * length * length / 6 * slots;
}

Result<void> CheckpointTables::solveFront()
{
    const std::int64_t slot = slotSize(m_chain, m_fullMemory, m_slotCount);
    const double slots = double(m_fullMemory / slot);
    const Stopwatch watch;
    const auto keep = [&](const Result<PersistentSolution>& front) {
        m_frontTime = watch.seconds();
        if (front)
            m_front = *front;
        else
            m_frontMissing = front.error();
        return checkWanted(); // what was stopped is not missing
    };
    if (!dividesSizes(m_chain, slot) || work(slots) > quickWorkLimit) {
        const auto exact = solveExactly(m_chain, {.isCancelled = isCancelled});
        if (exact)
            return keep(exact);
        MEMSCAPE_CHECK(checkWanted());
    }
    if (work(slots) > frontWorkLimit)
        return keep(fail("checkpoint.size",
                         fmt::format("the whole front of {} stages would take minutes", m_chain.length()),
                         "strategy=optimal solves for one budget; fewer slots or joined stages make the "
                         "front quick",
                         "chain"));
    PersistentSettings settings;
    settings.slotCount = m_slotCount;
    settings.tableLimit = frontTableLimit;
    settings.isCancelled = isCancelled;
    return keep(solvePersistent(m_chain, settings));
}

Result<PersistentSolution> CheckpointTables::solveLimited(std::int64_t limit, int slots, SlotRounding rounding)
{
    for (const Limited& known : m_limited) {
        if (known.settings.memoryLimit == limit && known.settings.slotCount == slots
            && known.settings.rounding == rounding)
            return known.solution;
    }
    PersistentSettings settings;
    settings.slotCount = slots;
    settings.memoryLimit = limit;
    settings.tableLimit = budgetTableLimit;
    settings.rounding = rounding;
    settings.isCancelled = isCancelled;
    MEMSCAPE_TRY(solution, solvePersistent(m_counted, settings));
    m_limited.push_back({settings, solution});
    std::int64_t bytes = 0;
    for (const Limited& known : m_limited)
        bytes += known.solution.tableBytes();
    for (; bytes > keptTablesLimit && m_limited.size() > 2; m_limited.pop_front())
        bytes -= m_limited.front().solution.tableBytes();
    return solution;
}

Result<PersistentSolution> CheckpointTables::within(std::int64_t budget, int finer, SlotRounding rounding)
{
    if (m_front && m_front->isExact())
        return *m_front;
    double shared = double(m_fullMemory);
    while (shared > double(budget) * std::numbers::sqrt2)
        shared /= std::numbers::sqrt2;
    const auto limit = std::int64_t(std::ceil(shared));
    const int exactly = m_slotCount * finer;
    const int slots = limit < m_fullMemory ? int(std::ceil(exactly * std::numbers::sqrt2)) : exactly;
    if (rounding == SlotRounding::Up && m_front && slotSize(m_chain, limit, slots) == m_front->slot())
        return *m_front; // in seconds, but only its schedules are asked for
    auto solution = solveLimited(limit, slots, rounding);
    if (!solution && solution.error().code == "checkpoint.size") // what is above the budget may be too much
        return solveLimited(std::min(budget, m_fullMemory), exactly, rounding);
    return solution;
}

/// Between the two roundings of one table's slots.
Result<ProvenSchedule> CheckpointTables::enclose(std::int64_t budget, int finer)
{
    MEMSCAPE_TRY(below, within(budget, finer, SlotRounding::Down));
    MEMSCAPE_TRY(bound, below.makespan(budget));
    ProvenSchedule best;
    best.bound = std::max(bound * m_quantum, m_leastTime);
    std::optional<Error> missing;
    const auto above = within(budget, finer);
    auto schedule = above ? above->schedule(budget) : Result<Schedule>(fail(above.error()));
    if (schedule) {
        MEMSCAPE_TRY(replayed, replay(m_chain, *schedule));
        best.schedule = *std::move(schedule);
        best.replay = std::move(replayed);
        best.slot = above->isExact() ? 0 : above->slot();
        best.tableBytes = above->tableBytes();
    } else {
        missing = schedule.error();
    }
    MEMSCAPE_TRY(shrunk, shrinkToFit(below, budget));
    if (shrunk && (missing || shrunk->second.makespan < best.replay.makespan)) {
        std::tie(best.schedule, best.replay) = *std::move(shrunk);
        best.slot = below.slot();
        best.tableBytes = below.tableBytes();
        missing.reset();
    }
    return missing ? Result<ProvenSchedule>(fail(*missing)) : best;
}

/// A schedule of rounded-down sizes needs more than it was asked to; one for a smaller budget, found
/// by halving, needs what is there. Its sizes are off by half a slot each, up and down about as often,
/// so it is better than one whose sizes all were rounded up.
Result<std::optional<std::pair<Schedule, Replay>>> CheckpointTables::shrinkToFit(const PersistentSolution& below,
                                                                                 std::int64_t budget)
{
    std::optional<std::pair<Schedule, Replay>> best;
    std::int64_t low = std::max<std::int64_t>(1, budget - 2 * (m_chain.length() + 2) * below.slot()), high = budget;
    for (std::int64_t limit = budget; low < high; limit = low + (high - low) / 2) {
        auto schedule = below.schedule(limit);
        if (!schedule) { // below the least
            low = limit + below.slot();
            continue;
        }
        MEMSCAPE_TRY(replayed, replay(m_chain, *schedule));
        const bool fits = replayed.peak <= budget;
        if (fits && (!best || replayed.makespan < best->second.makespan))
            best.emplace(*std::move(schedule), std::move(replayed));
        fits ? low = limit + below.slot() : high = limit - below.slot();
    }
    return best;
}

Result<Schedule> CheckpointTables::bestSegments(std::int64_t budget)
{
    const int length = m_chain.length();
    for (int every = 1; every <= length && m_segmented.size() < 2 * std::size_t(length) && length <= exactMinimumLength;
         ++every) {
        for (const LastSegment last : {LastSegment::Kept, LastSegment::Recomputed}) {
            MEMSCAPE_TRY(replayed, replay(m_chain, everyStages(length, every, last)));
            m_segmented.push_back({every, last, replayed.peak, replayed.makespan});
        }
    }
    const Segmented* best = nullptr;
    for (const Segmented& one : m_segmented) {
        if (one.peak <= budget && (!best || one.makespan < best->makespan))
            best = &one;
    }
    if (!best)
        return fail("checkpoint.budget", "no equal segments fit");
    return everyStages(length, best->every, best->last);
}

Result<ProvenSchedule> CheckpointTables::optimum(std::int64_t budget)
{
    if (m_front && m_front->isExact()) {
        MEMSCAPE_TRY(schedule, m_front->schedule(budget));
        MEMSCAPE_TRY(bound, m_front->makespan(budget));
        MEMSCAPE_TRY(replayed, replay(m_chain, schedule));
        return ProvenSchedule{std::move(schedule), std::move(replayed), bound, 0, m_front->tableBytes(), m_frontTime};
    }
    Result<ProvenSchedule> best = enclose(budget, 1);
    for (int finer = 4; finer <= finestSlots; finer *= 4) {
        const bool isMissing = !best && best.error().code == "checkpoint.budget"; // rounding leaves no schedule
        const bool isOpen =
            best && best->replay.makespan > best->bound * (1 + closed) && work(m_slotCount * finer) <= refinedWorkLimit;
        if (!isMissing && !isOpen)
            break;
        auto again = enclose(budget, finer);
        if (!again && !best)
            best = std::move(again);
        if (!again)
            continue;
        if (best) { // each bound holds, each schedule fits
            again->bound = std::max(again->bound, best->bound);
            if (best->replay.makespan < again->replay.makespan) {
                again->schedule = std::move(best->schedule);
                again->replay = std::move(best->replay);
            }
        }
        best = std::move(again);
    }
    if (auto segments = best ? bestSegments(budget) : Result<Schedule>(fail(best.error()))) {
        MEMSCAPE_TRY(replayed, replay(m_chain, *segments));
        if (replayed.makespan < best->replay.makespan) {
            best->schedule = *std::move(segments);
            best->replay = std::move(replayed);
        }
    }
    return best;
}

} // namespace memscape
