// SPDX-License-Identifier: Apache-2.0
#include "core/training/sharding.h"

#include "core/training/lora.h"

#include <algorithm>
#include <numeric>

namespace memscape {

namespace {

/// Several elements share their bytes, as in NF4, or have scales beside them.
bool isPacked(const ParameterTensor& parameter)
{
    return parameter.elements > 0 && parameter.storedBytes % parameter.elements != 0;
}

/// B of the numbers of a packed matrix, without what stands beside them: half a byte or a byte each.
std::int64_t packedBytes(const ParameterTensor& parameter)
{
    return parameter.storedBytes < parameter.elements ? piece(parameter.elements, 2) : parameter.elements;
}

} // namespace

std::int64_t scaleBytes(const ParameterTensor& parameter, const Plan& plan)
{
    const bool keeps = plan.isByDeepSpeed() || (plan.isByFsdp() && plan.shardedBy == ShardedBy::Fsdp1);
    return keeps && plan.shardsWeights() && isPacked(parameter) ? parameter.storedBytes - packedBytes(parameter) : 0;
}

std::int64_t piece(std::int64_t elements, std::int64_t degree)
{
    return elements / degree + (elements % degree != 0);
}

std::int64_t shareElements(const ParameterTensor& parameter, const Plan& plan)
{
    if (plan.isByFsdp() && plan.shardedBy == ShardedBy::Fsdp2 && !parameter.shape.empty() && parameter.shape[0] > 0)
        return piece(parameter.shape[0], plan.shards()) * (parameter.elements / parameter.shape[0]);
    return piece(parameter.elements, plan.shards(parameter.isExpert));
}

std::int64_t weightElements(const ParameterTensor& parameter, const Plan& plan)
{
    if (!plan.shardsWeights())
        return parameter.elements;
    return shareElements(parameter, plan) + (isPersistent(parameter, plan) ? parameter.elements : 0);
}

std::int64_t gradientElements(const ParameterTensor& parameter, const Plan& plan)
{
    return plan.zeroStage >= 2 ? shareElements(parameter, plan) : parameter.elements;
}

std::int64_t keptGradientBytes(const ParameterTensor& parameter, const Plan& plan)
{
    return plan.streamsGradients() ? 0 : gradientElements(parameter, plan) * gradientBytes(parameter, plan);
}

std::int64_t weightBytes(const ParameterTensor& parameter, const Plan& plan)
{
    const PrecisionRule rule = precisionRule(parameter, plan);
    const std::int64_t copies = parameter.isMatrix() && !parameter.isEmbedding ? rule.fp8Copies : 0;
    if (!isPacked(parameter))
        return weightElements(parameter, plan) * (rule.weight + copies);
    const std::int64_t scales = scaleBytes(parameter, plan);
    const std::int64_t whole = parameter.storedBytes - scales + parameter.elements * copies;
    return scales + (plan.shardsWeights() ? piece(whole, plan.shards()) : whole);
}

bool isPersistent(const ParameterTensor& parameter, const Plan& plan)
{
    return plan.isByDeepSpeed() && plan.zeroStage == 3 && plan.shards() > 1
        && parameter.elements <= plan.deepspeed.persistent;
}

std::int64_t wholeWeightBytes(const ParameterTensor& parameter, const Plan& plan)
{
    if (isPacked(parameter))
        return parameter.storedBytes - scaleBytes(parameter, plan);
    const PrecisionRule rule = precisionRule(plan.precision);
    const bool isCast = plan.isByFsdp() && rule.master > 0; // MixedPrecision's param_dtype
    return isCast || parameter.storedBytes == 0 ? parameter.elements * rule.weight : parameter.storedBytes;
}

bool isGatheredOnce(const ParameterTensor& parameter, const Plan& plan)
{
    const bool isOutside =
        plan.fsdpWrap == FsdpWrap::Whole || (plan.fsdpWrap == FsdpWrap::Block && parameter.isEmbedding);
    return plan.isByFsdp() && (plan.zeroStage == 2 || isOutside);
}

std::int64_t gatheredBytes(const ParameterTensor& parameter, const Plan& plan)
{
    if (!plan.shardsWeights() || (plan.shards() == 1 && plan.offload != Offload::Parameters)
        || isPersistent(parameter, plan))
        return 0;
    const std::int64_t whole = wholeWeightBytes(parameter, plan);
    if (isPacked(parameter) || !plan.isByFsdp() || parameter.elements == 0)
        return whole;
    return whole / parameter.elements * shareElements(parameter, plan) * plan.shards();
}

std::int64_t gatheredBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    std::int64_t bytes = 0;
    for (const ParameterTensor& parameter : parameters)
        bytes += gatheredBytes(parameter, plan);
    return bytes;
}

std::int64_t partitionGradientBytes(const std::vector<std::int64_t>& trained, const Plan& plan)
{
    const std::int64_t partition =
        piece(std::accumulate(trained.begin(), trained.end(), std::int64_t(0)), plan.shards());
    if (plan.hasFlatGradients())
        return partition * plan.gradientBytes();
    std::int64_t elements = 0;
    const auto add = [&](std::int64_t one) { elements += elements < partition ? one : 0; };
    if (!plan.reducesInBackward())
        std::for_each(trained.begin(), trained.end(), add);
    else
        std::for_each(trained.rbegin(), trained.rend(), add);
    return elements * plan.gradientBytes();
}

std::int64_t reduceBufferBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    const bool isAlone = plan.copies() == 1 && !plan.isByDeepSpeed();
    if (isAlone || plan.phase != StepPhase::Training || plan.isByFsdp())
        return 0;
    if (plan.zeroStage == 0) {
        std::int64_t bytes = 0;
        for (const ParameterTensor& parameter : parameters)
            bytes += parameter.isTrained && plan.copies(parameter.isExpert) > 1
                ? parameter.elements * gradientBytes(parameter, plan)
                : 0;
        return plan.gradientsAreBucketViews ? 0 : bytes;
    }
    if (!plan.isByDeepSpeed()) {
        const std::int64_t elements = plan.gradientsAreBucketViews ? 0 : trainedCount(parameters);
        return std::min(elements, plan.deepspeed.reduceBucket) * precisionRule(plan.precision).gradient;
    }
    // As large as it was asked for, however small the network is. Stage 1 fills it with what it has summed.
    const int buckets = plan.zeroStage < 3 && plan.hidesReductions() ? 2 : 1;
    return buckets * plan.deepspeed.reduceBucket
        * (plan.zeroStage == 1 ? plan.gradientBytes() : precisionRule(plan.precision).gradient);
}

std::int64_t offloadBufferBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    if (!plan.isByDeepSpeed() || plan.zeroStage == 3 || plan.offload == Offload::None
        || plan.phase != StepPhase::Training)
        return 0;
    std::int64_t largest = 0;
    for (const ParameterTensor& parameter : parameters)
        if (parameter.isTrained)
            largest = std::max(largest, parameter.elements);
    return largest * precisionRule(plan.precision).gradient;
}

} // namespace memscape
