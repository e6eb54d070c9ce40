// SPDX-License-Identifier: Apache-2.0
// The parameters of adapters: what PEFT's preparation of a quantized base adds, and what cannot be together.
#include "core/experiment/experiment.h"
#include "tests/support/devices.h"

#include <QtTest>

using namespace memscape;
using namespace memscape::test;

namespace {

Result<Prediction> predictedWith(const std::vector<std::string>& assignments)
{
    const Experiment& training = **findExperiment("training-memory");
    MEMSCAPE_TRY(parameters, resolve(training.schema(), assignments));
    return training.predict(h200(), parameters);
}

} // namespace

class TestAdapterParameters : public QObject
{
    Q_OBJECT

private slots:
    void aQuantizedBaseIsPreparedAsPeftDoes();
    void wrongAdaptersAreRefused_data();
    void wrongAdaptersAreRefused();
};

// Norms, embeddings, positions and biases outside of the quantized layers: 4 bytes each in place of 2, and so are
// adapters.
void TestAdapterParameters::aQuantizedBaseIsPreparedAsPeftDoes()
{
    const auto weights = [](const char* preparation) {
        const auto predicted =
            predictedWith({"model=llama-2-7b", "batch=1", "sequence=8", "advice=none", "precision=bf16-mixed",
                           "adapter=qlora", std::string("kbit_preparation=") + preparation});
        return predicted ? findFigure(predicted->figures, "weights")->number() : memscape::nan;
    };
    const double tables = 2.0 * 32000 * 4096, norms = 65 * 4096, adapters = 39'976'960;
    QCOMPARE(weights("peft") - weights("none"), 2 * (tables + norms + adapters));
}

void TestAdapterParameters::wrongAdaptersAreRefused_data()
{
    QTest::addColumn<QString>("assignment");
    QTest::addColumn<QString>("code");
    QTest::addColumn<QString>("place");
    const auto row = [](const char* assignment, const char* code, const char* place) {
        QTest::newRow(assignment) << assignment << code << place;
    };
    row("adapter_targets=query", "plan.lora", "adapter_targets");
    row("adapter_targets=c_attn,,c_proj", "plan.lora", "adapter_targets");
    row("adapter_targets=none", "plan.lora", "adapter_targets");
    row("adapter_targets=rm -rf", "plan.lora", "adapter_targets");
    row("modules_to_save=nothing", "plan.lora", "modules_to_save");
    row("base_precision=int8", "plan.combination", "base_precision");
    row("base_precision=bf16", "plan.combination", "base_precision");
    row("adapter_rank=65536", "plan.range", "");
    row("quantized_head=true", "plan.combination", "quantized_head");
}

void TestAdapterParameters::wrongAdaptersAreRefused()
{
    QFETCH(QString, assignment);
    QFETCH(QString, code);
    QFETCH(QString, place);
    const auto answer =
        predictedWith({"model=gpt2", "batch=1", "sequence=8", "adapter=qlora", "loss=liger", assignment.toStdString()});
    QVERIFY(!answer);
    QCOMPARE(QString::fromStdString(answer.error().code), code);
    if (!place.isEmpty())
        QCOMPARE(QString::fromStdString(answer.error().place), place);
    QVERIFY(!answer.error().hint.empty() || code == "plan.range");
}

QTEST_GUILESS_MAIN(TestAdapterParameters)
#include "tst_adapter_parameters.moc"
