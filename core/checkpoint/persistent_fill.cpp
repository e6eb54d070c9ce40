// SPDX-License-Identifier: Apache-2.0
#include "core/checkpoint/persistent_table.h"

#include <algorithm>

namespace memscape {

namespace {

template<typename Cost>
class Filling
{
public:
    Filling(const SlotChain& chain, const std::vector<Window>& windows) : m_chain(chain), m_windows(windows), m_segments(chain.end)
    {
        std::size_t size = 0;
        for (const Window& window : windows) {
            m_table.starts.push_back(size - std::size_t(window.first));
            size += std::size_t(std::max(0, window.last - window.first));
        }
        m_table.size = size;
        m_table.cells = std::make_unique_for_overwrite<Cost[]>(size);
    }

    void fill(int s, int t)
    {
        const std::size_t segment = m_segments(s, t);
        for (std::int64_t m = m_windows[segment].first; m < m_windows[segment].last; ++m)
            m_table.cells[m_table.starts[segment] + std::size_t(m)] = solve(s, t, m);
    }

    CostTable<Cost> take() { return std::move(m_table); }

private:
    Cost at(int s, int t, std::int64_t m) const
    {
        const std::size_t segment = m_segments(s, t);
        const Window window = m_windows[segment];
        if (m < window.first)
            return infeasible<Cost>;
        return m >= window.last ? Cost(0) : m_table.cells[m_table.starts[segment] + std::size_t(m)];
    }

    Cost solve(int s, int t, std::int64_t m) const
    {
        Cost best = infeasible<Cost>;
        for (const SaveOption& option : m_chain.stages[s].options) {
            const Cost beyond = Cost(option.forward + option.backward - m_chain.fastest[s]);
            if (m >= m_chain.neededToSave(s, t, option))
                best = std::min(best, Cost(beyond + (s == t ? Cost(0) : at(s + 1, t, m - option.saved))));
        }
        for (int j = s + 1; j <= t; ++j) {
            if (m < m_chain.values[t + 1] + m_chain.neededToPass(s, j - 1))
                break;
            const Cost passed = Cost(m_chain.passed[j] - m_chain.passed[s]);
            best = std::min(best, Cost(passed + std::min(costLimit<Cost>, Cost(at(j, t, m - m_chain.values[j]) + at(s, j - 1, m)))));
        }
        return best < costLimit<Cost> ? best : infeasible<Cost>;
    }

    const SlotChain& m_chain;
    const std::vector<Window>& m_windows;
    Segments m_segments;
    CostTable<Cost> m_table;
};

} // namespace

template<typename Cost>
std::optional<CostTable<Cost>> fillCosts(const SlotChain& chain, const std::vector<Window>& windows, std::int64_t,
                                         const std::function<bool()>& isCancelled)
{
    Filling<Cost> filling(chain, windows);
    for (int s = chain.end; s >= 0; --s) {
        for (int t = s; t <= chain.end; ++t) {
            if (isCancelled && isCancelled())
                return std::nullopt;
            filling.fill(s, t);
        }
    }
    return filling.take();
}

template std::optional<CostTable<std::int32_t>> fillCosts(const SlotChain&, const std::vector<Window>&, std::int64_t,
                                                          const std::function<bool()>&);
template std::optional<CostTable<double>> fillCosts(const SlotChain&, const std::vector<Window>&, std::int64_t,
                                                    const std::function<bool()>&);

} // namespace memscape
