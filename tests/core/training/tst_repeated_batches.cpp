// SPDX-License-Identifier: Apache-2.0
// Micro-batches that are alike are simulated three times and repeated: peaks, timeline, live tensors, what the
// allocator reserves and where memory runs out are those of the long way, event by event, and a hundred times the
// micro-batches simulate no event more.
#include "core/network/model_names.h"
#include "core/trace/timeline.h"
#include "core/training/simulation.h"

#include <QtTest>

#include <functional>

using namespace memscape;

namespace {

using SetupChange = std::function<void(TrainingSetup&)>;

TrainingSetup setupOf(int accumulation, const SetupChange& change)
{
    TrainingSetup setup;
    setup.build.batch = 2;
    setup.build.sequence = 32;
    setup.step.plan.accumulation = accumulation;
    setup.step.blasWorkspace = 1 << 20;
    change(setup);
    return setup;
}

bool isSame(const Moment& a, const Moment& b)
{
    return a.event == b.event && a.bytes == b.bytes && a.categories == b.categories && a.phase == b.phase
        && a.microBatch == b.microBatch;
}

bool isSame(const AllocatorCounts& a, const AllocatorCounts& b)
{
    return a.allocated == b.allocated && a.active == b.active && a.requested == b.requested && a.reserved == b.reserved
        && a.inactiveSplit == b.inactiveSplit && a.segments == b.segments && a.allocations == b.allocations;
}

bool isSame(const AllocatorStatistics& a, const AllocatorStatistics& b)
{
    return isSame(a.current, b.current) && isSame(a.peak, b.peak) && a.deviceAllocations == b.deviceAllocations
        && a.deviceFrees == b.deviceFrees && a.retries == b.retries;
}

/// Blocks by what they are: their ids differ.
std::vector<std::tuple<std::int64_t, NameId, ModuleId>> liveOf(const Trace& trace, std::size_t moment)
{
    std::vector<std::tuple<std::int64_t, NameId, ModuleId>> live;
    for (const BlockId block : liveAt(trace, moment))
        live.emplace_back(trace.allocation(block).bytes, trace.allocation(block).name, trace.allocation(block).module);
    std::sort(live.begin(), live.end());
    return live;
}

} // namespace

class TestRepeatedBatches : public QObject
{
    Q_OBJECT

private slots:
    /// A step finds weights and state where the first one put them, and after the second, which finds what the first
    /// has left, nothing more is needed.
    void stepsInOneAllocator()
    {
        TrainingSetup setup = setupOf(1, [](TrainingSetup& s) { s.build.keepsLogits = true; });
        RecordedNetworks networks(*readModel("gpt2"));
        CachingAllocator allocator;
        StepMemory memory;
        const auto next = [&](std::int64_t sequence) {
            setup.build.sequence = sequence;
            const auto graph = networks.network(setup.build);
            return *nextStepTotals(**graph, *preparedNetwork(networks, **graph), setup.step, allocator, memory);
        };
        const StepTotals first = next(64), second = next(64), third = next(64);
        const auto graph = networks.network(setup.build);
        const auto alone = stepTotals(**graph, *preparedNetwork(networks, **graph), setup.step, {});
        QVERIFY(alone);
        QCOMPARE(first.peak, alone->peak);
        QVERIFY(isSame(first.allocator, alone->allocator));
        QCOMPARE(second.peak, first.peak);
        QCOMPARE(second.allocator.current.allocated, first.allocator.current.allocated);
        QCOMPARE(third.allocator.peak.reserved, second.allocator.peak.reserved);
        const StepTotals shorter = next(48);
        QVERIFY(shorter.peak < first.peak);
        QVERIFY(shorter.allocator.current.allocated < third.allocator.current.allocated); // its logits are fewer
        QCOMPARE(next(64).allocator.current.allocated, third.allocator.current.allocated);
    }

