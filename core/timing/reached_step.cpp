// SPDX-License-Identifier: Apache-2.0
#include "core/timing/reached_step.h"

#include "core/timing/working_set.h"

namespace memscape {

ReachedTiming::ReachedTiming(const Device& device, const Plan& plan, double held,
                             std::span<const RecomputedRange> recomputed)
{
    m_options.efficiency = reachedShare(device, productFormat(plan.precision));
    m_options.recomputed = recomputed;
    if (device.isGpu())
        return;
    m_host = hostOperations(device);
    m_options.host = &m_host;
    m_options.bandwidth = bandwidthOf(device, held, Operation::Copy, device.units).bytesPerSecond;
}

Result<StepTime> reachedStepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                                 const Device& device, double held, std::span<const RecomputedRange> recomputed)
{
    return stepTime(graph, parameters, plan, device, ReachedTiming(device, plan, held, recomputed).options());
}

} // namespace memscape
