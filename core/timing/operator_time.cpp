// SPDX-License-Identifier: Apache-2.0
#include "core/timing/operator_time.h"

#include "core/timing/device_kernels.h"
#include "core/timing/offload_time.h"
#include "core/timing/pytorch_operations.h"
#include "core/timing/shard_copies.h"
#include "core/timing/tensor_reuse.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <functional>
#include <limits>

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

/// On a processor. `rates` are those of the plan's formats; other formats than FP32 run as much faster.
TimeParts hostParts(const HostOperations& host, const DeviceRates& rates, const OperatorCost& cost, double efficiency)
{
    TimeParts parts;
    double pieces = 0;
    for (const ProductPart& product : cost.products) {
        if (cost.isConvolution) // no probe is one
            break;
        const HostProductTime time = host.productTime(product.way, product.shape);
        parts.calls += product.count * (host.call + time.constant);
        parts.memory += product.count * time.moving;
        parts.arithmetic += product.count * time.arithmetic * rates.float32 / rates.rate(cost);
        pieces += product.count;
    }
    const double least = cost.bytes / rates.bandwidth;
    if (pieces > 0) {
        parts.memory += std::max(0.0, least - parts.memory - parts.arithmetic); // what memory makes it wait
        return parts;
    }
    parts.calls = cost.kernels * host.call;
    if (cost.isProduct) { // convolutions, attention
        const double arithmetic = cost.flops / (rates.rate(cost) * efficiency);
        (arithmetic > least ? parts.arithmetic : parts.memory) = std::max(arithmetic, least);
        return parts;
    }
    parts.memory = std::max(cost.bytes * host.perByte, least);
    return parts;
}

/// One operator, forward or backward.
struct Run
{
    TimeParts parts;    ///< s; on a GPU all of it under what holds it
    double flops = 0;   ///< of a product
    double kernels = 0; ///< dispatched
    bool isAttention = false;
};

class Clock
{
public:
    Clock(const DeviceRates& rates, const StepTimeOptions& options, StepTime& time)
        : m_rates(rates)
        , m_efficiency(options.efficiency)
        , m_host(options.host)
        , m_pytorch(options.pytorch)
        , m_kernels(options.kernels)
        , m_time(time)
    { }
    Run measured(const OperatorCost& cost) const
    {
        Run run;
        run.flops = cost.isProduct ? cost.flops : 0;
        run.kernels = cost.kernels;
        run.isAttention = cost.attention.has_value();
        run.parts = m_pytorch ? m_pytorch->parts(cost)
            : m_host          ? hostParts(*m_host, m_rates, cost, m_efficiency)
            : m_kernels       ? m_kernels->parts(m_rates, cost)
                              : deviceParts(cost);
        if (m_pytorch && isView(cost.kind)) // no kernel, but a call
            run.kernels += m_pytorch->viewCall / m_pytorch->forwardCall;
        return run;
    }
    /// Gradients of so many bytes, each added to one that is there.
    void addSums(Run& run, double bytes, double count) const
    {
        if (!(m_kernels || m_pytorch) || count == 0)
            return;
        const Run sums = measured({0, 3 * bytes, count});
        run.kernels += sums.kernels;
        run.parts.calls += sums.parts.calls;
        run.parts.memory += sums.parts.memory;
        run.parts.arithmetic += sums.parts.arithmetic;
    }
    /// Books it as run so often, under what holds it; the seconds.
    double book(const Run& run, double times)
    {
        m_time.executedFlops += run.flops * times;
        m_time.launchBound += times * run.parts.calls;
        m_time.memoryBound += times * run.parts.memory;
        m_time.turned += times * run.parts.turned;
        m_time.arithmeticBound += times * run.parts.arithmetic;
        m_time.attention += run.isAttention ? times * run.parts.total() : 0;
        return times * run.parts.total();
    }

private:
    TimeParts deviceParts(const OperatorCost& cost) const
    {
        const double arithmetic = cost.flops / (m_rates.rate(cost) * (cost.isProduct ? m_efficiency : 1));
        const double memory = cost.bytes / m_rates.bandwidth;
        const double launch = cost.kernels * m_rates.launch;
        const double seconds = operatorSeconds(m_rates, cost, m_efficiency);
        TimeParts parts;
        if (launch > std::max(arithmetic, memory))
            parts.calls = seconds;
        else
            (memory > arithmetic ? parts.memory : parts.arithmetic) = seconds;
        return parts;
    }

