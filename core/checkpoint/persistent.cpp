// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/persistent.h"

#include "core/base/number.h"
#include "core/checkpoint/persistent_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr int slotsLimit = 1'000'000;

std::string memoryText(const Chain& chain, std::int64_t size)
{
    return chain.units.isBytes ? quantityText(double(size), Unit::Byte) : fmt::format("{}", size);
}

/// The store-everything schedule in the fastest ways, and its budget.
std::pair<std::int64_t, Schedule> withoutRecomputation(const SlotChain& chain)
{
    std::vector<int> options(std::size_t(chain.end) + 1);
    std::int64_t needed = 0;
    for (int i = chain.end; i >= 0; --i) {
        const SlotNeed need = chain.neededToSaveFastest(i, chain.end, needed);
        needed = need.size;
        options[i] = need.option;
    }
    Schedule schedule;
    for (int i = 0; i < chain.end; ++i)
        schedule.push_back({OperationKind::ForwardSave, i, options[i]});
    schedule.push_back({OperationKind::Loss, chain.end, 0});
    for (int i = chain.end - 1; i >= 0; --i)
        schedule.push_back({OperationKind::Backward, i, 0});
    return {chain.values[0] + needed, std::move(schedule)};
}

/// No extra time of any segment is above this: a stage is passed at most once per backward of a
/// later one.
double extraLimit(const SlotChain& chain)
{
    double limit = chain.passed.back();
    for (int i = 0; i <= chain.end; ++i) {
        double slowest = 0;
        for (const SaveOption& option : chain.stages[i].options)
            slowest = std::max(slowest, option.forward + option.backward);
        limit += double(chain.end - i) * chain.stages[i].forward + (slowest - chain.fastest[i]);
    }
    return limit;
}

/// Refuses `fixed` B that every table of this length takes and `cells` B that grow with the slots.
tl::unexpected<Error> tooLarge(const Chain& chain, std::int64_t top, double fixed, double cells,
                               const PersistentSettings& settings)
{
    const double limit = 0.9 * double(settings.tableLimit); // windows grow a little faster than their slots
    const double fewer = std::max(0.0, limit - fixed) / cells;
    std::string hint = fmt::format("{} stages joined from neighbours would work",
                                   std::max(1, int(chain.length() * std::sqrt(limit / (fixed + cells)))));
    if (chain.units.isBytes && settings.slotCount * fewer >= 1)
        hint = fmt::format("{} slots would work, or {}", int(settings.slotCount * fewer), hint);
    if (!chain.units.isBytes && double(top) * fewer >= 1)
        hint =
            fmt::format("a budget of {} would work, or larger units, or {}", std::int64_t(double(top) * fewer), hint);
    return fail("checkpoint.size",
                fmt::format("{} stages in {} slots of memory take {} to solve, more than {}", chain.length(), top,
                            quantityText(fixed + cells, Unit::Byte),
                            quantityText(double(settings.tableLimit), Unit::Byte)),
                std::move(hint));
}

tl::unexpected<Error> belowMinimum(const Chain& chain, std::int64_t budget, std::int64_t minimum, std::string hint = {})
{
    return fail("checkpoint.budget",
                fmt::format("no persistent schedule fits in {}: the least is {}", memoryText(chain, budget),
                            chain.units.isBytes ? fmt::format("{} ({} B)", memoryText(chain, minimum), minimum)
                                                : memoryText(chain, minimum)),
                std::move(hint), "budget");
}

/// The limit has no schedule: because of its size, or of the slots' rounding.
tl::unexpected<Error> limitTooSmall(const Chain& chain, const PersistentSettings& settings)
{
    if (chain.length() > exactMinimumLength)
        return fail("checkpoint.budget",
                    fmt::format("no persistent schedule fits in {}", memoryText(chain, settings.memoryLimit)),
                    "give a larger budget", "budget");
    const std::int64_t minimum = minimumPersistentBudget(chain);
    if (minimum > settings.memoryLimit)
        return belowMinimum(chain, settings.memoryLimit, minimum);
    return fail("checkpoint.budget",
                fmt::format("{} is enough (the least is {} B), but not with every size rounded up "
                            "to one of {} slots",
                            memoryText(chain, settings.memoryLimit), minimum, settings.slotCount),
                "take more slots", "budget");
}

