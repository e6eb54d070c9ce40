// SPDX-License-Identifier: Apache-2.0
// Whole training steps and forward passes against a current PyTorch, every allocation and free in order
// (tests/data/pytorch/training_steps.py, which says how they were recorded).
#include "core/device/catalogue.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/trace/allocator_replay.h"
#include "core/training/blas_workspace.h"
#include "core/training/step.h"
#include "tests/support/real_steps.h"

#include <fmt/format.h>

using namespace memscape;
using namespace memscape::test;

namespace {

Result<ModelDescription> modelOf(const QJsonObject& measured)
{
    const auto size = [&](const char* key) { return measured[key].toInteger(); };
    return readModel(fmt::format("from-scratch:hidden={},layers={},heads={},ffn={},vocab={}", size("hidden"),
                                 size("layers"), size("heads"), size("ffn"), size("vocab")));
}

BuildOptions optionsOf(const QJsonObject& measured)
{
    BuildOptions options;
    options.batch = measured["batch"].toInteger();
    options.sequence = measured["sequence"].toInteger();
    options.writtenOut = WrittenOut::all();
    if (measured["precision"] == "bf16-autocast")
        options.autocast = DType::BFloat16;
    options.gradient = measured["phase"] != "inference";
    options.loss = measured["phase"] == "training";
    options.keepsLogits = measured["names_logits"].toBool();
    return options;
}

StepSettings settingsOf(const QJsonObject& measured)
{
    StepSettings settings;
    settings.rules.accumulatesInPlace = false; // as the recorder saw it
    settings.plan.precision = measured["precision"] == "fp32" ? Precision::Fp32 : Precision::Bf16Autocast;
    settings.plan.phase = measured["phase"] == "training" ? StepPhase::Training
        : measured["phase"] == "forward"                  ? StepPhase::Forward
                                                          : StepPhase::Inference;
    settings.plan.optimizer = OptimizerKind::AdamW;
    settings.plan.update = UpdateStyle::WrittenOut;
    if (const int every = measured["every"].toInt())
        settings.checkpointing = {Checkpointing::Layers, every, false};
    if (measured["selective"].toBool())
        settings.checkpointing = {Checkpointing::AttentionCore, 1, false};
    return settings;
}

} // namespace

namespace {

Device gpu(std::string capability)
{
    Device device;
    device.kind = DeviceKind::Gpu;
    device.vendor = "NVIDIA";
    device.computeCapability = std::move(capability);
    return device;
}

} // namespace

class TestRealSteps : public QObject
{
    Q_OBJECT

private slots:
    void allocatesWhatPyTorchAllocates_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        int row = 0;
        for (const QJsonValue& value : recordedSteps("training_steps.json"))
            QTest::addRow("%d %s %s %s every %d%s", row++, qPrintable(value["model"].toString()),
                          qPrintable(value["precision"].toString()), qPrintable(value["phase"].toString()),
                          value["every"].toInt(), value["selective"].toBool() ? " selective" : "")
                << value.toObject();
    }

    void allocatesWhatPyTorchAllocates()
    {
        QFETCH(QJsonObject, measured);
        const auto model = modelOf(measured);
        QVERIFY2(model, model ? "" : model.error().text().c_str());
        const auto graph = buildNetwork(*model, optionsOf(measured));
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const auto trace = simulateStep(*graph, settingsOf(measured));
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());

        const QJsonObject events = measured["events"].toObject();
        for (const auto& [name, phase] :
             {std::pair{"forward", Phase::Forward}, {"backward", Phase::Backward}, {"optimizer", Phase::Optimizer}}) {
            if (!events.contains(name) || QTest::currentTestFailed())
                continue;
            compareChanges(simulatedChanges(*trace, phase), measuredChanges(events[name].toArray()));
        }
    }

    void theFirstProductOfAThreadBringsAWorkspace()
    {
        QCOMPARE(blasWorkspaceBytes(Device{}), 0);
        QCOMPARE(blasWorkspaceBytes(*findDevice("apple-m2-max")), 0);
        QCOMPARE(blasWorkspaceBytes(gpu("8.0")), 8519680);
        QCOMPARE(blasWorkspaceBytes(gpu("9.0")), 32 << 20);
        QCOMPARE(blasWorkspaceBytes(gpu("12.0")), 32 << 20);
        BuildOptions options;
        options.batch = 2;
        options.sequence = 16;
        const auto graph =
            buildNetwork(*readModel("from-scratch:hidden=48,layers=2,heads=4,ffn=128,vocab=200"), options);
        StepSettings settings;
        settings.blasWorkspace = blasWorkspaceBytes(gpu("9.0"));
        settings.plan.accumulation = 2;
        const auto trace = simulateStep(*graph, settings);
        QStringList found;
        for (std::size_t i = 0; i < trace->events().size(); ++i) {
            const Event& event = trace->events()[i];
            if (event.bytes != settings.blasWorkspace)
                continue;
            QVERIFY(event.isAllocation() && event.category == Category::Workspace); // kept until the process ends
            // As in the snapshot of a real run: the product's result is there already.
            found << QString::fromStdString(std::string(phaseText(event.phase)) + " behind "
                                            + trace->names()[trace->events()[i - 1].name] + " of "
                                            + trace->modules()[event.module]);
        }
        QCOMPARE(
            found,
            (QStringList{"forward behind bmm of layers.0.attn.q_proj", "backward behind bmm_backward of lm_head"}));
    }

    // A decoder written out on an H100 with the graph kept, from its memory snapshot: 18595 MiB allocated.
    // That program also keeps a Bool of every score, made by `mask == 0` (2 MiB a layer, in blocks of 3
    // where the allocator does not split), and a rotary table for each sequence of the batch (8 MiB).
    void aForwardPassLeavesWhatARealOneLeft()
    {
        constexpr double mebibyte = 1 << 20;
        constexpr double masks = 32 * 2 + 10, tables = 8;
        BuildOptions options;
        options.batch = 4;
        options.sequence = 128;
        options.loss = false;
        options.writtenOut = WrittenOut::all();
        const auto graph =
            buildNetwork(*readModel("from-scratch:hidden=2560,layers=32,heads=32,ffn=10240,vocab=10000"), options);
        StepSettings settings;
        settings.plan.phase = StepPhase::Forward;
        settings.blasWorkspace = blasWorkspaceBytes(gpu("9.0"));
        const auto trace = simulateStep(*graph, settings);
        const double live = double(replayTrace(*trace, {}).statistics.current.allocated) / mebibyte;
        QVERIFY2(std::abs(live / 18595 - 1) < 0.005, std::to_string(live).c_str());
        QVERIFY2(std::abs((live + masks + tables) / 18595 - 1) < 0.0002, std::to_string(live).c_str());
    }
};

QTEST_GUILESS_MAIN(TestRealSteps)
#include "tst_real_steps.moc"
