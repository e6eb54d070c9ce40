// SPDX-License-Identifier: Apache-2.0
#include "core/training/sharding.h"

#include "core/training/lora.h"

#include <algorithm>

namespace memscape {

namespace {

constexpr std::int64_t zeroBucketElements = 500'000'000; ///< reduce_bucket_size of DeepSpeed

} // namespace

std::int64_t piece(std::int64_t elements, std::int64_t degree)
{
    return elements / degree + (elements % degree != 0);
}

std::int64_t weightElements(const ParameterTensor& parameter, const Plan& plan)
{
    return plan.zeroStage == 3 ? piece(parameter.elements, plan.dataParallel) : parameter.elements;
}

std::int64_t gradientElements(const ParameterTensor& parameter, const Plan& plan)
{
    return plan.zeroStage >= 2 ? piece(parameter.elements, plan.dataParallel) : parameter.elements;
}

std::int64_t keptGradientBytes(const ParameterTensor& parameter, const Plan& plan)
{
    return plan.streamsGradients() ? 0 : gradientElements(parameter, plan) * plan.gradientBytes();
}

std::int64_t weightBytes(const ParameterTensor& parameter, const Plan& plan)
{
    if (isQuantized(parameter, plan))
        return piece(normalFloatBytes(parameter.elements), plan.zeroStage == 3 ? plan.dataParallel : 1);
    const PrecisionRule rule = precisionRule(plan.precision);
    const std::int64_t copies = parameter.isMatrix() && !parameter.isEmbedding ? rule.fp8Copies : 0;
    return weightElements(parameter, plan) * (rule.weight + copies);
}

std::int64_t gatheredBytes(const ParameterTensor& parameter, const Plan& plan)
{
    if (plan.zeroStage != 3 || (plan.dataParallel == 1 && plan.offload != Offload::Parameters))
        return 0;
    return parameter.elements * precisionRule(plan.precision).weight;
}

std::int64_t gatheredBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    std::int64_t bytes = 0;
    for (const ParameterTensor& parameter : parameters)
        bytes += gatheredBytes(parameter, plan);
    return bytes;
}

std::int64_t reduceBufferBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    if (plan.dataParallel == 1 || plan.phase != StepPhase::Training)
        return 0;
    const std::int64_t elements = trainedCount(parameters);
    if (plan.zeroStage == 0)
        return plan.gradientsAreBucketViews ? 0 : elements * plan.gradientBytes();
    return std::min(elements, zeroBucketElements) * precisionRule(plan.precision).gradient;
}

} // namespace memscape
