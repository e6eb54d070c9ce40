// SPDX-License-Identifier: Apache-2.0
#include "core/training/communication.h"

#include "core/training/lora.h"
#include "core/training/sharding.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace memscape {

namespace {

struct Payload
{
    double gradients = 0; ///< B of the trained parameters' gradients
    double updated = 0;   ///< B of the trained parameters' weights
    double weights = 0;   ///< B of all weights, as they are gathered
    double once = 0;      ///< of these, what forward gathers for backward, too
};

/// Of parameters that `wanted` takes.
template <typename Wanted>
Payload payloadOf(const std::vector<ParameterTensor>& parameters, const Plan& plan, Wanted wanted)
{
    const double weight = double(precisionRule(plan.precision).weight);
    Payload payload;
    double trained = 0;
    for (const ParameterTensor& parameter : parameters) {
        if (!wanted(parameter))
            continue;
        const auto bytes = double(wholeWeightBytes(parameter, plan));
        trained += parameter.isTrained ? double(parameter.elements) : 0;
        payload.weights += bytes;
        payload.once += isGatheredOnce(parameter, plan) ? bytes : 0;
    }
    payload.gradients = trained * double(plan.isByFsdp() ? plan.reducedBytes() : plan.gradientBytes());
    payload.updated = trained * weight;
    return payload;
}

/// Layers, each with a name and a number ("layers.3"), and what lies outside of them.
double unitsOf(const std::vector<ParameterTensor>& parameters)
{
    double units = 1;
    std::string_view before;
    for (const ParameterTensor& parameter : parameters) {
        const std::string_view name = parameter.name;
        const std::size_t digit = name.find_first_of("0123456789");
        if (digit == 0 || digit == std::string_view::npos || name[digit - 1] != '.')
            continue;
        const std::string_view unit = name.substr(0, name.find('.', digit));
        units += unit != before ? 1 : 0;
        before = unit;
    }
    return units;
}

constexpr double ddpBucket = 25.0 * 1024 * 1024; ///< B

/// Into how many calls a library cuts them.
double callsOf(const Collective& one, const Plan& plan, double units)
{
    const bool isOfWeights = one.kind == CollectiveKind::AllGather;
    if (plan.isByFsdp() && plan.zeroStage > 0)
        return units;
    if (plan.shardedBy == ShardedBy::DeepSpeed && plan.zeroStage > 0) {
        const auto elements = double(isOfWeights ? plan.deepspeed.prefetchBucket : plan.deepspeed.reduceBucket);
        const bool isWhole = isOfWeights && plan.zeroStage < 3;
        return isWhole ? 1 : std::max(1.0, one.payload / (2 * elements));
    }
    if (plan.zeroStage > 0 || !plan.hidesReductions() || plan.phase != StepPhase::Training)
        return 1;
    return std::max(1.0, std::ceil(one.payload / ddpBucket));
}

/// Of what `degree` ranks shard or copy, before it is known which they are.
std::vector<Collective> shardCommunication(const Payload& payload, const Plan& plan, int degree)
{
    using enum CollectiveKind;
    const double batches = plan.accumulation;
    const CollectiveKind reduction = plan.shardedBy == ShardedBy::DeepSpeed ? AllReduce : ReduceScatter;
    if (plan.phase != StepPhase::Training) {
        if (!plan.shardsWeights())
            return {};
        return {{"weights, forward", AllGather, payload.weights, 1, degree}};
    }
    if (plan.isByFsdp() && plan.zeroStage == 2)
        return {{"weights, forward", AllGather, payload.weights, batches, degree},
                {"gradients", ReduceScatter, payload.gradients, batches, degree}};
    switch (plan.zeroStage) {
    case 0: return {{"gradients", AllReduce, payload.gradients, 1, degree}};
    case 1:
        return {{"gradients", reduction, payload.gradients, 1, degree},
                {"updated weights", AllGather, payload.updated, 1, degree}};
    case 2:
        return {{"gradients", reduction, payload.gradients, batches, degree},
                {"updated weights", AllGather, payload.updated, 1, degree}};
    default:
        return {{"weights, forward", AllGather, payload.weights, batches, degree},
                {"weights, backward", AllGather, payload.weights - payload.once, batches, degree},
                {"gradients", ReduceScatter, payload.gradients, batches, degree}};
    }
}

} // namespace

std::string_view collectiveText(CollectiveKind kind)
{
    switch (kind) {
    case CollectiveKind::AllReduce: return "all-reduce";
    case CollectiveKind::ReduceScatter: return "reduce-scatter";
    case CollectiveKind::AllGather: return "all-gather";
    case CollectiveKind::Broadcast: return "broadcast";
    case CollectiveKind::HostCopy: return "over the host link";
    case CollectiveKind::AllToAll: return "all-to-all";
    case CollectiveKind::Ring: return "step of a ring";
    case CollectiveKind::Send: return "sent";
    }
    return "";
}

