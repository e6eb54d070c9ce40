// SPDX-License-Identifier: Apache-2.0
#include "core/timing/operator_time.h"

#include "core/timing/device_kernels.h"
#include "core/timing/eager_calls.h"
#include "core/timing/operator_runs.h"
#include "core/timing/pytorch_operations.h"
#include "core/timing/shard_copies.h"
#include "core/timing/step_communication.h"
#include "core/training/sharding.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

double linkRate(const Device& device, std::string_view id)
{
    for (const Link& link : device.links)
        if (link.id == id)
            return link.bandwidth.valueOr(0);
    return 0;
}

/// Later gradients added into the first, one operation for each parameter.
double additionSeconds(const HostOperations& host, double gradientBytes, const std::vector<ParameterTensor>& parameters,
                       const DeviceRates& rates)
{
    const auto trained =
        std::count_if(parameters.begin(), parameters.end(), [](const auto& one) { return one.isTrained; });
    return hostParts(host, rates, {0, 3 * gradientBytes, double(trained)}, 1).total();
}

double gradientBytes(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    double bytes = 0;
    for (const ParameterTensor& parameter : parameters)
        bytes += parameter.isTrained ? double(keptGradientBytes(parameter, plan)) : 0;
    return bytes;
}

/// All kept gradients, each added to one that is there.
double sumSeconds(const std::vector<ParameterTensor>& parameters, const Plan& plan, const DeviceRates& rates,
                  const StepTimeOptions& options)
{
    const double bytes = gradientBytes(parameters, plan);
    return options.host != nullptr ? additionSeconds(*options.host, bytes, parameters, rates)
                                   : 3 * bytes / rates.bandwidth;
}

/// What a GPU does, tensor by tensor, to gradients that are there already: autograd's AccumulateGrad adds another to
/// each (torch/csrc/autograd/functions/accumulate_grad.h), and zero_grad() of PyTorch 1 fills each with zeros
/// (torch/optim/optimizer.py; PyTorch 2 takes them all at once). Where gradients are sharded they lie in a few buffers.
struct GradientKernels
{
    int sums = 0;       ///< of all gradients
    double kernels = 0; ///< of sums and fillings
    double filled = 0;  ///< bytes

    GradientKernels(const std::vector<ParameterTensor>& parameters, const Plan& plan)
        : sums(plan.accumulation - (plan.freesGradients() ? 1 : 0))
    {
        const auto isTrained = [](const ParameterTensor& parameter) { return parameter.isTrained; };
        const double trained = double(std::count_if(parameters.begin(), parameters.end(), isTrained));
        const bool fills = !plan.freesGradients();
        filled = fills ? gradientBytes(parameters, plan) : 0;
        kernels = plan.isSharded() ? 0 : trained * (sums + (fills && plan.isBefore2 ? 1 : 0));
    }
};

double optimizerSeconds(const std::vector<ParameterTensor>& parameters, const Plan& plan, const DeviceRates& rates,
                        const StepTimeOptions& options)
{
    if (options.kernels != nullptr)
        return options.kernels->parts(rates, updateCost(parameters, plan)).total();
    if (options.host == nullptr)
        return operatorSeconds(rates, updateCost(parameters, plan), options.efficiency);
    if (!plan.hasOptimizer() || plan.offload != Offload::None)
        return 0;
    Plan looped = plan; // a processor has no kernels that take many tensors at once
    if (looped.update == UpdateStyle::Foreach)
        looped.update = UpdateStyle::Loop;
    if (options.pytorch != nullptr)
        return options.pytorch->updateSeconds(parameters, looped, options.held);
    return hostParts(*options.host, rates, updateCost(parameters, looped), options.efficiency).total();
}

bool isCompiled(const Graph& graph)
{
    return std::any_of(graph.operators.begin(), graph.operators.end(),
                       [](const Operator& op) { return op.kind == OperatorKind::Fused; });
}

/// What the host has to do for a pass.
struct Dispatched
{
    double kernels = 0, calls = 0;

    void add(const OperatorRun& run, double times)
    {
        kernels += times * run.kernels;
        calls += times * run.calls;
    }
};

/// What DeepSpeed's Python does, in calls (eager_calls.h): under stage 3 the hooks of a module with weights, which
/// gather and give back, in each pass; under 1 and 2 the hook of a gradient, which copies it into the bucket. Measured
/// with DeepSpeed 0.19.8 and PyTorch 2.15 on one core of a Zen 4 EPYC (virtual machine), ranks that move nothing: a
/// layer of LLaMA with nine such modules took 3.4 ms longer forward and 3.6 ms backward under stage 3, 0.7 ms backward
/// under stage 2, where its own calls took 1.1 ms forward (12 layers less 4, of 32 channels and 4 tokens).
constexpr double callsOfGather = 24, callsOfBucket = 5;

