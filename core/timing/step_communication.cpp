// SPDX-License-Identifier: Apache-2.0
#include "core/timing/step_communication.h"

#include "core/base/number.h"
#include "core/timing/fp8_casts.h"
#include "core/timing/micro_pipeline.h"
#include "core/timing/nccl.h"
#include "core/timing/offload_time.h"
#include "core/timing/token_kernels.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Passes of a step: those that a micro-batch runs forward and backward.
double passesOf(const Plan& plan)
{
    return plan.phase == StepPhase::Training ? 2.0 * plan.accumulation : 1.0;
}

/// Attention whose keys and values ranks pass round.
bool isAttentionRing(const Operator& op)
{
    return isAttentionKernel(op.kind) && attentionRanks(op.attribute) > 1;
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
        const double backward = isTraining ? plan.accumulation : 0;
        add({"activations", kind, bytesOf(whole) * sharedAs(graph, i, plan, false), times - backward,
             plan.tensorParallel});
        if (isTraining)
            add({"activations", kind, bytesOf(whole) * sharedAs(graph, i, plan, true), backward, plan.tensorParallel});
    }
    return all;
}

/// s of the layers that pass keys and values round.
double ringAttention(const Graph& graph, const Plan& plan, const OperatorRuns& runs)
{
    double sum = 0;
    for (std::size_t i = 0; i < runs.size(); ++i)
        if (isAttentionRing(graph.operators[i]))
            sum += runs.forward(i).parts.total() + runs.backward(i).parts.total();
    return sum * (plan.phase == StepPhase::Training ? plan.accumulation : 1);
}

/// Ranks whose optimizers share a host's memory.
double ranksOfHost(const Plan& plan)
{
    const double ranks = double(plan.copies()) * plan.tensorParallel * plan.pipelineParallel;
    return plan.machineRanks > 0 ? std::min(ranks, double(plan.machineRanks)) : ranks;
}

/// Of the time of a forward and a backward pass, the share of products; attention's are its own kernels.
double productShare(const OperatorRuns& runs, const Plan& plan)
{
    double products = 0, all = 0;
    const auto add = [&](const OperatorRun& run) {
        all += run.parts.total();
        products += run.isAttention ? 0 : run.parts.arithmetic;
    };
    for (std::size_t i = 0; i < runs.size(); ++i) {
        add(runs.forward(i));
        if (plan.phase == StepPhase::Training)
            add(runs.backward(i));
    }
    return all > 0 ? products / all : 0;
}

/// s of an engine's own all-reduce; NaN where NCCL does it.
double ownSeconds(const Collective& one, double peer, const StepTimeOptions& options)
{
    return options.ownReduce > 0
        ? ownReduceSeconds(one, options.ownReduce, linkPassSeconds, peer, options.machines, *options.nccl)
        : nan;
}

/// s that passes of `cover` seconds take longer while collectives of so many seconds run beside them.
double slowedSeconds(double products, double collectives, double cover, const StepTimeOptions& options)
{
    const double lost = options.collectiveUnits + products * (options.productsBeside - options.collectiveUnits);
    return std::max(collectives, cover + lost * collectives) - std::max(collectives, cover);
}

} // namespace

double collectiveSeconds(const Collective& one, const DeviceRates& rates, const StepTimeOptions& options)
{
    const double peer = rates.between(one.degree);
    if (!options.nccl)
        return exchangeSeconds(one, peer, options.machines);
    const double own = ownSeconds(one, peer, options);
    return std::isnan(own) ? ncclSeconds(one, peer, options.machines, *options.nccl) : own;
}

std::string collectiveWay(const Collective& one, const DeviceRates& rates, const StepTimeOptions& options)
{
    const double peer = rates.between(one.degree);
    if (!options.nccl)
        return "a ring";
    if (!std::isnan(ownSeconds(one, peer, options)))
        return "the engine's own kernel";
    const auto choice = ncclChoiceOf(one, peer, options.machines, *options.nccl);
    return choice ? "NCCL's " + choice->text() : "NCCL's sends";
}

Result<void> addCommunication(StepTime& time, const Graph& graph, const std::vector<ParameterTensor>& parameters,
                              const Plan& plan, const DeviceRates& rates, const StepTimeOptions& options,
                              const OperatorRuns& runs)
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
    const auto seconds = [&](const Collective& one) { return collectiveSeconds(one, rates, options); };
    double dataSeconds = 0, tensorSeconds = 0, ringSeconds = 0, sendSeconds = 0;
    for (const Collective& one : reductions)
        dataSeconds += seconds(one);
    for (const Collective& one : borders) // an embedding's gradient waits for the end
        (one.kind == CollectiveKind::Send ? sendSeconds : tensorSeconds) += seconds(one);
    for (const Collective& one : recorded) {
        const bool isRing = one.kind == CollectiveKind::Ring;
        (isRing ? ringSeconds : tensorSeconds) += seconds(one);
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
        offload = offloadTime(work, rates.host, typicalHostBandwidth / ranksOfHost(plan));
        time.optimizer += offload.update;
    }
    // Behind what the reductions hide: the last backward pass, with stage 2 and 3 every pass.
    const double backward = time.backward + time.recomputation;
    const double cover = !plan.hidesReductions() ? 0
        : plan.zeroStage == 3                    ? time.forward + backward
        : plan.zeroStage == 2                    ? backward
                                                 : backward / plan.accumulation;
    time.communication = dataSeconds + tensorSeconds + ringSeconds + sendSeconds + hostSeconds;
    const double hidden = hiddenByPieces(graph, plan, runs, options.recomputed, seconds);
    time.inPasses = tensorSeconds - hidden + std::max(0.0, ringSeconds - ringAttention(graph, plan, runs));
    time.exposed = std::max(0.0, dataSeconds - cover) + time.inPasses + offload.exposed;
    time.slowed =
        cover > 0 && dataSeconds > 0 ? slowedSeconds(productShare(runs, plan), dataSeconds, cover, options) : 0;
    return {};
}

std::vector<Collective> stepCollectives(const Graph& graph, const std::vector<ParameterTensor>& parameters,
                                        const Plan& plan, std::span<const RecomputedRange> recomputed)
{
    std::vector<Collective> all = dataParallelCommunication(parameters, plan);
    for (const auto& more : {recordedCollectives(graph, plan, recomputed), pipelineCommunication(graph, plan),
                             offloadCommunication(parameters, plan)})
        all.insert(all.end(), more.begin(), more.end());
    return all;
}

} // namespace memscape
