// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/persistent_exact.h"

#include "core/checkpoint/persistent_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape::persistent {

namespace {

/// B of steps above which a table is too large to be worth it.
constexpr std::size_t stepBytesLimit = std::size_t(64) << 20;
/// Chains with more stages of their own kind pass every limit of work that is worth waiting for.
constexpr int kindLimit = 64;

/// Times in quanta: whole numbers as they are, others in a power of two that leaves 61 bits.
double quantumOf(const SlotChain& chain, double extraLimit)
{
    const double most = chain.base + extraLimit;
    if (most == 0 || (chain.hasWholeTimes() && most < 0x1p53))
        return 1;
    return std::ldexp(1, std::max(std::ilogb(most) - 60, -1000));
}

} // namespace

double ExactTable::extra(std::size_t segment, std::int64_t memory) const
{
    const auto known = steps(segment);
    const auto above = std::upper_bound(known.begin(), known.end(), memory,
                                        [](std::int64_t m, const ExactStep& step) { return m < step.memory; });
    return above == known.begin() ? std::numeric_limits<double>::infinity() : seconds(std::prev(above)->extra);
}

class ExactFilling
{
public:
    ExactFilling(const SlotChain& chain, double extraLimit, const ExactLimits& limits);
    /// Every segment; false when a limit was passed.
    bool run();
    ExactTable take() { return std::move(m_table); }

private:
    struct Way
    {
        std::int64_t beyond = 0; ///< quanta beyond the fastest way
        std::int64_t saved = 0;
    };
    std::int64_t quanta(double time) const { return std::int64_t(std::nearbyint(time / m_table.m_quantum)); }
    void findTwins();
    void solve(int s, int t);
    void save(int s, int t);
    void cut(int s, int j, int t, std::int64_t passing);
    void merge();

    const SlotChain& m_chain;
    const ExactLimits& m_limits;
    Segments m_segments;
    ExactTable m_table;
    std::vector<std::int64_t> m_passed; ///< quanta to pass stages 0 … j−1
    std::vector<std::vector<Way>> m_ways;
    /// Per stage s: stages s … s + length − 1 are the same as those from `begin` on.
    struct Twin
    {
        int begin = 0;
        int length = 0;
    };
    std::vector<Twin> m_twins;
    int m_kindCount = 0;
    std::int64_t m_work = 0;
    std::vector<ExactStep> m_best, m_found, m_merged; ///< of the segment that is being solved
};

ExactFilling::ExactFilling(const SlotChain& chain, double extraLimit, const ExactLimits& limits)
    : m_chain(chain)
    , m_limits(limits)
    , m_segments(chain.end)
{
    m_table.m_quantum = quantumOf(chain, extraLimit);
    m_passed.push_back(0);
    for (const Stage& stage : chain.stages) {
        m_passed.push_back(m_passed.back() + quanta(stage.forward));
        std::vector<Way> ways;
        std::int64_t fastest = std::numeric_limits<std::int64_t>::max();
        for (const SaveOption& option : stage.options) {
            ways.push_back({quanta(option.forward) + quanta(option.backward), option.saved});
            fastest = std::min(fastest, ways.back().beyond);
        }
        for (Way& way : ways)
            way.beyond -= fastest;
        m_ways.push_back(std::move(ways));
    }
    findTwins();
}

/// Of every stage the begin of the longest equal run of stages further back.
void ExactFilling::findTwins()
{
    const int count = m_chain.end + 1;
    const auto isSame = [&](int a, int b) {
        const auto sameStage = [](Stage one, Stage other) {
            one.name = other.name;
            for (std::size_t k = 0; k < one.options.size() && k < other.options.size(); ++k)
                one.options[k].name = other.options[k].name;
            return one == other;
        };
        return m_chain.values[a] == m_chain.values[b] && m_chain.values[a + 1] == m_chain.values[b + 1]
            && sameStage(m_chain.stages[a], m_chain.stages[b]);
    };
    std::vector<int> kinds; // equal stages have one
    std::vector<int> examples;
    for (int i = 0; i < count; ++i) {
        const auto known = std::ranges::find_if(examples, [&](int example) { return isSame(i, example); });
        kinds.push_back(int(known - examples.begin()));
        if (known == examples.end())
            examples.push_back(i);
    }
    m_kindCount = int(examples.size());
    m_twins.resize(std::size_t(count));
    std::vector<int> common(std::size_t(count) + 1); // of s + 1 and every other stage
    for (int s = count - 1; s >= 0; --s) {
        for (int other = s + 1; other < count; ++other) { // ascending: common[other + 1] is of s + 1
            common[other] = kinds[s] == kinds[other] ? common[other + 1] + 1 : 0;
            if (common[other] > m_twins[s].length)
                m_twins[s] = {other, common[other]};
        }
    }
}

