// SPDX-License-Identifier: Apache-2.0
// Networks that were exported once (tests/data/pytorch/networks), stepped under other plans, against what PyTorch
// allocates and frees when the same modules run so (tests/data/pytorch/exported_networks.py).
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/training/step.h"
#include "tests/support/real_steps.h"

using namespace memscape;
using namespace memscape::test;

namespace {

BuildOptions exportedOptions(const QJsonObject& measured)
{
    BuildOptions options;
    options.batch = measured["batch"].toInteger();
    options.sequence = measured["sequence"].toInteger();
    options.rules.normStatisticsInFloat = measured["precision"] == "bf16-autocast"; // fake tensors are on a CPU
    if (measured["precision"] == "bf16")
        options.weights = DType::BFloat16;
    if (measured["precision"] == "bf16-autocast")
        options.autocast = DType::BFloat16;
    options.keepsLogits = true;
    return options;
}

StepSettings exportedSettings(const QJsonObject& measured)
{
    StepSettings settings;
    settings.rules = exportedOptions(measured).rules;
    settings.rules.accumulatesInPlace = false; // as the recorder saw it
    if (measured["layers"].toBool())
        settings.checkpointing = {Checkpointing::Layers, 1, false};
    return settings;
}

} // namespace

class TestExportedNetworks : public QObject
{
    Q_OBJECT

private slots:
    void allocateWhatPyTorchAllocates_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        for (const QJsonValue& value : recordedSteps("exported_networks.json"))
            QTest::addRow("%s batch %lld sequence %lld %s%s", qPrintable(value["network"].toString()),
                          value["batch"].toInteger(), value["sequence"].toInteger(),
                          qPrintable(value["precision"].toString()), value["layers"].toBool() ? " layers" : "")
                << value.toObject();
    }

    void allocateWhatPyTorchAllocates()
    {
        QFETCH(QJsonObject, measured);
        const QString path = QString(TEST_DATA) + "/pytorch/networks/" + measured["network"].toString() + ".json";
        const auto model = readModel(path.toStdString());
        QVERIFY2(model, model ? "" : model.error().text().c_str());
        const auto graph = buildNetwork(*model, exportedOptions(measured));
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const auto trace = simulateStep(*graph, exportedSettings(measured));
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());

        const QJsonObject events = measured["events"].toObject();
        for (const auto& [name, phase] : {std::pair{"forward", Phase::Forward}, {"backward", Phase::Backward}}) {
            if (!QTest::currentTestFailed())
                compareChanges(simulatedChanges(*trace, phase), measuredChanges(events[name].toArray()));
        }
    }
};

QTEST_GUILESS_MAIN(TestExportedNetworks)
#include "tst_exported_networks.moc"
