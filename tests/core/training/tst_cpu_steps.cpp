// SPDX-License-Identifier: Apache-2.0
// Training and inference steps of real PyTorch on a CPU, every allocation and free in order and to the byte, numbers
// and kernels' own blocks included (tests/data/pytorch/cpu_steps.py, which says how they were recorded). The
// prediction is asked for as the command line does: parameters of `training-memory` on a device that stands for that
// version of PyTorch.
//
// Frees that follow one another are compared as a set: what dies together dies in the order of C++ destructors. Of
// transformers' models the optimizer's events are compared as a set, too: its modules register their parameters in
// another order than they use them. Where a case says so, peaks alone are compared, with the reason. Left out of both
// sides: oneDNN's scratchpads, whose sizes are those of its implementation for the processor; in none of these steps do
// they reach a peak; record_function of PyTorch 1.
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/trace/allocator_replay.h"
#include "core/training/optimizer_step.h"
#include "core/training/step.h"
#include "tests/support/real_steps.h"

#include <QJsonObject>

using namespace memscape;
using namespace memscape::test;

namespace {

Result<ModelDescription> recordedModel(const QJsonObject& measured)
{
    if (!measured.contains("config"))
        return readModel(measured["model"].toString().toStdString());
    const QByteArray text = QJsonDocument(measured["config"].toObject()).toJson();
    const Json config = Json::parse(text.toStdString());
    return modelFromConfig(JsonReader(config), "recorded");
}

Device recordedCpu(const QJsonObject& file, const QJsonObject& measured)
{
    Device device;
    device.id = "pytorch:cpu";
    device.units = device.threads = measured["threads"].toInt(1);
    device.framework = Framework{"pytorch", file["torch"].toString().toStdString()};
    return device;
}

Result<TrainingSetup> recordedSetup(const Device& device, const QJsonObject& measured)
{
    ParameterTexts texts;
    const QJsonObject parameters = measured["parameters"].toObject();
    for (auto it = parameters.begin(); it != parameters.end(); ++it)
        texts.emplace_back(it.key().toStdString(), it.value().toVariant().toString().toStdString());
    if (!parameters.contains("keeps_logits"))
        texts.emplace_back("keeps_logits", "true");
    if (!parameters.contains("attention"))
        texts.emplace_back("attention", "eager"); // as the recorder has it
    const auto resolved = resolve(trainingSchema(), texts);
    if (!resolved)
        return tl::unexpected(resolved.error());
    return trainingSetup(device, *resolved);
}

std::vector<Change> everyChange(const Trace& trace, Phase phase, int microBatch = 0)
{
    std::vector<Change> changes;
    for (const Event& event : trace.events())
        if (event.phase == phase && event.microBatch == microBatch && trace.names()[event.name] != recordFunctionName)
            changes.push_back(
                {event.change(),
                 QString::fromStdString(trace.modules()[event.module] + " " + trace.names()[event.name])});
    return changes;
}

enum class Scratchpads { With, Without };

std::vector<Change> everyChange(const QJsonArray& events, Scratchpads scratchpads = Scratchpads::Without)
{
    std::vector<Change> changes;
    for (const QJsonValue& event : events) {
        if (!event.isArray())
            changes.push_back({event.toInteger(), {}});
        else if (scratchpads == Scratchpads::With)
            changes.push_back({event[0].toInteger(), event[1].toString()});
    }
    return changes;
}

std::vector<Change> changesBySize(std::vector<Change> changes)
{
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.bytes > b.bytes; });
    return changes;
}

Result<Trace> recordedTrace(const QJsonObject& file, const QJsonObject& measured)
{
    MEMSCAPE_TRY(model, recordedModel(measured));
    MEMSCAPE_TRY(setup, recordedSetup(recordedCpu(file, measured), measured));
    MEMSCAPE_TRY(graph, buildNetwork(model, setup.build));
    return simulateStep(graph, setup.step);
}

/// The most bytes above those at the beginning.
std::int64_t highestChange(const std::vector<Change>& changes)
{
    std::int64_t live = 0, most = 0;
    for (const Change& change : changes) {
        live += change.bytes;
        most = std::max(most, live);
    }
    return most;
}

} // namespace

class TestCpuSteps : public QObject
{
    Q_OBJECT

private slots:
    void allocateWhatPyTorchAllocates_data()
    {
        QTest::addColumn<QJsonObject>("file");
        QTest::addColumn<QJsonObject>("measured");
        for (const char* const name : {"cpu_steps_2.15.json", "cpu_steps_1.13.json"}) {
            const QJsonObject file = recordedFile(name);
            for (const QJsonValue& value : file["cases"].toArray())
                QTest::addRow("%s, torch %s", qPrintable(value["name"].toString()),
                              qPrintable(file["torch"].toString()))
                    << file << value.toObject();
        }
    }

