// SPDX-License-Identifier: Apache-2.0
// Where to place operators: dynamic programming against all placements, accelerate's device map on its own example,
// limits that are too small, and graphs for which there is only a heuristic.
#include "tests/core/placement/placed_cases.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace memscape;
using namespace memscape::test;

namespace {

struct Enumerated
{
    double seconds = std::numeric_limits<double>::infinity();
    std::int64_t leastPeak = std::numeric_limits<std::int64_t>::max();
};

/// All 3^n placements, one after the other.
Enumerated enumerated(const OperatorGraph& graph, std::int64_t limit, const PlacementMachine& machine)
{
    Enumerated best;
    std::vector<Way> ways = uniformWays(graph, Place::Device);
    const std::size_t count = graph.nodes.size();
    std::size_t all = 1;
    for (std::size_t i = 1; i < count; ++i)
        all *= 3;
    for (std::size_t code = 0; code < all; ++code) {
        std::size_t left = code;
        bool isMeant = true;
        for (std::size_t i = 1; i < count; ++i, left /= 3) {
            ways[i] = Way(left % 3);
            const auto pinned = graph.nodes[i].pinned;
            isMeant = isMeant && (ways[i] != Way::Streamed || graph.nodes[i].weightBytes > 0)
                && (!pinned || placeOf(graph.nodes[i], ways[i]) == *pinned);
        }
        if (!isMeant)
            continue;
        const Placement one = placementOf(graph, ways, 0, machine);
        best.leastPeak = std::min(best.leastPeak, one.peak);
        if (one.peak <= limit)
            best.seconds = std::min(best.seconds, one.seconds);
    }
    return best;
}

OperatorGraph layersOf(std::initializer_list<std::int64_t> weights)
{
    OperatorGraph graph;
    GraphNode input;
    input.name = "x";
    graph.nodes.push_back(input); // of no bytes: the example counts weights alone
    for (const std::int64_t bytes : weights) {
        GraphNode node;
        node.kind = NodeKind::Layer;
        node.name = "layer" + std::to_string(graph.nodes.size());
        node.inputs = {std::uint32_t(graph.nodes.size() - 1)};
        node.weightBytes = bytes;
        graph.nodes.push_back(node);
    }
    return graph;
}

} // namespace

class TestPlacementSearch : public QObject
{
    Q_OBJECT

private slots:
    void theCheapestOfAChainIsTheBestOfAll()
    {
        std::mt19937 random(1);
        int feasible = 0;
        for (int round = 0; round < 60; ++round) {
            RoundSeconds seconds;
            seconds.onHost = double(random() % 6 + 1);
            seconds.perByte = double(random() % 5 + 1) / 2048;
            const OperatorGraph graph = randomChain(6, random);
            const PlacementMachine machine{seconds, LaneSharing::Apart};
            const auto limit = std::int64_t(512) * std::int64_t(random() % 40 + 1);
            const Enumerated best = enumerated(graph, limit, machine);
            const auto found = cheapestPlacement(graph, limit, 0, machine);
            QCOMPARE(found.has_value(), std::isfinite(best.seconds));
            if (!found) {
                QVERIFY(best.leastPeak > limit);
                continue;
            }
            ++feasible;
            QVERIFY(found->isExact);
            QVERIFY(found->peak <= limit);
            QVERIFY2(std::fabs(found->seconds - best.seconds) < 1e-9,
                     qPrintable(QString("%1, not %2").arg(found->seconds).arg(best.seconds)));
        }
        QVERIFY(feasible > 30);
    }

    void pinsAreKept()
    {
        std::mt19937 random(2);
        const RoundSeconds seconds;
        OperatorGraph graph = randomChain(6, random);
        graph.nodes[3].pinned = Place::Host;
        graph.nodes[5].pinned = Place::Device;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const auto found = cheapestPlacement(graph, 1 << 20, 0, machine);
        QVERIFY(found);
        QCOMPARE(found->ways[3], Way::OnHost);
        QVERIFY(found->ways[5] != Way::OnHost);
        QVERIFY(std::fabs(found->seconds - enumerated(graph, 1 << 20, machine).seconds) < 1e-9);
        for (const Place place : {Place::Device, Place::Host})
            QCOMPARE(uniformWays(graph, place)[3], Way::OnHost);
    }

