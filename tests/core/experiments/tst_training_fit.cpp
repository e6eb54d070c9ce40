// SPDX-License-Identifier: Apache-2.0
// Whether a training fits: what would help, what each lever is said to give, offloading, the largest batch, and where
// memory runs out.
#include "core/device/catalogue.h"
#include "core/experiments/memory/memory_advice.h"
#include "core/experiments/memory/memory_detail.h"
#include "core/report/memory_tables.h"
#include "tests/support/devices.h"
#include "tests/support/training_case.h"

#include <QtTest>

#include <algorithm>

using namespace memscape;
using namespace memscape::test;

namespace {

/// The same GPU with less memory.
Device small(double bytes)
{
    Device device = h200();
    for (MemoryLevel& level : device.levels) {
        if (level.kind == LevelKind::Dram)
            level.capacity.value = bytes;
    }
    return device;
}

} // namespace

class TestTrainingFit : public QObject
{
    Q_OBJECT

private slots:
    void everyLeverIsWhatItsPredictionSays()
    {
        const Parameters parameters = trainingWith(tiny);
        const auto answer = answerTraining(h200(), parameters);
        QVERIFY(answer);
        const auto outcomes = tryLevers(h200(), parameters, *answer);
        QVERIFY(outcomes.size() >= 8);
        for (std::size_t i = 1; i < outcomes.size(); ++i)
            QVERIFY(outcomes[i - 1].saving >= outcomes[i].saving);
        for (const LeverOutcome& outcome : outcomes) {
            const auto then = changed(parameters, outcome.lever.changes);
            QVERIFY(then);
            const auto prediction = trainingMemory().predict(h200(), *then);
            QVERIFY2(prediction, outcome.lever.key.c_str());
            QCOMPARE(double(outcome.device), predictedValue(*prediction, "device_total"));
            QCOMPARE(double(outcome.peak), predictedValue(*prediction, "peak_allocated"));
            QCOMPARE(outcome.saving, answer->deviceBytes() - outcome.device);
        }
    }

    /// A processor has no host to send anything to, and no GPUs beside it; Apple's GPUs share the host's memory.
    void aProcessorIsNotOfferedAHostOrMoreGpus()
    {
        const auto offered = [](const char* device) {
            QStringList labels;
            for (const Lever& lever : leversFor(*findDevice(device), trainingWith(tiny)))
                labels << QString::fromStdString(lever.label);
            return labels.join(u';');
        };
        QVERIFY(offered("nvidia-h200").contains("Optimizer on the host"));
        QVERIFY(offered("nvidia-h200").contains("ZeRO-3 over 8 GPUs"));
        QVERIFY2(!offered("amd-epyc-9654").contains("host"), qPrintable(offered("amd-epyc-9654")));
        QVERIFY2(!offered("amd-epyc-9654").contains("GPUs"), qPrintable(offered("amd-epyc-9654")));
        QVERIFY(offered("amd-epyc-9654").contains("8-bit Adam"));
        QVERIFY(!offered("apple-m1").contains("host"));
    }

    void whatMakesItFitFits()
    {
        const Parameters parameters = trainingWith(tiny);
        const auto whole = answerTraining(h200(), parameters);
        QVERIFY(whole);
        for (const double share : {0.9, 0.7, 0.5}) {
            const Device device = small(share * double(whole->deviceBytes()));
            const auto answer = answerTraining(device, parameters);
            QVERIFY(answer && !answer->fits);
            const FitOutcome fit = makeItFit(device, parameters, *answer);
            QVERIFY2(!fit.combinations.empty(), std::to_string(share).c_str());
            for (const LeverOutcome& one : fit.combinations) {
                const auto again = answerTraining(device, *changed(parameters, one.lever.changes));
                QVERIFY2(again && again->fits, one.lever.label.c_str());
            }
        }
        const Device hopeless = small(0.05 * double(whole->deviceBytes()));
        const auto answer = answerTraining(hopeless, parameters);
        QVERIFY(answer);
        const FitOutcome fit = makeItFit(hopeless, parameters, *answer);
        QVERIFY(fit.combinations.empty());
        QVERIFY(fit.smallest.device > 0);
    }