    const DeviceRates& m_rates;
    double m_efficiency;
    const HostOperations* m_host;
    const PytorchOperations* m_pytorch;
    const DeviceKernels* m_kernels;
    StepTime& m_time;
};

/// What a processor's operators are told apart by, and what caches hold.
void describe(OperatorCost& cost, const Graph& graph, const Operator& op, bool isBackward, const FarBytes& bytes)
{
    cost.kind = op.kind;
    cost.isBackward = isBackward;
    cost.far = isBackward ? bytes.backward : bytes.forward;
    const double all = isBackward ? bytes.backwardAll : bytes.forwardAll;
    cost.near = all > 0 ? 1 - cost.far / all : 0;
    const auto inputs = graph.inputs(op), outputs = graph.outputs(op);
    const auto elementsOf = [&](std::span<const TensorId> tensors) {
        return tensors.empty() ? 0.0 : double(graph.layoutOf(tensors[0]).elements());
    };
    const bool readsRows = op.kind >= OperatorKind::Embedding && op.kind <= OperatorKind::Gather;
    cost.elements = !readsRows ? std::max(elementsOf(inputs), elementsOf(outputs))
        : isBackward           ? (elementsOf(inputs) + elementsOf(outputs)) / 2 // zeros, and rows added to them
                               : elementsOf(outputs);
    if (op.kind == OperatorKind::Convolution)
        cost.window = windowSize(graph.layoutOf(inputs[1]));
}

/// By module: the experts of a rank, which run together, that it belongs to one of; else 1.
std::vector<double> expertsAtOnce(const Graph& graph, const Plan& plan)
{
    std::vector<double> experts(graph.modules.size(), 1), children(graph.modules.size());
    if (plan.expertParallel < 2)
        return experts;
    const auto isExpert = [](const ModuleCall& module) { return module.type == "Expert"; };
    for (const ModuleCall& module : graph.modules)
        children[module.parent] += isExpert(module);
    for (std::size_t i = 1; i < experts.size(); ++i) { // parents come first
        const ModuleCall& module = graph.modules[i];
        experts[i] = isExpert(module) ? children[module.parent] : experts[module.parent];
    }
    return experts;
}

/// Of the rows that one of a rank's experts takes: no other takes them, so that their gradients go back as they came
/// (Megatron's permutation), and nothing is added up.
OperatorCost rowsBackward(const Graph& graph, const Operator& op)
{
    const TensorId rows = graph.outputs(op)[0];
    if (!op.hasGradient)
        return {};
    const double elements = double(graph.layoutOf(rows).elements());
    return {elements, 2 * elements * double(elementBytes(graph.tensors[rows].dtype)), 1};
}

/// Elements of a weight that a batched product reads the other way round: its gradient lies as it was read, and
/// autograd copies it into the weight's own order.
double turnedGradient(const Graph& graph, const Operator& op)
{
    if (op.kind != OperatorKind::Bmm)
        return 0;
    const Tensor& weight = graph.tensors[graph.inputs(op)[1]];
    const bool isWeight = graph.storages[weight.storage].role == Role::Parameter;
    const Layout& read = graph.layouts[weight.layout];
    return isWeight && weight.needsGradient && !read.isContiguous() ? double(read.elements()) : 0;
}

/// What the caches do not hold, where the model of the device asks for it. `nearSeconds`: of an operator, from near.
std::vector<FarBytes> farOf(const Graph& graph, const StepTimeOptions& options, bool isTraining,
                            std::function<double(std::size_t, bool)> nearSeconds)
{
    if (options.pytorch)
        return farBytes(graph, options.held,
                        {options.pytorch->cache, options.pytorch->retention, std::move(nearSeconds)}, isTraining);
    if (options.kernels && options.kernels->cache() > 0)
        return farBytes(graph, std::numeric_limits<double>::infinity(),
                        {.bytes = options.kernels->cache(), .perResult = 1}, isTraining, Copies::Skipped);
    return std::vector<FarBytes>(graph.operators.size());
}

