// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/adaptive.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// The chain as it runs, and what is resident.
class Runtime
{
public:
    Runtime(const Chain& chain, std::int64_t budget)
        : m_chain(chain)
        , m_budget(budget)
        , m_value(chain.values.size())
        , m_saved(chain.values.size())
        , m_resident(chain.values[0])
    {
        m_value[0].isThere = true;
    }

    Result<void> firstPass();
    Result<void> backward(int stage);
    Schedule take() { return std::move(m_schedule); }

private:
    struct Thing
    {
        bool isThere = false;
        bool isNeeded = false; ///< by the operation that is being prepared
        double lastRead = 0;
    };
    struct Candidate
    {
        double heuristic = 0;
        int index = -1;
        bool isSaved = false;
    };

    int length() const { return m_chain.length(); }
    const SaveOption& way(int stage) const { return m_chain.stages[std::size_t(stage)].options.front(); }
    bool isThere(int i) const { return m_value[std::size_t(i)].isThere || m_saved[std::size_t(i)].isThere; }
    double costOf(int i) const;
    Candidate cheapest();
    void evict(const Candidate& candidate);
    Result<void> makeRoom(std::int64_t bytes);
    Result<void> bring(int i);
    Result<void> run(OperationKind kind, int stage);
    void read(int i);
    void need(int i, bool isNeeded);

    const Chain& m_chain;
    std::int64_t m_budget;
    std::vector<Thing> m_value, m_saved; ///< x_i alone, x̄_i
    std::int64_t m_resident;
    double m_now = 0;
    std::int64_t m_looked = 0;
    Schedule m_schedule;
};

/// x_i is read, from wherever it is.
void Runtime::read(int i)
{
    (m_value[std::size_t(i)].isThere ? m_value : m_saved)[std::size_t(i)].lastRead = m_now;
}

void Runtime::need(int i, bool isNeeded)
{
    (m_value[std::size_t(i)].isThere ? m_value : m_saved)[std::size_t(i)].isNeeded = isNeeded;
}

/// Time of the forwards that bring x_i back, discarded neighbours on both sides included: they
/// would have to be made for it, or it for them.
double Runtime::costOf(int i) const
{
    double cost = m_chain.stages[std::size_t(i - 1)].forward;
    for (int j = i - 1; j > 0 && !isThere(j); --j)
        cost += m_chain.stages[std::size_t(j - 1)].forward;
    for (int j = i + 1; j <= length() && !isThere(j); ++j)
        cost += m_chain.stages[std::size_t(j - 1)].forward;
    return cost;
}

Runtime::Candidate Runtime::cheapest()
{
    m_looked += length();
    Candidate best;
    const auto consider = [&](const Thing& thing, int i, bool isSaved, std::int64_t size) {
        if (!thing.isThere || thing.isNeeded)
            return;
        const double heuristic =
            costOf(i) / (double(std::max<std::int64_t>(1, size)) * std::max(1e-300, m_now - thing.lastRead));
        if (best.index < 0 || heuristic < best.heuristic)
            best = {heuristic, i, isSaved};
    };
    for (int i = 1; i <= length(); ++i) { // x_0 can't be made again
        consider(m_value[std::size_t(i)], i, false, m_chain.values[std::size_t(i)]);
        consider(m_saved[std::size_t(i)], i, true, way(i - 1).saved);
    }
    return best;
}

void Runtime::evict(const Candidate& candidate)
{
    const auto i = std::size_t(candidate.index);
    (candidate.isSaved ? m_saved : m_value)[i].isThere = false;
    m_resident -= candidate.isSaved ? way(candidate.index - 1).saved : m_chain.values[i];
    m_schedule.push_back(
        {candidate.isSaved ? OperationKind::DiscardSaved : OperationKind::DiscardValue, candidate.index, 0});
}