std::int64_t ringSteps(CollectiveKind kind, std::int64_t ranks)
{
    if (ranks <= 1 || kind == CollectiveKind::HostCopy)
        return 0;
    if (kind == CollectiveKind::Ring || kind == CollectiveKind::Send)
        return 1;
    if (kind != CollectiveKind::AllReduce && kind != CollectiveKind::Broadcast)
        return ranks - 1;
    // An all-reduce is both of these; the last piece of a broadcast leaves after the others, then goes round.
    return 2 * (ranks - 1);
}

double sentShare(CollectiveKind kind, std::int64_t ranks)
{
    if (kind == CollectiveKind::HostCopy || kind == CollectiveKind::Ring || kind == CollectiveKind::Send)
        return 1;
    const double ring = double(ranks - 1) / double(ranks);
    return kind == CollectiveKind::AllReduce ? 2 * ring : ring;
}

double Collective::sentBytes() const
{
    return sentShare(kind, degree) * payload * count;
}

double sentBytes(const std::vector<Collective>& collectives)
{
    double sum = 0;
    for (const Collective& collective : collectives)
        sum += collective.sentBytes();
    return sum;
}

std::vector<Collective> dataParallelCommunication(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    std::vector<Collective> all;
    const bool areShared = plan.expertParallel > 1;
    const double units = unitsOf(parameters);
    for (const bool isExpert : {false, true}) {
        const int copies = plan.copies(isExpert), shards = plan.zeroStage > 0 ? plan.shards(isExpert) : copies;
        if (copies == 1 || (isExpert && !areShared))
            continue;
        const Payload payload = payloadOf(
            parameters, plan, [&](const ParameterTensor& one) { return !areShared || one.isExpert == isExpert; });
        const int stride = isExpert ? plan.expertParts() * plan.expertParallel : plan.tensorParallel;
        if (shards > 1)
            for (Collective& one : shardCommunication(payload, plan, shards)) {
                one.stride = stride;
                one.calls = callsOf(one, plan, units);
                all.push_back(one);
            }
        if (shards < copies && plan.phase == StepPhase::Training)
            all.push_back({"gradients over the groups", CollectiveKind::AllReduce, payload.gradients / shards,
                           plan.zeroStage > 1 ? double(plan.reductions()) : 1.0, copies / shards, stride * shards});
    }
    return all;
}

std::vector<Collective> pipelineCommunication(const Graph& graph, const Plan& plan)
{
    std::vector<Collective> all;
    const auto bytes = [&](TensorId tensor) {
        return double(graph.layoutOf(tensor).elements() * elementBytes(graph.tensors[tensor].dtype));
    };
    const int stride = plan.tensorParallel * plan.copies(), ranks = plan.pipelineParallel;
    const auto sends = [&](std::string_view what, TensorId tensor) {
        all.push_back({what, CollectiveKind::Send, bytes(tensor), double(plan.accumulation), ranks, stride});
    };
    for (const PipelineChunk& chunk : graph.chunks) {
        if (chunk.sent != noTensor)
            sends("activations to the next stage", chunk.sent);
        if (chunk.received != noTensor && graph.tensors[chunk.received].needsGradient)
            sends("gradients to the stage before", chunk.received);
    }
    if (graph.sharedParameter != noTensor)
        all.push_back({"gradient of embedding and head", CollectiveKind::AllReduce, bytes(graph.sharedParameter), 1, 2,
                       stride * std::max(1, ranks - 1)});
    return all;
}

std::vector<Collective> offloadCommunication(const std::vector<ParameterTensor>& parameters, const Plan& plan)
{
    if (plan.offload == Offload::None || plan.phase != StepPhase::Training)
        return {};
    using enum CollectiveKind;
    const Payload payload = payloadOf(parameters, plan, [](const ParameterTensor&) { return true; });
    const double share = plan.zeroStage > 0 ? 1.0 / plan.shards() : 1;
    std::vector<Collective> copies{{"gradients to the host", HostCopy, payload.gradients * share,
                                    plan.streamsGradients() ? double(plan.accumulation) : 1.0, 1}};
    if (plan.offload != Offload::Parameters)
        copies.push_back({"updated weights from the host", HostCopy, payload.updated * share, 1, 1});
    else
        copies.push_back({"weights from the host", HostCopy, payload.weights * share, 2.0 * plan.accumulation, 1});
    return copies;
}

} // namespace memscape
