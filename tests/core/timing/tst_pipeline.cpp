// SPDX-License-Identifier: Apache-2.0
// Pipelines of chunks: the closed form against a simulation of events, in which lanes and buffers are things that are
// taken and given back.
#include "core/timing/pipeline.h"

#include <QtTest>

#include <cmath>
#include <queue>
#include <random>

using namespace memscape;

namespace {

/// What happens: at `time` the lane has finished its chunk.
struct PipelineEvent
{
    double time;
    std::size_t lane;
    std::uint64_t chunk;
    bool operator<(const PipelineEvent& other) const { return time > other.time; } // the earliest on top
};

/// Chunks stand in a queue before each lane; a chunk enters when a buffer is free, and gives it back at the end.
double simulatedPipeline(const std::vector<LaneTime>& lanes, std::uint64_t chunks, int depth)
{
    std::vector<std::queue<std::uint64_t>> waiting(lanes.size());
    std::vector<bool> isBusy(lanes.size(), false);
    std::priority_queue<PipelineEvent> events;
    int freeBuffers = depth;
    std::uint64_t entered = 0;
    double now = 0;
    const auto startAll = [&] {
        while (freeBuffers > 0 && entered < chunks) {
            --freeBuffers;
            waiting[0].push(entered++);
        }
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            if (isBusy[lane] || waiting[lane].empty())
                continue;
            const std::uint64_t chunk = waiting[lane].front();
            waiting[lane].pop();
            isBusy[lane] = true;
            events.push({now + (chunk + 1 == chunks ? lanes[lane].last : lanes[lane].chunk), lane, chunk});
        }
    };
    startAll();
    while (!events.empty()) {
        const PipelineEvent event = events.top();
        events.pop();
        now = event.time;
        isBusy[event.lane] = false;
        if (event.lane + 1 < lanes.size())
            waiting[event.lane + 1].push(event.chunk);
        else
            ++freeBuffers;
        startAll();
    }
    return now;
}

bool isSameTime(double a, double b)
{
    return std::fabs(a - b) <= 1e-9 * std::max(a, b);
}

} // namespace

class TestPipeline : public QObject
{
    Q_OBJECT

private slots:
    void onePieceTakesTheSum() { QCOMPARE(pipelineSeconds({{9, 2}, {9, 3}}, 1, 8), 5.0); }

    void oneBufferTakesChunksInTurn() { QCOMPARE(pipelineSeconds({{2, 2}, {3, 3}}, 4, 1), 20.0); }

    void theSlowerLaneRules()
    {
        QCOMPARE(pipelineSeconds({{2, 2}, {3, 3}}, 4, 2), 2.0 + 4 * 3);
        QCOMPARE(pipelineSeconds({{3, 3}, {2, 2}}, 4, 2), 4 * 3 + 2.0);
        QCOMPARE(pipelineSeconds({{3, 3}, {2, 2}}, 4, 8), 4 * 3 + 2.0);
    }

    /// Copy in, work, copy out of equal length: with two buffers every other turn waits.
    void threeLanesNeedThreeBuffers()
    {
        const std::vector<LaneTime> lanes{{1, 1}, {1, 1}, {1, 1}};
        QCOMPARE(pipelineSeconds(lanes, 6, 3), 3.0 + 5);
        QCOMPARE(pipelineSeconds(lanes, 6, 2), 3 * 3.0 + 1);
    }

    void theClosedFormIsWhatASimulationFinds()
    {
        std::mt19937 random(3);
        const auto between = [&](int least, int most) {
            return std::uniform_int_distribution<int>(least, most)(random);
        };
        for (int i = 0; i < 5000; ++i) {
            std::vector<LaneTime> lanes;
            const int part = between(1, 100); // of the last chunk, per cent
            for (int lane = between(1, 3); lane > 0; --lane) {
                const double fixed = between(0, 20), bytes = between(1, 100);
                lanes.push_back({fixed + bytes, fixed + bytes * part / 100});
            }
            const auto chunks = std::uint64_t(between(1, 30));
            const int depth = between(1, 8);
            const double expected = simulatedPipeline(lanes, chunks, depth),
                         found = pipelineSeconds(lanes, chunks, depth);
            QVERIFY2(isSameTime(found, expected),
                     qPrintable(QString("%1 lanes, %2 chunks, depth %3: %4, simulated %5")
                                    .arg(lanes.size())
                                    .arg(chunks)
                                    .arg(depth)
                                    .arg(found)
                                    .arg(expected)));
        }
    }

    void piecesAreTheSimulationDrawn()
    {
        const std::vector<LaneTime> lanes{{3, 1}, {2, 0.5}, {4, 2}};
        for (const std::uint64_t chunks : {1u, 7u, 1000u}) {
            const std::vector<LanePiece> pieces = pipelinePieces(lanes, chunks, 2, 60);
            QVERIFY(pieces.size() <= 60);
            double end = 0;
            std::uint64_t covered = 0;
            for (const LanePiece& piece : pieces) {
                QVERIFY(piece.begin < piece.end);
                end = std::max(end, piece.end);
                covered += piece.lane == 1 ? piece.last - piece.first + 1 : 0;
            }
            QCOMPARE(covered, chunks);
            QVERIFY(isSameTime(end, simulatedPipeline(lanes, chunks, 2)));
        }
    }
};

QTEST_APPLESS_MAIN(TestPipeline)
#include "tst_pipeline.moc"