    /// Micro-batches one by one leave what a step of them leaves, and until its update the gradients beside it.
    void stepsInParts_data()
    {
        QTest::addColumn<SetupChange>("change");
        QTest::addColumn<bool>("freesGradients");
        const auto row = [](const char* name, bool freesGradients, SetupChange change) {
            QTest::newRow(name) << std::move(change) << freesGradients;
        };
        row("GPT-2", true, [](TrainingSetup&) {});
        row("logits that stay", true, [](TrainingSetup& s) { s.build.keepsLogits = true; });
        row("gradients that stay", false, [](TrainingSetup& s) { s.step.plan.setsGradientsToNone = false; });
        row("checkpointed", true, [](TrainingSetup& s) { s.step.checkpointing = {Checkpointing::Layers, 1, true}; });
        row("ZeRO-2", true, [](TrainingSetup& s) { s.step.plan.zeroStage = 2, s.step.plan.dataParallel = 4; });
        row("ZeRO-3", true, [](TrainingSetup& s) { s.step.plan.zeroStage = 3, s.step.plan.dataParallel = 4; });
    }
    void stepsInParts()
    {
        QFETCH(SetupChange, change);
        QFETCH(bool, freesGradients);
        const TrainingSetup setup = setupOf(3, change);
        RecordedNetworks networks(*readModel("gpt2"));
        const auto graph = *networks.network(setup.build);
        const auto network = preparedNetwork(networks, *graph);
        const int ranks = setup.step.plan.dataParallel;
        std::int64_t gradients = 0; // this rank's
        for (const NamedTensor& parameter : graph->parameters)
            gradients += graph->layoutOf(parameter.tensor).elements() / ranks * 4;
        CachingAllocator inOne, inParts;
        StepMemory ofOne, ofParts;
        for (int step = 0; step < 3; ++step) {
            const StepTotals whole = *nextStepTotals(*graph, *network, setup.step, inOne, ofOne);
            std::int64_t peak = 0, between = 0;
            for (int part = 0; part < 3; ++part) {
                const StepTotals one = *nextMicroBatchTotals(*graph, *network, setup.step, inParts, ofParts);
                peak = std::max(peak, one.peak);
                if (part == 1)
                    between = inParts.statistics().current.requested;
            }
            const std::int64_t left = inParts.statistics().current.requested;
            QCOMPARE(left, whole.allocator.current.requested);
            QCOMPARE(between - left, freesGradients ? gradients : 0);
            QVERIFY(peak <= whole.peak && whole.peak - peak < whole.peak / 10);
        }
    }

