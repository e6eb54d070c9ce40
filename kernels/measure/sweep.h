// SPDX-License-Identifier: Apache-2.0
// In which order the points of a sweep are visited. Measuring one curve from left to right turns a
// warming chip or a busy neighbour into a slope, so every point is visited in several passes, each
// pass in a new random order, and the samples are merged. What differs between passes is then drift,
// and it is reported instead of averaged away.
#pragma once

#include "kernels/measure/statistics.h"

#include <cstdint>
#include <string>
#include <vector>

namespace memscape {

/// Passes over every point of a sweep; three is the least that separates drift from noise.
inline constexpr int sweepPasses = 3;

struct Visit
{
    int pass = 0;
    std::size_t point = 0;
};

/// Every point once per pass, shuffled within the pass; the same seed gives the same order.
std::vector<Visit> interleaved(std::size_t points, int passes, std::uint64_t seed);

/// The samples of one point, kept apart by pass.
class PassSamples
{
public:
    void add(int pass, const std::vector<double>& samples);

    std::vector<double> merged() const; ///< in the order of the passes
    /// (largest − smallest median of a pass) / median of all; 0 with fewer than two passes.
    double drift() const;
    bool drifted() const { return drift() > 0.03; }
    /// Two passes differ by more than a quarter: not noise any more but two states of the machine.
    bool disagrees() const { return drift() > 0.25; }
    /// A sentence with both medians when they disagree ("…: a neighbour shares the cache"), else empty.
    std::string note(const std::string& what) const;
    const std::vector<std::vector<double>>& passes() const { return m_passes; }

private:
    std::vector<double> medians() const;

    std::vector<std::vector<double>> m_passes;
};

} // namespace memscape
