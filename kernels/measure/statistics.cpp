// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace memscape {

double quantile(std::span<const double> sorted, double q)
{
    if (sorted.empty())
        return 0;
    const double position = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double share = position - static_cast<double>(below);
    return sorted[below] + (sorted[above] - sorted[below]) * share;
}

Summary summarize(std::span<const double> samples)
{
    std::vector<double> sorted;
    sorted.reserve(samples.size());
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(sorted),
                 [](double value) { return std::isfinite(value); });
    std::ranges::sort(sorted);

    Summary summary;
    summary.count = sorted.size();
    summary.rejected = samples.size() - sorted.size();
    if (sorted.empty())
        return summary;
    summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
    summary.minimum = sorted.front();
    summary.maximum = sorted.back();
    summary.p5 = quantile(sorted, 0.05);
    summary.q1 = quantile(sorted, 0.25);
    summary.median = quantile(sorted, 0.5);
    summary.q3 = quantile(sorted, 0.75);
    summary.p95 = quantile(sorted, 0.95);
    if (summary.median > 0)
        summary.relativeIqr = (summary.q3 - summary.q1) / summary.median;
    return summary;
}

} // namespace memscape