    void areWhatTheLongWaySimulates_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<SetupChange>("change");
        const auto row = [](const char* name, const char* model, SetupChange change) {
            QTest::newRow(name) << QString(model) << std::move(change);
        };
        row("GPT-2", "gpt2", [](TrainingSetup&) {});
        row("autocast", "gpt2", [](TrainingSetup& s) {
            s.build.autocast = DType::BFloat16;
            s.step.plan.precision = Precision::Bf16Autocast;
        });
        row("mixed, sharded, checkpointed", "pythia-70m", [](TrainingSetup& s) {
            s.build.weights = DType::BFloat16;
            s.step.plan.precision = Precision::Bf16Mixed;
            s.step.plan.zeroStage = 3;
            s.step.plan.dataParallel = 4;
            s.step.checkpointing = {Checkpointing::Layers, 2, false};
        });
        row("ZeRO-2", "pythia-70m", [](TrainingSetup& s) { s.step.plan.zeroStage = 2, s.step.plan.dataParallel = 4; });
        row("gradients on the host", "pythia-70m", [](TrainingSetup& s) { s.step.plan.offload = Offload::Gradients; });
        row("gradients that stay", "gpt2", [](TrainingSetup& s) { s.step.plan.setsGradientsToNone = false; });
        row("logits that stay", "gpt2", [](TrainingSetup& s) { s.build.keepsLogits = true; });
        row("pages", "gpt2", [](TrainingSetup& s) { s.allocator.expandableSegments = true; });
        row("pictures", "resnet18", [](TrainingSetup&) {});
        row("experts", "olmoe-1b-7b", [](TrainingSetup&) {});
    }
    void areWhatTheLongWaySimulates()
    {
        QFETCH(QString, model);
        QFETCH(SetupChange, change);
        ModelDescription description = *readModel(model.toStdString());
        if (description.layers > 3)
            description.layers = 3;
        RecordedNetworks networks(description);
        for (const int accumulation : {1, 2, 3, 4, 7, 40}) {
            TrainingSetup setup = setupOf(accumulation, change);
            const auto all = simulate(networks, setup);
            QVERIFY2(all, all ? "" : all.error().text().c_str());
            setup.step.repeatsMicroBatches = true;
            const auto once = simulate(networks, setup);
            QVERIFY(once);
            const Trace &a = all->trace, &b = once->trace;
            QVERIFY(accumulation <= 3 || b.events().size() < a.events().size());
            QCOMPARE(b.eventCount(), a.events().size());
            QVERIFY(isSame(once->peak, all->peak));
            QVERIFY(isSame(once->allocator, all->allocator));
            for (const std::size_t points : {10u, 600u, 100'000u}) {
                const auto long_ = timelineOf(a, points), short_ = timelineOf(b, points);
                QVERIFY(std::equal(long_.begin(), long_.end(), short_.begin(), short_.end(),
                                   [](const Moment& x, const Moment& y) { return isSame(x, y); }));
            }
            for (std::size_t i = 1; i <= 8; ++i) {
                const std::size_t moment = (a.events().size() - 1) * i / 8;
                QVERIFY(liveOf(a, moment) == liveOf(b, moment));
                QCOMPARE(b.eventAt(moment).bytes, a.events()[moment].bytes);
            }
        }
    }

    void memoryRunsOutAtTheSameEvent_data() { areWhatTheLongWaySimulates_data(); }
    void memoryRunsOutAtTheSameEvent()
    {
        QFETCH(QString, model);
        QFETCH(SetupChange, change);
        ModelDescription description = *readModel(model.toStdString());
        if (description.layers > 3)
            description.layers = 3;
        RecordedNetworks networks(description);
        TrainingSetup setup = setupOf(9, change);
        const auto all = simulate(networks, setup);
        setup.step.repeatsMicroBatches = true;
        const auto once = simulate(networks, setup);
        QVERIFY(all && once);
        const std::int64_t most = all->allocator.peak.reserved, least = all->allocator.peak.allocated;
        for (int share = 0; share <= 20; ++share) {
            AllocatorOptions limited = setup.allocator;
            limited.deviceLimit = least - least / 16 + (most - least + least / 16) * share / 20;
            const AllocatorReplay long_ = replayTrace(all->trace, limited), short_ = replayTrace(once->trace, limited);
            QCOMPARE(short_.outOfMemory.has_value(), long_.outOfMemory.has_value());
            if (long_.outOfMemory) {
                QCOMPARE(short_.outOfMemory->event, long_.outOfMemory->event);
                QCOMPARE(short_.outOfMemory->wanted, long_.outOfMemory->wanted);
            }
            QVERIFY(isSame(short_.statistics, long_.statistics));
        }
    }

    /// Counted, not timed.
    void simulatesNoMoreOfMoreBatches()
    {
        RecordedNetworks networks(*readModel("from-scratch:hidden=64,layers=2"));
        std::vector<std::size_t> stored, happening;
        for (const int accumulation : {100, 200, 400, 65535}) {
            TrainingSetup setup = setupOf(accumulation, [](TrainingSetup& s) { s.step.repeatsMicroBatches = true; });
            const auto made = simulate(networks, setup);
            QVERIFY(made);
            stored.push_back(made->trace.events().size());
            happening.push_back(made->trace.eventCount());
        }
        QVERIFY(happening[3] > 500 * happening[0]);
        for (const std::size_t count : stored)
            QCOMPARE(count, stored[0]);
    }
};

QTEST_GUILESS_MAIN(TestRepeatedBatches)
#include "tst_repeated_batches.moc"
