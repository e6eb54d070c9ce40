// SPDX-License-Identifier: Apache-2.0
#include "core/timing/shard_copies.h"

#include "core/training/sharding.h"

namespace memscape {

namespace {

bool isInFp16(Precision precision)
{
    return precision == Precision::Fp16 || precision == Precision::Fp16Mixed
        || precision == Precision::Fp16UnderAutocast;
}

/// B that one reduction reads and writes beside the collective, for each element of a gradient.
double reducedBytes(const Plan& plan)
{
    const double made = double(precisionRule(plan.precision).gradient), reduced = double(plan.reducedBytes());
    const double kept = double(plan.gradientBytes());
    if (plan.zeroStage == 0)
        return (plan.gradientsAreBucketViews ? 2 : 4) * kept;
    switch (plan.shardedBy) {
    case ShardedBy::Fsdp1: return 2 * made + (reduced == made ? 0 : made + reduced) + 2 * reduced;
    case ShardedBy::Fsdp2: return made + reduced + (reduced == 2 && isInFp16(plan.precision) ? 2 * reduced : 0);
    case ShardedBy::DeepSpeed: return (plan.zeroStage == 3 ? 6 : 4) * kept;
    case ShardedBy::Paper: break;
    }
    return 0;
}

bool copiesGathered(const Plan& plan)
{
    return plan.shardsWeights() && (plan.shardedBy == ShardedBy::Fsdp2 || plan.shardedBy == ShardedBy::DeepSpeed);
}

/// Times that a step gathers a weight.
double gathers(const ParameterTensor& parameter, const Plan& plan)
{
    if (plan.phase != StepPhase::Training)
        return 1;
    return (isGatheredOnce(parameter, plan) ? 1 : 2) * double(plan.accumulation);
}

} // namespace

ShardCopies shardCopies(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    ShardCopies copies;
    const bool isTraining = plan.phase == StepPhase::Training;
    const double reductions = plan.zeroStage < 2 ? 1 : double(plan.reductions());
    for (const ParameterTensor& parameter : parameters) {
        if (plan.copies(parameter.isExpert && plan.expertParallel > 1) == 1)
            continue;
        if (copiesGathered(plan))
            copies.gathered += 2 * gathers(parameter, plan) * double(wholeWeightBytes(parameter, plan));
        if (isTraining && parameter.isTrained)
            copies.reduced += reductions * reducedBytes(plan) * double(parameter.elements);
    }
    return copies;
}

} // namespace memscape
