// SPDX-License-Identifier: Apache-2.0
#include "core/training/optimizer_step.h"

#include "core/training/lora.h"
#include "core/training/sharding.h"
#include "core/training/update_rules.h"

#include <algorithm>

namespace memscape {

namespace {

bool updatesOnDevice(const Plan& plan)
{
    return plan.hasOptimizer() && plan.offload == Offload::None;
}

/// record_function of PyTorch 1, in which every optimizer runs: a number, and 288 B that die at once.
void recordFunction(Trace& trace, const Plan& plan)
{
    if (!plan.isOnCpu || !plan.isBefore2 || !plan.hasOptimizer())
        return;
    const NameId name = trace.name(std::string(recordFunctionName));
    const Temporary number(trace, 4, name, 0, Category::Workspace), handle(trace, 288, name, 0, Category::Workspace);
}

/// Half gradients as fp32, alive for the whole update.
std::vector<Temporary> fp32Gradients(Trace& trace, const Plan& plan, const std::vector<ParameterTensor>& updated)
{
    std::vector<Temporary> copies;
    if (plan.kept().master == 0 || plan.gradientBytes() == 4)
        return copies;
    const NameId name = trace.name("fp32 gradient");
    copies.reserve(updated.size());
    for (const ParameterTensor& tensor : updated)
        if (precisionRule(tensor, plan).master > 0)
            copies.emplace_back(trace, tensor.elements * 4, name, tensor.module);
    return copies;
}

/// As if there were no others.
void updateOne(Trace& trace, const Plan& plan, OptimizerBlocks& blocks, std::size_t index)
{
    OptimizerBlocks one{{blocks.updated[index]}, {blocks.masters[index]}, {blocks.state[index]}, {}};
    UpdateRules(trace, plan, one).run();
    blocks.masters[index] = one.masters[0];
    blocks.state[index] = one.state[0];
}

/// DeepSpeed takes the norm of all gradients whether it clips or not, of each in fp64 (get_grad_norm_direct).
void sumSquares(Trace& trace, const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    const std::int64_t partition = piece(trainedCount(parameters), plan.shards());
    const NameId name = trace.name("gradient in fp64");
    std::int64_t seen = 0; // of the partition of stages 1 and 2, whose rank is that of partitionGradientBytes()
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ParameterTensor& parameter = parameters[plan.reducesInBackward() ? parameters.size() - 1 - i : i];
        if (!parameter.isTrained)
            continue;
        const std::int64_t elements =
            plan.zeroStage == 3 ? shareElements(parameter, plan) : std::min(parameter.elements, partition - seen);
        seen += elements;
        const Temporary gradient(trace, 8 * elements, name, parameter.module);
    }
}

/// DeepSpeed updates one flat partition after the other. Of each it flattens the gradients and converts the copy.
void updatePartitions(Trace& trace, const Plan& plan, OptimizerBlocks& blocks)
{
    const NameId flatName = trace.name("flat gradient"), floatName = trace.name("fp32 gradient");
    for (std::size_t i = 0; i < blocks.updated.size(); ++i) {
        const std::int64_t elements = blocks.updated[i].elements;
        Temporary gradient(trace, plan.hasFlatGradients() ? 0 : elements * plan.gradientBytes(), flatName, 0);
        if (plan.gradientBytes() != plan.kept().master)
            gradient = Temporary(trace, elements * plan.kept().master, floatName, 0);
        updateOne(trace, plan, blocks, i);
    }
}

} // namespace

