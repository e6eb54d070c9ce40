// SPDX-License-Identifier: Apache-2.0
// The gradients of a training by magnitude: where a format with few exponents would lose them.
#pragma once

#include "core/experiments/precision/precision.h"

#include <cstdint>
#include <span>
#include <vector>

namespace memscape {

/// What a machine counted of some gradients that are finite, by |g| / scale.
struct GradientCounts
{
    std::vector<std::uint64_t> bars; ///< histogramBars of them
    std::uint64_t zeros = 0;
    double largest = 0;
    double sum = 0, squares = 0; ///< of log2 of those that are not zero
};

/// Counts of gradients by magnitude, in the bars of precision.h.
class GradientCounter
{
public:
    /// `scale`: what the numbers were multiplied by.
    void add(std::span<const float> gradients, double scale);
    void add(const GradientCounts& counts);
    MagnitudeHistogram histogram() const;
    double count() const { return m_count; }
    double largest() const { return m_largest; }
    double median() const;     ///< of those that are not zero, from the bars
    double spreadBits() const; ///< standard deviation of log2 |g|

private:
    std::vector<double> m_bars = std::vector<double>(histogramBars, 0.0);
    double m_count = 0, m_zeros = 0, m_largest = 0, m_sum = 0, m_squares = 0;
};

} // namespace memscape
