// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/exhaustive.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

namespace memscape {

namespace {

/// What is resident: a bit per x_i, seven bits per x̄_i (its way + 1), and how far the step is.
struct State
{
    std::uint64_t values = 0; ///< bit i: x_i alone
    std::uint64_t saved = 0;  ///< 7 bits each, x̄_1 first
    int due = 0;              ///< y_due is there; length + 1: the loss has not run

    int way(int i) const { return int(saved >> (7 * (i - 1)) & 127) - 1; }
    void setWay(int i, int way)
    {
        saved = (saved & ~(std::uint64_t(127) << (7 * (i - 1)))) | std::uint64_t(way + 1) << (7 * (i - 1));
    }
    bool hasValue(int i) const { return values >> i & 1; }
    bool has(int i) const { return hasValue(i) || (i > 0 && way(i) >= 0); }
    std::uint64_t key() const { return saved | values << 49 | std::uint64_t(due) << 57; }
};
static_assert(7 * exhaustiveLengthLimit == 49 && exhaustiveLengthLimit + 1 == 8);

struct SearchNode
{
    State state;
    double time = 0;
    std::uint64_t before = 0; ///< key of the state it was reached from
    ChainOperation operation;
    bool isDone = false;
};

class Search
{
public:
    Search(const Chain& chain, std::int64_t budget)
        : m_chain(chain)
        , m_budget(budget)
    { }
    Result<Schedule> run();

private:
    int length() const { return m_chain.length(); }
    std::int64_t resident(const State& state) const;
    void reach(const SearchNode& from, const State& state, double time, const ChainOperation& operation);
    void forwards(const SearchNode& node, std::int64_t resident);
    void loss(const SearchNode& node, std::int64_t resident);
    void backward(const SearchNode& node, std::int64_t resident);
    void discards(const SearchNode& node);
    Schedule walkBack(std::uint64_t key) const;

