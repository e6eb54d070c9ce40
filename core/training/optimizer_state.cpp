// SPDX-License-Identifier: Apache-2.0
#include "core/training/optimizer_state.h"

#include "core/training/lora.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

constexpr std::int64_t fourBitBlock = 128, fp8Block = 256; ///< of torchao
constexpr std::int64_t leastQuantized = 4096;              ///< elements: smaller tensors keep their moments as they are
constexpr std::int64_t leastPaged = 100'000;               ///< elements: smaller tensors keep them on the device
constexpr std::int64_t codeTable = 256 * 4, fourBitCodes = 16 * 4; // B

StateTensors twoMoments(std::int64_t bytes, const Plan& plan)
{
    StateTensors state{{"exp_avg", bytes}, {"exp_avg_sq", bytes}};
    if (plan.update == UpdateStyle::Fused || (plan.isOnCpu && plan.update != UpdateStyle::WrittenOut))
        state.push_back({"step", 4});
    return state;
}

/// Of bitsandbytes, in fp32 whatever the weights are.
StateTensors fp32Moments(std::int64_t elements)
{
    return {{"state1", 4 * elements}, {"state2", 4 * elements}};
}

StateTensors eightBitMoments(std::int64_t elements, std::int64_t block)
{
    if (elements < leastQuantized)
        return fp32Moments(elements);
    const std::int64_t scales = 4 * piece(elements, block);
    return {{"state1", elements}, {"state2", elements}, {"absmax1", scales}, {"absmax2", scales}};
}

StateTensors unpaged(const StateTensors& all, std::int64_t pagedBytes)
{
    if (pagedBytes == 0)
        return all;
    StateTensors left;
    for (const StateTensor& one : all)
        if (!one.name.starts_with("state"))
            left.push_back(one);
    return left;
}

/// Of torchao, whose step counts are on the host.
StateTensors torchaoMoments(std::int64_t elements, std::int64_t elementBytes, bool isFourBit, bool isOnCpu)
{
    const std::int64_t block = isFourBit ? fourBitBlock : fp8Block;
    StateTensors state;
    const bool isQuantized = elements >= leastQuantized && elements % block == 0;
    for (const std::string_view moment : {"exp_avg", "exp_avg_sq"}) {
        state.push_back({moment, isQuantized ? elements / (isFourBit ? 2 : 1) : elements * elementBytes});
        if (isQuantized)
            state.push_back({"scale", 4 * elements / block});
        if (isQuantized && isFourBit)
            state.push_back({"qmap", fourBitCodes});
    }
    if (isOnCpu)
        state.push_back({"step", 4});
    return state;
}

StateTensors factoredMoment(const ParameterTensor& updated, std::int64_t elementBytes)
{
    const auto& shape = updated.shape;
    if (shape.size() < 2)
        return {{"variance", updated.elements * elementBytes}};
    return {{"row_var", updated.elements / shape[shape.size() - 1] * elementBytes},
            {"col_var", updated.elements / shape[shape.size() - 2] * elementBytes}};
}

/// Of GaLore and APOLLO.
StateTensors projectedMoments(const ParameterTensor& updated, std::int64_t elementBytes, const Plan& plan)
{
    const auto momentsOf = [&](std::int64_t elements) -> StateTensors {
        if (plan.optimizer == OptimizerKind::GaLore8bit)
            return eightBitMoments(elements, plan.eightBitBlock);
        return {{"exp_avg", elements * elementBytes}, {"exp_avg_sq", elements * elementBytes}};
    };
    if (!isOrthogonalized(updated))
        return momentsOf(updated.elements);
    const std::int64_t rank = projectionRank(updated, plan);
    const std::int64_t side = std::min(updated.shape[0], updated.shape[1]);
    const bool isApollo = plan.optimizer == OptimizerKind::Apollo;
    const bool isView = !isApollo && elementBytes == 4; // of all singular vectors
    StateTensors state = momentsOf(rank * std::max(updated.shape[0], updated.shape[1]));
    state.push_back({"projection", (isView ? side : rank) * side * elementBytes});
    if (isApollo)
        state.push_back({"scaled_grad", elementBytes});
    return state;
}