/// What every operator takes; a copy (Graph::copies) takes what it was copied from takes.
class OperatorRuns
{
public:
    OperatorRuns(const Graph& graph, const Plan& plan, const Clock& clock, const StepTimeOptions& options)
        : m_index(graph.operators.size())
    {
        const bool isTraining = plan.phase == StepPhase::Training;
        std::vector<bool> used(graph.tensors.size());
        const std::vector<double> experts = expertsAtOnce(graph, plan);
        const auto costOf = [&](OperatorCost cost, const Operator& op, bool isBackward, const FarBytes& bytes) {
            describe(cost, graph, op, isBackward, bytes);
            cost.atOnce = experts[op.module];
            cost.isTurned = cost.isTurned && !plan.isChannelsLast;
            return inRecipe(std::move(cost), plan);
        };
        const auto nearSeconds = [&](std::size_t i, bool isBackward) {
            const Operator& op = graph.operators[i];
            const OperatorCost cost = isBackward ? backwardCost(graph, op) : forwardCost(graph, op);
            return clock.measured(costOf(cost, op, isBackward, {})).parts.total();
        };
        const std::vector<FarBytes> far = farOf(graph, options, isTraining, nearSeconds);
        auto copied = graph.copies.begin();
        for (std::uint32_t i = 0; i < m_index.size(); ++i) {
            while (copied != graph.copies.end() && i >= copied->last)
                ++copied;
            if (copied != graph.copies.end() && i >= copied->first) {
                m_index[i] = m_index[i - copied->period];
                continue;
            }
            m_index[i] = std::uint32_t(m_runs.size());
            const Operator& op = graph.operators[i];
            const bool ordersRows = op.kind == OperatorKind::Index && experts[op.module] > 1;
            const OperatorCost backward = ordersRows ? rowsBackward(graph, op) : backwardCost(graph, op);
            m_runs.push_back({clock.measured(costOf(forwardCost(graph, op), op, false, far[i])),
                              isTraining ? clock.measured(costOf(backward, op, true, far[i])) : Run()});
            if (isTraining && op.hasGradient && !ordersRows)
                addSums(graph, op, clock, used);
            if (isTraining && options.pytorch != nullptr && op.hasGradient)
                m_runs.back().second.parts.memory += options.pytorch->turnedCopySeconds(turnedGradient(graph, op));
        }
    }
    std::size_t size() const { return m_index.size(); }
    const Run& forward(std::size_t op) const { return m_runs[m_index[op]].first; }
    const Run& backward(std::size_t op) const { return m_runs[m_index[op]].second; }

private:
    /// Of operands that another operator has used before: their gradients meet.
    void addSums(const Graph& graph, const Operator& op, const Clock& clock, std::vector<bool>& used)
    {
        double bytes = 0, count = 0;
        for (const TensorId tensor : graph.inputs(op)) {
            if (!graph.tensors[tensor].needsGradient)
                continue;
            if (used[tensor]) {
                bytes += double(graph.layoutOf(tensor).elements() * elementBytes(graph.tensors[tensor].dtype));
                ++count;
            }
            used[tensor] = true;
        }
        clock.addSums(m_runs.back().second, bytes, count);
    }

    std::vector<std::uint32_t> m_index;
    std::vector<std::pair<Run, Run>> m_runs;
};

/// Attention whose keys and values ranks pass round.
bool isAttentionRing(const Operator& op)
{
    return isAttentionKernel(op.kind) && attentionRanks(op.attribute) > 1;
}

/// Passes of a step: those that a micro-batch runs forward and backward.
double passesOf(const Plan& plan)
{
    return plan.phase == StepPhase::Training ? 2.0 * plan.accumulation : 1.0;
}