bool usesWeights(const Graph& graph, const Operator& op)
{
    if (isView(op.kind) || op.kind == OperatorKind::Release)
        return false;
    const auto inputs = graph.inputs(op);
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](TensorId input) { return graph.storageOf(input).role == Role::Parameter; });
}

/// What the passes and the update wait for the host that dispatches them, one pass after the other. Where nothing makes
/// it wait for the device, the host has the update's kernels ready by as much as it was done with backward's before.
double dispatchSeconds(const StepTime& time, const Dispatch& host, bool isCompiled, double launch,
                       const Dispatched& forward, const Dispatched& backward, const Dispatched& recomputed,
                       double updating)
{
    const auto waits = [](double dispatched, double device) { return std::max(0.0, dispatched - device); };
    const auto seconds = [&](const Dispatched& pass, double kernel) {
        return (isCompiled ? pass.kernels * kernel : pass.calls * host.call + pass.kernels * host.kernel)
            + pass.kernels * launch;
    };
    const double runs = seconds(forward, host.forward);
    const double returned = seconds(backward, host.backward) + seconds(recomputed, host.forward);
    const double lead = host.waitsBeforeUpdate ? 0 : waits(time.backward + time.recomputation, returned);
    return waits(runs, time.forward) + waits(returned, time.backward + time.recomputation)
        + waits(updating, time.optimizer + lead);
}

} // namespace

double DeviceRates::rate(const OperatorCost& cost) const
{
    const auto orFloat32 = [this](double value) { return value > 0 ? value : float32; };
    switch (cost.dtype) {
    case DType::Float16: return orFloat32(float16);
    case DType::BFloat16: return orFloat32(bfloat16);
    case DType::Float8E4M3:
    case DType::Float8E5M2: return float8 > 0 ? float8 : orFloat32(bfloat16);
    default: return cost.mayUseTf32 ? orFloat32(tensorFloat32) : float32;
    }
}

Result<DeviceRates> deviceRates(const Device& device)
{
    DeviceRates rates;
    const MemoryLevel* dram = device.dram();
    rates.bandwidth = dram ? levelBandwidth(device, *dram, Operation::Copy).valueOr(0) : 0;
    rates.launch = device.launch.valueOr(0);
    rates.peer = linkRate(device, "peer");
    const auto within = [&](std::string_view link) {
        const double rate = linkRate(device, link);
        return rate > 0 ? rate : rates.peer;
    };
    rates.pair = within("peer of 2");
    rates.four = within("peer of 4");
    rates.host = linkRate(device, "host");
    rates.float32 = device.flopRate("fp32");
    rates.float16 = device.flopRate("fp16");
    rates.bfloat16 = device.flopRate("bf16");
    rates.float8 = device.flopRate("fp8");
    rates.tensorFloat32 = device.flopRate("tf32");
    if (rates.bandwidth <= 0 || rates.float32 <= 0)
        return fail("predict.device",
                    fmt::format("the DRAM bandwidth or the fp32 rate of {} is not known", device.name),
                    "choose a device of the catalogue, or calibrate this one");
    return rates;
}

OperatorCost inRecipe(OperatorCost cost, bool isInFp8)
{
    if (!cost.isProduct)
        cost.dtype = DType::Float32;
    else if (isInFp8)
        cost.dtype = DType::Float8E4M3;
    return cost;
}

double operatorSeconds(const DeviceRates& rates, const OperatorCost& cost, double efficiency)
{
    const double share = cost.isProduct ? efficiency : 1;
    return std::max(cost.flops / (rates.rate(cost) * share), cost.bytes / rates.bandwidth)
        + cost.kernels * rates.launch;
}

std::vector<RecomputedRange> recomputedRanges(const Graph& graph, const StepSettings& step)
{
    const bool runsWhole = step.checkpointing.isReentrant || !graph.regions.empty() || step.rules.isBefore2;
    std::vector<RecomputedRange> ranges;
    for (const Segment& segment : segments(graph, step.checkpointing)) {
        const std::size_t end = replayEnd(graph, segment, runsWhole);
        std::size_t first = segment.first;
        for (const std::size_t kept : segment.kept) {
            ranges.push_back({first, std::min(kept, end)});
            first = kept + 1;
        }
        ranges.push_back({std::min(first, end), end});
    }
    return ranges;
}