    // LoRA needs no optimizer state for the base: a device between its step and the smallest exact one holds it alone.
    void whereOnlyAnotherTrainingFitsItIsListed()
    {
        const Parameters parameters =
            trainingWith({"model=gpt2", "batch=1", "sequence=32", "precision=bf16-mixed", "device_context=0"});
        const auto whole = answerTraining(h200(), parameters);
        QVERIFY(whole);
        const Device tooSmall = small(1e6);
        const auto refused = answerTraining(tooSmall, parameters);
        QVERIFY(refused);
        const FitOutcome none = makeItFit(tooSmall, parameters, *refused);
        QVERIFY(none.combinations.empty() && none.changing.empty());

        const auto adapted = answerTraining(
            h200(), *changed(parameters, {{"adapter", "qlora"}, {"offload", "parameters"}, {"zero", "3"}}));
        QVERIFY(adapted && adapted->deviceBytes() < none.smallest.device);
        const Device between = small(0.5 * double(adapted->deviceBytes() + none.smallest.device));
        const auto answer = answerTraining(between, parameters);
        QVERIFY(answer);
        const FitOutcome fit = makeItFit(between, parameters, *answer);
        QVERIFY(fit.combinations.empty());
        QVERIFY(!fit.changing.empty());
        for (const LeverOutcome& one : fit.changing) {
            QVERIFY2(!one.lever.keepsTraining, one.lever.label.c_str());
            const auto again = answerTraining(between, *changed(parameters, one.lever.changes));
            QVERIFY2(again && again->fits, one.lever.label.c_str());
        }
    }

    void lessRoomThanPredictionsAreOffIsTight()
    {
        const Parameters parameters = trainingWith(tiny);
        const auto whole = answerTraining(h200(), parameters);
        QVERIFY(whole);
        const auto fit = [&](double share) {
            return trainingMemory()
                .predict(small(share * double(whole->deviceBytes())), parameters)
                ->detail["fit"]
                .get<std::string>();
        };
        QCOMPARE(fit(1.001), std::string("tight"));
        QCOMPARE(fit(1.029), std::string("tight"));
        QCOMPARE(fit(1.031), std::string("fits"));
        QCOMPARE(fit(0.5), std::string("does not fit"));
    }

    void offloadSaysWhatItMoves_data()
    {
        QTest::addColumn<QString>("offload");
        QTest::addColumn<double>("kept");  // bytes per parameter on the device: weights and gradients
        QTest::addColumn<double>("moved"); // bytes per parameter and step, two micro-batches
        QTest::newRow("nothing") << "none" << 4.0 << 0.0;
        QTest::newRow("optimizer") << "optimizer" << 4.0 << 2.0 + 2.0;
        QTest::newRow("ZeRO-Offload: 2 Ψ stay") << "gradients" << 2.0 << 2 * 2.0 + 2.0;
    }
    void offloadSaysWhatItMoves()
    {
        QFETCH(QString, offload);
        QFETCH(double, kept);
        QFETCH(double, moved);
        const auto prediction = trainingMemory().predict(
            h200(),
            trainingWith({"model=gpt2", "batch=1", "sequence=32", "precision=bf16-mixed", "accumulation=2",
                          "advice=none", "offload=" + offload.toStdString()}));
        QVERIFY(prediction);
        const double elements = predictedValue(*prediction, "parameter_count");
        QCOMPARE(predictedValue(*prediction, "weights") + predictedValue(*prediction, "gradients"), kept * elements);
        const Figure* communication = findFigure(prediction->figures, "communication");
        QCOMPARE(communication->number(), moved * elements);
        double sum = 0;
        for (const auto& term : communication->why->terms)
            sum += term.value;
        QCOMPARE(sum, communication->number());
    }

