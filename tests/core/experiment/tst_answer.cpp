// SPDX-License-Identifier: Apache-2.0
// Every question has an answer in a sentence, and what would change it is what the model says when it is asked.
#include "core/base/cancellation.h"
#include "core/device/catalogue.h"
#include "core/experiment/experiment.h"

#include <QtTest>

using namespace memscape;

namespace {

Device deviceOf(const char* id)
{
    const auto device = findDevice(id);
    if (!device)
        qFatal("no device %s", id);
    return *device;
}

const Experiment& experimentOf(const char* id)
{
    return **findExperiment(id);
}

Figures figuresOf(const Experiment& experiment, const Device& device, const Parameters& parameters)
{
    const auto predicted = experiment.predictPoint(device, parameters);
    return predicted ? *predicted : Figures();
}

} // namespace

class TestAnswer : public QObject
{
    Q_OBJECT

private slots:
    void everyQuestionIsAnswered_data()
    {
        QTest::addColumn<QString>("experiment");
        QTest::addColumn<QString>("device");
        for (const Experiment* experiment : experiments())
            for (const char* device : {"nvidia-h200", "nvidia-rtx-4090", "intel-xeon-8480plus"})
                QTest::addRow("%s on %s", experiment->id().c_str(), device)
                    << QString::fromStdString(experiment->id()) << device;
    }
    void everyQuestionIsAnswered()
    {
        QFETCH(QString, experiment);
        QFETCH(QString, device);
        const Experiment& asked = experimentOf(experiment.toUtf8());
        const Device target = deviceOf(device.toUtf8());
        const Parameters parameters = standardParameters(asked, target);
        const auto predicted = asked.predict(target, parameters);
        if (!predicted)
            QSKIP(predicted.error().message.c_str());
        const std::string sentence = asked.shortAnswer(target, parameters, predicted->figures).sentence;
        QVERIFY(!sentence.empty());
        QVERIFY2(sentence.back() == '.', sentence.c_str());
        QVERIFY2(sentence.find("nan") == std::string::npos && sentence.find("  ") == std::string::npos,
                 sentence.c_str());
    }

    void aTrainingInAFormatHasItsSentence()
    {
        // Without scaling 10 % of log-normal gradients of median 1e-6 and 4 bits of spread are below half of FP16's
        // least.
        const Experiment& precision = experimentOf("precision");
        const Device device = deviceOf("nvidia-h100-sxm");
        for (const auto& [scale, lost] : {std::pair{"loss_scale=1", "10 %"}, std::pair{"loss_scale=65536", "none"}}) {
            const auto parameters =
                *resolve(precision.schema(), std::vector<std::string>{"operation=train", "format=fp16", scale});
            const std::string sentence =
                precision.shortAnswer(device, parameters, figuresOf(precision, device, parameters)).sentence;
            QVERIFY2(sentence.find(std::string(lost) + " of its gradients become zero.") != std::string::npos,
                     sentence.c_str());
        }
    }

    void aMissingFigureLeavesNoAnswer()
    {
        const Experiment& stride = experimentOf("stride");
        const Device device = deviceOf("nvidia-h200");
        const Parameters parameters = standardParameters(stride, device);
        Figures figures = figuresOf(stride, device, parameters);
        QVERIFY(!stride.shortAnswer(device, parameters, figures).sentence.empty());
        std::erase_if(figures, [](const Figure& figure) { return figure.key == "moved_bandwidth"; });
        QCOMPARE(stride.shortAnswer(device, parameters, figures).sentence, std::string());
    }

    void theMeasuredFigureIsSaid()
    {
        const Figures predicted{{"time", "time", Unit::Second, 2.0},
                                {"level", "level", Unit::One, std::string("L2")},
                                {"rate", "rate", Unit::One, 5.0}};
        const Figures measured{{"time", "time", Unit::Second, 3.0}, {"rate", "rate", Unit::One, std::nan("")}};
        const Figures said = measuredFirst(predicted, measured);
        QCOMPARE(findFigure(said, "time")->number(), 3.0);
        QCOMPARE(findFigure(said, "rate")->number(), 5.0);
        QCOMPARE(findFigure(said, "level")->text(), std::string("L2"));
    }

    void halvingTheStrideDoublesWhatIsUseful()
    {
        const Experiment& stride = experimentOf("stride");
        const Device device = deviceOf("nvidia-h200");
        const Parameters parameters = *resolve(stride.schema(), std::vector<std::string>{"stride=4"});
        const auto found = improvements(stride, device, parameters, figuresOf(stride, device, parameters));
        const auto halved =
            std::find_if(found.begin(), found.end(), [](const Improvement& one) { return one.parameter == "stride"; });
        QVERIFY(halved != found.end());
        QCOMPARE(halved->value, std::string("2"));
        QVERIFY2(std::abs(halved->factor - 2) < 0.05, std::to_string(halved->factor).c_str()); // half the sectors
        QVERIFY(std::is_sorted(found.begin(), found.end(),
                               [](const auto& a, const auto& b) { return a.factor > b.factor; }));
    }

