// SPDX-License-Identifier: Apache-2.0
#include "core/precision/magnitudes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace memscape {

namespace {

constexpr double halfNormalMedian = 0.67448975019608171; // Φ⁻¹(3/4)

/// Standard deviations from the middle, in the variable that is normal.
double normalPlace(const Magnitudes& magnitudes, double x)
{
    if (magnitudes.shape == MagnitudeShape::Normal)
        return x / magnitudes.median * halfNormalMedian;
    return std::log2(x / magnitudes.median) / magnitudes.spreadBits;
}

/// The part of the octave [2^low, 2^(low + 1)) below x, on the logarithmic scale.
double partBelow(int low, double x)
{
    return x <= 0 ? 0 : std::clamp(std::log2(x) - low, 0.0, 1.0);
}

} // namespace

double Magnitudes::below(double x) const
{
    if (x <= 0)
        return 0;
    const double place = normalPlace(*this, x);
    if (shape == MagnitudeShape::Normal)
        return std::erf(place / std::numbers::sqrt2);
    return 0.5 * std::erfc(-place / std::numbers::sqrt2);
}

double Magnitudes::above(double x) const
{
    if (x <= 0)
        return 1;
    const double place = normalPlace(*this, x);
    if (shape == MagnitudeShape::Normal)
        return std::erfc(place / std::numbers::sqrt2);
    return 0.5 * std::erfc(place / std::numbers::sqrt2);
}

LostShares lostShares(const NumberFormat& format, const Magnitudes& magnitudes, double scale)
{
    LostShares lost;
    const double zero = magnitudes.below(format.underflowThreshold() / scale);
    lost.underflow = zero;
    lost.subnormal = magnitudes.below(format.smallestNormal() / scale) - zero;
    lost.overflow = magnitudes.above(format.overflowThreshold() / scale);
    if (format.isInteger()) // every integer has all its bits
        lost.subnormal = 0;
    return lost;
}

MagnitudeHistogram histogramOf(const Magnitudes& magnitudes, int first, int count)
{
    MagnitudeHistogram histogram{first, {}, 0};
    for (int i = 0; i < count; ++i) {
        const double low = i == 0 ? 0 : std::ldexp(1.0, first + i);
        const double next = std::ldexp(1.0, first + i + 1);
        histogram.shares.push_back(i + 1 == count ? magnitudes.above(low)
                                                  : magnitudes.below(next) - magnitudes.below(low));
    }
    return histogram;
}

LostShares lostShares(const NumberFormat& format, const MagnitudeHistogram& histogram, double scale)
{
    LostShares lost;
    for (std::size_t i = 0; i < histogram.shares.size(); ++i) {
        const int low = histogram.first + int(i);
        const double share = histogram.shares[i];
        const double zero = partBelow(low, format.underflowThreshold() / scale);
        const double few = partBelow(low, format.smallestNormal() / scale);
        lost.underflow += share * zero;
        lost.subnormal += format.isInteger() ? 0 : share * std::max(0.0, few - zero);
        lost.overflow += share * (1 - partBelow(low, format.overflowThreshold() / scale));
    }
    return lost;
}

} // namespace memscape
