// SPDX-License-Identifier: Apache-2.0
// The filling's beginning, and the choice of an instruction set.
#include "core/checkpoint/persistent_filling_tiles.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace memscape::persistent {

template <typename Cost>
Filling<Cost>::Filling(const SlotChain& chain, const std::vector<Window>& windows, std::int64_t top)
    : m_windows(windows)
    , m_segments(chain.end)
    , m_padded((chain.end / tileSize + 1) * tileSize - 1)
    , m_stageCount(chain.end + 1)
    , m_tileCount(chain.end / tileSize + 1)
    , m_top(std::int32_t(top))
{
    m_tiles.assign(std::size_t(m_tileCount) * std::size_t(m_tileCount), Tile{m_top, 0, 0, 0});
    if (std::is_integral_v<Cost>) // sums in another order are equal
        findCopies(chain);
    placeCells();
    makeWays(chain);
    makeTiles(chain);
    Lanes<Cost> none;
    std::fill_n(none.at, laneCount, infeasible<Cost>);
    m_leftLanes.assign(m_padded.size(), none);
    m_belowLanes.assign(m_padded.size(), none);
    m_left = m_leftLanes.front().at;
    m_below = m_belowLanes.front().at;
}

template <typename Cost> void Filling<Cost>::makeWays(const SlotChain& chain)
{
    const std::int32_t most = std::min(m_top, std::numeric_limits<std::int32_t>::max() / 2); // two can be added
    const auto capped = [&](std::int64_t size) { return std::int32_t(std::min<std::int64_t>(size, most)); };
    for (std::int64_t value : chain.values)
        m_values.push_back(capped(value));
    for (double passed : chain.passed)
        m_passed.push_back(Cost(passed));
    for (int s = 0; s <= chain.end; ++s) {
        m_waysOf.push_back(std::int32_t(m_ways.size()));
        m_passing.push_back(capped(chain.neededToPass(s, s)));
        for (const SaveOption& option : chain.stages[s].options)
            m_ways.push_back({capped(option.saved), capped(option.saved + option.forwardOverhead),
                              capped(option.saved + chain.values[s] + chain.values[s + 1] + option.backwardOverhead),
                              Cost(option.forward + option.backward - chain.fastest[s])});
    }
    m_waysOf.push_back(std::int32_t(m_ways.size()));
}

template <typename Cost> void Filling<Cost>::findCopies(const SlotChain& chain)
{
    const auto isSame = [&](int a, int b) {
        Stage stage = chain.stages[a];
        const Stage& other = chain.stages[b];
        stage.name = other.name;
        return chain.values[a] == chain.values[b] && chain.values[a + 1] == chain.values[b + 1]
            && chain.fastest[a] == chain.fastest[b] && stage == other;
    };
    std::vector<int> common(std::size_t(m_stageCount) + 1); // stages from s on that are those groupStages further
    for (int s = m_stageCount - 1 - groupStages; s >= 0; --s)
        common[s] = isSame(s, s + groupStages) ? common[s + 1] + 1 : 0;
    for (int i = 0; i < m_tileCount; ++i) {
        for (int j = i; j < m_tileCount && common[i * tileSize] >= (j - i + 1) * tileSize; ++j) {
            bool isCopied = true;
            for (int s = i * tileSize; s < (i + 1) * tileSize; ++s)
                for (int t = std::max(s, j * tileSize); t < (j + 1) * tileSize; ++t)
                    isCopied = isCopied && isSameWindow(s, t);
            tile(i, j).isCopied = isCopied;
        }
    }
}

template <typename Cost> bool Filling<Cost>::isSameWindow(int s, int t) const
{
    const Window &here = m_windows[m_segments(s, t)], &there = m_windows[m_segments(s + groupStages, t + groupStages)];
    return here.first == there.first && here.last == there.last;
}

