// SPDX-License-Identifier: Apache-2.0
// Programs of placements: lanes against a simulation from event to event, streamed chains against the closed form of a
// pipeline, hidden copies with what they cost, and memory to the byte.
#include "core/timing/pipeline.h"
#include "tests/core/placement/placed_cases.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

using namespace memscape;
using namespace memscape::test;

namespace {

/// From event to event: whatever can begin begins, then time goes on to the next end.
std::vector<LaneSpan> simulated(const std::vector<PlacedTask>& tasks, const std::vector<std::size_t>& resource)
{
    constexpr double never = std::numeric_limits<double>::infinity();
    std::vector<std::deque<std::size_t>> waiting(5);
    for (std::size_t i = 0; i < tasks.size(); ++i)
        waiting[resource[i]].push_back(i);
    std::vector<LaneSpan> spans(tasks.size(), {never, never});
    std::vector<double> busyUntil(5, 0);
    for (double now = 0; now < never;) {
        bool begins = true;
        while (begins) {
            begins = false;
            for (std::size_t lane = 0; lane < waiting.size(); ++lane) {
                if (waiting[lane].empty() || busyUntil[lane] > now)
                    continue;
                const std::size_t task = waiting[lane].front();
                const auto& after = tasks[task].after;
                if (!std::ranges::all_of(after, [&](std::uint32_t one) { return spans[one].end <= now; }))
                    continue;
                spans[task] = {now, now + tasks[task].seconds};
                busyUntil[lane] = spans[task].end;
                waiting[lane].pop_front();
                begins = true;
            }
        }
        double next = never;
        for (const LaneSpan& span : spans) {
            if (span.end > now && span.end < next)
                next = span.end;
        }
        now = next;
    }
    return spans;
}

Placement placedAs(const OperatorGraph& graph, const std::vector<Way>& ways, int prefetch, const StepSeconds& seconds,
                   LaneSharing sharing = LaneSharing::Apart)
{
    return placementOf(graph, ways, prefetch, {seconds, sharing});
}

std::size_t copiesOf(const PlacedProgram& program)
{
    return std::size_t(std::ranges::count_if(program.steps, [](const auto& step) { return step.isCopy(); }));
}

} // namespace

class TestPlacedProgram : public QObject
{
    Q_OBJECT

private slots:
    void lanesAreWhatASimulationFinds()
    {
        std::mt19937 random(7);
        for (int round = 0; round < 50; ++round) {
            std::vector<PlacedTask> tasks;
            for (std::uint32_t i = 0; i < 30; ++i) {
                PlacedTask task{Lane(random() % laneCount), double(random() % 9 + 1)};
                for (int k = 0; k < 3 && i > 0; ++k)
                    task.after.push_back(std::uint32_t(random() % i));
                tasks.push_back(task);
            }
            for (const LaneSharing sharing : {LaneSharing::Apart, LaneSharing::Worker, LaneSharing::Single}) {
                std::vector<std::size_t> resource;
                for (const PlacedTask& task : tasks)
                    resource.push_back(sharing == LaneSharing::Apart        ? std::size_t(task.lane)
                                           : sharing == LaneSharing::Single ? 0
                                                                            : task.lane > Lane::Host);
                const auto found = laneSpans(tasks, sharing), expected = simulated(tasks, resource);
                for (std::size_t i = 0; i < tasks.size(); ++i) {
                    QCOMPARE(found[i].begin, expected[i].begin);
                    QCOMPARE(found[i].end, expected[i].end);
                }
            }
        }
    }

    /// Layers alike, each with its weights: prefetch + 1 buffers in a pipeline of copy and layer.
    void aStreamedChainIsAPipeline()
    {
        for (const double copyRate : {0.1, 1.0, 5.0}) {
            RoundSeconds seconds;
            seconds.perByte = copyRate / 1024;
            OperatorGraph graph;
            for (std::uint32_t i = 0; i <= 9; ++i) {
                GraphNode node;
                node.kind = i == 0 ? NodeKind::Input : NodeKind::Layer;
                node.outputBytes = 512;
                if (i > 0) {
                    node.inputs = {i - 1};
                    node.weightBytes = 4096;
                }
                graph.nodes.push_back(node);
            }
            std::vector<Way> ways(10, Way::Streamed);
            ways[0] = Way::Resident;
            const double copy = seconds.copy(4096, Lane::Up), layer = seconds.compute(graph.nodes[1], Way::Streamed);
            for (int prefetch = 0; prefetch <= 4; ++prefetch) {
                const double expected = pipelineSeconds({{copy, copy}, {layer, layer}}, 9, prefetch + 1);
                QCOMPARE(placedAs(graph, ways, prefetch, seconds).seconds, expected);
            }
        }
    }

    void oneCoreTakesTheSum()
    {
        std::mt19937 random(3);
        const RoundSeconds seconds;
        const OperatorGraph graph = randomChain(8, random);
        std::vector<Way> ways(9, Way::Streamed);
        ways[0] = Way::OnHost;
        const Placement placement = placedAs(graph, ways, 2, seconds, LaneSharing::Single);
        double sum = 0;
        for (const ProgramStep& step : placement.program.steps)
            sum += step.seconds;
        QVERIFY(std::fabs(placement.seconds - sum) < 1e-9);
    }

    void aMaskOnTheHostIsCopied()
    {
        const RoundSeconds seconds;
        const auto on = [&](const char* where) {
            const auto graph =
                parseGraph(std::string("x: input 1024; m@") + where + ": input 1024; a: mul <- x m; b: mul <- a m", 4);
            return placedAs(*graph, implicitWays(*graph), 1, seconds);
        };
        const Placement host = on("host"), device = on("device");
        QCOMPARE(host.program.copied(), 4096.0); // once, for both
        QCOMPARE(device.program.copied(), 0.0);
        QCOMPARE(host.seconds - device.seconds, seconds.copy(4096, Lane::Up));
    }

