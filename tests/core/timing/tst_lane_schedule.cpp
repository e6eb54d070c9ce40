// SPDX-License-Identifier: Apache-2.0
// Lanes against what they say in closed form, and against a simulation of another kind: a clock that jumps from event
// to event and asks each time which tasks may run.
#include "core/timing/lane_schedule.h"

#include <QtTest>

#include <random>

using namespace memscape;

namespace {

using Lanes = std::vector<std::vector<LaneTask>>;

/// When everything has ended, by events; NaN where nothing moves any more.
double endByEvents(const Lanes& lanes)
{
    struct Running
    {
        std::size_t next = 0;
        double begin = 0, end = -1; // of the task that runs; end < 0: none
    };
    std::vector<Running> state(lanes.size());
    std::vector<std::vector<TaskSpan>> seen(lanes.size()); // begun
    double now = 0;
    const auto isDone = [&](const LaneTask::Wait& wait) {
        if (seen[wait.lane].size() <= wait.task)
            return false;
        const TaskSpan& span = seen[wait.lane][wait.task];
        return now >= span.begin + wait.share * (span.end - span.begin) - 1e-12;
    };
    for (int guard = 0; guard < 100000; ++guard) {
        bool isLeft = false, began = false;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            Running& run = state[lane];
            if (run.end >= 0 && now >= run.end - 1e-12) {
                run.end = -1;
                ++run.next;
            }
            isLeft |= run.next < lanes[lane].size();
            if (run.end >= 0 || run.next >= lanes[lane].size())
                continue;
            const LaneTask& task = lanes[lane][run.next];
            if (!std::all_of(task.waits.begin(), task.waits.end(), isDone))
                continue;
            run.begin = now;
            run.end = now + task.seconds;
            seen[lane].push_back({run.begin, run.end});
            began = true;
        }
        if (!isLeft)
            return now;
        if (began)
            continue; // one that takes no time, or one that others wait for only to begin
        double next = std::numeric_limits<double>::infinity();
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            if (state[lane].end >= 0)
                next = std::min(next, state[lane].end);
            if (state[lane].end >= 0 || state[lane].next >= lanes[lane].size())
                continue;
            for (const LaneTask::Wait& wait : lanes[lane][state[lane].next].waits) {
                if (seen[wait.lane].size() <= wait.task)
                    continue;
                const TaskSpan& span = seen[wait.lane][wait.task];
                const double at = span.begin + wait.share * (span.end - span.begin);
                if (at > now + 1e-12)
                    next = std::min(next, at);
            }
        }
        if (!std::isfinite(next))
            return std::numeric_limits<double>::quiet_NaN();
        now = next;
    }
    return std::numeric_limits<double>::quiet_NaN();
}

double endOf(const Lanes& lanes)
{
    const auto spans = scheduleLanes(lanes);
    double end = 0;
    for (const auto& lane : *spans)
        for (const TaskSpan& span : lane)
            end = std::max(end, span.end);
    return end;
}

} // namespace

class TestLaneSchedule : public QObject
{
    Q_OBJECT

private slots:
    /// Buckets that are quicker than the backward that makes them: only the last is seen.
    void bucketsHideBehindBackwardButTheLast()
    {
        Lanes lanes(2);
        for (std::size_t i = 0; i < 10; ++i) {
            lanes[0].push_back({1.0});
            lanes[1].push_back({0.25, {{0, i}}});
        }
        QCOMPARE(endOf(lanes), 10.25);
    }

    /// Slower ones: all but what the first waits for follow each other.
    void slowBucketsFollowEachOther()
    {
        Lanes lanes(2);
        for (std::size_t i = 0; i < 10; ++i) {
            lanes[0].push_back({1.0});
            lanes[1].push_back({3.0, {{0, i}}});
        }
        QCOMPARE(endOf(lanes), 1.0 + 10 * 3.0);
    }

    void aTaskCanWaitForAPartOfAnother()
    {
        const Lanes lanes{{{8.0}}, {{1.0, {{0, 0, 0.25}}}, {1.0, {{0, 0, 1}}}}};
        const auto spans = scheduleLanes(lanes);
        QCOMPARE((*spans)[1][0].begin, 2.0);
        QCOMPARE((*spans)[1][1].begin, 8.0);
    }

    void randomLanesEndWhenEventsDo()
    {
        std::mt19937 random(7);
        for (int round = 0; round < 200; ++round) {
            // Tasks in one order through all lanes; each may wait for any before it.
            Lanes lanes(1 + random() % 4);
            std::vector<std::pair<std::size_t, std::size_t>> made;
            const std::size_t count = 1 + random() % 30;
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t lane = random() % lanes.size();
                LaneTask task{double(random() % 8) / 4};
                for (std::size_t k = random() % 3; k > 0 && !made.empty(); --k) {
                    const auto& [other, index] = made[random() % made.size()];
                    task.waits.push_back({other, index, double(random() % 5) / 4});
                }
                made.emplace_back(lane, lanes[lane].size());
                lanes[lane].push_back(std::move(task));
            }
            QVERIFY(std::abs(endOf(lanes) - endByEvents(lanes)) < 1e-9);
        }
    }

    void tasksThatWaitForEachOtherAreRefused()
    {
        const auto spans = scheduleLanes({{{1.0, {{1, 0}}}}, {{1.0, {{0, 0}}}}});
        QVERIFY(!spans);
        QCOMPARE(spans.error().code, std::string("timing.cycle"));
        QVERIFY(!scheduleLanes({{{1.0, {{3, 0}}}}}));
    }
};

QTEST_GUILESS_MAIN(TestLaneSchedule)
#include "tst_lane_schedule.moc"