bool ExactFilling::run()
{
    if (m_kindCount > kindLimit)
        return false;
    m_table.m_ranges.resize(m_segments.size());
    for (int s = m_chain.end; s >= 0; --s) {
        for (int t = s; t <= m_chain.end; ++t) {
            ExactTable::Range& range = m_table.m_ranges[m_segments(s, t)];
            if (t - s < m_twins[s].length) {
                const int begin = m_twins[s].begin;
                range = m_table.m_ranges[m_segments(begin, begin + t - s)];
                continue;
            }
            solve(s, t);
            range = {m_table.m_steps.size(), m_best.size()};
            m_table.m_steps.insert(m_table.m_steps.end(), m_best.begin(), m_best.end());
            if (m_work > m_limits.work || m_table.m_steps.size() * sizeof(ExactStep) > stepBytesLimit
                || (m_limits.isCancelled && m_limits.isCancelled()))
                return false;
        }
    }
    return true;
}

void ExactFilling::solve(int s, int t)
{
    m_best.clear();
    save(s, t);
    std::int64_t passing = 0;
    for (int j = s + 1; j <= t && m_work <= m_limits.work; ++j) {
        passing = std::max(passing, m_chain.values[t + 1] + m_chain.neededToPass(s, j - 1));
        if (passing > m_limits.memory)
            return; // it only grows
        cut(s, j, t, passing);
    }
}

void ExactFilling::save(int s, int t)
{
    for (std::size_t k = 0; k < m_ways[s].size(); ++k) {
        const Way& way = m_ways[s][k];
        const std::int64_t needed = m_chain.neededToSave(s, t, m_chain.stages[s].options[k]);
        if (needed > m_limits.memory)
            continue;
        m_found.clear();
        if (s == t)
            m_found.push_back({needed, way.beyond});
        else {
            for (const ExactStep& after : m_table.steps(m_segments(s + 1, t))) {
                const ExactStep step{std::max(needed, after.memory + way.saved), after.extra + way.beyond};
                if (step.memory > m_limits.memory)
                    break;
                if (!m_found.empty() && m_found.back().memory == step.memory)
                    m_found.back() = step;
                else
                    m_found.push_back(step);
            }
        }
        if (!m_found.empty())
            merge();
    }
}

/// x_j kept: steps of what follows, shifted by it, plus steps of what is before. Only below the
/// memory from which the best known takes no longer than passing alone, and only what it does not
/// have yet.
void ExactFilling::cut(int s, int j, int t, std::int64_t passing)
{
    const auto after = m_table.steps(m_segments(j, t)), before = m_table.steps(m_segments(s, j - 1));
    if (after.empty() || before.empty())
        return;
    const std::int64_t passed = m_passed[j] - m_passed[s], kept = m_chain.values[j];
    const auto useless =
        std::partition_point(m_best.begin(), m_best.end(), [&](const ExactStep& step) { return step.extra > passed; });
    const std::int64_t end = useless == m_best.end() ? m_limits.memory + 1 : useless->memory;
    std::int64_t memory = std::max({passing, after[0].memory + kept, before[0].memory});
    const auto last = [](std::span<const ExactStep> steps, std::int64_t at) {
        const auto above = std::upper_bound(steps.begin(), steps.end(), at,
                                            [](std::int64_t m, const ExactStep& step) { return m < step.memory; });
        return std::size_t(above - steps.begin()) - 1;
    };
    if (memory >= end)
        return;
    std::size_t a = last(after, memory - kept), b = last(before, memory);
    std::size_t known = last(m_best, memory) + 1; // of the best, so many begin here or below
    m_found.clear();
    while (memory < end) {
        while (known < m_best.size() && m_best[known].memory <= memory)
            ++known;
        const std::int64_t extra = passed + after[a].extra + before[b].extra;
        if (known == 0 || extra < m_best[known - 1].extra)
            m_found.push_back({memory, extra});
        const std::int64_t nextAfter = a + 1 < after.size() ? after[a + 1].memory + kept : end;
        const std::int64_t nextBefore = b + 1 < before.size() ? before[b + 1].memory : end;
        memory = std::min(nextAfter, nextBefore);
        a += nextAfter == memory && a + 1 < after.size();
        b += nextBefore == memory && b + 1 < before.size();
        ++m_work;
    }
    if (!m_found.empty())
        merge();
}

/// The lower envelope of the best known and of what was found.
void ExactFilling::merge()
{
    const std::int64_t start = m_found.front().memory;
    auto one =
        std::partition_point(m_best.begin(), m_best.end(), [&](const ExactStep& step) { return step.memory < start; });
    const auto kept = one;
    std::int64_t least = kept == m_best.begin() ? std::numeric_limits<std::int64_t>::max() : std::prev(kept)->extra;
    auto other = m_found.begin();
    m_merged.clear();
    while (one != m_best.end() || other != m_found.end()) {
        const bool isOne = other == m_found.end()
            || (one != m_best.end()
                && (one->memory < other->memory || (one->memory == other->memory && one->extra <= other->extra)));
        const ExactStep& step = isOne ? *one++ : *other++;
        if (step.extra >= least)
            continue;
        least = step.extra;
        m_merged.push_back(step);
    }
    m_work += std::int64_t(m_merged.size());
    m_best.erase(kept, m_best.end());
    m_best.insert(m_best.end(), m_merged.begin(), m_merged.end());
}

std::optional<ExactTable> fillExact(const SlotChain& chain, double extraLimit, const ExactLimits& limits)
{
    ExactFilling filling(chain, extraLimit, limits);
    if (!filling.run())
        return std::nullopt;
    return filling.take();
}

} // namespace memscape::persistent