    const Chain& m_chain;
    std::int64_t m_budget;
    std::unordered_map<std::uint64_t, SearchNode> m_nodes;
    using Entry = std::pair<double, std::uint64_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> m_queue;
};

std::int64_t Search::resident(const State& state) const
{
    std::int64_t sum = state.due <= length() ? m_chain.values[std::size_t(state.due)] : 0;
    for (int i = 0; i <= length(); ++i) {
        if (state.hasValue(i))
            sum += m_chain.values[std::size_t(i)];
        if (i > 0 && state.way(i) >= 0)
            sum += m_chain.stages[std::size_t(i - 1)].options[std::size_t(state.way(i))].saved;
    }
    return sum;
}

void Search::reach(const SearchNode& from, const State& state, double time, const ChainOperation& operation)
{
    const double total = from.time + time;
    const auto [it, isNew] = m_nodes.try_emplace(state.key());
    if (!isNew && it->second.time <= total)
        return;
    it->second = {state, total, from.state.key(), operation, false};
    m_queue.push({total, state.key()});
}

/// Of stages whose backward is still due; what lies beyond is of no use any more.
void Search::forwards(const SearchNode& node, std::int64_t resident)
{
    const int last = std::min(node.state.due, length());
    for (int i = 0; i < last; ++i) {
        if (!node.state.has(i))
            continue;
        const Stage& stage = m_chain.stages[std::size_t(i)];
        const bool isUseful = i + 1 < node.state.due; // y_due makes x_due useless
        if (isUseful && !node.state.hasValue(i + 1)
            && resident + m_chain.values[std::size_t(i + 1)] + stage.forwardOverhead <= m_budget) {
            State next = node.state;
            next.values |= std::uint64_t(1) << (i + 1);
            reach(node, next, stage.forward, {OperationKind::ForwardKeep, i, 0});
        }
        for (int k = 0; k < int(stage.options.size()) && node.state.way(i + 1) < 0; ++k) {
            const SaveOption& option = stage.options[std::size_t(k)];
            if (resident + option.saved + option.forwardOverhead > m_budget)
                continue;
            State next = node.state;
            next.setWay(i + 1, k);
            reach(node, next, option.forward, {OperationKind::ForwardSave, i, k});
        }
    }
}

void Search::loss(const SearchNode& node, std::int64_t resident)
{
    const int end = length();
    if (node.state.due <= end || !node.state.has(end)
        || resident + m_chain.values[std::size_t(end)] + m_chain.lossOverhead > m_budget)
        return;
    State next = node.state;
    next.values &= ~(std::uint64_t(1) << end);
    next.due = end;
    reach(node, next, m_chain.lossTime, {OperationKind::Loss, end, 0});
}

void Search::backward(const SearchNode& node, std::int64_t resident)
{
    const int stage = node.state.due - 1;
    if (node.state.due > length() || stage < 0 || node.state.way(stage + 1) < 0 || !node.state.has(stage))
        return;
    const SaveOption& option = m_chain.stages[std::size_t(stage)].options[std::size_t(node.state.way(stage + 1))];
    if (resident + m_chain.values[std::size_t(stage)] + option.backwardOverhead > m_budget)
        return;
    State next = node.state;
    next.setWay(stage + 1, -1);
    next.values &= ~(std::uint64_t(1) << stage);
    next.due = stage;
    reach(node, next, option.backward, {OperationKind::Backward, stage, 0});
}

void Search::discards(const SearchNode& node)
{
    for (int i = 0; i <= length(); ++i) {
        State next = node.state;
        if (next.hasValue(i)) {
            next.values &= ~(std::uint64_t(1) << i);
            reach(node, next, 0, {OperationKind::DiscardValue, i, 0});
        }
        next = node.state;
        if (i > 0 && next.way(i) >= 0) {
            next.setWay(i, -1);
            reach(node, next, 0, {OperationKind::DiscardSaved, i, 0});
        }
    }
}

/// A forward that keeps its input and a discard of it right behind are one F∅.
Schedule Search::walkBack(std::uint64_t key) const
{
    Schedule reversed;
    for (const SearchNode* node = &m_nodes.at(key); node->before != key; node = &m_nodes.at(key)) {
        reversed.push_back(node->operation);
        key = node->before;
    }
    Schedule schedule;
    for (auto it = reversed.rbegin(); it != reversed.rend(); ++it) {
        const ChainOperation kept{OperationKind::ForwardKeep, it->stage, 0};
        if (it->kind == OperationKind::DiscardValue && !schedule.empty() && schedule.back() == kept)
            schedule.back().kind = OperationKind::ForwardDrop;
        else
            schedule.push_back(*it);
    }
    return schedule;
}

Result<Schedule> Search::run()
{
    const State start{1, 0, length() + 1};
    if (m_chain.values[0] <= m_budget) {
        m_nodes[start.key()] = {start, 0, start.key(), {}, false};
        m_queue.push({0, start.key()});
    }
    while (!m_queue.empty()) {
        const auto [time, key] = m_queue.top();
        m_queue.pop();
        SearchNode& found = m_nodes.at(key);
        if (found.isDone || found.time < time)
            continue;
        found.isDone = true;
        const SearchNode node = found; // reach() may move the nodes
        if (node.state.due == 0)
            return walkBack(key);
        const std::int64_t bytes = resident(node.state);
        forwards(node, bytes);
        loss(node, bytes);
        backward(node, bytes);
        discards(node);
    }
    return fail("checkpoint.budget", fmt::format("no schedule at all fits in a budget of {}", m_budget),
                "give a larger budget", "budget");
}

} // namespace

Result<Schedule> exhaustiveSchedule(const Chain& chain, std::int64_t budget)
{
    MEMSCAPE_CHECK(checkChain(chain));
    if (chain.length() > exhaustiveLengthLimit)
        return fail("chain.length",
                    fmt::format("an exhaustive search takes 4^{} states for {} stages", chain.length(), chain.length()),
                    fmt::format("at most {} stages; strategy=optimal finds the best persistent "
                                "schedule of longer chains",
                                exhaustiveLengthLimit),
                    "chain");
    return Search(chain, budget).run();
}

} // namespace memscape
