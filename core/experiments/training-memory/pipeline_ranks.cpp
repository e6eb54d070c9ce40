// SPDX-License-Identifier: Apache-2.0
#include "core/experiments/training-memory/pipeline_ranks.h"

#include "core/experiments/memory/memory_parameters.h"
#include "core/timing/pipeline_time.h"
#include "core/timing/reached_step.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape {

namespace {

/// Whether both run the same layers, embedding and head apart.
bool isAlike(const Graph& a, const Graph& b)
{
    const auto bytes = [](const Graph& graph) {
        std::int64_t sum = 0;
        for (const Storage& storage : graph.storages)
            sum += storage.bytes;
        return sum;
    };
    return a.operators.size() == b.operators.size() && a.parameters.size() == b.parameters.size()
        && bytes(a) == bytes(b);
}

/// GPipe keeps every micro-batch: each is simulated.
Result<void> checkSize(const Plan& plan, const Graph& graph)
{
    constexpr std::int64_t mostOperators = std::int64_t(1) << 22; // of all micro-batches
    const std::int64_t most = std::max<std::int64_t>(1, mostOperators / std::int64_t(graph.operators.size()));
    if (differentMicroBatches(plan) <= most)
        return {};
    return fail(
        "plan.pipeline",
        fmt::format("{} micro-batches in flight are too many to be simulated one by one: at most {} of this model",
                    plan.accumulation, most),
        "choose pipeline_schedule=1f1b, or fewer micro-batches", "accumulation");
}

std::int64_t layersOf(const Graph& graph)
{
    return std::count_if(graph.blocks.begin(), graph.blocks.end(),
                         [](const Block& block) { return block.kind == Block::Kind::Layer; });
}

/// One micro-batch by chunk: chunks divide a rank's time as their operators do.
RankPasses passesOf(const Graph& graph, const StepTime& time, const std::vector<OperatorTime>& operators,
                    double microBatches)
{
    RankPasses passes;
    const double waits = time.inPasses / microBatches / 2;
    OperatorTime all;
    std::vector<OperatorTime> own;
    for (const PipelineChunk& chunk : graph.chunks) {
        OperatorTime sum;
        for (std::uint32_t i = chunk.first; i < chunk.last; ++i) {
            sum.forward += operators[i].forward;
            sum.backward += operators[i].backward;
        }
        all.forward += sum.forward;
        all.backward += sum.backward;
        own.push_back(sum);
    }
    const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
    for (const OperatorTime& chunk : own) {
        passes.forward.push_back((time.forward / microBatches + waits) * share(chunk.forward, all.forward));
        passes.backward.push_back(((time.backward + time.recomputation) / microBatches + waits)
                                  * share(chunk.backward, all.backward));
    }
    return passes;
}

} // namespace

TrainingSetup setupOfRank(TrainingSetup setup, int rank)
{
    setup.build.pipeline.rank = setup.step.pipelineRank = rank;
    return setup;
}

Result<std::vector<PipelineRank>> pipelineRanks(RecordedNetworks& networks, const TrainingSetup& setup,
                                                RanksAsked asked)
{
    std::vector<PipelineRank> ranks;
    const int count = setup.step.plan.pipelineParallel;
    std::shared_ptr<const Graph> before;
    for (int i = 0; count > 1 && i < count; ++i) {
        const TrainingSetup own = setupOfRank(setup, i);
        MEMSCAPE_TRY(graph, networks.network(own.build));
        MEMSCAPE_CHECK(checkSize(own.step.plan, *graph));
        const auto network = preparedNetwork(networks, *graph);
        PipelineRank rank;
        rank.layers = layersOf(*graph);
        rank.parameters = elementCount(network->parameters);
        rank.inFlight = passesInFlight(own.step.plan, i);
        if (asked == RanksAsked::All || !before || !isAlike(*before, *graph)) {
            MEMSCAPE_TRY(totals, stepTotals(*graph, *network, own.step, own.allocator));
            networks.countEvents(totals.events);
            rank.allocated = totals.allocator.peak.allocated;
            rank.reserved = totals.allocator.peak.reserved;
        }
        ranks.push_back(rank);
        before = std::move(graph);
    }
    return ranks;
}

int fullestRank(const std::vector<PipelineRank>& ranks)
{
    const auto fullest = std::max_element(ranks.begin(), ranks.end(), [](const PipelineRank& a, const PipelineRank& b) {
        return std::pair(a.reserved, a.allocated) < std::pair(b.reserved, b.allocated);
    });
    return int(fullest - ranks.begin());
}

Result<StepTime> pipelineStepTime(const Device& device, const TrainingSetup& setup, RecordedNetworks& networks,
                                  std::vector<PipelineRank>& ranks)
{
    const Plan& plan = setup.step.plan;
    const double microBatches = plan.accumulation;
    std::vector<RankPasses> passes;
    std::shared_ptr<const Graph> before;
    StepTime last, busiest;
    double work = 0, optimizer = 0, reduced = 0, transfer = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const TrainingSetup own = setupOfRank(setup, int(i));
        MEMSCAPE_TRY(graph, networks.network(own.build));
        if (before && isAlike(*before, *graph)) {
            passes.push_back(passes.back());
        } else {
            const auto network = preparedNetwork(networks, *graph);
            MEMSCAPE_TRY(time, setupTime(device, own, *graph, network->parameters, double(ranks[i].allocated)));
            const ReachedTiming timing(device, plan, double(ranks[i].allocated));
            MEMSCAPE_TRY(operators, operatorTimes(*graph, plan, device, timing.options()));
            passes.push_back(passesOf(*graph, time, operators, microBatches));
            last = time;
            const TensorId sent = graph->chunks.front().sent;
            if (sent != noTensor) {
                const Device linked = withLink(device, setup.linkBandwidth);
                MEMSCAPE_TRY(rates, deviceRates(linked));
                const Collective one{"", CollectiveKind::Send,  double(graph->storageOf(sent).bytes),
                                     1,  plan.pipelineParallel, plan.tensorParallel * plan.copies()};
                transfer = collectiveSeconds(one, rates, ReachedTiming(linked, plan, 0).options());
            }
        }
        before = graph;
        ranks[i].work = last.forward + last.backward + last.recomputation + last.inPasses;
        optimizer = std::max(optimizer, last.optimizer);
        reduced = std::max(reduced, last.exposed - last.inPasses);
        if (ranks[i].work > work) {
            work = ranks[i].work;
            busiest = last;
        }
    }
    StepTime time = busiest;
    const double others = busiest.total // dispatch, what collectives slow down, a start
        - busiest.forward - busiest.backward - busiest.recomputation - busiest.optimizer - busiest.exposed;
    time.bubble = std::max(0.0, scheduleSeconds(plan, passes, transfer) - work);
    time.optimizer = optimizer;
    time.exposed = busiest.inPasses + reduced;
    time.total =
        time.forward + time.backward + time.recomputation + time.bubble + time.optimizer + time.exposed + others;
    return time;
}

} // namespace memscape