Result<void> Runtime::makeRoom(std::int64_t bytes)
{
    while (m_resident + bytes > m_budget) {
        const Candidate candidate = cheapest();
        if (candidate.index < 0)
            return fail("checkpoint.budget",
                        fmt::format("the adaptive heuristic needs {} at operation {}, more than the budget of {}",
                                    m_resident + bytes, m_schedule.size(), m_budget),
                        "give a larger budget, or take strategy=optimal, which plans ahead", "budget");
        evict(candidate);
    }
    return {};
}

/// A forward of either kind; its input is there.
Result<void> Runtime::run(OperationKind kind, int stage)
{
    if (m_schedule.size() > adaptiveOperationLimit || m_looked > adaptiveLookLimit)
        return fail("chain.length",
                    fmt::format("the adaptive heuristic stopped after {} operations", m_schedule.size()),
                    "give a larger budget, or join neighbouring stages", "budget");
    const auto next = std::size_t(stage + 1);
    const bool isSaving = kind == OperationKind::ForwardSave;
    const std::int64_t made = isSaving ? way(stage).saved : m_chain.values[next];
    const std::int64_t overhead =
        isSaving ? way(stage).forwardOverhead : m_chain.stages[std::size_t(stage)].forwardOverhead;
    need(stage, true);
    MEMSCAPE_CHECK(makeRoom(made + overhead));
    need(stage, false);
    read(stage);
    m_schedule.push_back({kind, stage, 0});
    m_now += isSaving ? way(stage).forward : m_chain.stages[std::size_t(stage)].forward;
    m_resident += made;
    (isSaving ? m_saved : m_value)[next] = {true, false, m_now};
    return {};
}

/// Makes x_i again from the nearest value before it.
Result<void> Runtime::bring(int i)
{
    int from = i;
    while (!isThere(from))
        --from;
    for (; from < i; ++from)
        MEMSCAPE_CHECK(run(OperationKind::ForwardKeep, from));
    return {};
}

Result<void> Runtime::firstPass()
{
    for (int i = 0; i < length(); ++i)
        MEMSCAPE_CHECK(run(OperationKind::ForwardSave, i));
    need(length(), true);
    MEMSCAPE_CHECK(makeRoom(m_chain.values.back() + m_chain.lossOverhead));
    need(length(), false);
    read(length());
    m_schedule.push_back({OperationKind::Loss, length(), 0});
    m_now += m_chain.lossTime;
    m_resident += m_chain.values.back();
    return {};
}

Result<void> Runtime::backward(int stage)
{
    Thing& value = m_value[std::size_t(stage)];
    Thing& saved = m_saved[std::size_t(stage + 1)];
    saved.isNeeded = true;
    MEMSCAPE_CHECK(bring(stage));
    if (!saved.isThere)
        MEMSCAPE_CHECK(run(OperationKind::ForwardSave, stage));
    saved.isNeeded = true;
    need(stage, true);
    MEMSCAPE_CHECK(makeRoom(m_chain.values[std::size_t(stage)] + way(stage).backwardOverhead));
    m_schedule.push_back({OperationKind::Backward, stage, 0});
    m_now += way(stage).backward;
    m_resident += m_chain.values[std::size_t(stage)] - m_chain.values[std::size_t(stage + 1)] - way(stage).saved;
    saved = {};
    if (value.isThere)
        m_resident -= m_chain.values[std::size_t(stage)];
    else
        m_saved[std::size_t(stage)].isNeeded = false;
    value = {};
    return {};
}

} // namespace

Result<Schedule> adaptiveSchedule(const Chain& chain, std::int64_t budget)
{
    MEMSCAPE_CHECK(checkChain(chain));
    Runtime runtime(chain, budget);
    MEMSCAPE_CHECK(runtime.firstPass());
    for (int stage = chain.length() - 1; stage >= 0; --stage)
        MEMSCAPE_CHECK(runtime.backward(stage));
    return runtime.take();
}

} // namespace memscape