/// The collectives that are operators of the network (of tensor, context and expert parallelism), alike ones together.
/// A replay runs those of its operators again.
std::vector<Collective> recordedCollectives(const Graph& graph, const Plan& plan,
                                            std::span<const RecomputedRange> recomputed)
{
    std::vector<Collective> all;
    const bool isTraining = plan.phase == StepPhase::Training;
    const auto bytesOf = [&](TensorId tensor) {
        return double(graph.layoutOf(tensor).elements() * elementBytes(graph.tensors[tensor].dtype));
    };
    const auto add = [&](const Collective& one) {
        const auto alike = std::find_if(all.begin(), all.end(), [&](const Collective& other) {
            return other.kind == one.kind && other.payload == one.payload && other.what == one.what;
        });
        if (alike == all.end())
            all.push_back(one);
        else
            alike->count += one.count;
    };
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator& op = graph.operators[i];
        while (!recomputed.empty() && i >= recomputed.front().last)
            recomputed = recomputed.subspan(1);
        const bool isReplayed = isTraining && !recomputed.empty() && i >= recomputed.front().first;
        const double times = passesOf(plan) + (isReplayed ? plan.accumulation : 0);
        if (op.kind == OperatorKind::AllToAll) {
            add({"tokens to and from experts", CollectiveKind::AllToAll, bytesOf(graph.inputs(op)[0]), times,
                 plan.expertParallel, plan.expertParts()});
            continue;
        }
        if (isAttentionRing(op)) { // keys and values, and backward their gradients, which come home
            const double block = bytesOf(graph.inputs(op)[1]) + bytesOf(graph.inputs(op)[2]);
            const int ranks = int(attentionRanks(op.attribute));
            const double steps = double(ranks - 1);
            add({"keys and values", CollectiveKind::Ring, block, steps * times, ranks, plan.tensorParallel});
            if (isTraining)
                add({"gradients of keys and values", CollectiveKind::Ring, block, (steps + 1) * plan.accumulation,
                     ranks, plan.tensorParallel});
            continue;
        }
        if (!isCollective(op.kind))
            continue;
        const TensorId whole = op.kind == OperatorKind::AllGather ? graph.outputs(op)[0] : graph.inputs(op)[0];
        const auto kind = op.kind == OperatorKind::AllReduce ? CollectiveKind::AllReduce
            : op.kind == OperatorKind::AllGather             ? CollectiveKind::AllGather
                                                             : CollectiveKind::ReduceScatter;
        add({"activations", kind, bytesOf(whole), times, plan.tensorParallel});
    }
    return all;
}

