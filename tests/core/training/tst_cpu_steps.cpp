// SPDX-License-Identifier: Apache-2.0
// Training and inference steps of real PyTorch on a CPU, every allocation and free in order and to the byte, numbers
// and kernels' own blocks included (tests/data/pytorch/cpu_steps.py, which says how they were recorded). The
// prediction is asked for as the command line does: parameters of `training-memory` on a device that stands for that
// version of PyTorch.
//
// Frees that follow one another are compared as a set: what dies together dies in the order of C++ destructors.
#include "core/experiments/memory/memory_parameters.h"
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/training/step.h"
#include "tests/support/real_steps.h"

#include <QJsonObject>

using namespace memscape;
using namespace memscape::test;

namespace {

Result<ModelDescription> modelOf(const QJsonObject& measured)
{
    if (!measured.contains("config"))
        return readModel(measured["model"].toString().toStdString());
    const QByteArray text = QJsonDocument(measured["config"].toObject()).toJson();
    const Json config = Json::parse(text.toStdString());
    return modelFromConfig(JsonReader(config), "recorded");
}

Device cpuOf(const QJsonObject& file)
{
    Device device;
    device.id = "pytorch:cpu";
    device.units = device.threads = file["threads"].toInt();
    device.framework = Framework{"pytorch", file["torch"].toString().toStdString()};
    return device;
}

Result<TrainingSetup> setupOf(const Device& device, const QJsonObject& measured)
{
    ParameterTexts texts;
    const QJsonObject parameters = measured["parameters"].toObject();
    for (auto it = parameters.begin(); it != parameters.end(); ++it)
        texts.emplace_back(it.key().toStdString(), it.value().toVariant().toString().toStdString());
    if (!parameters.contains("keeps_logits"))
        texts.emplace_back("keeps_logits", "true");
    const auto resolved = resolve(trainingSchema(), texts);
    if (!resolved)
        return tl::unexpected(resolved.error());
    return trainingSetup(device, *resolved);
}

std::vector<Change> changesOf(const Trace& trace, Phase phase, int microBatch = 0)
{
    std::vector<Change> changes;
    for (const Event& event : trace.events())
        if (event.phase == phase && event.microBatch == microBatch)
            changes.push_back(
                {event.change(),
                 QString::fromStdString(trace.modules()[event.module] + " " + trace.names()[event.name])});
    return changes;
}

std::vector<Change> changesOf(const QJsonArray& events)
{
    std::vector<Change> changes;
    for (const QJsonValue& event : events)
        changes.push_back(event.isArray() ? Change{event[0].toInteger(), event[1].toString()}
                                          : Change{event.toInteger(), {}});
    return changes;
}

/// The most bytes above those at the beginning.
std::int64_t peakOf(const std::vector<Change>& changes)
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
    void allocateWhatPyTorchAllocates_data();
    void allocateWhatPyTorchAllocates();
};

void TestCpuSteps::allocateWhatPyTorchAllocates_data()
{
    QTest::addColumn<QJsonObject>("file");
    QTest::addColumn<QJsonObject>("measured");
    for (const char* const name : {"cpu_steps_2.15.json", "cpu_steps_1.13.json"}) {
        const QJsonObject file = recordedFile(name);
        for (const QJsonValue& value : file["cases"].toArray())
            QTest::addRow("%s, torch %s", qPrintable(value["name"].toString()), qPrintable(file["torch"].toString()))
                << file << value.toObject();
    }
}

void TestCpuSteps::allocateWhatPyTorchAllocates()
{
    QFETCH(QJsonObject, file);
    QFETCH(QJsonObject, measured);
    const auto model = modelOf(measured);
    QVERIFY2(model, model ? "" : model.error().text().c_str());
    const auto setup = setupOf(cpuOf(file), measured);
    QVERIFY2(setup, setup ? "" : setup.error().text().c_str());
    const auto graph = buildNetwork(*model, setup->build);
    QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
    const auto trace = simulateStep(*graph, setup->step);
    QVERIFY2(trace, trace ? "" : trace.error().text().c_str());

    const QJsonObject events = measured["events"].toObject();
    const auto compare = [&](const QString& name, const std::vector<Change>& simulated) {
        const std::vector<Change> recorded = changesOf(events[name].toArray());
        compareChanges(simulated, recorded);
        if (!QTest::currentTestFailed())
            QCOMPARE(peakOf(simulated), peakOf(recorded));
        return !QTest::currentTestFailed();
    };
    for (int i = 0; i < setup->step.plan.accumulation; ++i) {
        for (const auto& [name, phase] : {std::pair{"forward", Phase::Forward}, {"backward", Phase::Backward}}) {
            const QString key = QString("%1 %2").arg(name).arg(i);
            if (events.contains(key) && !compare(key, changesOf(*trace, phase, i)))
                return;
        }
    }
    std::vector<Change> update = changesOf(events["clipping"].toArray());
    for (const Change& change : changesOf(events["optimizer"].toArray()))
        update.push_back(change);
    compareChanges(changesOf(*trace, Phase::Optimizer), update);
    if (!QTest::currentTestFailed())
        compare("zero_grad", changesOf(*trace, Phase::ZeroGrad));
}

QTEST_GUILESS_MAIN(TestCpuSteps)
#include "tst_cpu_steps.moc"
