// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/quality.h"

#include "core/base/number.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double clockHeld = 0.97;
constexpr double stealLimit = 0.01;
constexpr double driftLimit = 0.03;
constexpr std::size_t fewSamples = 5;

/// Everything that lowers the point's grade beside its own spread.
std::vector<std::string> disturbances(const RunConditions& seen)
{
    std::vector<std::string> found;
    if (seen.clockDrift > driftLimit)
        found.push_back(fmt::format("the clock drifted by {} within the run", percentText(seen.clockDrift)));
    if (std::isnan(seen.clockDrift) && seen.clockShare < clockHeld)
        found.push_back(fmt::format("the clock fell to {} of its reference", percentText(seen.clockShare)));
    if (seen.stealShare > stealLimit)
        found.push_back(fmt::format("the hypervisor took {} of the time", percentText(seen.stealShare)));
    if (seen.preemptions > 1)
        found.push_back(
            fmt::format("{} involuntary context switches per sample", numberText(std::round(seen.preemptions))));
    if (seen.drift > driftLimit)
        found.push_back(fmt::format("passes drifted by {}", percentText(seen.drift)));
    return found;
}

/// Of a clock that power caps, how it was judged; empty else.
std::string cappedClock(const RunConditions& seen)
{
    if (std::isnan(seen.clockDrift))
        return {};
    const std::string at = std::isnan(seen.clockShare)
        ? std::string()
        : fmt::format(" (it ran at {} or more of that under a light load)", percentText(seen.clockShare));
    return fmt::format("; power may cap the clock of dense kernels{}: judged by its drift within the run, {}", at,
                       percentText(seen.clockDrift));
}

char gradeOfSpread(double relativeIqr)
{
    if (relativeIqr < 0.01)
        return 'A';
    if (relativeIqr < 0.03)
        return 'B';
    return relativeIqr < 0.10 ? 'C' : 'D';
}

} // namespace

double driftOf(const std::vector<double>& values)
{
    std::vector<double> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
                 [](double value) { return std::isfinite(value); });
    if (finite.size() < 3)
        return 0;
    double smallest = std::numeric_limits<double>::infinity(), largest = 0;
    for (std::size_t third = 0; third < 3; ++third) {
        const std::size_t first = finite.size() * third / 3, last = finite.size() * (third + 1) / 3;
        const double median = summarize(std::span(finite).subspan(first, last - first)).median;
        smallest = std::min(smallest, median);
        largest = std::max(largest, median);
    }
    const double middle = summarize(finite).median;
    return middle > 0 ? (largest - smallest) / middle : 0;
}

Quality gradeOf(const Summary& summary, const RunConditions& conditions)
{
    if (!conditions.failure.empty())
        return {'D', conditions.failure};
    if (summary.empty())
        return {'D', summary.rejected > 0 ? "no sample was a finite number" : "no samples"};
    if (summary.count < fewSamples)
        return {'D', fmt::format("only {} {}", summary.count, summary.count == 1 ? "sample" : "samples")};

    Quality quality;
    quality.grade = gradeOfSpread(summary.relativeIqr);
    quality.reason =
        fmt::format("middle half of {} samples within {}", summary.count, percentText(summary.relativeIqr));
    quality.reason += cappedClock(conditions);
    const auto found = disturbances(conditions);
    if (!found.empty())
        quality.grade = std::max(quality.grade, 'C');
    for (const std::string& disturbance : found)
        quality.reason += "; " + disturbance;
    if (summary.rejected > 0)
        quality.reason += fmt::format("; {} samples were not numbers", summary.rejected);
    return quality;
}

Quality gradeOfParts(const std::map<std::string, std::vector<double>>& spreads, double stealShare)
{
    Quality worst{'A', {}};
    for (const auto& [part, values] : spreads) {
        Summary typical = summarize(values);
        typical.relativeIqr = typical.median;
        RunConditions conditions;
        conditions.stealShare = stealShare;
        Quality quality = gradeOf(typical, conditions);
        // The spread is of a typical probe's samples; what disturbed them stands as it is.
        const std::size_t disturbed = std::min(quality.reason.find(';'), quality.reason.size());
        quality.reason = fmt::format("{}: a typical probe's middle half lies within {}{}", part,
                                     percentText(typical.median), quality.reason.substr(disturbed));
        if (worst.reason.empty() || quality.grade > worst.grade)
            worst = quality;
    }
    return worst;
}

Quality worse(const Quality& a, const Quality& b)
{
    return b.grade > a.grade || (b.grade == a.grade && a.reason.empty()) ? b : a;
}

} // namespace memscape