template <typename Cost>
Result<void> solveAs(persistent::Table& table, const Chain& chain, const PersistentSettings& settings)
{
    const double segments = double(persistent::Segments(chain.length()).size());
    const double fixed = segments * double(persistent::fillBytesPerSegment<Cost>);
    if (fixed > double(settings.tableLimit) || table.top >= std::numeric_limits<std::int32_t>::max())
        return tooLarge(chain, table.top, fixed, segments * double(table.top) * sizeof(Cost), settings);
    table.windows = persistent::segmentWindows(table.chain, table.top);
    double cells = 0;
    for (const persistent::Window& window : table.windows)
        cells += double(window.last - window.first) * sizeof(Cost);
    if (fixed + cells > double(settings.tableLimit))
        return tooLarge(chain, table.top, fixed, cells, settings);
    auto costs = persistent::fillCosts<Cost>(table.chain, table.windows, table.top, settings);
    if (!costs)
        return fail("checkpoint.cancelled", "the solve was cancelled");
    table.costs = std::move(*costs);
    table.solverBytes = std::int64_t(fixed + cells);
    return {};
}

Result<void> checkSettings(const PersistentSettings& settings)
{
    if (settings.slotCount < 1 || settings.slotCount > slotsLimit)
        return fail("checkpoint.slots", fmt::format("memory can't be divided into {} slots", settings.slotCount),
                    fmt::format("give 1 to {}", slotsLimit), "slots");
    if (settings.memoryLimit < 0)
        return fail("checkpoint.budget", fmt::format("{} is not a budget", settings.memoryLimit), "give a size above 0",
                    "budget");
    return {};
}

/// The limit of memory, and what is known without the recursion.
std::shared_ptr<persistent::Table> tableOf(const Chain& chain, std::int64_t memoryLimit)
{
    auto table = std::make_shared<persistent::Table>();
    std::tie(table->withoutRecomputation, table->saveAll) = withoutRecomputation(discretise(chain, 1));
    table->isBytes = chain.units.isBytes;
    table->isWhole = memoryLimit == 0 || memoryLimit >= table->withoutRecomputation;
    table->limit = std::max<std::int64_t>(1, table->isWhole ? table->withoutRecomputation : memoryLimit);
    return table;
}

void setTop(persistent::Table& table)
{
    const SlotChain& slots = table.chain;
    table.top = table.isWhole ? withoutRecomputation(slots).first - slots.values[0] + 1
                              : table.limit / slots.slot - slots.values[0] + 1;
}

/// The most extra time of any schedule; times that can't be added are an error.
Result<double> checkedExtraLimit(const SlotChain& chain)
{
    const double extra = extraLimit(chain);
    if (!std::isfinite(chain.base + extra))
        return fail("chain.range", "these times are too long to be added", "give times in larger units", "forward");
    return extra;
}

} // namespace

Result<PersistentSolution> solvePersistent(const Chain& chain, const PersistentSettings& settings)
{
    MEMSCAPE_CHECK(checkChain(chain));
    MEMSCAPE_CHECK(checkSettings(settings));
    auto table = tableOf(chain, settings.memoryLimit);
    const std::int64_t slot = slotSize(chain, table->limit, settings.slotCount);
    table->chain = discretise(chain, slot, settings.rounding);
    table->isExact = dividesSizes(chain, slot);
    setTop(*table);
    if (table->top <= 0)
        return limitTooSmall(chain, settings);

    MEMSCAPE_TRY(extra, checkedExtraLimit(table->chain));
    MEMSCAPE_CHECK(table->chain.hasWholeTimes() && extra < persistent::costLimit<std::int32_t>
                       ? solveAs<std::int32_t>(*table, chain, settings)
                       : solveAs<double>(*table, chain, settings));
    table->first = table->firstFeasible();
    if (table->first >= table->top && !table->isWhole)
        return limitTooSmall(chain, settings);
    return PersistentSolution(std::move(table));
}

