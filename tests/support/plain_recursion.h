// SPDX-License-Identifier: Apache-2.0
// The recursion of Beaumont et al. (arXiv 1911.13214) written down as it is read, with several ways
// to save a stage: slow, and obviously the recursion. Every faster solver is held against it.
//
//     O(s,t,m): least time to run segment s … t forward and backward in m beside x_s, y_{t+1} there
//     F∅:  min over s < j ≤ t of Σ_{s ≤ i < j} fw_i + O(j,t,m − x_j) + O(s,j−1,m)
//          where m ≥ y_{t+1} + max(x_{s+1} + ftmp_s, max_{s<i<j} x_i + x_{i+1} + ftmp_i)
//     Fall: m ≥ max(y_{t+1} + x̄_{s+1} + ftmp_s, y_s + y_{s+1} + x̄_{s+1} + btmp_s):
//          fw_s + bw_s + O(s+1,t,m − x̄_{s+1})
// The loss is stage L, which saves nothing; sizes beyond the chain are 0. (The paper counts the
// memory to pass all of s … t−1, not only up to j: the same when saving takes the overhead of
// passing, its only case.)
#pragma once

#include "core/checkpoint/chain.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

namespace memscape::test {

inline constexpr double infeasible = std::numeric_limits<double>::infinity();

/// O(s,t,m) from what `at` answers for smaller segments.
template <typename At> double solveSegment(const Chain& chain, int s, int t, std::int64_t m, const At& at)
{
    const int end = chain.length();
    const auto value = [&](int i) { return i > end ? 0 : chain.values[std::size_t(i)]; };
    if (s == end) // the loss: y_L beside x_L
        return m >= value(s) + chain.lossOverhead ? chain.lossTime : infeasible;
    double best = infeasible;
    for (const SaveOption& option : chain.stages[std::size_t(s)].options) {
        const std::int64_t needed = std::max(value(t + 1) + option.saved + option.forwardOverhead,
                                             value(s) + value(s + 1) + option.saved + option.backwardOverhead);
        if (m >= needed)
            best = std::min(best, option.forward + option.backward + (s == t ? 0 : at(s + 1, t, m - option.saved)));
    }
    double passed = 0;
    std::int64_t needed = 0;
    for (int j = s + 1; j <= t; ++j) {
        const Stage& stage = chain.stages[std::size_t(j - 1)];
        needed = std::max(needed, (j - 1 == s ? 0 : value(j - 1)) + value(j) + stage.forwardOverhead + value(t + 1));
        passed += stage.forward;
        if (m >= needed)
            best = std::min(best, passed + at(j, t, m - value(j)) + at(s, j - 1, m));
    }
    return best;
}

class PlainRecursion
{
public:
    /// O(s,t,m) for all s ≤ t ≤ L, 0 ≤ m ≤ budget − x_0.
    PlainRecursion(const Chain& chain, std::int64_t budget)
        : m_chain(chain)
        , m_end(chain.length())
        , m_width(std::max<std::int64_t>(0, budget - chain.values[0] + 1))
        , m_table(std::size_t(m_end + 1) * std::size_t(m_end + 1) * std::size_t(m_width), infeasible)
    {
        const auto solved = [this](int s, int t, std::int64_t m) { return at(s, t, m); };
        for (int s = m_end; s >= 0; --s) {
            for (int t = s; t <= m_end; ++t) {
                for (std::int64_t m = 0; m < m_width; ++m)
                    m_table[index(s, t, m)] = solveSegment(chain, s, t, m, solved);
            }
        }
    }

    /// The least makespan within `budget`, x_0 included; infeasible when there is none.
    double makespan(std::int64_t budget) const { return at(0, m_end, budget - m_chain.values[0]); }

private:
    std::size_t index(int s, int t, std::int64_t m) const
    {
        return (std::size_t(s) * std::size_t(m_end + 1) + std::size_t(t)) * std::size_t(m_width) + std::size_t(m);
    }
    double at(int s, int t, std::int64_t m) const
    {
        return m < 0 || m >= m_width ? infeasible : m_table[index(s, t, m)];
    }

    const Chain& m_chain;
    int m_end;
    std::int64_t m_width;
    std::vector<double> m_table;
};

/// The same from the whole chain down, only for the memory that is asked for: any sizes, short chains.
class BytewiseRecursion
{
public:
    explicit BytewiseRecursion(const Chain& chain)
        : m_chain(chain)
    { }
    double makespan(std::int64_t budget) { return at(0, m_chain.length(), budget - m_chain.values[0]); }

private:
    double at(int s, int t, std::int64_t m)
    {
        if (m < 0)
            return infeasible;
        auto& segment = m_known[{s, t}];
        if (const auto known = segment.find(m); known != segment.end())
            return known->second;
        return segment[m] =
                   solveSegment(m_chain, s, t, m, [this](int a, int b, std::int64_t c) { return at(a, b, c); });
    }

    const Chain& m_chain;
    std::map<std::pair<int, int>, std::unordered_map<std::int64_t, double>> m_known;
};

} // namespace memscape::test
