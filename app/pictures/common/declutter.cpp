// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pictures/common/declutter.h"

#include <algorithm>
#include <cstddef>

namespace memscape {

namespace {

double room(const std::vector<Span>& spans, double gap)
{
    double total = spans.empty() ? 0 : -gap;
    for (const Span& span : spans)
        total += span.width + gap;
    return total;
}

// Non-decreasing values nearest to the given ones.
std::vector<double> isotonic(const std::vector<double>& wanted)
{
    struct Block
    {
        double sum = 0;
        int count = 0;
        double mean() const { return sum / count; }
    };
    std::vector<Block> blocks;
    for (const double value : wanted) {
        blocks.push_back({value, 1});
        while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
            const Block last = blocks.back();
            blocks.pop_back();
            blocks.back().sum += last.sum;
            blocks.back().count += last.count;
        }
    }
    std::vector<double> result;
    for (const Block& block : blocks)
        result.insert(result.end(), static_cast<std::size_t>(block.count), block.mean());
    return result;
}

} // namespace

bool fits(const std::vector<Span>& spans, double gap, double left, double right)
{
    return room(spans, gap) <= right - left;
}

std::vector<double> spread(const std::vector<Span>& spans, double gap, double left, double right)
{
    if (spans.empty())
        return {};
    // Squeeze what does not fit: the same share of every width and gap.
    const double needed = room(spans, gap);
    const double squeeze = needed > right - left ? std::max(0.0, right - left) / needed : 1.0;
    std::vector<double> before; // room taken left of each centre
    double taken = 0;
    for (const Span& span : spans) {
        before.push_back(taken + span.width * squeeze / 2);
        taken += (span.width + gap) * squeeze;
    }
    const double free = std::max(0.0, right - left - (taken - gap * squeeze));
    std::vector<double> wanted;
    for (std::size_t i = 0; i < spans.size(); ++i)
        wanted.push_back(spans[i].centre - left - before[i]);
    std::vector<double> placed = isotonic(wanted);
    for (std::size_t i = 0; i < placed.size(); ++i)
        placed[i] = left + before[i] + std::clamp(placed[i], 0.0, free);
    return placed;
}

} // namespace memscape