    /// tests/test_modeling_utils.py of accelerate: layers of 64, 72 and 100 B on a device of 200 B: "only linear1 fits
    /// on device 0 as we keep memory available for the maximum layer in case of offload". Here in units of 512 B.
    void theDeviceMapIsThatOfAccelerate()
    {
        const RoundSeconds seconds;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const OperatorGraph graph = layersOf({64 * 512, 72 * 512, 100 * 512});
        const auto found = layersPlacement(graph, 200 * 512, 0, machine);
        QVERIFY(found);
        QCOMPARE(found->ways, (std::vector<Way>{Way::Resident, Way::Resident, Way::Streamed, Way::Streamed}));
        const auto whole = layersPlacement(graph, 236 * 512, 0, machine);
        QCOMPARE(whole->ways, std::vector<Way>(4, Way::Resident));
    }

    void moreMemoryNeverTakesLonger()
    {
        std::mt19937 random(5);
        const RoundSeconds seconds;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const OperatorGraph graph = randomChain(12, random);
        double before = std::numeric_limits<double>::infinity();
        for (std::int64_t limit = 512; limit <= 512 * 80; limit += 512) {
            if (const auto found = cheapestPlacement(graph, limit, 0, machine)) {
                QVERIFY(found->seconds <= before + 1e-9);
                before = found->seconds;
            }
        }
        QVERIFY(std::isfinite(before));
    }

    void aLimitThatIsTooSmallNamesTheLayer()
    {
        const RoundSeconds seconds;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const OperatorGraph graph = layersOf({512, 8192, 512});
        const auto found = layersPlacement(graph, 4096, 0, machine);
        QVERIFY(!found);
        QCOMPARE(found.error().code, std::string("placement.limit"));
        QVERIFY2(found.error().message.starts_with("layer2 needs 8 KiB"), found.error().message.c_str());
        QCOMPARE(found.error().remedy->value, std::string("8192"));
        QVERIFY(layersPlacement(graph, 8192, 0, machine));
        QCOMPARE(leastLayersLimit(graph, 0, machine), std::int64_t(8192));
    }

    void lessPrefetchingIsOffered()
    {
        const RoundSeconds seconds;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const OperatorGraph graph = layersOf({4096, 4096, 4096});
        const auto found = layersPlacement(graph, 6000, 1, machine);
        QVERIFY(!found);
        QCOMPARE(found.error().remedy->parameter, std::string("prefetch"));
        QVERIFY(layersPlacement(graph, 6000, 0, machine));
    }

    void otherGraphsSayThatItIsAHeuristic()
    {
        const RoundSeconds seconds;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const auto graph = parseGraph("x: input 8 64; a: matmul 8 64 64 <- x; b: relu <- a; c: add <- a b", 4);
        const auto found = cheapestPlacement(*graph, 1 << 20, 0, machine);
        QVERIFY(found && !found->isExact);
        const auto chain = chainGraph(4, 64, 8, 4);
        QVERIFY(!cheapestPlacement(*chain, 1 << 20, 1, machine)->isExact); // something overlaps
        QVERIFY(cheapestPlacement(*chain, 1 << 20, 0, machine)->isExact);
    }

    /// On small graphs with a branch it is as good as trying all.
    void aHeuristicFindsWhatAllFind()
    {
        RoundSeconds seconds;
        seconds.onHost = 3;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const auto graph =
            parseGraph("x: input 8 64; a: matmul 8 64 64 <- x; b: relu <- a; c: add <- a b; d: matmul 8 64 64 <- c", 4);
        for (const std::int64_t limit : {6144, 22528, 40960}) {
            const auto found = cheapestPlacement(*graph, limit, 0, machine);
            QVERIFY(found);
            QVERIFY(found->seconds <= 1.001 * enumerated(*graph, limit, machine).seconds);
        }
    }

    /// 2000 nodes: neither the labels of the dynamic programming nor the device map grow without bounds.
    void aLongChainIsQuick()
    {
        const RoundSeconds seconds;
        const PlacementMachine machine{seconds, LaneSharing::Apart};
        const auto graph = chainGraph(1000, 64, 8, 4);
        const auto half = graph->weightBytes() / 2;
        const auto found = cheapestPlacement(*graph, half, 0, machine);
        QVERIFY(found && found->peak <= half);
        const auto layers = layersPlacement(*graph, half, 1, machine);
        QVERIFY(layers && layers->peak <= half && layers->peak > half - 4 * 16384);
        QVERIFY(found->seconds <= placementOf(*graph, layers->ways, 0, machine).seconds * 1.001);
    }
};

QTEST_GUILESS_MAIN(TestPlacementSearch)
#include "tst_placement_search.moc"
