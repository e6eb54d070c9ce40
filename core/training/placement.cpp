// SPDX-License-Identifier: Apache-2.0
#include "core/training/placement.h"

#include "core/training/sharding.h"

namespace memscape {

namespace {

template <typename Bytes> std::vector<std::int64_t> each(const std::vector<ParameterTensor>& parameters, Bytes bytes)
{
    std::vector<std::int64_t> all;
    all.reserve(parameters.size());
    for (const ParameterTensor& parameter : parameters)
        all.push_back(bytes(parameter));
    return all;
}

} // namespace

ParameterPlacement placementOf(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    ParameterPlacement placement;
    const PrecisionRule rule = precisionRule(plan.precision);
    const bool onHost = plan.offload == Offload::Parameters;
    if (plan.zeroStage == 3 || plan.lora || rule.fp8Copies > 0)
        placement.weights = each(
            parameters, [&](const ParameterTensor& parameter) { return onHost ? 0 : weightBytes(parameter, plan); });
    if (gatheredBytes(parameters, plan) > 0)
        placement.gathered =
            each(parameters, [&](const ParameterTensor& parameter) { return gatheredBytes(parameter, plan); });
    const bool isSharded = plan.zeroStage >= 2 && plan.dataParallel > 1;
    if (isSharded || plan.streamsGradients() || plan.gradientBytes() != rule.gradient)
        placement.gradients =
            each(parameters, [&](const ParameterTensor& parameter) { return keptGradientBytes(parameter, plan); });
    placement.reducesLayers = isSharded || plan.streamsGradients();
    return placement;
}

} // namespace memscape
