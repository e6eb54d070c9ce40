// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/sweep.h"

#include "core/base/number.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace memscape {

std::vector<Visit> interleaved(std::size_t points, int passes, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<std::size_t> order(points);
    for (std::size_t i = 0; i < points; ++i)
        order[i] = i;
    std::vector<Visit> visits;
    visits.reserve(points * static_cast<std::size_t>(std::max(passes, 0)));
    for (int pass = 0; pass < passes; ++pass) {
        // Not std::shuffle: its order differs between standard libraries.
        for (std::size_t i = points; i > 1; --i)
            std::swap(order[i - 1], order[random() % i]);
        for (const std::size_t point : order)
            visits.push_back({pass, point});
    }
    return visits;
}

void PassSamples::add(int pass, const std::vector<double>& samples)
{
    if (pass < 0)
        return;
    if (m_passes.size() <= static_cast<std::size_t>(pass))
        m_passes.resize(static_cast<std::size_t>(pass) + 1);
    auto& kept = m_passes[static_cast<std::size_t>(pass)];
    kept.insert(kept.end(), samples.begin(), samples.end());
}

std::vector<double> PassSamples::merged() const
{
    std::vector<double> all;
    for (const auto& pass : m_passes)
        all.insert(all.end(), pass.begin(), pass.end());
    return all;
}

std::vector<double> PassSamples::medians() const
{
    std::vector<double> medians;
    for (const auto& pass : m_passes) {
        if (const Summary summary = summarize(pass); !summary.empty())
            medians.push_back(summary.median);
    }
    return medians;
}

double PassSamples::drift() const
{
    const auto all = medians();
    if (all.size() < 2)
        return 0;
    const auto [smallest, largest] = std::minmax_element(all.begin(), all.end());
    const double middle = summarize(merged()).median;
    return middle > 0 ? (*largest - *smallest) / middle : 0;
}

std::string PassSamples::note(const std::string& what) const
{
    if (!disagrees())
        return {};
    const auto all = medians();
    const auto [smallest, largest] = std::minmax_element(all.begin(), all.end());
    return fmt::format("{}: passes gave {} and {}, {} apart; something else used the machine or its "
                       "shared cache",
                       what, secondsText(*smallest), secondsText(*largest), percentText(drift()));
}

} // namespace memscape
