// SPDX-License-Identifier: Apache-2.0
// Names that a person types, and combinations that make no sense.
#include "core/training/plan.h"

#include <QtTest>

using namespace memscape;

class TestPlan : public QObject
{
    Q_OBJECT

private slots:
    void everyNameReadsBack()
    {
        for (int i = 0; i <= int(Precision::Fp8); ++i)
            QCOMPARE(precisionFromText(precisionText(Precision(i))).value(), Precision(i));
        for (int i = 0; i <= int(OptimizerKind::AdaLomo); ++i)
            QCOMPARE(optimizerFromText(optimizerText(OptimizerKind(i))).value(), OptimizerKind(i));
    }

    void aTypoIsAnsweredWithTheNearestName()
    {
        const auto precision = precisionFromText("bf16-mxed");
        QVERIFY(!precision);
        QCOMPARE(precision.error().code, std::string("plan.precision"));
        QVERIFY(precision.error().hint.find("bf16-mixed") != std::string::npos);
        QCOMPARE(optimizerFromText("adamW8").error().code, std::string("plan.optimizer"));
        QCOMPARE(updateStyleFromText("for-loop").error().code, std::string("plan.update"));
    }

    void theDefaultPlanIsValid() { QVERIFY(checkPlan(Plan())); }

    void rangesAndCombinations_data()
    {
        QTest::addColumn<Plan>("plan");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, const char* code, auto change) {
            Plan plan;
            change(plan);
            QTest::newRow(name) << plan << code;
        };
        row("accumulation", "plan.range", [](Plan& plan) { plan.accumulation = 0; });
        row("stage", "plan.range", [](Plan& plan) { plan.zeroStage = 4; });
        row("degree", "plan.range", [](Plan& plan) { plan.dataParallel = 0; });
        row("rank", "plan.range", [](Plan& plan) { plan.lora = LoraPlan{.rank = 0}; });
        row("written-out lion", "plan.combination", [](Plan& plan) {
            plan.optimizer = OptimizerKind::Lion;
            plan.update = UpdateStyle::WrittenOut;
        });
        row("fused adafactor", "plan.combination", [](Plan& plan) {
            plan.optimizer = OptimizerKind::Adafactor;
            plan.update = UpdateStyle::Fused;
        });
        row("sharded muon", "plan.combination", [](Plan& plan) {
            plan.optimizer = OptimizerKind::Muon;
            plan.zeroStage = 1;
        });
        row("sharded galore", "plan.combination", [](Plan& plan) {
            plan.optimizer = OptimizerKind::GaLore;
            plan.zeroStage = 1;
        });
        row("lomo over micro-batches", "plan.combination", [](Plan& plan) {
            plan.optimizer = OptimizerKind::Lomo;
            plan.accumulation = 2;
        });
        row("lomo with clipping", "plan.combination", [](Plan& plan) {
            plan.optimizer = OptimizerKind::AdaLomo;
            plan.clipsGradients = true;
        });
        row("offloaded weights", "plan.combination", [](Plan& plan) { plan.offload = Offload::Parameters; });
        const auto inBackward = [&](const char* name, auto change) {
            row(name, "plan.combination", [&](Plan& plan) {
                plan.updatesInBackward = true;
                change(plan);
            });
        };
        inBackward("in backward of several", [](Plan& plan) { plan.accumulation = 2; });
        inBackward("in backward, clipped", [](Plan& plan) { plan.clipsGradients = true; });
        inBackward("in backward, scaled", [](Plan& plan) { plan.precision = Precision::Fp16Mixed; });
        inBackward("in backward on the host", [](Plan& plan) { plan.offload = Offload::Optimizer; });
        inBackward("in backward of replicas", [](Plan& plan) { plan.dataParallel = 2; });
        inBackward("in backward of a pipeline", [](Plan& plan) { plan.pipelineParallel = 2; });
        row("sequence parallel alone", "plan.combination", [](Plan& plan) { plan.sequenceParallel = true; });
    }
    void rangesAndCombinations()
    {
        QFETCH(Plan, plan);
        QFETCH(QString, code);
        const auto checked = checkPlan(plan);
        QVERIFY(!checked);
        QCOMPARE(QString::fromStdString(checked.error().code), code);
    }
};

QTEST_APPLESS_MAIN(TestPlan)
#include "tst_training_plan.moc"
