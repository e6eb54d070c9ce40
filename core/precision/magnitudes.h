// SPDX-License-Identifier: Apache-2.0
// What a format loses of numbers whose magnitudes are spread: gradients, above all. Scaled by S and
// rounded to nearest, a share
//
//     P(|g| S ≤ smallest subnormal / 2)   becomes zero (underflow),
//     P(… < |g| S < smallest normal)      keeps fewer bits (subnormal),
//     P(|g| S ≥ overflow threshold)       becomes infinite or saturates (overflow).
//
// Magnitudes are half-normal (of a normal number around 0) or log-normal (Chmiel et al. 2020,
// arXiv:2006.08173, find gradients near log-normal), given by their median and, of the log-normal,
// the standard deviation of log2 |g|.
//
// Left out: exact zeros (a ReLU makes many; they are counted beside the distribution where gradients
// are measured), differences between layers, what is lost when products are summed.
#pragma once

#include "core/precision/number_format.h"

#include <vector>

namespace memscape {

enum class MagnitudeShape { Normal, LogNormal };

struct Magnitudes
{
    MagnitudeShape shape = MagnitudeShape::LogNormal;
    double median = 1;     ///< of |g|, > 0
    double spreadBits = 4; ///< standard deviation of log2 |g|, > 0; not used by Normal

    /// P(|g| < x).
    double below(double x) const;
    /// P(|g| ≥ x), without cancellation where it is small.
    double above(double x) const;
};

struct LostShares
{
    double underflow = 0; ///< becomes zero
    double subnormal = 0; ///< keeps fewer bits than the format has
    double overflow = 0;
    double kept() const { return 1 - underflow - subnormal - overflow; } ///< with all bits
};
LostShares lostShares(const NumberFormat& format, const Magnitudes& magnitudes, double scale);

/// Shares of numbers by magnitude: bar i counts 2^(first + i) ≤ |g| < 2^(first + i + 1); the first
/// bar also what is smaller, the last what is larger. `zeros` are exact zeros and in no bar.
struct MagnitudeHistogram
{
    int first = 0; ///< log2 of the least magnitude
    std::vector<double> shares;
    double zeros = 0;
};
MagnitudeHistogram histogramOf(const Magnitudes& magnitudes, int first, int count);

/// The same for counted numbers: shares of all of them that are lost, zeros kept apart. A bar that a
/// threshold cuts is shared out by the part of its octave on either side.
LostShares lostShares(const NumberFormat& format, const MagnitudeHistogram& histogram, double scale);

} // namespace memscape
