// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/quality.h"

#include "core/base/number.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr double clockHeld = 0.97;
constexpr double stealLimit = 0.01;
constexpr double driftLimit = 0.03;
constexpr std::size_t fewSamples = 5;

/// Everything that speaks against the point beside its own spread.
std::vector<std::string> disturbances(const Circumstances& seen)
{
    std::vector<std::string> found;
    if (seen.clockShare < clockHeld)
        found.push_back(fmt::format("the clock fell to {} of its reference",
                                    percentText(seen.clockShare)));
    if (seen.stealShare > stealLimit)
        found.push_back(fmt::format("the hypervisor took {} of the time",
                                    percentText(seen.stealShare)));
    if (seen.preemptions > 1)
        found.push_back(fmt::format("{} involuntary context switches per sample",
                                    numberText(std::round(seen.preemptions))));
    if (seen.drift > driftLimit)
        found.push_back(fmt::format("passes drifted by {}", percentText(seen.drift)));
    return found;
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

Quality gradeOf(const Summary& summary, const Circumstances& circumstances)
{
    if (!circumstances.failure.empty())
        return {'D', circumstances.failure};
    if (summary.empty())
        return {'D', summary.rejected > 0 ? "no sample was a finite number" : "no samples"};
    if (summary.count < fewSamples)
        return {'D', fmt::format("only {} {}", summary.count,
                                 summary.count == 1 ? "sample" : "samples")};

    Quality quality;
    quality.grade = gradeOfSpread(summary.relativeIqr);
    quality.reason = fmt::format("middle half of {} samples within {}", summary.count,
                                 percentText(summary.relativeIqr));
    const auto found = disturbances(circumstances);
    if (!found.empty())
        quality.grade = std::max(quality.grade, 'C');
    for (const std::string& disturbance : found)
        quality.reason += "; " + disturbance;
    if (summary.rejected > 0)
        quality.reason += fmt::format("; {} samples were not numbers", summary.rejected);
    return quality;
}

Quality worse(const Quality& a, const Quality& b)
{
    return b.grade > a.grade ? b : a;
}

} // namespace memscape
