// SPDX-License-Identifier: Apache-2.0
// From the solved table to a schedule. A segment is either saved at its first stage or cut in two;
// which of them reached the least is computed again, so the table needs no choices. A tree of at
// most L cuts: O(L²).
#include "core/checkpoint/persistent_table.h"

#include <algorithm>

namespace memscape::persistent {

namespace {

/// What is still to be done, the next one last: an operation, or segment s … t in m beside x_s.
struct WalkTask
{
    bool isSegment = false;
    ChainOperation operation;
    int s = 0, t = 0;
    std::int64_t m = 0;
};

/// How a segment begins: saved in a way, or passed until `kept`.
struct Choice
{
    double extra = std::numeric_limits<double>::infinity();
    int option = 0;
    int kept = -1; ///< j, or -1: save
};

class TableWalk
{
public:
    explicit TableWalk(const Table& table)
        : m_table(table)
        , m_chain(table.chain)
    { }

    Schedule run(std::int64_t m)
    {
        m_tasks.push_back({true, {}, 0, m_chain.end, m});
        while (!m_tasks.empty()) {
            const WalkTask task = m_tasks.back();
            m_tasks.pop_back();
            if (task.isSegment)
                expand(task.s, task.t, task.m);
            else
                m_schedule.push_back(task.operation);
        }
        return std::move(m_schedule);
    }

private:
    Choice choose(int s, int t, std::int64_t m) const;
    void expand(int s, int t, std::int64_t m);
    void save(int s, int t, std::int64_t m, int option);
    void cut(int s, int t, std::int64_t m, int kept);

    const Table& m_table;
    const SlotChain& m_chain;
    std::vector<WalkTask> m_tasks;
    Schedule m_schedule;
};

Choice TableWalk::choose(int s, int t, std::int64_t m) const
{
    Choice best;
    const std::vector<SaveOption>& options = m_chain.stages[s].options;
    for (int k = 0; k < int(options.size()); ++k) {
        if (m < m_chain.neededToSave(s, t, options[k]))
            continue;
        const double beyond = options[k].forward + options[k].backward - m_chain.fastest[s];
        const double extra = beyond + (s == t ? 0 : m_table.extra(s + 1, t, m - options[k].saved));
        if (extra < best.extra)
            best = {extra, k, -1};
    }
    for (int j = s + 1; j <= t && m >= m_chain.values[t + 1] + m_chain.neededToPass(s, j - 1); ++j) {
        const double passed = m_chain.passed[j] - m_chain.passed[s];
        if (passed >= best.extra)
            break; // it only grows
        const double extra = passed + (m_table.extra(j, t, m - m_chain.values[j]) + m_table.extra(s, j - 1, m));
        if (extra < best.extra)
            best = {extra, 0, j};
    }
    return best;
}

void TableWalk::expand(int s, int t, std::int64_t m)
{
    if (s == m_chain.end) {
        m_schedule.push_back({OperationKind::Loss, s, 0});
        return;
    }
    const Choice choice = choose(s, t, m);
    if (choice.kept < 0)
        save(s, t, m, choice.option);
    else
        cut(s, t, m, choice.kept);
}

void TableWalk::save(int s, int t, std::int64_t m, int option)
{
    m_schedule.push_back({OperationKind::ForwardSave, s, option});
    m_tasks.push_back({false, {OperationKind::Backward, s, 0}, 0, 0, 0});
    if (s < t)
        m_tasks.push_back({true, {}, s + 1, t, m - m_chain.stages[s].options[option].saved});
}

void TableWalk::cut(int s, int t, std::int64_t m, int kept)
{
    for (int i = s; i < kept; ++i)
        m_schedule.push_back({i == s ? OperationKind::ForwardKeep : OperationKind::ForwardDrop, i, 0});
    m_tasks.push_back({true, {}, s, kept - 1, m});
    m_tasks.push_back({true, {}, kept, t, m - m_chain.values[kept]});
}

} // namespace

Schedule walkBack(const Table& table, std::int64_t m)
{
    return TableWalk(table).run(m);
}

} // namespace memscape::persistent
