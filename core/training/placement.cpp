// SPDX-License-Identifier: Apache-2.0
#include "core/training/placement.h"

#include "core/training/optimizer_step.h"
#include "core/training/sharding.h"

#include <algorithm>

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

FsdpRules fsdpRules(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    const PrecisionRule rule = precisionRule(plan.precision);
    FsdpRules rules;
    rules.isFlat = plan.shardedBy == ShardedBy::Fsdp1;
    rules.wrap = plan.fsdpWrap;
    rules.wrappedElements = plan.fsdpMinParams;
    rules.hooksInputs = rules.isFlat && plan.lora;
    rules.reshardsAfterForward = plan.zeroStage == 3;
    rules.devices = plan.shards();
    rules.shares = each(parameters, [&](const ParameterTensor& one) { return shareElements(one, plan); });
    rules.copiedBytes = plan.kept().weight != rule.weight ? rule.weight : 0;
    rules.computedBytes = rule.gradient;
    rules.reducedBytes = plan.reducedBytes();
    rules.keptBytes = plan.gradientBytes();
    return rules;
}

DeepSpeedRules deepSpeedRules(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    DeepSpeedRules rules;
    rules.stage = plan.zeroStage;
    rules.devices = plan.shards();
    rules.elements = each(parameters, [](const ParameterTensor& one) { return one.elements; });
    std::vector<std::int64_t> trained;
    for (const ParameterTensor& one : parameters) {
        rules.isTrained.push_back(one.isTrained);
        if (one.isTrained)
            trained.push_back(one.elements);
    }
    rules.partition = piece(trainedCount(parameters), plan.shards());
    if (plan.zeroStage < 3) {
        rules.partitionBytes = plan.streamsGradients() ? 0 : partitionGradientBytes(trained, plan);
        rules.bucketBytes = reduceBufferBytes(parameters, plan);
    }
    rules.addsIntoPartition = plan.hasFlatGradients();
    rules.sumsBeforeReducing = plan.sumsBeforeReducing();
    rules.reducesInBackward = plan.reducesInBackward();
    rules.hasReduceStream = plan.zeroStage == 3 && plan.hidesReductions();
    rules.reducedBytes = plan.zeroStage == 1 ? plan.gradientBytes() : precisionRule(plan.precision).gradient;
    rules.sizes = plan.deepspeed;
    rules.waitsInAttention = plan.waitsInAttention;
    rules.keepsGathered = plan.keepsGathered && plan.phase == StepPhase::Training;
    return rules;
}

/// The gradients of DeepSpeed's stage 2 are one block: it is that of the parameter that backward comes to first.
void keepInLastTrained(ParameterPlacement& placement)
{
    const DeepSpeedRules& rules = *placement.deepspeed;
    std::fill(placement.gradients.begin(), placement.gradients.end(), 0);
    for (std::size_t i = placement.gradients.size(); i-- > 0;)
        if (rules.isTrained[i])
            return void(placement.gradients[i] = rules.partitionBytes);
}

} // namespace

ParameterPlacement placementOf(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    ParameterPlacement placement;
    const PrecisionRule rule = precisionRule(plan.precision);
    const bool onHost = plan.offload == Offload::Parameters;
    if (plan.shardsWeights() || plan.lora || rule.fp8Copies > 0)
        placement.weights = each(parameters, [&](const ParameterTensor& parameter) {
            return onHost ? scaleBytes(parameter, plan) : weightBytes(parameter, plan);
        });
    if (gatheredBytes(parameters, plan) > 0)
        placement.gathered =
            each(parameters, [&](const ParameterTensor& parameter) { return gatheredBytes(parameter, plan); });
    const bool isSharded = plan.zeroStage >= 2 && (plan.shards() > 1 || plan.isByDeepSpeed());
    if (plan.isByFsdp())
        placement.fsdp = fsdpRules(parameters, plan);
    if (plan.isByDeepSpeed())
        placement.deepspeed = deepSpeedRules(parameters, plan);
    if (isSharded || plan.streamsGradients() || plan.gradientBytes() != rule.gradient)
        placement.gradients =
            each(parameters, [&](const ParameterTensor& parameter) { return keptGradientBytes(parameter, plan); });
    if (plan.isByDeepSpeed() && plan.zeroStage == 2)
        keepInLastTrained(placement);
    placement.reducesLayers = (isSharded || plan.streamsGradients()) && !plan.isByDeepSpeed();
    return placement;
}

} // namespace memscape