OptimizerBlocks allocateOptimizer(Trace& trace, const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    OptimizerBlocks blocks;
    if (!updatesOnDevice(plan))
        return blocks;
    blocks.updated = updatedTensors(parameters, plan);
    const NameId master = trace.name("master");
    std::vector<std::pair<std::string_view, NameId>> names; // of state: a few
    const auto nameOf = [&](std::string_view text) {
        for (const auto& [known, id] : names)
            if (known == text)
                return id;
        return names.emplace_back(text, trace.name(text)).second;
    };
    blocks.masters.reserve(blocks.updated.size());
    blocks.state.reserve(blocks.updated.size());
    for (const ParameterTensor& tensor : blocks.updated) {
        const PrecisionRule rule = precisionRule(tensor, plan);
        blocks.masters.push_back(
            trace.allocate(tensor.elements * rule.master, Category::MasterWeights, master, tensor.module));
        auto& state = blocks.state.emplace_back();
        for (const StateTensor& part : stateTensors(tensor, rule.updated(), plan))
            state.push_back(trace.allocate(part.bytes, Category::OptimizerState, nameOf(part.name), tensor.module));
    }
    if (plan.updatesEarly()) {
        std::size_t trained = 0;
        for (const ParameterTensor& parameter : parameters)
            blocks.indices.push_back(parameter.isTrained ? trained++ : SIZE_MAX);
    }
    trace.allocate(sharedStateBytes(blocks.updated, plan.optimizer), Category::OptimizerState, trace.name("codes"));
    return blocks;
}

void clipGradients(Trace& trace, const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    if (plan.phase != StepPhase::Training || plan.offload != Offload::None)
        return; // the host has the gradients
    if (plan.isByDeepSpeed())
        return sumSquares(trace, parameters, plan);
    if (!plan.clipsGradients)
        return;
    std::int64_t count = 0, largest = 0;
    const std::int64_t scalar = plan.gradientBytes();
    for (const ParameterTensor& parameter : parameters) {
        count += parameter.isTrained;
        if (parameter.isTrained)
            largest = std::max(largest, gradientElements(parameter, plan));
    }
    if (count == 0)
        return;
    const NameId norm = trace.name("gradient norm");
    const auto make = [&](std::int64_t bytes) { return Temporary(trace, bytes, norm, 0); };
    Temporary total;
    {
        Temporary chunks(trace, plan.isOnCpu ? 0 : 4 * count * piece(largest, normChunk), trace.name("norm chunks"), 0,
                         Category::Workspace); // of one kernel
        std::vector<Temporary> norms;
        for (std::int64_t i = 0; i < count; ++i)
            norms.push_back(make(scalar));
        chunks.reset();
        const Temporary stacked = make(count * scalar);
        if (plan.isBefore2) // their list is an argument alone
            norms.clear();
        total = make(scalar);
    }
    const auto withNumber = [&] { // a kernel that is given a number, which is a tensor on a CPU
        const Temporary number = make(plan.isOnCpu ? numberTensorBytes : 0), cast = make(plan.isOnCpu ? scalar : 0);
        return make(scalar);
    };
    Temporary sum = withNumber();        // total_norm + 1e-6
    Temporary reciprocal = make(scalar); // max_norm / sum is a reciprocal and a product
    const Temporary coefficient = withNumber();
    sum.reset();
    reciprocal.reset();
    const Temporary clamped = make(scalar);
}

void updateParameters(Trace& trace, const Plan& plan, OptimizerBlocks& blocks)
{
    if (!updatesOnDevice(plan) || plan.updatesEarly())
        return;
    if (plan.isByDeepSpeed())
        return updatePartitions(trace, plan, blocks);
    const std::vector<Temporary> gradients = fp32Gradients(trace, plan, blocks.updated);
    recordFunction(trace, plan);
    UpdateRules(trace, plan, blocks).run();
}

void updateParameter(Trace& trace, const Plan& plan, OptimizerBlocks& blocks, std::size_t index)
{
    if (!updatesOnDevice(plan) || blocks.indices[index] == SIZE_MAX)
        return;
    const std::size_t own = blocks.indices[index];
    const std::vector<Temporary> gradients = fp32Gradients(trace, plan, {blocks.updated[own]});
    recordFunction(trace, plan);
    updateOne(trace, plan, blocks, own);
}

void zeroGradients(Trace& trace, const Plan& plan, std::vector<BlockId>& gradients)
{
    trace.enter(Phase::ZeroGrad);
    if (plan.kept().master == 0) // else weights are freed of their gradients by hand
        recordFunction(trace, plan);
    if (!plan.freesGradients())
        return;
    for (BlockId& gradient : gradients)
        trace.free(std::exchange(gradient, noBlock));
}

} // namespace memscape
