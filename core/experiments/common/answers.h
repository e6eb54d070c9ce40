// SPDX-License-Identifier: Apache-2.0
// Every experiment's question answered in a sentence, side by side so that they sound alike. Each is made of
// figures alone, so it says what was measured where they were; it is empty where a figure that it needs is missing.
#pragma once

#include "core/experiment/experiment.h"

namespace memscape {

ShortAnswer hierarchyAnswer(const Device& device, const Figures& figures);
ShortAnswer strideAnswer(const Figures& figures);
ShortAnswer bankConflictsAnswer(const Figures& figures);
ShortAnswer layoutAnswer(const Figures& figures);
/// Of training and of serving: whether it fits, and what takes most.
ShortAnswer memoryAnswer(const Device& device, const Figures& figures);
ShortAnswer checkpointAnswer(const Figures& figures);
ShortAnswer batchSizeAnswer(const Figures& figures);
ShortAnswer allocatorAnswer(const Figures& figures);
ShortAnswer attentionAnswer(const Figures& figures);
ShortAnswer precisionAnswer(const Parameters& parameters, const Figures& figures);
ShortAnswer rooflineAnswer(const Parameters& parameters, const Figures& figures);

} // namespace memscape
