// SPDX-License-Identifier: Apache-2.0
// What the picture of `sharding` needs beside the figures: the bars of one rank and of one that has everything, and the
// timeline. Neighbours of a lane that are alike are joined until what is left can be drawn.
#include "core/base/rounding.h"
#include "core/experiments/sharding/sharding.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr std::size_t mostShardSpans = 384; ///< of a lane
constexpr std::array<const char*, shardLanes> laneNames{"compute", "between ranks", "tensor parallel", "host link"};

Json keptJson(const KeptBytes& kept)
{
    return {{"weights", kept.weights},
            {"gradients", kept.gradients},
            {"master_weights", kept.master},
            {"optimizer_state", kept.state},
            {"host", kept.host}};
}

/// Tasks `first` to `last` of a lane.
struct Joined
{
    std::size_t first = 0, last = 0;
    double begin = 0, end = 0, bytes = 0, sent = 0;
};

bool areAlike(const ShardTask& a, const ShardTask& b)
{
    if (a.phase != b.phase || a.collective.has_value() != b.collective.has_value())
        return false;
    return !a.collective || (a.collective->kind == b.collective->kind && a.collective->what == b.collective->what);
}

std::vector<Joined> joinedOf(const std::vector<ShardTask>& tasks, const std::vector<TaskSpan>& spans)
{
    const std::size_t each = quotientUp(tasks.size(), mostShardSpans);
    std::vector<Joined> all;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const auto& collective = tasks[i].collective;
        if (all.empty() || i - all.back().first >= each || !areAlike(tasks[i], tasks[all.back().first]))
            all.push_back({i, i, spans[i].begin, spans[i].end});
        Joined& one = all.back();
        one.last = i;
        one.end = spans[i].end;
        one.bytes += collective ? collective->payload() * collective->count : 0;
        one.sent += collective ? collective->sentBytes() : 0;
    }
    return all;
}

Json spanJson(std::size_t lane, const Joined& one, const std::vector<ShardTask>& tasks, const ShardedNetwork& network)
{
    const ShardTask &first = tasks[one.first], &last = tasks[one.last];
    Json span{{"lane", lane},        {"phase", shardPhaseText(first.phase)},
              {"begin", one.begin},  {"end", one.end},
              {"first", first.unit}, {"last", last.unit}};
    if (first.collective) {
        span["what"] = first.collective->what;
        span["kind"] = collectiveText(first.collective->kind);
        span["bytes"] = one.bytes;
        span["sent"] = one.sent;
    }
    const bool isBucket = first.collective
        && (first.collective->what == "updated weights"
            || (first.collective->what == "gradients" && first.collective->kind == CollectiveKind::AllReduce));
    if (!isBucket && first.phase != ShardPhase::Update && one.first == one.last && first.unit < network.units.size())
        span["unit"] = network.units[first.unit].name;
    return span;
}

/// "NVLink 4 by NCCL's ring, Simple": of the largest collective.
std::string linkText(const ShardingAnswer& answer)
{
    const ShardingLink& link = answer.asked.link;
    std::optional<NcclChoice> chosen;
    double most = 0;
    for (const ShardCollective& one : answer.step.collectives()) {
        const ShardNccl asked = ncclOf(one, link);
        if (link.nccl && one.payload() > most) {
            const auto choice = ncclChoiceOf(asked.asked, asked.peer, link.machines, *link.nccl);
            most = choice ? one.payload() : most;
            chosen = choice ? choice : chosen;
        }
    }
    return chosen ? link.label + " by NCCL's " + chosen->text() : link.label;
}

} // namespace

Json shardingDetail(const ShardingAnswer& answer)
{
    const ShardStep& step = answer.step;
    const Plan& plan = answer.asked.plan();
    Json lanes = Json::array(), spans = Json::array(), gathered = Json::array();
    for (std::size_t lane = 0; lane < shardLanes; ++lane) {
        if (step.tasks[lane].empty())
            continue;
        for (const Joined& one : joinedOf(step.tasks[lane], step.spans[lane]))
            spans.push_back(spanJson(lanes.size(), one, step.tasks[lane], *answer.network));
        lanes.push_back(laneNames[lane]);
    }
    const std::size_t each = quotientUp(step.gatheredOver.size(), mostShardSpans);
    for (std::size_t i = 0; i < step.gatheredOver.size(); ++i) {
        if (each <= 1 || i % each == 0 || i + 1 == step.gatheredOver.size())
            gathered.push_back({step.gatheredOver[i].first, step.gatheredOver[i].second});
    }
    Json rank = keptJson(answer.kept);
    rank["activations"] = answer.network->activations;
    rank["gathered"] = step.gathered;
    Json alone = keptJson(answer.network->alone);
    alone["activations"] = answer.network->aloneActivations;
    Json detail{{"ranks", answer.asked.ranks()},
                {"data_parallel", plan.dataParallel},
                {"tensor_parallel", plan.tensorParallel},
                {"zero", plan.zeroStage},
                {"model", answer.network->model.name},
                {"alone", std::move(alone)},
                {"rank", std::move(rank)},
                {"link",
                 {{"way", shardingWayKey(answer.asked.link.way)},
                  {"label", linkText(answer)},
                  {"latency", jsonNumber(step.rate.latency)},
                  {"bandwidth", jsonNumber(step.rate.bandwidth)}}},
                {"serial", answer.asked.link.isSerial},
                {"end", step.end},
                {"compute", step.compute},
                {"exposed", step.exposed()},
                {"lanes", std::move(lanes)},
                {"spans", std::move(spans)},
                {"gathered", std::move(gathered)}};
    if (const std::string& kernel = answer.network->graph->attention.text; !kernel.empty())
        detail["attention"] = kernel;
    return detail;
}

} // namespace memscape
