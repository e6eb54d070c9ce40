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

/// The options of stepTime() and of what is like it.
class ReachedTiming
{
public:
    /// `held`: B of the step's memory, which say what serves a processor.
    ReachedTiming(const Device& device, const Plan& plan, double held,
                  std::span<const RecomputedRange> recomputed = {});
    ReachedTiming(const ReachedTiming&) = delete; // the options point into it
    ReachedTiming& operator=(const ReachedTiming&) = delete;

    const StepTimeOptions& options() const { return m_options; }

private:
    HostOperations m_host;
    StepTimeOptions m_options;
};

/// stepTime() with these. Errors: those of stepTime().
Result<StepTime> reachedStepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                                 const Device& device, double held, std::span<const RecomputedRange> recomputed = {});

} // namespace memscape