template <typename Cost> void Filling<Cost>::placeCells()
{
    m_table.starts.resize(m_windows.size());
    for (int s = m_stageCount - 1; s >= 0; --s) {
        for (int t = s; t < m_stageCount; ++t) {
            const std::size_t segment = m_segments(s, t);
            if (tile(s / tileSize, t / tileSize).isCopied) {
                m_table.starts[segment] = m_table.starts[m_segments(s + groupStages, t + groupStages)];
                continue;
            }
            const Window& window = m_windows[segment];
            m_table.starts[segment] = m_table.size - std::size_t(window.first);
            m_table.size += std::size_t(std::max(0, window.last - window.first));
        }
    }
    m_table.cells = std::make_unique_for_overwrite<Cost[]>(m_table.size);
}

template <typename Cost> void Filling<Cost>::makeTiles(const SlotChain& chain)
{
    for (int s = 0; s < m_stageCount; ++s) {
        std::int64_t passing = 0;
        for (int t = s; t < m_stageCount; ++t) {
            Tile& known = tile(s / tileSize, t / tileSize);
            const Window window = m_windows[m_segments(s, t)];
            m_segment.push_back({m_table.starts[m_segments(s, t)], window.first, window.last});
            const std::int64_t free = std::min<std::int64_t>(m_top, passing + chain.values[t + 1]);
            known.first = std::min(known.first, window.first);
            known.free = std::max(known.free, std::int32_t(free));
            known.settled =
                std::max(known.settled, std::int32_t(std::min<std::int64_t>(m_top, window.last + chain.values[s])));
            known.furthest = t;
            passing = std::max(passing, chain.neededToPass(s, t));
        }
    }
}

namespace {

#if defined(__x86_64__)
template <typename Cost>
[[gnu::flatten, gnu::target("avx512f,avx512vl,avx512dq")]] void fillGroupAvx512(Filling<Cost>& filling, int group,
                                                                                std::int32_t block)
{
    filling.template fillGroup<64 / sizeof(Cost), 4>(group, block);
}
template <typename Cost>
[[gnu::flatten, gnu::target("avx2")]] void fillGroupAvx2(Filling<Cost>& filling, int group, std::int32_t block)
{
    filling.template fillGroup<32 / sizeof(Cost), 2>(group, block);
}
#endif

template <typename Cost> [[gnu::flatten]] void fillGroupAnywhere(Filling<Cost>& filling, int group, std::int32_t block)
{
    filling.template fillGroup<16 / sizeof(Cost), 2>(group, block);
}

template <typename Cost> using FillGroup = void (*)(Filling<Cost>&, int, std::int32_t);

/// For this processor, in vectors of at most so many bytes.
template <typename Cost> FillGroup<Cost> fillGroupHere([[maybe_unused]] int vectorBytes)
{
#if defined(__x86_64__)
    const bool hasAvx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (vectorBytes >= 64 && hasAvx512)
        return fillGroupAvx512<Cost>;
    if (vectorBytes >= 32 && __builtin_cpu_supports("avx2"))
        return fillGroupAvx2<Cost>;
#endif
    return fillGroupAnywhere<Cost>;
}

} // namespace

template <typename Cost>
std::optional<CostTable<Cost>> fillCosts(const SlotChain& chain, const std::vector<Window>& windows, std::int64_t top,
                                         const PersistentSettings& settings)
{
    const FillGroup<Cost> fillGroup = fillGroupHere<Cost>(settings.vectorBytes);
    Filling<Cost> filling(chain, windows, top);
    for (std::int32_t block = 0; block < filling.top(); block += laneCount) {
        for (int group = filling.groupCount() - 1; group >= 0; --group) {
            if (settings.isCancelled && settings.isCancelled())
                return std::nullopt;
            fillGroup(filling, group, block);
        }
    }
    return filling.take();
}

template std::optional<CostTable<std::int32_t>> fillCosts(const SlotChain&, const std::vector<Window>&, std::int64_t,
                                                          const PersistentSettings&);
template std::optional<CostTable<double>> fillCosts(const SlotChain&, const std::vector<Window>&, std::int64_t,
                                                    const PersistentSettings&);

} // namespace memscape::persistent
