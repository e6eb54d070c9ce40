// SPDX-License-Identifier: Apache-2.0
// The time of a step as it is to be expected, not its floor: products run at the rate that large ones of their format
// reach on the device (product_rates.h); on a processor an operation takes what its calls and loops take
// (host_operations.h), and memory is the caches that hold the step. One rule for every page that times a step.
//
// Left out: that small products reach less of the rate on a GPU; see also operator_time.h.
#pragma once

#include "core/timing/operator_time.h"
#include "core/timing/product_rates.h"

namespace memscape {

/// The format that a recipe's products run in.
Format productFormat(Precision precision);

/// The share of the dense rate that large products of that format reach; 1 where it is not known.
double reachedShare(const Device& device, Format format);

/// stepTime() with products at the reached rate. `held`: B of the step's memory, which say what serves a processor.
/// Errors: those of stepTime().
Result<StepTime> reachedStepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                                 const Device& device, double held, std::span<const RecomputedRange> recomputed = {});

} // namespace memscape