Result<std::vector<OperatorTime>> operatorTimes(const Graph& graph, const Plan& plan, const Device& device,
                                                const StepTimeOptions& options)
{
    MEMSCAPE_TRY(rates, deviceRates(device));
    if (options.bandwidth > 0)
        rates.bandwidth = options.bandwidth;
    StepTime unused;
    const OperatorClock clock(rates, options, unused);
    const OperatorRuns runs(graph, plan, clock, options);
    std::vector<OperatorTime> times;
    times.reserve(runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i)
        times.push_back({runs.forward(i).parts.total(), runs.backward(i).parts.total()});
    return times;
}

Result<double> updateSeconds(const std::vector<ParameterTensor>& parameters, const Plan& plan, const Device& device,
                             const StepTimeOptions& options)
{
    MEMSCAPE_TRY(rates, deviceRates(device));
    if (options.bandwidth > 0)
        rates.bandwidth = options.bandwidth;
    return optimizerSeconds(parameters, plan, rates, options);
}

Result<StepTime> stepTime(const Graph& graph, const std::vector<ParameterTensor>& parameters, const Plan& plan,
                          const Device& device, const StepTimeOptions& options)
{
    MEMSCAPE_TRY(rates, deviceRates(device));
    if (options.bandwidth > 0)
        rates.bandwidth = options.bandwidth;
    StepTime time;
    OperatorClock clock(rates, options, time);
    const bool isTraining = plan.phase == StepPhase::Training;
    const double times = isTraining ? plan.accumulation : 1;
    const OperatorRuns runs(graph, plan, clock, options);
    Dispatched forward, backward, recomputed;
    const auto gathers = [&](std::size_t i) {
        const bool isGathered = plan.isByDeepSpeed() && plan.shardsWeights();
        return isGathered && usesWeights(graph, graph.operators[i]) ? times * callsOfGather : 0;
    };
    for (std::size_t i = 0; i < runs.size(); ++i) {
        time.forward += clock.book(runs.forward(i), times);
        forward.add(runs.forward(i), times);
        forward.calls += gathers(i);
        if (!isTraining)
            continue;
        time.backward += clock.book(runs.backward(i), times);
        backward.add(runs.backward(i), times);
        backward.calls += gathers(i);
    }
    if (isTraining && plan.isByDeepSpeed() && !plan.shardsWeights())
        backward.calls += times * callsOfBucket
            * double(std::count_if(parameters.begin(), parameters.end(),
                                   [](const ParameterTensor& parameter) { return parameter.isTrained; }));
    time.modelFlops = time.executedFlops;
    if (isTraining)
        for (const RecomputedRange& range : options.recomputed)
            for (std::size_t i = range.first; i < range.last; ++i) {
                time.recomputation += clock.book(runs.forward(i), times);
                recomputed.add(runs.forward(i), times);
                recomputed.calls += gathers(i);
            }
    if (isTraining && options.kernels != nullptr) {
        const GradientKernels gradients(parameters, plan);
        time.backward += gradients.sums * sumSeconds(parameters, plan, rates, options)
            + gradients.filled / rates.bandwidth + gradients.kernels * rates.launch;
        backward.kernels += gradients.kernels;
        backward.calls += callsBeside * gradients.kernels;
    } else if (isTraining) // later gradients are added into the first
        time.backward += (plan.accumulation - 1) * sumSeconds(parameters, plan, rates, options);
    const ShardCopies copies = shardCopies(parameters, plan);
    const double forwardCopies = copies.gathered / (isTraining ? 2 : 1) / rates.bandwidth;
    time.copied = (copies.gathered + copies.reduced) / rates.bandwidth;
    time.forward += forwardCopies;
    time.backward += time.copied - forwardCopies;
    time.memoryBound += time.copied;
    time.optimizer = optimizerSeconds(parameters, plan, rates, options);
    MEMSCAPE_CHECK(addCommunication(time, graph, parameters, plan, rates, options, runs));
    if (options.dispatch != nullptr) {
        const bool updates = isTraining && plan.hasOptimizer();
        const Dispatch& host = *options.dispatch;
        const double kernels = updates && host.updateKernel > 0 ? updateCost(parameters, plan).kernels : 0;
        const double updating = (updates ? double(updatedTensors(parameters, plan).size()) * host.update : 0)
            + kernels * (host.updateKernel + rates.launch);
        time.dispatch = options.host == nullptr
            ? dispatchSeconds(time, host, isCompiled(graph), rates.launch, forward, backward, recomputed, updating)
            // A processor dispatches and computes in turn.
            : (forward.kernels + recomputed.kernels) * host.forward + backward.kernels * host.backward + updating;
    }
    time.total = time.forward + time.backward + time.recomputation + time.optimizer + time.exposed + time.slowed
        + time.dispatch + (options.host != nullptr ? options.host->start : 0);
    return time;
}

} // namespace memscape