/// Of AdaLomo, in fp32.
StateTensors rowsAndColumns(const ParameterTensor& updated)
{
    const auto& shape = updated.shape;
    if (shape.size() < 2)
        return {{"exp_avg_sq", 4 * updated.elements}};
    return {{"exp_avg_sq_row", 4 * shape[0]}, {"exp_avg_sq_col", 4 * shape[1]}};
}

} // namespace

std::int64_t projectionRank(const ParameterTensor& matrix, const Plan& plan)
{
    const std::int64_t side = std::min(matrix.shape[0], matrix.shape[1]);
    return plan.optimizer == OptimizerKind::Apollo ? plan.optimizerRank : std::min(plan.optimizerRank, side);
}

bool isOrthogonalized(const ParameterTensor& parameter)
{
    return parameter.isMatrix() && !parameter.isEmbedding;
}

std::int64_t pagedStateBytes(const ParameterTensor& updated, const Plan& plan)
{
    const bool isIn8Bits = plan.optimizer == OptimizerKind::PagedAdam8bit;
    if ((!isIn8Bits && plan.optimizer != OptimizerKind::PagedAdamW) || plan.isOnCpu || updated.elements < leastPaged)
        return 0;
    return 2 * updated.elements * (isIn8Bits ? 1 : 4);
}

StateTensors stateTensors(const ParameterTensor& updated, std::int64_t elementBytes, const Plan& plan)
{
    if (!updated.isTrained || updated.elements == 0)
        return {};
    const std::int64_t bytes = updated.elements * elementBytes;
    switch (plan.optimizer) {
    case OptimizerKind::None:
    case OptimizerKind::Sgd: return {};
    case OptimizerKind::Momentum: return {{"momentum_buffer", bytes}};
    case OptimizerKind::Adam:
    case OptimizerKind::AdamW: return twoMoments(bytes, plan);
    case OptimizerKind::Adam8bit: return eightBitMoments(updated.elements, plan.eightBitBlock);
    case OptimizerKind::PagedAdamW: return unpaged(fp32Moments(updated.elements), pagedStateBytes(updated, plan));
    case OptimizerKind::PagedAdam8bit:
        return unpaged(eightBitMoments(updated.elements, plan.eightBitBlock), pagedStateBytes(updated, plan));
    case OptimizerKind::Adam4bit: return torchaoMoments(updated.elements, elementBytes, true, plan.isOnCpu);
    case OptimizerKind::AdamFp8: return torchaoMoments(updated.elements, elementBytes, false, plan.isOnCpu);
    case OptimizerKind::Adafactor: return factoredMoment(updated, elementBytes);
    case OptimizerKind::Lion: return {{"exp_avg", bytes}};
    case OptimizerKind::GaLore:
    case OptimizerKind::GaLore8bit:
    case OptimizerKind::Apollo: return projectedMoments(updated, elementBytes, plan);
    case OptimizerKind::Lomo: return {};
    case OptimizerKind::AdaLomo: return rowsAndColumns(updated);
    case OptimizerKind::Muon:
        return isOrthogonalized(updated) ? StateTensors{{"momentum_buffer", bytes}} : twoMoments(bytes, plan);
    }
    return {};
}

std::int64_t sharedStateBytes(const std::vector<ParameterTensor>& updated, OptimizerKind optimizer)
{
    const auto isQuantized = [](const ParameterTensor& tensor) { return tensor.elements >= leastQuantized; };
    const bool isIn8Bits = optimizer == OptimizerKind::Adam8bit || optimizer == OptimizerKind::PagedAdam8bit
        || optimizer == OptimizerKind::GaLore8bit;
    const bool isNeeded = isIn8Bits && std::any_of(updated.begin(), updated.end(), isQuantized);
    return isNeeded ? 2 * codeTable : 0;
}