Result<void> addCommunication(StepTime& time, const Graph& graph, const std::vector<ParameterTensor>& parameters,
                              const Plan& plan, const DeviceRates& rates, const StepTimeOptions& options,
                              double attention)
{
    const std::vector<Collective> reductions = dataParallelCommunication(parameters, plan),
                                  borders = pipelineCommunication(graph, plan),
                                  recorded = recordedCollectives(graph, plan, options.recomputed),
                                  copies = offloadCommunication(parameters, plan);
    const double host = sentBytes(copies);
    if (sentBytes(reductions) + sentBytes(borders) + sentBytes(recorded) > 0 && rates.peer == 0)
        return fail("predict.device", "the bandwidth between devices of this kind is not known",
                    "give it (link_bandwidth=50GB/s), choose a device of the catalogue with a link to its like, or one "
                    "replica");
    if (host > 0 && rates.host == 0)
        return fail("predict.device", "the bandwidth between this device and its host is not known",
                    "choose a device with a host link, or no offload");
    const auto seconds = [&](const Collective& one) {
        return exchangeSeconds(one, options.linkShare * rates.peer, options.machines);
    };
    double dataSeconds = 0, tensorSeconds = 0, ringSeconds = 0, sendSeconds = 0;
    for (const Collective& one : reductions)
        dataSeconds += seconds(one);
    for (const Collective& one : borders) // an embedding's gradient waits for the end
        (one.kind == CollectiveKind::Send ? sendSeconds : tensorSeconds) += seconds(one);
    for (const Collective& one : recorded) {
        const bool isRing = one.kind == CollectiveKind::Ring;
        (isRing ? ringSeconds : tensorSeconds) += seconds(one);
        tensorSeconds += isRing ? 0 : one.count * options.collectiveLatency;
    }
    const double hostSeconds = host > 0 ? host / rates.host : 0;
    OffloadTime offload;
    if (host > 0) {
        OffloadWork work;
        work.offload = plan.offload;
        work.layers = double(
            std::max<std::ptrdiff_t>(1, std::count_if(graph.blocks.begin(), graph.blocks.end(), [](const Block& block) {
                                         return block.kind == Block::Kind::Layer;
                                     })));
        work.forward = time.forward;
        work.backward = time.backward + time.recomputation;
        work.micro = plan.accumulation;
        work.down = copies.front().sentBytes();
        work.up = host - work.down;
        work.updateBytes = hostUpdateBytes(parameters, plan);
        offload = offloadTime(work, rates.host);
        time.optimizer += offload.update;
    }
    // Behind what the reductions hide: the last backward pass, with stage 2 and 3 every pass.
    const double backward = time.backward + time.recomputation;
    const double cover = !plan.hidesReductions() ? 0
        : plan.zeroStage == 3                    ? time.forward + backward
        : plan.zeroStage == 2                    ? backward
                                                 : backward / plan.accumulation;
    time.communication = dataSeconds + tensorSeconds + ringSeconds + sendSeconds + hostSeconds;
    time.inPasses = tensorSeconds + std::max(0.0, ringSeconds - attention);
    time.exposed = std::max(0.0, dataSeconds - cover) + time.inPasses + offload.exposed;
    time.slowed = options.collectiveUnits * std::min(dataSeconds, cover);
    return {};
}

/// Later gradients added into the first, one operation for each parameter.
double additionSeconds(const HostOperations& host, double gradientBytes, const std::vector<ParameterTensor>& parameters,
                       const DeviceRates& rates)
{
    const auto trained =
        std::count_if(parameters.begin(), parameters.end(), [](const auto& one) { return one.isTrained; });
    return hostParts(host, rates, {0, 3 * gradientBytes, double(trained)}, 1).total();
}

/// All kept gradients, each added to one that is there.
double sumSeconds(const std::vector<ParameterTensor>& parameters, const Plan& plan, const DeviceRates& rates,
                  const StepTimeOptions& options)
{
    double bytes = 0;
    for (const ParameterTensor& parameter : parameters)
        bytes += parameter.isTrained ? double(keptGradientBytes(parameter, plan)) : 0;
    return options.host != nullptr ? additionSeconds(*options.host, bytes, parameters, rates)
                                   : 3 * bytes / rates.bandwidth;
}

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

/// What the passes and the update wait for the host that dispatches them, one pass after the other.
double dispatchSeconds(const StepTime& time, const Dispatch& host, double launch, double forward, double backward,
                       double recomputed, double updated)
{
    const auto waits = [](double dispatched, double device) { return std::max(0.0, dispatched - device); };
    return waits(forward * (host.forward + launch), time.forward)
        + waits(backward * (host.backward + launch) + recomputed * (host.forward + launch),
                time.backward + time.recomputation)
        + waits(updated * host.update, time.optimizer);
}

} // namespace

std::vector<Collective> stepCollectives(const Graph& graph, const std::vector<ParameterTensor>& parameters,
                                        const Plan& plan, std::span<const RecomputedRange> recomputed)
{
    std::vector<Collective> all = dataParallelCommunication(parameters, plan);
    for (const auto& more : {recordedCollectives(graph, plan, recomputed), pipelineCommunication(graph, plan),
                             offloadCommunication(parameters, plan)})
        all.insert(all.end(), more.begin(), more.end());
    return all;
}

