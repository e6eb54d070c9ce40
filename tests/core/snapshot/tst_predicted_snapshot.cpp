// SPDX-License-Identifier: Apache-2.0
// A predicted step as PyTorch would have recorded it: written, read again as any file, and analysed from its events
// alone, it has the bytes of the simulation.
#include "core/device/catalogue.h"
#include "core/experiments/training-memory/memory_history.h"
#include "core/experiments/training-memory/training_memory.h"
#include "core/report/snapshot_record.h"
#include "core/snapshot/predicted_snapshot.h"
#include "core/snapshot/snapshot_device.h"
#include "core/snapshot/snapshot_reader.h"
#include "core/trace/allocator_replay.h"

#include <QTest>

using namespace memscape;

namespace {

std::shared_ptr<const SnapshotDevice> analysed(Result<Snapshot> snapshot)
{
    if (!snapshot)
        qFatal("%s", snapshot.error().text().c_str());
    return *SnapshotDevice::analyse(std::make_shared<const Snapshot>(std::move(*snapshot)), 0);
}

double figureOf(const SnapshotDevice& device, const char* key)
{
    return findFigure(snapshotFigures(device, {0, device.lifetimes().events()}), key)->number();
}

} // namespace

class TestPredictedSnapshot : public QObject
{
    Q_OBJECT

private slots:
    void itHasTheBytesOfTheSimulation_data()
    {
        QTest::addColumn<QStringList>("asked");
        QTest::newRow("plain") << QStringList{};
        QTest::newRow("micro-batches") << QStringList{"accumulation=4"};
        QTest::newRow("pages of expandable segments") << QStringList{"allocator=expandable"};
        QTest::newRow("streams of FSDP") << QStringList{"zero=3", "data_parallel=4", "sharding_implementation=fsdp1"};
        QTest::newRow("written out on a smaller device") << QStringList{"batch=64"};
    }
    void itHasTheBytesOfTheSimulation()
    {
        QFETCH(QStringList, asked);
        const Experiment& training = **findExperiment("training-memory");
        std::vector<std::string> texts{"model=gpt2", "batch=2", "sequence=128", "advice=none"};
        for (const QString& text : asked) {
            std::erase_if(texts, [&](const std::string& one) {
                return one.substr(0, one.find('=')) == text.section(u'=', 0, 0).toStdString();
            });
            texts.push_back(text.toStdString());
        }
        const Device device = *findDevice("nvidia-t4");
        const Parameters parameters = *standardParameters(training, device, texts);
        const auto bytes = memoryHistory(device, parameters);
        QVERIFY2(bytes, bytes ? "" : bytes.error().text().c_str());
        const auto read = analysed(readSnapshotBytes(*bytes));
        QVERIFY(read->lifetimes().reconciliation().isClean()); // events and segments agree
        const TrainingAnswer answer = *answerTraining(device, parameters);
        const AllocatorReplay replay = replayTrace(answer.simulation.trace, answer.setup.allocator);
        QCOMPARE(figureOf(*read, "peak_allocated"), double(replay.statistics.peak.allocated));
        QCOMPARE(figureOf(*read, "peak_reserved"), double(replay.statistics.peak.reserved));
        QCOMPARE(figureOf(*read, "final_reserved"), double(replay.statistics.current.reserved));
    }

    /// Layers repeat sizes as steps do; there is one step all the same, and nothing was measured.
    void itIsOneStepThatNeverRan()
    {
        const Experiment& training = **findExperiment("training-memory");
        const Device device = *findDevice("nvidia-t4");
        const Parameters parameters = *standardParameters(
            training, device, std::vector<std::string>{"model=gpt2", "batch=2", "sequence=128", "advice=none"});
        const auto read = analysed(readSnapshotBytes(*memoryHistory(device, parameters)));
        QVERIFY(isPredicted(read->snapshot()));
        QVERIFY(read->steps().steps.empty());
        const Record record = snapshotRecord(*read, {0, read->lifetimes().events()}, "step.pickle");
        QVERIFY(record.predicted && !record.measured);
        QCOMPARE(snapshotOutcome(record), &*record.predicted);
    }

    void stacksNameOperatorModuleAndPhase()
    {
        Trace trace;
        const BlockId first = trace.allocate(8 << 20, Category::Communication, trace.name("gathered"));
        trace.enter(Phase::Forward);
        trace.allocate(4 << 20, Category::Activations, trace.name("gelu"), trace.module("layers.0"));
        trace.free(first);
        const auto device = analysed(predictedSnapshot(trace, {}));
        QStringList actions;
        for (std::size_t i = 0; i < device->lifetimes().events(); ++i) {
            const std::string_view text = snapshotActionText(device->lifetimes().event(i).action);
            actions << QString::fromUtf8(text.data(), qsizetype(text.size()));
        }
        QCOMPARE(actions, (QStringList{"segment_alloc", "alloc", "alloc", "free_requested", "free_completed"}));
        const Snapshot& snapshot = device->snapshot();
        const auto stack = snapshot.stacks[snapshot.events.stack(2)];
        QCOMPARE(snapshot.frameName(stack[0]), std::string_view("gelu"));
        QCOMPARE(snapshot.frameName(stack[1]), std::string_view("layers.0"));
        QCOMPARE(snapshot.frameName(stack[2]), std::string_view("forward"));
    }

    void whatIsTooLongIsRefused()
    {
        Trace trace;
        trace.enter(Phase::Forward);
        trace.free(trace.allocate(512, Category::Activations));
        QVERIFY(predictedSnapshot(trace, {}, 2));
        QCOMPARE(predictedSnapshot(trace, {}, 1).error().code, std::string("trace.length"));
        const Parameters parameters =
            *resolve((*findExperiment("training-memory"))->schema(), std::vector<std::string>{});
        QCOMPARE(memoryHistory(*findDevice("amd-epyc-9654"), parameters).error().code, std::string("memory.history"));
    }
};

QTEST_GUILESS_MAIN(TestPredictedSnapshot)
#include "tst_predicted_snapshot.moc"
