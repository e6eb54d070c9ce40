// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/training-memory/gradient_counter.h"

#include "kernels/programs/training-memory/amp_numbers.h"

#include <algorithm>
#include <cmath>

namespace memscape {

static_assert(ampFirstBar == histogramFirst && ampBars == histogramBars);

void GradientCounter::add(std::span<const float> gradients, double scale)
{
    for (const float gradient : gradients) {
        if (!std::isfinite(gradient))
            continue;
        ++m_count;
        if (gradient == 0) {
            ++m_zeros;
            continue;
        }
        const double magnitude = std::fabs(double(gradient)) / scale, log = std::log2(magnitude);
        m_sum += log;
        m_squares += log * log;
        m_largest = std::max(m_largest, magnitude);
        ++m_bars[std::size_t(ampBarOf(magnitude))];
    }
}

void GradientCounter::add(const GradientCounts& counts)
{
    for (std::size_t i = 0; i < m_bars.size() && i < counts.bars.size(); ++i) {
        m_bars[i] += double(counts.bars[i]);
        m_count += double(counts.bars[i]);
    }
    m_count += double(counts.zeros);
    m_zeros += double(counts.zeros);
    m_largest = std::max(m_largest, counts.largest);
    m_sum += counts.sum;
    m_squares += counts.squares;
}

MagnitudeHistogram GradientCounter::histogram() const
{
    MagnitudeHistogram histogram{histogramFirst, m_bars, m_zeros / std::max(1.0, m_count)};
    for (double& bar : histogram.shares)
        bar /= std::max(1.0, m_count);
    return histogram;
}

double GradientCounter::median() const
{
    const double half = (m_count - m_zeros) / 2;
    double below = 0;
    for (std::size_t i = 0; i < m_bars.size(); ++i) {
        if (below + m_bars[i] >= half && m_bars[i] > 0)
            return std::exp2(histogramFirst + double(i) + (half - below) / m_bars[i]);
        below += m_bars[i];
    }
    return 0;
}

double GradientCounter::spreadBits() const
{
    const double count = m_count - m_zeros;
    if (count < 1)
        return 0;
    const double mean = m_sum / count;
    return std::sqrt(std::max(0.0, m_squares / count - mean * mean));
}

} // namespace memscape
