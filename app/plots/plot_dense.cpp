// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plots/plot_dense.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

constexpr std::size_t blockSize = 32;
constexpr std::size_t fewPoints = 4; // of a column: drawn as they are
constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr Extremes nothing{infinity, -infinity};

// Comparisons with a NaN are false, so that gaps change nothing.
void take(Extremes& into, const Extremes& other)
{
    if (other.low < into.low)
        into.low = other.low;
    if (other.high > into.high)
        into.high = other.high;
}

template <typename At> std::vector<Extremes> blocksOf(std::size_t count, At at)
{
    std::vector<Extremes> blocks((count + blockSize - 1) / blockSize, nothing);
    for (std::size_t i = 0; i < count; ++i)
        take(blocks[i / blockSize], at(i));
    return blocks;
}

} // namespace

ExtremesTree::ExtremesTree(const std::vector<double>& y)
{
    m_levels.push_back(blocksOf(y.size(), [&](std::size_t i) { return Extremes{y[i], y[i]}; }));
    while (m_levels.back().size() > blockSize) {
        const std::vector<Extremes>& finer = m_levels.back();
        auto coarser = blocksOf(finer.size(), [&](std::size_t i) { return finer[i]; });
        m_levels.push_back(std::move(coarser));
    }
}

Extremes ExtremesTree::over(const std::vector<double>& y, std::size_t begin, std::size_t end) const
{
    Extremes found = nothing;
    // What no whole block covers is taken one by one, at both ends; the blocks between go up a
    // level.
    const auto inside = [&](std::size_t from, std::size_t to, auto at) {
        for (std::size_t i = from; i < to; ++i)
            take(found, at(i));
    };
    const auto value = [&](std::size_t i) { return Extremes{y[i], y[i]}; };
    std::size_t first = (begin + blockSize - 1) / blockSize;
    std::size_t last = end / blockSize;
    if (first >= last) {
        inside(begin, end, value);
    } else {
        inside(begin, first * blockSize, value);
        inside(last * blockSize, end, value);
        for (std::size_t level = 0; level < m_levels.size(); ++level) {
            const auto block = [&](std::size_t i) { return m_levels[level][i]; };
            const std::size_t nextFirst = (first + blockSize - 1) / blockSize;
            const std::size_t nextLast = last / blockSize;
            if (level + 1 == m_levels.size() || nextFirst >= nextLast) {
                inside(first, last, block);
                break;
            }
            inside(first, nextFirst * blockSize, block);
            inside(nextLast * blockSize, last, block);
            first = nextFirst;
            last = nextLast;
        }
    }
    return found.low <= found.high ? found : Extremes{nan, nan};
}

std::ptrdiff_t visibleCount(const CleanCurve& curve, const AxisRange& range)
{
    return std::ranges::upper_bound(curve.x, range.high) - std::ranges::lower_bound(curve.x, range.low);
}

std::vector<DensePoint> visiblePoints(const CleanCurve& curve, const AxisRange& range)
{
    const auto begin = std::ranges::lower_bound(curve.x, range.low) - curve.x.begin();
    const auto end = std::ranges::upper_bound(curve.x, range.high) - curve.x.begin();
    const auto last = std::min<std::ptrdiff_t>(end + 1, std::ssize(curve.x));
    std::vector<DensePoint> points;
    for (auto i = std::size_t(std::max<std::ptrdiff_t>(0, begin - 1)); i < std::size_t(last); ++i)
        points.push_back({curve.x[i], curve.y[i]});
    return points;
}

std::vector<DensePoint> densePoints(const CleanCurve& curve, const ExtremesTree& tree, const AxisRange& range,
                                    int columns, bool cloud)
{
    std::vector<DensePoint> points;
    const auto& x = curve.x;
    const auto indexOf = [&](double at, std::size_t from) {
        return std::size_t(std::lower_bound(x.begin() + std::ptrdiff_t(from), x.end(), at) - x.begin());
    };
    const auto add = [&](std::size_t i) { points.push_back({x[i], curve.y[i]}); };
    std::size_t begin = indexOf(range.low, 0);
    if (begin > 0)
        add(begin - 1);
    points.reserve(std::size_t(columns) * fewPoints + 2);
    for (int column = 1; column <= columns; ++column) {
        const double edge =
            column == columns ? std::nextafter(range.high, infinity) : range.fromShare(double(column) / columns);
        const std::size_t end = indexOf(edge, begin);
        if (end - begin <= fewPoints) {
            for (std::size_t i = begin; i < end; ++i)
                add(i);
        } else {
            const Extremes extremes = tree.over(curve.y, begin, end);
            const double middle = x[begin + (end - begin) / 2];
            if (!cloud)
                add(begin);
            points.push_back({middle, extremes.low});
            points.push_back({middle, extremes.high, true});
            if (!cloud)
                add(end - 1);
        }
        begin = end;
    }
    if (begin < x.size())
        add(begin);
    return points;
}

} // namespace memscape