    void paddingEndsTheConflicts()
    {
        // The CUDA Best Practices Guide's remedy for a column of a 32 × 32 tile: one element of padding.
        const Experiment& banks = experimentOf("bank-conflicts");
        const Device device = deviceOf("nvidia-h200");
        const auto parameters = resolve(banks.schema(), std::vector<std::string>{"pattern=column", "columns=32"});
        if (!parameters)
            QFAIL(parameters.error().text().c_str());
        const auto found = improvements(banks, device, *parameters, figuresOf(banks, device, *parameters));
        const auto padded =
            std::find_if(found.begin(), found.end(), [](const Improvement& one) { return one.parameter == "padding"; });
        QVERIFY(padded != found.end());
        QCOMPARE(padded->value, std::string("1"));
        QCOMPARE(padded->factor, 32.0);
    }

    void theBestChunkIsTried()
    {
        // From one piece, half and double of the chunk are far from √(α·V·β), where the pipeline is shortest.
        const Experiment& transfer = experimentOf("transfer");
        const Device device = deviceOf("nvidia-h100-sxm");
        const auto parameters =
            *resolve(transfer.schema(),
                     std::vector<std::string>{"kind=pinned", "bytes=256MiB", "chunk=128MiB", "work=800", "streams=2"});
        const auto found = improvements(transfer, device, parameters, figuresOf(transfer, device, parameters));
        const auto chunk =
            std::find_if(found.begin(), found.end(), [](const Improvement& one) { return one.parameter == "chunk"; });
        QVERIFY(chunk != found.end());
        const double best = std::stod(chunk->value);
        QVERIFY2(best < 16 * 0x1p20, chunk->value.c_str());
        for (const double other : {best / 2, best * 2}) {
            const auto changed =
                transfer.predictPoint(device, parameters.at("chunk", ParameterValue(std::floor(other))));
            const auto at = transfer.predictPoint(device, parameters.at("chunk", ParameterValue(best)));
            QVERIFY(changed && at);
            QVERIFY(findFigure(*at, "time")->number() <= findFigure(*changed, "time")->number());
        }
    }

    void noBatchIsOfferedThatDoesNotFit()
    {
        const Experiment& batchSize = experimentOf("batch-size");
        const Device device = deviceOf("nvidia-rtx-3090");
        const auto of = [&](double batch) {
            const std::string asked = "batch=" + std::to_string(int(batch));
            return *standardParameters(batchSize, device, {"model=gpt2", asked});
        };
        const auto predicted = batchSize.predict(device, of(1));
        QVERIFY2(predicted, predicted ? "" : predicted.error().text().c_str());
        const double largest = findFigure(predicted->figures, "largest_batch")->number();
        QVERIFY2(largest > 4 && largest < 100, std::to_string(largest).c_str()); // of 24 GiB
        for (const double batch : {1.0, std::floor(largest * 0.6), largest}) {
            const Parameters parameters = of(batch);
            const auto now = batchSize.predict(device, parameters);
            QVERIFY(now);
            for (const Improvement& one : improvements(batchSize, device, parameters, now->figures))
                QVERIFY2(one.parameter != "batch" || std::stod(one.value) <= largest, one.label.c_str());
        }
    }

    void nothingHelpsWhereNothingCan()
    {
        const Experiment& stride = experimentOf("stride");
        const Device device = deviceOf("nvidia-h200");
        const Parameters parameters =
            *resolve(stride.schema(), std::vector<std::string>{"stride=1", "element=float4", "pattern=contiguous"});
        for (const Improvement& one : improvements(stride, device, parameters, figuresOf(stride, device, parameters)))
            QVERIFY2(one.factor < 1.1, (one.label + " → " + one.after).c_str());
    }

    void whatIsOfferedIsWhatComes_data() { everyQuestionIsAnswered_data(); }

    void whatIsOfferedIsWhatComes()
    {
        QFETCH(QString, experiment);
        QFETCH(QString, device);
        const Experiment& asked = experimentOf(experiment.toUtf8());
        const Device target = deviceOf(device.toUtf8());
        const Parameters parameters = standardParameters(asked, target);
        const Figures now = figuresOf(asked, target, parameters);
        const ShortAnswer answer = asked.shortAnswer(target, parameters, now);
        for (const std::string& knob : answer.knobs)
            QVERIFY2(findParameter(asked.schema(), knob), knob.c_str());
        for (const Improvement& one : improvements(asked, target, parameters, now)) {
            const auto value = parseValue(*findParameter(asked.schema(), one.parameter), one.value);
            QVERIFY(value);
            const Figures then = figuresOf(asked, target, parameters.at(one.parameter, *value));
            QCOMPARE(findFigure(then, answer.figure)->text(), one.after);
            QVERIFY(one.factor > 1);
        }
    }

    void itEndsWhenItIsNotWanted()
    {
        const Experiment& stride = experimentOf("stride");
        const Device device = deviceOf("nvidia-h200");
        const Parameters parameters = standardParameters(stride, device);
        const std::atomic<bool> unwanted = true;
        const CancelScope scope(unwanted);
        QVERIFY(improvements(stride, device, parameters, figuresOf(stride, device, parameters)).empty());
    }
};

QTEST_APPLESS_MAIN(TestAnswer)
#include "tst_answer.moc"
