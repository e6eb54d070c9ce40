// SPDX-License-Identifier: Apache-2.0
#include "core/timing/operator_runs.h"

#include "core/timing/device_kernels.h"
#include "core/timing/eager_calls.h"
#include "core/timing/eager_kernels.h"
#include "core/timing/fp8_casts.h"
#include "core/timing/joined_operators.h"
#include "core/timing/pytorch_operations.h"
#include "core/timing/tensor_reuse.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace memscape {

namespace {

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

/// What PyTorch's kernels take besides.
void addEager(OperatorCost& cost, const EagerKernels& eager)
{
    cost.bytes += eager.bytes;
    cost.kernels += eager.kernels;
    cost.instructions += eager.instructions;
    cost.summed = eager.summed;
}

/// Scores that a rank of tensor parallelism, which is Megatron's, scales and masks within its softmax
/// (megatron/fused_kernels/scaled_upper_triang_masked_softmax.h): square matrices of all heads, in halves.
bool isWithinSoftmax(const Graph& graph, const Operator& op, const Plan& plan)
{
    const bool scores = op.kind == OperatorKind::Scale || op.kind == OperatorKind::MaskedFill;
    if (plan.tensorParallel < 2 || !scores)
        return false;
    const TensorId result = graph.outputs(op)[0];
    const Layout& layout = graph.layoutOf(result);
    return graph.tensors[result].dtype != DType::Float32 && layout.rank() == 4 && layout[2] == layout[3];
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

} // namespace

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

OperatorClock::OperatorClock(const DeviceRates& rates, const StepTimeOptions& options, StepTime& time)
    : m_rates(rates)
    , m_efficiency(options.efficiency)
    , m_host(options.host)
    , m_pytorch(options.pytorch)
    , m_kernels(options.kernels)
    , m_time(time)
{ }

OperatorRun OperatorClock::measured(const OperatorCost& cost) const
{
    OperatorRun run;
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

void OperatorClock::addPass(OperatorRun& run, double bytes, double kernels) const
{
    const OperatorRun pass = measured({0, bytes, kernels});
    run.kernels += pass.kernels;
    run.calls += callsBeside * pass.kernels;
    run.parts.calls += pass.parts.calls;
    run.parts.memory += pass.parts.memory;
    run.parts.arithmetic += pass.parts.arithmetic;
}

void OperatorClock::addSums(OperatorRun& run, double bytes, double count) const
{
    if ((m_kernels || m_pytorch) && count > 0)
        addPass(run, 3 * bytes, count);
}

double OperatorClock::book(const OperatorRun& run, double times)
{
    m_time.executedFlops += run.flops * times;
    m_time.launchBound += times * run.parts.calls;
    m_time.memoryBound += times * run.parts.memory;
    m_time.turned += times * run.parts.turned;
    m_time.arithmeticBound += times * run.parts.arithmetic;
    m_time.attention += run.isAttention ? times * run.parts.total() : 0;
    return times * run.parts.total();
}

TimeParts OperatorClock::deviceParts(const OperatorCost& cost) const
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

OperatorRuns::OperatorRuns(const Graph& graph, const Plan& plan, const OperatorClock& clock,
                           const StepTimeOptions& options)
    : m_index(graph.operators.size())
{
    const bool isTraining = plan.phase == StepPhase::Training;
    std::vector<bool> used(graph.tensors.size());
    const JoinedOperators joined(graph, plan);
    const auto costOf = [&](OperatorCost cost, std::size_t i, bool isBackward, const FarBytes& bytes) {
        const Operator& op = graph.operators[i];
        describe(cost, graph, op, isBackward, bytes);
        if (isWithinSoftmax(graph, op, plan))
            return OperatorCost();
        const bool isMegatrons = op.kind == OperatorKind::Softmax && plan.tensorParallel > 1;
        const bool isPooledInNhwc = op.kind == OperatorKind::MaxPool && plan.isChannelsLast;
        if (options.kernels && cost.kernels > 0 && !isMegatrons && !isPooledInNhwc)
            addEager(cost, eagerKernels(graph, op, isBackward, options.kernels->units(), options.kernels->cache()));
        cost = joined.joined(std::move(cost), i);
        cost.isCudnns = plan.attendsByCudnn || graph.attention.isCudnns;
        cost.mayUseTf32 = cost.isProduct && !cost.attention
            && (plan.tf32 == Tf32::All || (plan.tf32 == Tf32::Convolutions && cost.isConvolution));
        cost.turned = plan.isChannelsLast ? cost.turnedInNhwc : cost.turned;
        cost.roundTrips = plan.isChannelsLast ? 0 : cost.roundTrips;
        return inRecipe(std::move(cost), isInFp8(graph, i, plan));
    };
    const auto forwardOf = [&](std::size_t i) {
        if (isTraining && isInFp8(graph, i + 1, plan)) // a cast, which its product has
            return OperatorCost();
        OperatorCost cost = forwardCost(graph, graph.operators[i]);
        if (!isTraining && isInFp8(graph, i, plan)) { // both operands have one byte an element by now
            const auto inputs = graph.inputs(graph.operators[i]);
            cost.bytes -= double(graph.layoutOf(inputs[0]).elements() + graph.layoutOf(inputs[1]).elements());
        }
        return cost;
    };
    const auto nearSeconds = [&](std::size_t i, bool isBackward) {
        const Operator& op = graph.operators[i];
        const OperatorCost cost = isBackward ? backwardCost(graph, op) : forwardCost(graph, op);
        return clock.measured(costOf(cost, i, isBackward, {})).parts.total();
    };
    const auto runOf = [&](const Operator& op, const OperatorCost& cost, EagerPass pass, double share) {
        OperatorRun run = clock.measured(cost);
        run.scale(share);
        run.calls = eagerCalls(op, pass, run.kernels);
        return run;
    };
    const EagerPass onward = plan.phase == StepPhase::Inference ? EagerPass::WithoutAutograd : EagerPass::Forward;
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
        const bool ordersRows = op.kind == OperatorKind::Index && joined.expertsAtOnce(i) > 1;
        const OperatorCost backward = ordersRows ? rowsBackward(graph, op) : backwardCost(graph, op);
        m_runs.push_back(
            {runOf(op, costOf(forwardOf(i), i, false, far[i]), onward, joined.share(i)),
             isTraining ? runOf(op, costOf(backward, i, true, far[i]), EagerPass::Backward, 1) : OperatorRun()});
        if (isTraining && isInFp8(graph, i, plan)) {
            const Fp8Casts forward = fp8CastsForward(graph, i, plan), back = fp8CastsBackward(graph, i, plan);
            clock.addPass(m_runs.back().first, forward.bytes, forward.kernels);
            clock.addPass(m_runs.back().second, back.bytes, back.kernels);
        }
        if (isTraining && options.kernels && op.kind == OperatorKind::BatchNorm) // num_batches_tracked += 1
            clock.addPass(m_runs.back().first, 2 * sizeof(std::int64_t), 1);
        if (isTraining && op.hasGradient && !ordersRows)
            addSums(graph, op, clock, used);
        if (isTraining && options.pytorch != nullptr && op.hasGradient)
            m_runs.back().second.parts.memory += options.pytorch->turnedCopySeconds(turnedGradient(graph, op));
    }
}

/// Of operands that another operator has used before: their gradients meet.
void OperatorRuns::addSums(const Graph& graph, const Operator& op, const OperatorClock& clock, std::vector<bool>& used)
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

} // namespace memscape
