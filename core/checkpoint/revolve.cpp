// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/revolve.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr std::int64_t saturated = std::int64_t(1) << 62;

/// `steps` steps from `first` are to be reversed; x_first is there, and `slots` count it.
struct Task
{
    int first;
    int steps; ///< 0: the backward of `first` alone
    int slots;
};

class Writer
{
public:
    explicit Writer(int length)
        : m_length(length)
    { }

    /// x_first stays, x_{first + steps} appears.
    void advance(int first, int steps)
    {
        for (int i = first; i < first + steps; ++i)
            m_schedule.push_back({i == first ? OperationKind::ForwardKeep : OperationKind::ForwardDrop, i, 0});
    }
    void save(int stage)
    {
        m_schedule.push_back({OperationKind::ForwardSave, stage, 0});
        if (stage == m_length - 1)
            m_schedule.push_back({OperationKind::Loss, m_length, 0});
    }
    void backward(int stage) { m_schedule.push_back({OperationKind::Backward, stage, 0}); }
    /// Nothing more is kept: each step is reached from x_first.
    void withoutSlots(int first, int steps)
    {
        for (int i = steps - 1; i >= 0; --i) {
            advance(first, i);
            save(first + i);
            backward(first + i);
        }
    }
    Schedule take() { return std::move(m_schedule); }

private:
    int m_length;
    Schedule m_schedule;
};

/// How far to advance before the next state is kept. Every j of [lowest, highest] has the fewest
/// advances; this one also has the fewest writes (held against a search over all j by the tests).
int split(std::int64_t steps, std::int64_t slots)
{
    const std::int64_t r = revolveRepetitions(steps, slots);
    const auto beta = [](std::int64_t s, std::int64_t repetitions) {
        return s < 0 || repetitions < 0 ? 0 : binomial(s + repetitions, s);
    };
    const std::int64_t lowest = std::max({beta(slots, r - 2), steps - beta(slots - 1, r), std::int64_t(1)});
    const std::int64_t highest = std::min({beta(slots, r - 1), steps - beta(slots - 1, r - 1), steps - 1});
    return int(std::min(std::max(steps - beta(slots - 1, r - 1) - beta(slots - 2, r - 1), lowest), highest));
}

Error tooLong(std::int64_t forwards)
{
    return {"chain.length", fmt::format("the schedule has {} forwards, more than {}", forwards, slotForwardLimit),
            "budget", "give more slots (they cut the forwards), join neighbouring stages, or take strategy=sqrt"};
}

} // namespace

std::int64_t binomial(std::int64_t n, std::int64_t k)
{
    if (k < 0 || k > n)
        return 0;
    k = std::min(k, n - k);
    __extension__ using Wide = __int128;
    Wide value = 1;
    for (std::int64_t i = 1; i <= k; ++i) {
        value = value * (n - k + i) / i;
        if (value >= saturated)
            return saturated;
    }
    return std::int64_t(value);
}

std::int64_t revolveRepetitions(std::int64_t length, std::int64_t slots)
{
    if (slots == 1)
        return length - 1; // β(1,r) = r + 1
    std::int64_t r = 0;
    while (binomial(slots + r, slots) < length)
        ++r;
    return r;
}

std::int64_t revolveAdvances(std::int64_t length, std::int64_t slots)
{
    assert(length >= 1 && slots >= 1);
    const std::int64_t r = revolveRepetitions(length, slots);
    return r * length - binomial(slots + r, slots + 1);
}

Result<SlotPlan> revolve(int length, std::int64_t slots)
{
    SlotPlan plan;
    const int used = int(std::min<std::int64_t>(slots, length));
    plan.forwards = revolveAdvances(length, used) + length;
    if (plan.forwards > slotForwardLimit)
        return fail(tooLong(plan.forwards));
    plan.writes = 1;
    Writer writer(length);
    std::vector<Task> tasks{{0, length, used}};
    while (!tasks.empty()) {
        const Task task = tasks.back();
        tasks.pop_back();
        if (task.slots == 1 || task.steps <= 2) {
            writer.withoutSlots(task.first, task.steps);
            continue;
        }
        const int j = split(task.steps, task.slots);
        writer.advance(task.first, j);
        plan.writes += 1;
        tasks.push_back({task.first, j, task.slots});
        tasks.push_back({task.first + j, task.steps - j, task.slots - 1});
    }
    plan.schedule = writer.take();
    return plan;
}

MixedTable::MixedTable(int length, int slots)
    : m_length(length)
    , m_slots(slots)
    , m_total(std::size_t(slots + 1) * std::size_t(length + 1), saturated)
{
    for (int s = 0; s <= slots; ++s) {
        cell(1, s) = 1;
        for (int n = 2; n <= length && s > 0; ++n) {
            const int j = bestSplit(n, s);
            cell(n, s) = j == 0 ? 1 + total(n - 1, s - 1) : j + total(j, s) + total(n - j, s - 1);
        }
    }
}

/// How far to advance before the next state is kept; 0: save all of the first step instead.
int MixedTable::bestSplit(int steps, int slots) const
{
    int best = 0;
    std::int64_t least = 1 + total(steps - 1, slots - 1);
    for (int j = 1; j < steps; ++j) {
        const std::int64_t forwards = j + total(j, slots) + total(steps - j, slots - 1);
        if (forwards < least || (forwards == least && best == 0)) { // a state is smaller than all of a step
            best = j;
            least = forwards;
        }
    }
    return best;
}

Result<MixedTable> MixedTable::make(int length, std::int64_t slots)
{
    const std::int64_t used = std::min<std::int64_t>(slots, length);
    if (std::int64_t(length) * length > mixedWorkLimit / used)
        return fail(
            "chain.length",
            fmt::format("the table of {} steps × {} slots takes more than {} steps", length, used, mixedWorkLimit),
            "give fewer slots, join neighbouring stages, or take strategy=revolve", "chain");
    return MixedTable(length, int(used));
}

std::int64_t MixedTable::forwards(std::int64_t slots) const
{
    return total(m_length, int(std::min<std::int64_t>(slots, m_slots)));
}

Result<SlotPlan> MixedTable::plan(std::int64_t slots) const
{
    SlotPlan plan;
    const int used = int(std::min<std::int64_t>(slots, m_slots));
    plan.forwards = total(m_length, used);
    if (plan.forwards > slotForwardLimit)
        return fail(tooLong(plan.forwards));
    Writer writer(m_length);
    std::vector<Task> tasks{{0, m_length, used}};
    while (!tasks.empty()) {
        const Task task = tasks.back();
        tasks.pop_back();
        if (task.steps <= 1) {
            if (task.steps == 1)
                writer.save(task.first);
            writer.backward(task.first);
            continue;
        }
        const int j = bestSplit(task.steps, task.slots);
        if (j == 0) {
            writer.save(task.first);
            tasks.push_back({task.first, 0, 0});
            tasks.push_back({task.first + 1, task.steps - 1, task.slots - 1});
        } else {
            writer.advance(task.first, j);
            tasks.push_back({task.first, j, task.slots});
            tasks.push_back({task.first + j, task.steps - j, task.slots - 1});
        }
    }
    plan.schedule = writer.take();
    return plan;
}

} // namespace memscape
