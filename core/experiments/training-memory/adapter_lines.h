// SPDX-License-Identifier: Apache-2.0
// LoRA and QLoRA of a plan as PEFT and bitsandbytes write them: the quantized base, what is prepared, the adapters.
#pragma once

#include "core/experiment/experiment.h"
#include "core/experiments/common/python_lines.h"

namespace memscape {

/// Nothing where there are no adapters. `model` is built before these lines.
void writeAdapterLines(PythonLines& lines, const Parameters& parameters);

} // namespace memscape
