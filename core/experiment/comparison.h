// SPDX-License-Identifier: Apache-2.0
// Prediction against measurement, and one measurement against another.
// Error of a figure: (predicted − measured) / measured, signed. Error of a series: median and largest
// |error| over the points both have. Two measurements: faster or slower only when their bands
// [low, high] are disjoint, else the same within noise (nvbench's robust comparison; ours does not
// yet weigh clocks).
#pragma once

#include "core/experiment/outcome.h"

namespace memscape {

struct FigureComparison
{
    std::string key;
    double error = 0;   ///< NaN when either is a word, missing or counted
    bool agree = false; ///< words equal, or the prediction lies within the measured band
};

struct SeriesComparison
{
    std::string key;
    double medianError = 0; ///< of |error|, NaN without common points
    double largestError = 0;
    double worstX = 0;
    std::size_t points = 0;
};

struct Comparison
{
    std::vector<FigureComparison> figures;
    std::vector<SeriesComparison> series;
};

Comparison compare(const Outcome& predicted, const Outcome& measured);
Json comparisonToJson(const Comparison& comparison);

enum class Verdict { Faster, Slower, Same, Unknown };
std::string_view verdictText(Verdict verdict); ///< "faster", "slower", "the same within noise", "not comparable"

/// `b` against `a` on one figure; for rates more is faster, for times less is.
Verdict compareFigures(const Figure& a, const Figure& b);
/// Over the points both have: faster (slower) when at least two thirds of them are and none is the
/// other way, else the same within noise.
Verdict compareSeries(const Series& a, const Series& b);

} // namespace memscape
