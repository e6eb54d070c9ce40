// SPDX-License-Identifier: Apache-2.0
// Whole training steps of a GPT-2 in the manner of nanoGPT and of transformers' LLaMA against a current
// PyTorch, every allocation and free in order (tests/data/pytorch/model_steps.py): attention eager, flash
// and memory-efficient, fp32, autocast and pure bf16, PyTorch's AdamW, clipping, accumulation,
// checkpointing. Kernels' own scratch, which a recorder of operators cannot see, is left out here too.
#include "core/training/step.h"
#include "tests/support/recorded_networks.h"

#include <QJsonObject>

#include <fmt/format.h>

using namespace memscape;
using namespace memscape::test;

namespace {

StepSettings modelSettings(const QJsonObject& measured)
{
    StepSettings settings;
    const QString precision = measured["precision"].toString(), update = measured["update"].toString();
    settings.rules.accumulatesInPlace = false; // as the recorder saw it
    settings.plan.precision = precision == "fp32" ? Precision::Fp32
        : precision == "bf16"                     ? Precision::Bf16
        : precision == "bf16-under-autocast"      ? Precision::Bf16UnderAutocast
                                                  : Precision::Bf16Autocast;
    settings.plan.optimizer = OptimizerKind::AdamW;
    settings.plan.update = update == "fused" ? UpdateStyle::Fused
        : update == "loop"                   ? UpdateStyle::Loop
                                             : UpdateStyle::Foreach;
    settings.plan.accumulation = measured["accumulation"].toInt();
    settings.plan.clipsGradients = measured["clipping"].toBool();
    if (measured["checkpointed"].toBool())
        settings.checkpointing = {Checkpointing::Layers, 1, false};
    return settings;
}

Result<Graph> networkOf(const QJsonObject& measured)
{
    return recordedNetwork(measured, recordedOptions(measured));
}

} // namespace

class TestModelSteps : public QObject
{
    Q_OBJECT

private slots:
    void allocateWhatPyTorchAllocates_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        int row = 0;
        for (const QJsonValue& value : recordedSteps("model_steps.json"))
            QTest::addRow("%d %s %s %s %s%s%s", row++, qPrintable(value["model"].toString()),
                          qPrintable(value["precision"].toString()), qPrintable(value["attention"].toString()),
                          qPrintable(value["update"].toString()), value["checkpointed"].toBool() ? " checkpointed" : "",
                          value["chunks"].toInt() > 0 ? " loss in chunks" : "")
                << value.toObject();
    }

    void allocateWhatPyTorchAllocates()
    {
        QFETCH(QJsonObject, measured);
        const auto graph = networkOf(measured);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const auto trace = simulateStep(*graph, modelSettings(measured));
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());

        const QJsonObject events = measured["events"].toObject();
        const auto recorded = [&](const QString& name) { return measuredChanges(events[name].toArray()); };
        for (int i = 0; i < measured["accumulation"].toInt(); ++i) {
            compareChanges(simulatedChanges(*trace, Phase::Forward, i), recorded(QString("forward %1").arg(i)));
            if (QTest::currentTestFailed() || !events.contains("backward 0"))
                return;
            compareChanges(simulatedChanges(*trace, Phase::Backward, i), recorded(QString("backward %1").arg(i)));
            if (QTest::currentTestFailed())
                return;
        }
        std::vector<Change> update = recorded("clipping");
        for (const Change& change : recorded("optimizer"))
            update.push_back(change);
        std::vector<Change> simulated = simulatedChanges(*trace, Phase::Optimizer);
        if (measured["model"] == "llama") // registers a layer's norms last: its temporaries in another order
            for (std::vector<Change>* const changes : {&update, &simulated})
                std::stable_sort(changes->begin(), changes->end(),
                                 [](const Change& a, const Change& b) { return a.bytes > b.bytes; });
        compareChanges(simulated, update);
    }
};

QTEST_GUILESS_MAIN(TestModelSteps)
#include "tst_model_steps.moc"