    /// Four bytes and the latency of a copy, and nothing is issued behind it.
    void anItemMakesTheProgramWait()
    {
        const RoundSeconds seconds;
        const auto graph =
            parseGraph("x: input 1024; a: gelu <- x; n: item <- a; m@host: input 1024; b: mul <- a m", 4);
        const Placement placement = placedAs(*graph, implicitWays(*graph), 1, seconds);
        const auto spans = placement.program.spans(LaneSharing::Apart);
        QCOMPARE(copiesOf(placement.program), std::size_t(2));
        std::size_t item = 0;
        while (placement.program.steps[item].lane != Lane::Down)
            ++item;
        QCOMPARE(placement.program.steps[item].bytes, std::int64_t(4));
        QVERIFY(placement.program.steps[item].waits);
        for (std::size_t i = item + 1; i < spans.size(); ++i)
            QVERIFY(spans[i].begin >= spans[item].end);
    }

    void aCopyToWhereItIsMovesNothing()
    {
        const RoundSeconds seconds;
        const auto graph = parseGraph("x@host: input 1024; a: cpu <- x; b: gelu <- a; c: gpu <- b; d: gpu <- c", 4);
        const Placement placement = placedAs(*graph, implicitWays(*graph), 1, seconds);
        QCOMPARE(placement.program.copied(), 4096.0); // b goes up, once
        QCOMPARE(placement.program.sameAs[1], 0U);
        QCOMPARE(placement.peak, std::int64_t(4096));
    }

    void prefetchTakesTheMemoryOfWhatIsAhead()
    {
        const RoundSeconds seconds;
        const auto graph = chainGraph(6, 32, 4, 4); // weights 4096 B, tensors 512 B
        std::vector<Way> ways = uniformWays(*graph, Place::Device);
        for (std::size_t i = 1; i < ways.size(); ++i)
            ways[i] = graph->nodes[i].weightBytes > 0 ? Way::Streamed : Way::Resident;
        for (const int prefetch : {0, 1, 2, 3})
            QCOMPARE(placedAs(*graph, ways, prefetch, seconds).peak, std::int64_t(4096) * (prefetch + 1) + 2 * 512);
    }

    /// ZeRO-Offload: each gradient down once, each weight up once. ZeRO-Infinity: each weight up twice.
    void trainingMovesWhatThePapersSay()
    {
        const RoundSeconds seconds;
        const auto graph = chainGraph(5, 32, 4, 4);
        const double weights = double(graph->weightBytes());
        QCOMPARE(trainingProgram(*graph, {}, seconds).copied(), 2 * weights);
        OffloadedTraining infinity;
        infinity.streamsWeights = true;
        QCOMPARE(trainingProgram(*graph, infinity, seconds).copied(), 3 * weights);
        infinity.stateBytes = 3; // its copies to the disk are not the link's
        const PlacedProgram disk = trainingProgram(*graph, infinity, seconds);
        QCOMPARE(disk.copied(), 3 * weights);
        double state = 0;
        for (const ProgramStep& step : disk.steps)
            state += step.lane == Lane::Disk ? double(step.bytes) : 0;
        QCOMPARE(state, 6 * weights);
        QVERIFY(peakOf(trainingProgram(*graph, {}, seconds)).bytes > peakOf(disk).bytes + std::int64_t(weights) / 2);
    }

    void overlapHidesGradients()
    {
        const RoundSeconds seconds;
        const auto graph = chainGraph(6, 32, 4, 4);
        double last[2] = {};
        for (const bool overlaps : {false, true}) {
            OffloadedTraining how;
            how.overlaps = overlaps;
            const PlacedProgram program = trainingProgram(*graph, how, seconds);
            double sum = 0;
            for (const ProgramStep& step : program.steps)
                sum += step.seconds;
            for (const LaneSpan& span : program.spans(LaneSharing::Apart))
                last[overlaps] = std::max(last[overlaps], span.end);
            if (!overlaps)
                QVERIFY(std::fabs(last[0] - sum) < 1e-9);
        }
        QVERIFY(last[1] < last[0]);
    }

    /// Nothing is given back that was not taken; in the end only what was there at the beginning stays, and the result.
    void memoryIsGivenBack()
    {
        std::mt19937 random(11);
        const RoundSeconds seconds;
        for (int round = 0; round < 40; ++round) {
            const OperatorGraph graph = randomChain(10, random);
            std::vector<Way> ways;
            for (const GraphNode& node : graph.nodes)
                ways.push_back(node.weightBytes > 0 ? Way(random() % 3) : random() % 2 ? Way::Resident : Way::OnHost);
            OffloadedTraining how;
            how.streamsWeights = round % 2 == 0;
            how.overlaps = round % 3 > 0;
            for (const PlacedProgram& program :
                 {placedProgram(graph, ways, round % 4, seconds), trainingProgram(graph, how, seconds)}) {
                std::vector<int> held(program.blocks.size(), 0);
                for (const std::uint32_t slot : program.resident)
                    ++held[slot];
                for (const ProgramStep& step : program.steps) {
                    for (const std::uint32_t slot : step.takes)
                        QCOMPARE(++held[slot], 1);
                    for (const std::uint32_t slot : step.gives)
                        QCOMPARE(--held[slot], 0);
                }
                for (std::size_t slot = 0; slot < held.size(); ++slot) {
                    const bool wasThere = std::ranges::find(program.resident, slot) != program.resident.end();
                    QVERIFY(held[slot] == 0 || wasThere || program.blocks[slot].node + 1 == graph.nodes.size());
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestPlacedProgram)
#include "tst_placed_program.moc"