    void nothingIsOffloadedWhereHostAndGpuShareOneMemory()
    {
        const std::vector<std::string> given = tiny;
        Device device = *findDevice("apple-m1");
        const auto offers = [&] {
            const auto prediction = trainingMemory().predict(device, trainingWith(given));
            return prediction ? prediction->detail["levers"].dump().find("\"offload\"") != std::string::npos : false;
        };
        QVERIFY(!offers());
        std::vector<std::string> offloaded = given;
        offloaded.push_back("offload=optimizer");
        const auto refused = trainingMemory().predict(device, trainingWith(offloaded));
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, std::string("plan.offload"));
        device.sharesHostMemory = false; // the same with a memory of its own
        QVERIFY(offers());
        QVERIFY(trainingMemory().predict(device, trainingWith(offloaded)));
    }

    void describedLimitsAreThoseOfTheModel()
    {
        for (const ParameterSpec& spec : trainingMemory().schema()) {
            if (spec.kind != ParameterKind::Integer)
                continue;
            for (const double limit : {spec.minimum, spec.maximum}) {
                std::vector<std::string> given = tiny;
                std::erase_if(given, [&](const std::string& one) { return one.starts_with(spec.key + "="); });
                given.push_back(spec.key + "=" + std::to_string(std::int64_t(limit)));
                const auto prediction = trainingMemory().predict(h200(), trainingWith(given));
                QVERIFY2(prediction || prediction.error().code != "plan.range", given.back().c_str());
            }
        }
    }

    void whatIsLeftOfASharedMemoryIsNotTheGpusAlone()
    {
        const auto verdict = [](const char* id) {
            Record record;
            record.experiment = "training-memory";
            auto prediction = trainingMemory().predict(*findDevice(id), trainingWith(tiny));
            record.predicted = std::move(*prediction);
            return QString::fromStdString(verdictText(record));
        };
        const QString sharers = QStringLiteral("for the system and the CPU's programs");
        const QString jetson = verdict("nvidia-jetson-agx-orin-64gb");
        QVERIFY2(jetson.contains(sharers), qPrintable(jetson));
        const QString mac = verdict("apple-m2-max"); // macOS keeps the system's part
        QVERIFY2(mac.startsWith("Fits into 72 GiB of ") && !mac.contains(sharers), qPrintable(mac));
        QVERIFY2(!verdict("nvidia-h200").contains(sharers), qPrintable(verdict("nvidia-h200")));
    }

    void noSingleLeverThatFitsIsQuicker()
    {
        const Parameters parameters = trainingWith(tiny);
        const auto whole = answerTraining(h200(), parameters);
        QVERIFY(whole);
        const Device device = small(0.7 * double(whole->deviceBytes()));
        const auto answer = answerTraining(device, parameters);
        QVERIFY(answer);
        const FitOutcome fit = makeItFit(device, parameters, *answer);
        QVERIFY(!fit.combinations.empty());
        const std::vector<std::string> considered{
            "attention", "checkpointing", "batch", "accumulation", "optimizer_implementation", "offload"};
        for (const LeverOutcome& one : tryLevers(device, parameters, *answer)) {
            const bool isConsidered =
                std::all_of(one.lever.changes.begin(), one.lever.changes.end(), [&](const auto& change) {
                    return std::find(considered.begin(), considered.end(), change.first) != considered.end()
                        && change.second != "sqrt" && change.second != "efficient" && change.second != "parameters";
                });
            if (isConsidered && one.fits)
                QVERIFY2(fit.combinations.front().seconds <= one.seconds * (1 + 1e-9), one.lever.key.c_str());
        }
    }

    void theLargestBatchFitsAndOneMoreDoesNot()
    {
        const Device device = small(12e9);
        const Parameters parameters = trainingWith(tiny);
        const auto answer = answerTraining(device, parameters);
        QVERIFY(answer);
        const auto batch = largestThatFits(device, parameters, "batch", *answer);
        QVERIFY(batch && *batch > 1);
        QVERIFY(answerTraining(device, parameters.at("batch", double(*batch)))->fits);
        QVERIFY(!answerTraining(device, parameters.at("batch", double(*batch + 1)))->fits);
        QVERIFY(!largestThatFits(small(1e9), parameters, "batch", *answer));
    }

    void outOfMemoryNamesThePlace()
    {
        const Parameters parameters = trainingWith(tiny);
        const auto whole = answerTraining(h200(), parameters);
        QVERIFY(whole);
        const Device device = small(0.8 * double(whole->deviceBytes()));
        const auto prediction = trainingMemory().predict(device, parameters);
        QVERIFY(prediction);
        QCOMPARE(predictedValue(*prediction, "fits"), 0.0);
        QVERIFY(prediction->detail["over"].get<std::int64_t>() > 0);
        const Json& refused = prediction->detail["out_of_memory"];
        QVERIFY(refused.is_object());
        QVERIFY(!refused["summary"].get<std::string>().empty());
        QVERIFY(!refused["levers"].empty());
        QVERIFY(!prediction->detail["timeline"]["out_of_memory"].is_null());
        QVERIFY(trainingMemory().predict(h200(), parameters)->detail["out_of_memory"].is_null());
    }
};

QTEST_GUILESS_MAIN(TestTrainingFit)
#include "tst_training_fit.moc"
