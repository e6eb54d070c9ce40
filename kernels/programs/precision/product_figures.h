// SPDX-License-Identifier: Apache-2.0
// The figures of `precision operation=matmul` from samples, in the keys of the prediction.
#pragma once

#include "core/experiments/precision/precision.h"
#include "kernels/measure/sweep_run.h"

#include <optional>

namespace memscape {

/// `samples` in seconds: "time" of the product in the format, "fp32_time" of the same in FP32. `stored`: the value
/// after the machine's own conversion, where it has one.
Figures productFigures(const PrecisionCase& asked, const MergedSamples& samples, const std::optional<Figure>& stored);

} // namespace memscape
