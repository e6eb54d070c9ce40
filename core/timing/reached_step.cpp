// SPDX-License-Identifier: Apache-2.0
#include "core/timing/reached_step.h"

#include "core/timing/working_set.h"

#include <algorithm>

namespace memscape {

Format productFormat(Precision precision)
{
    switch (precision) {
    case Precision::Fp32: return Format::Fp32;
    case Precision::Fp16Autocast:
    case Precision::Fp16Mixed:
    case Precision::Fp16: return Format::Fp16;
    case Precision::Fp8: return Format::Fp8E4M3;
    default: return Format::Bf16;
    }
}

double reachedShare(const Device& device, Format format)
{
    const auto rate = productRate(device, format);
    return rate && rate->dense.value > 0 && rate->reached.value > 0
        ? std::min(1.0, rate->reached.value / rate->dense.value)
        : 1;
}

Result<StepTime> reachedStepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                                 const Device& device, double held, std::span<const RecomputedRange> recomputed)
{
    StepTimeOptions options;
    options.efficiency = reachedShare(device, productFormat(plan.precision));
    options.recomputed = recomputed;
    if (device.isGpu())
        return stepTime(graph, parameters, plan, device, options);
    const HostOperations host = hostOperations(device);
    options.host = &host;
    options.bandwidth = bandwidthOf(device, held, Operation::Copy, device.units).bytesPerSecond;
    return stepTime(graph, parameters, plan, device, options);
}

} // namespace memscape
