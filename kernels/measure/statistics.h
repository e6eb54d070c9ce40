// SPDX-License-Identifier: Apache-2.0
// What is said about a set of samples. Robust throughout: one interrupted sample among twenty must
// not move the answer, so the centre is the median and the spread is the interquartile range. The band
// is [minimum, third quartile], as nvbench's robust comparison uses it: noise only ever slows down.
// Quantiles interpolate linearly between order statistics.
//
// Left out: confidence intervals, autocorrelation between neighbouring samples.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace memscape {

struct Summary
{
    std::size_t count = 0;    ///< finite samples
    std::size_t rejected = 0; ///< NaN or infinite ones, left out of everything below
    double median = 0, mean = 0;
    double minimum = 0, maximum = 0;
    double q1 = 0, q3 = 0, p5 = 0, p95 = 0;
    /// (Q3 − Q1) / median; 0 for fewer than two samples.
    double relativeIqr = 0;

    bool empty() const { return count == 0; }
};

/// Never NaN: without a finite sample every number is 0 and `count` says why.
Summary summarize(std::span<const double> samples);

/// The q-quantile (0 to 1) of sorted finite values; 0 when there are none.
double quantile(std::span<const double> sorted, double q);

} // namespace memscape
