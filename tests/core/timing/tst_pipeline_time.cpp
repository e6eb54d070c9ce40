// SPDX-License-Identifier: Apache-2.0
// How long a pipeline's step takes: the bubble of ranks that are alike against Narayanan et al. 2021 (section 2.2), and
// of those that are not against what the slowest rank has to do.
#include "core/timing/pipeline_time.h"

#include <QtTest>

using namespace memscape;

namespace {

Plan planOf(PipelineSchedule schedule, int ranks, int chunks, int microBatches)
{
    Plan plan;
    plan.pipelineSchedule = schedule;
    plan.pipelineParallel = ranks;
    plan.virtualStages = chunks;
    plan.accumulation = microBatches;
    return plan;
}

/// Each runs a micro-batch forward in 1 s and backward in 2 s.
std::vector<RankPasses> alike(const Plan& plan)
{
    const auto chunks = std::size_t(plan.virtualStages);
    return std::vector<RankPasses>(
        std::size_t(plan.pipelineParallel),
        {std::vector<double>(chunks, 1.0 / double(chunks)), std::vector<double>(chunks, 2.0 / double(chunks))});
}

} // namespace

class TestPipelineTime : public QObject
{
    Q_OBJECT

private slots:
    void theBubbleIsThePapers_data()
    {
        QTest::addColumn<int>("schedule");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("chunks");
        QTest::addColumn<int>("microBatches");
        QTest::addRow("1f1b") << int(PipelineSchedule::OneForwardOneBackward) << 4 << 1 << 8;
        QTest::addRow("1f1b, few") << int(PipelineSchedule::OneForwardOneBackward) << 8 << 1 << 2;
        QTest::addRow("1f1b, many") << int(PipelineSchedule::OneForwardOneBackward) << 4 << 1 << 1000;
        QTest::addRow("gpipe") << int(PipelineSchedule::GPipe) << 4 << 1 << 8;
        QTest::addRow("two chunks") << int(PipelineSchedule::Interleaved) << 4 << 2 << 8;
        QTest::addRow("four chunks") << int(PipelineSchedule::Interleaved) << 2 << 4 << 16;
        QTest::addRow("chunks, many") << int(PipelineSchedule::Interleaved) << 4 << 2 << 1000;
    }

    void theBubbleIsThePapers()
    {
        QFETCH(int, schedule);
        QFETCH(int, ranks);
        QFETCH(int, chunks);
        QFETCH(int, microBatches);
        const Plan plan = planOf(PipelineSchedule(schedule), ranks, chunks, microBatches);
        const double work = 3.0 * microBatches;
        QCOMPARE(scheduleSeconds(plan, alike(plan), 0), work + 3.0 * (ranks - 1) / chunks);
        QCOMPARE(idealBubble(plan), double(ranks - 1) / (microBatches * chunks));
    }

    void manyMicroBatchesTakeWhatTheyWouldPassByPass()
    {
        // 32 are run pass by pass, 48 are not: each round of four takes as long as the one before it.
        std::vector<RankPasses> ranks = alike(planOf(PipelineSchedule::OneForwardOneBackward, 4, 1, 1));
        ranks[2].forward = {1.5};
        const auto seconds = [&](int microBatches) {
            return scheduleSeconds(planOf(PipelineSchedule::OneForwardOneBackward, 4, 1, microBatches), ranks, 0.1);
        };
        QCOMPARE(seconds(48) - seconds(32), 16 * (seconds(32) - seconds(28)) / 4);
    }

    void theSlowestRankRules()
    {
        const Plan plan = planOf(PipelineSchedule::OneForwardOneBackward, 4, 1, 16);
        std::vector<RankPasses> ranks = alike(plan);
        ranks[3].backward = {5}; // the head
        const double seconds = scheduleSeconds(plan, ranks, 0);
        QVERIFY(seconds >= 16 * 6.0);
        QCOMPARE(seconds, 16 * 6.0 + 3 * 1.0 + 3 * 2.0); // others fill before it and drain behind it
    }

    void sendsLengthenTheFillAndTheDrain()
    {
        const Plan plan = planOf(PipelineSchedule::GPipe, 4, 1, 8);
        QCOMPARE(scheduleSeconds(plan, alike(plan), 0.25) - scheduleSeconds(plan, alike(plan), 0), 2 * 3 * 0.25);
    }
};

QTEST_APPLESS_MAIN(TestPipelineTime)
#include "tst_pipeline_time.moc"