double DeviceRates::rate(const OperatorCost& cost) const
{
    const auto orFloat32 = [this](double value) { return value > 0 ? value : float32; };
    switch (cost.dtype) {
    case DType::Float16: return orFloat32(float16);
    case DType::BFloat16: return orFloat32(bfloat16);
    case DType::Float8E4M3:
    case DType::Float8E5M2: return float8 > 0 ? float8 : orFloat32(bfloat16);
    default: return cost.isConvolution ? orFloat32(tensorFloat32) : float32;
    }
}

Result<DeviceRates> deviceRates(const Device& device)
{
    DeviceRates rates;
    const MemoryLevel* dram = device.dram();
    rates.bandwidth = dram ? levelBandwidth(device, *dram, Operation::Copy).valueOr(0) : 0;
    rates.launch = device.launch.valueOr(0);
    rates.peer = linkRate(device, "peer");
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

OperatorCost inRecipe(OperatorCost cost, const Plan& plan)
{
    if (cost.isProduct && plan.precision == Precision::Fp8)
        cost.dtype = DType::Float8E4M3;
    else if (!cost.isProduct)
        cost.dtype = DType::Float32;
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
    for (const Segment& segment : segments(graph, step.checkpointing))
        ranges.push_back({segment.first, replayEnd(graph, segment, runsWhole)});
    return ranges;
}

Result<std::vector<OperatorTime>> operatorTimes(const Graph& graph, const Plan& plan, const Device& device,
                                                const StepTimeOptions& options)
{
    MEMSCAPE_TRY(rates, deviceRates(device));
    if (options.bandwidth > 0)
        rates.bandwidth = options.bandwidth;
    StepTime unused;
    const Clock clock(rates, options, unused);
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
    Clock clock(rates, options, time);
    const bool isTraining = plan.phase == StepPhase::Training;
    const double times = isTraining ? plan.accumulation : 1;
    const OperatorRuns runs(graph, plan, clock, options);
    double forward = 0, backward = 0, recomputed = 0; // kernels
    double attention = 0;                             // s, of the layers that pass keys and values round
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (isAttentionRing(graph.operators[i]))
            attention += times * (runs.forward(i).parts.total() + runs.backward(i).parts.total());
        time.forward += clock.book(runs.forward(i), times);
        forward += times * runs.forward(i).kernels;
        if (!isTraining)
            continue;
        time.backward += clock.book(runs.backward(i), times);
        backward += times * runs.backward(i).kernels;
    }
    time.modelFlops = time.executedFlops;
    if (isTraining)
        for (const RecomputedRange& range : options.recomputed)
            for (std::size_t i = range.first; i < range.last; ++i) {
                time.recomputation += clock.book(runs.forward(i), times);
                recomputed += times * runs.forward(i).kernels;
            }
    if (isTraining && plan.accumulation > 1) // later gradients are added into the first
        time.backward += (plan.accumulation - 1) * sumSeconds(parameters, plan, rates, options);
    const ShardCopies copies = shardCopies(parameters, plan);
    const double forwardCopies = copies.gathered / (isTraining ? 2 : 1) / rates.bandwidth;
    time.copied = (copies.gathered + copies.reduced) / rates.bandwidth;
    time.forward += forwardCopies;
    time.backward += time.copied - forwardCopies;
    time.memoryBound += time.copied;
    time.optimizer = optimizerSeconds(parameters, plan, rates, options);
    MEMSCAPE_CHECK(addCommunication(time, graph, parameters, plan, rates, options, attention));
    if (options.dispatch != nullptr) {
        const double updated = isTraining && plan.hasOptimizer() ? double(updatedTensors(parameters, plan).size()) : 0;
        const Dispatch& host = *options.dispatch;
        time.dispatch = options.host == nullptr
            ? dispatchSeconds(time, host, rates.launch, forward, backward, recomputed, updated)
            // A processor dispatches and computes in turn.
            : (forward + recomputed) * host.forward + backward * host.backward + updated * host.update;
    }
    time.total = time.forward + time.backward + time.recomputation + time.optimizer + time.exposed + time.slowed
        + time.dispatch + (options.host != nullptr ? options.host->start : 0);
    return time;
}

} // namespace memscape
