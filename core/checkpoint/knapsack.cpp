// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/knapsack.h"

#include "core/base/rounding.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace memscape {

namespace {

void take(Selection& selection, const std::vector<KnapsackItem>& items, std::size_t i)
{
    selection.kept[i] = true;
    selection.memory += items[i].memory;
    selection.runtime += items[i].runtime;
}

} // namespace

Result<Knapsack> Knapsack::make(std::vector<KnapsackItem> items, std::int64_t capacity, std::int64_t slots)
{
    const std::int64_t unit = slots > 0 ? std::max<std::int64_t>(1, quotientUp(capacity, slots)) : 1;
    const std::int64_t width = std::max<std::int64_t>(0, capacity) / unit;
    if (width > knapsackCellLimit / std::int64_t(std::max<std::size_t>(1, items.size())) - 1)
        return fail(
            "chain.length",
            fmt::format("a knapsack of {} items and {} slots passes {} cells", items.size(), width, knapsackCellLimit),
            "take fewer slots, or join neighbouring stages", "slots");
    return Knapsack(std::move(items), width, unit);
}

Knapsack::Knapsack(std::vector<KnapsackItem> items, std::int64_t slots, std::int64_t unit)
    : m_items(std::move(items))
    , m_slots(slots)
    , m_unit(unit)
    , m_takes(m_items.size() * std::size_t(slots + 1))
{
    std::vector<double> best(std::size_t(slots + 1));
    for (std::size_t i = 0; i < m_items.size(); ++i) {
        const std::int64_t needed = weight(i);
        for (std::int64_t slot = slots; slot >= needed; --slot) {
            const double with = best[std::size_t(slot - needed)] + m_items[i].runtime;
            if (with <= best[std::size_t(slot)])
                continue;
            best[std::size_t(slot)] = with;
            m_takes[i * std::size_t(slots + 1) + std::size_t(slot)] = true;
        }
    }
}

Selection Knapsack::best(std::int64_t slot) const
{
    Selection selection{std::vector<bool>(m_items.size()), 0, 0};
    for (std::size_t i = m_items.size(); i-- > 0;) {
        if (!m_takes[i * std::size_t(m_slots + 1) + std::size_t(slot)])
            continue;
        take(selection, m_items, i);
        slot -= weight(i);
    }
    return selection;
}

Selection greedySelection(const std::vector<KnapsackItem>& items, std::int64_t capacity)
{
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t(0));
    const auto isBetter = [&](std::size_t a,
                              std::size_t b) { // runtime a / memory a > runtime b / memory b
        return items[a].runtime * double(items[b].memory) > items[b].runtime * double(items[a].memory);
    };
    std::ranges::stable_sort(order, isBetter);
    Selection selection{std::vector<bool>(items.size()), 0, 0};
    for (const std::size_t i : order) {
        if (items[i].memory <= capacity - selection.memory)
            take(selection, items, i);
    }
    return selection;
}

std::vector<KnapsackItem> stageItems(const Chain& chain)
{
    std::vector<KnapsackItem> items;
    for (const Stage& stage : chain.stages)
        items.push_back({stage.options.front().saved, stage.options.front().forward});
    return items;
}

Schedule selectiveSchedule(const std::vector<bool>& kept, Borders borders)
{
    const int length = int(kept.size());
    Schedule schedule;
    const auto isKept = [&](int stage) { return kept[std::size_t(stage)]; };
    for (int i = 0; i < length; ++i) {
        const bool goes = borders == Borders::Dropped && i > 0 && !isKept(i - 1); // x_i, which is there alone
        if (isKept(i))
            schedule.push_back({OperationKind::ForwardSave, i, 0});
        else
            schedule.push_back({goes ? OperationKind::ForwardDrop : OperationKind::ForwardKeep, i, 0});
        if (isKept(i) && goes)
            schedule.push_back({OperationKind::DiscardValue, i, 0}); // comes back with its run
    }
    schedule.push_back({OperationKind::Loss, length, 0});
    std::vector<bool> isThere = kept;
    const auto makeAgain = [&](int last) {
        int first = last;
        while (borders == Borders::Dropped && first > 0 && !isThere[std::size_t(first - 1)])
            --first;
        for (int i = first; i <= last; ++i) {
            schedule.push_back({OperationKind::ForwardSave, i, 0});
            isThere[std::size_t(i)] = true;
        }
    };
    for (int i = length - 1; i >= 0; --i) {
        if (!isThere[std::size_t(i)])
            makeAgain(i);
        else if (borders == Borders::Dropped && i > 0 && !isThere[std::size_t(i - 1)])
            makeAgain(i - 1);
        schedule.push_back({OperationKind::Backward, i, 0});
    }
    return schedule;
}

} // namespace memscape