namespace {

/// B of `elements` of a parameter in its own type; 0 in the plan's.
std::int64_t storedPiece(const ParameterTensor& parameter, std::int64_t elements)
{
    return parameter.elements > 0 ? parameter.storedBytes / parameter.elements * elements : 0;
}

/// A device's share of everything trained, one tensor for each type.
std::vector<ParameterTensor> flatPartitions(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    std::vector<ParameterTensor> partitions;
    for (const ParameterTensor& parameter : parameters) {
        if (!parameter.isTrained)
            continue;
        const auto alike = std::find_if(partitions.begin(), partitions.end(), [&](const ParameterTensor& one) {
            return one.storedBytes == storedPiece(parameter, one.elements)
                && (one.isExpert == parameter.isExpert || plan.expertParallel == 1);
        });
        ParameterTensor& whole = alike != partitions.end()
            ? *alike
            : partitions.emplace_back(ParameterTensor{"flat partition", {0}, 0, true, false, 0});
        whole.isExpert = parameter.isExpert;
        whole.elements += parameter.elements;
        whole.storedBytes += storedPiece(parameter, parameter.elements);
    }
    for (ParameterTensor& one : partitions) {
        const std::int64_t elements = piece(one.elements, plan.shards(one.isExpert));
        one.storedBytes = storedPiece(one, elements);
        one.elements = elements;
        one.shape = {elements};
    }
    std::erase_if(partitions, [](const ParameterTensor& one) { return one.elements == 0; });
    return partitions;
}

} // namespace

std::vector<ParameterTensor> updatedTensors(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    std::vector<ParameterTensor> updated;
    const auto addFlat = [&](std::int64_t elements) {
        if (elements > 0)
            updated.push_back({"flat partition", {elements}, elements, true, false, 0});
    };
    const bool isByFsdp = plan.isByFsdp();
    if ((plan.zeroStage == 1 || plan.zeroStage == 2) && !isByFsdp)
        return flatPartitions(parameters, plan);
    std::int64_t group = 0; // elements of one of DeepSpeed's sub-groups
    updated.reserve(parameters.size());
    for (const ParameterTensor& parameter : parameters) {
        if (!parameter.isTrained)
            continue;
        if (plan.isByDeepSpeed() && plan.zeroStage == 3) {
            group += shareElements(parameter, plan);
            if (group >= plan.deepspeed.subGroup)
                addFlat(std::exchange(group, 0));
            continue;
        }
        updated.push_back({{},
                           parameter.shape,
                           parameter.elements,
                           true,
                           parameter.isEmbedding,
                           parameter.module,
                           parameter.storedBytes});
        if (plan.zeroStage == 3 || isByFsdp) {
            ParameterTensor& own = updated.back();
            own.elements = shareElements(parameter, plan);
            own.shape = {own.elements};
            own.storedBytes = storedPiece(parameter, own.elements);
        }
    }
    addFlat(group);
    return updated;
}

KeptBytes keptBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    KeptBytes kept;
    for (const ParameterTensor& parameter : parameters) {
        kept.weights += weightBytes(parameter, plan);
        if (plan.phase != StepPhase::Training || !parameter.isTrained || plan.updatesEarly())
            continue;
        const std::int64_t gradient = gradientElements(parameter, plan) * gradientBytes(parameter, plan);
        (plan.streamsGradients() ? kept.host : kept.gradients) += gradient;
    }
    if (plan.hasOptimizer()) {
        const auto all = updatedTensors(parameters, plan);
        for (const ParameterTensor& updated : all) {
            const PrecisionRule rule = precisionRule(updated, plan);
            kept.master += updated.elements * rule.master;
            for (const StateTensor& tensor : stateTensors(updated, rule.updated(), plan))
                kept.state += tensor.bytes;
            kept.host += pagedStateBytes(updated, plan);
        }
        kept.state += sharedStateBytes(all, plan.optimizer);
    }
    if (plan.offload != Offload::None) {
        kept.host += kept.master + kept.state;
        kept.master = kept.state = 0;
    }
    if (plan.offload == Offload::Parameters) {
        std::int64_t scales = 0;
        for (const ParameterTensor& parameter : parameters)
            scales += scaleBytes(parameter, plan);
        kept.host += kept.weights - scales;
        kept.weights = scales;
    }
    return kept;
}

} // namespace memscape
