// SPDX-License-Identifier: Apache-2.0
// Two steps of one plan, phase by phase: the predicted one and the measured one. At the peak of each phase the
// tensors alive are summed by module; where the two differ, the modules that differ most are named, with the tensor
// that is most of the difference. A measured step names its tensors after PyTorch's operators and the prediction
// after what they are, so modules are compared and names only quoted.
//
// Reads `phase_peaks` of a detail (memory_detail.h). Left out: what both hold at other moments than the peaks.
#pragma once

#include "core/base/json.h"
#include "core/base/number.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace memscape {

/// The bytes of a module (all modules of its kind: "h.*.mlp") at the two peaks of a phase.
struct ModuleDifference
{
    std::string module;
    double predicted = 0; ///< B
    double measured = 0;  ///< B
    std::string tensor;   ///< the tensors that differ most: "temporary sqrt"
    double difference() const { return measured - predicted; }
};

struct PhaseDifference
{
    std::string phase;
    double predicted = 0;                  ///< B, highest of the phase
    double measured = 0;                   ///< B
    std::vector<ModuleDifference> modules; ///< those that differ, most first
    double difference() const { return measured - predicted; }
};

/// The phases that both details have, in the order of the prediction; none where one of them names no peaks.
std::vector<PhaseDifference> phaseDifferences(const Json& predictedDetail, const Json& measuredDetail);

/// "12.0 MiB more than predicted: temporary sqrt, 12.0 MiB"; "as predicted" where the phases agree to the byte.
std::string differenceText(const PhaseDifference& phase, ByteStyle style = ByteStyle::Binary);

} // namespace memscape