    void allocateWhatPyTorchAllocates()
    {
        QFETCH(QJsonObject, file);
        QFETCH(QJsonObject, measured);
        const auto trace = recordedTrace(file, measured);
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
        const bool isOrdered = measured["compares"] != "peaks", isLibrary = measured["maker"] == "transformer";
        const QJsonObject events = measured["events"].toObject();
        const auto compare = [&](const std::vector<Change>& simulated, const std::vector<Change>& recorded,
                                 bool ordered) {
            QCOMPARE(highestChange(simulated), highestChange(recorded));
            if (isOrdered)
                compareChanges(ordered ? simulated : changesBySize(simulated),
                               ordered ? recorded : changesBySize(recorded));
        };
        for (const QString& name : events.keys()) {
            const bool isForward = name.startsWith("forward");
            if (!isForward && !name.startsWith("backward"))
                continue;
            const int microBatch = name.section(' ', 1).toInt();
            compare(everyChange(*trace, isForward ? Phase::Forward : Phase::Backward, microBatch),
                    everyChange(events[name].toArray()), true);
            if (QTest::currentTestFailed())
                QFAIL(qPrintable("in " + name));
        }
        std::vector<Change> update = everyChange(events["clipping"].toArray());
        for (const Change& change : everyChange(events["optimizer"].toArray()))
            update.push_back(change);
        compare(everyChange(*trace, Phase::Optimizer), update, !isLibrary);
        compare(everyChange(*trace, Phase::ZeroGrad), everyChange(events["zero_grad"].toArray()), true);
    }

    void scratchpadsReachNoPeak()
    {
        int steps = 0;
        for (const QJsonValue& measured : recordedSteps("cpu_steps_2.15.json")) {
            if (measured["maker"] != "pictures")
                continue;
            ++steps;
            for (const QJsonValue& phase : measured["events"].toObject()) {
                const std::vector<Change> with = everyChange(phase.toArray(), Scratchpads::With);
                QCOMPARE(highestChange(with), highestChange(everyChange(phase.toArray())));
            }
        }
        QVERIFY(steps >= 3);
    }

    void nothingIsCached()
    {
        AllocatorOptions options;
        options.caches = false;
        options.deviceLimit = 1000;
        CachingAllocator allocator(options);
        const BlockIndex first = allocator.allocate(1), second = allocator.allocate(700);
        QVERIFY(first && second);
        QCOMPARE(allocator.statistics().current.reserved, 701);
        QCOMPARE(allocator.statistics().current.segments, 2);
        QCOMPARE(allocator.allocate(300), BlockIndex(0));
        QCOMPARE(allocator.refusedBytes(), 300);
        allocator.free(second);
        QVERIFY(allocator.allocate(999));
        QCOMPARE(allocator.statistics().current.allocated, 1000);
        QCOMPARE(allocator.statistics().peak.reserved, 1000);

        const QJsonArray steps = recordedSteps("cpu_steps_2.15.json");
        const auto trace = recordedTrace(recordedFile("cpu_steps_2.15.json"), steps[0].toObject());
        QVERIFY(trace);
        const AllocatorStatistics statistics = replayTrace(*trace, {.caches = false}).statistics;
        QCOMPARE(statistics.peak.allocated, trace->peakBytes());
        QCOMPARE(statistics.peak.reserved, trace->peakBytes());
        QCOMPARE(statistics.current.reserved, trace->liveBytes());
    }

    void theVersionOfAFrameworkChoosesTheRules()
    {
        const auto parameters = resolve(trainingSchema(), std::vector<std::string>{"attention=efficient"});
        QVERIFY(parameters);
        Device device;
        device.units = 6;
        for (const char* const version : {"1.13.1", "2.15.0+cu132"}) {
            device.framework = Framework{"pytorch", version};
            const auto setup = trainingSetup(device, *parameters);
            QVERIFY(setup);
            const bool isOld = device.framework->version.starts_with("1.");
            QCOMPARE(setup->build.rules, EagerRules::onCpu(isOld, 6));
            QCOMPARE(setup->step.rules, setup->build.rules);
            QCOMPARE(setup->build.attention, isOld ? AttentionKernel::Eager : AttentionKernel::Flash);
            QCOMPARE(setup->step.plan.update, UpdateStyle::Loop);
            QVERIFY(!setup->allocator.caches);
        }
        device.framework.reset(); // the newest
        QCOMPARE(trainingSetup(device, *parameters)->build.rules, EagerRules::onCpu(false, 6));
        QCOMPARE(trainingSetup(withOwnKernels(device), *parameters)->build.rules, EagerRules());
        device.kind = DeviceKind::Gpu;
        const auto gpu = trainingSetup(device, *parameters);
        QCOMPARE(gpu->build.rules, EagerRules());
        QVERIFY(gpu->allocator.caches);
    }
};

QTEST_GUILESS_MAIN(TestCpuSteps)
#include "tst_cpu_steps.moc"