Result<PersistentSolution> solveExactly(const Chain& chain, const ExactSettings& settings)
{
    MEMSCAPE_CHECK(checkChain(chain));
    auto table = tableOf(chain, 0);
    table->chain = discretise(chain, 1);
    table->isExact = true;
    setTop(*table);
    MEMSCAPE_TRY(extra, checkedExtraLimit(table->chain));
    const auto tooMuch = [&] {
        return fail("checkpoint.size",
                    fmt::format("{} stages with so many different sizes have too many optimal "
                                "schedules to solve them all exactly",
                                chain.length()),
                    "solve in slots of memory");
    };
    if (chain.length() > exactLengthLimit)
        return tooMuch();
    auto exact = persistent::fillExact(table->chain, extra, {table->top - 1, settings.work, settings.isCancelled});
    if (!exact && settings.isCancelled && settings.isCancelled())
        return fail("checkpoint.cancelled", "the solve was cancelled");
    if (!exact)
        return tooMuch();
    table->solverBytes = std::int64_t(exact->bytes());
    table->costs = std::move(*exact);
    table->first = table->firstFeasible();
    return PersistentSolution(std::move(table));
}

PersistentSolution::PersistentSolution(std::shared_ptr<const persistent::Table> table)
    : m_table(std::move(table))
{ }

std::int64_t PersistentSolution::minimumBudget() const
{
    const std::int64_t rounded = (m_table->first + m_table->chain.values[0]) * m_table->chain.slot;
    return m_table->isWhole ? std::min(rounded, m_table->withoutRecomputation) : rounded;
}

std::int64_t PersistentSolution::budgetWithoutRecomputation() const
{
    return m_table->withoutRecomputation;
}

std::vector<FrontPoint> PersistentSolution::front() const
{
    const SlotChain& chain = m_table->chain;
    std::vector<FrontPoint> points;
    const auto add = [&](std::int64_t m, double extra) {
        const std::int64_t budget = (m + chain.values[0]) * chain.slot;
        if (budget < m_table->withoutRecomputation)
            points.push_back({budget, chain.base + extra});
    };
    if (const auto* exact = std::get_if<persistent::ExactTable>(&m_table->costs)) {
        for (const persistent::ExactStep& step : exact->steps(persistent::Segments(chain.end)(0, chain.end))) {
            if (!points.empty()) // the step before lasts until here
                add(step.memory - 1, points.back().makespan - chain.base);
            add(step.memory, exact->seconds(step.extra));
        }
    } else {
        for (std::int64_t m = m_table->first; m < m_table->top; ++m)
            add(m, m_table->extra(0, chain.end, m));
    }
    if (m_table->isWhole)
        points.push_back({m_table->withoutRecomputation, chain.base});
    return points;
}

Result<double> PersistentSolution::makespan(std::int64_t budget) const
{
    if (budget >= m_table->withoutRecomputation)
        return m_table->chain.base;
    MEMSCAPE_TRY(m, m_table->slotsOf(budget));
    return m_table->chain.base + m_table->extra(0, m_table->chain.end, m);
}

Result<Schedule> PersistentSolution::schedule(std::int64_t budget) const
{
    if (budget >= m_table->withoutRecomputation)
        return m_table->saveAll;
    MEMSCAPE_TRY(m, m_table->slotsOf(budget));
    return persistent::walkBack(*m_table, m);
}

std::int64_t PersistentSolution::slot() const
{
    return m_table->chain.slot;
}

bool PersistentSolution::isExact() const
{
    return m_table->isExact;
}

std::int64_t PersistentSolution::tableBytes() const
{
    const std::size_t cells = std::visit([](const auto& costs) { return costs.bytes(); }, m_table->costs);
    return std::int64_t(cells + m_table->windows.size() * (sizeof(persistent::Window) + sizeof(std::size_t)));
}

std::int64_t PersistentSolution::solverBytes() const
{
    return m_table->solverBytes;
}

} // namespace memscape
