// SPDX-License-Identifier: Apache-2.0
// How far a measured point can be trusted, as a letter and a sentence.
//   A  relative IQR < 1 %, the clock held (≥ 97 % of its reference), no other load on the machine
//   B  < 3 %
//   C  < 10 %, or the clock sagged, or the machine was shared while we measured
//   D  everything else, among it too few samples and no samples at all
// The letter is never empty and never stands without its reason.
//
// The clock's reference is what the chip reaches when it has little to do. A dense product draws so much
// power that the chip cannot hold it, at any time, on any machine: there only the drift of the clock within the run
// shows a disturbance.
#pragma once

#include "kernels/measure/statistics.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace memscape {

struct Quality
{
    char grade = 'D';
    std::string reason;
};

/// What was seen beside the samples. Unknown values are NaN and are then not held against the point.
struct RunConditions
{
    double clockShare = std::numeric_limits<double>::quiet_NaN(); ///< lowest clock seen / reference
    double stealShare = std::numeric_limits<double>::quiet_NaN(); ///< time the hypervisor took away
    double preemptions = 0;                                       ///< involuntary context switches per sample
    double drift = 0;                                             ///< between the medians of passes, relative
    /// Of the clock within the run, driftOf(); known only where power caps it: then clockShare is reported, not judged.
    double clockDrift = std::numeric_limits<double>::quiet_NaN();
    std::string failure = {}; ///< why the point could not be measured as meant; forces D
};

/// Of values in the order of their time: (largest − smallest median of a third) / median of all. 0 with fewer
/// than three that are finite.
double driftOf(const std::vector<double>& values);

Quality gradeOf(const Summary& summary, const RunConditions& conditions = {});

/// Of a run of many parts, each with the relative IQRs of its probes: the worst part's typical probe decides, and the
/// reason names the part.
Quality gradeOfParts(const std::map<std::string, std::vector<double>>& spreads, double stealShare);

/// The worse of two, with its reason; of equals the first that has one.
Quality worse(const Quality& a, const Quality& b);

} // namespace memscape
