// SPDX-License-Identifier: Apache-2.0
// The experiment `precision` as its callers see it: figures and series of both operations, what the
// recipes keep against the bytes per parameter of the papers, claims with numbers, wrong input.
#include "core/device/catalogue.h"
#include "core/experiments/precision/precision.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment precision{"precision"};

Prediction precisionOf(const std::vector<std::string>& assignments, const Device& device = h200())
{
    auto made = precision->predict(device, precision.with(assignments));
    if (!made)
        qFatal("%s", made.error().text().c_str());
    return *made;
}

} // namespace

class TestPrecision : public QObject
{
    Q_OBJECT

private slots:
    void aProductHasItsFigures()
    {
        const Prediction prediction = precisionOf({"m=8192", "format=fp16"});
        for (const char* key : {"time", "flop_rate", "speedup", "flops", "bytes", "intensity", "ridge", "quantization",
                                "stored_value", "value_error", "value_spacing"})
            numberIn(prediction, key);
        QCOMPARE(numberIn(prediction, "flops"), 2.0 * 8192 * 8192 * 8192);
        QVERIFY(std::fabs(numberIn(prediction, "flop_rate") / 756e12 - 1) < 0.02);
        QCOMPARE(std::get<std::string>(findFigure(prediction.figures, "bound")->value), std::string("compute-bound"));
        const Series* rates = prediction.findSeries("flop_rate");
        QVERIFY(rates && rates->x.key == "m" && rates->x.values.back() == 16384);
        QVERIFY(!prediction.findSeries("underflow_share")); // of the other operation
    }

    void sizesThatAreNotGivenAreAsM()
    {
        QCOMPARE(precisionCase(precision.with({"m=300"})).shape, (GemmShape{300, 300, 300}));
        QCOMPARE(precisionCase(precision.with({"m=300", "k=7"})).shape, (GemmShape{300, 300, 7}));
    }

    void trainingHasItsFigures()
    {
        const Prediction prediction = precisionOf({"operation=train", "format=fp16", "m=256", "n=512"});
        for (const char* key : {"step_time", "fp32_step_time", "speedup", "peak_memory", "fp32_peak_memory",
                                "memory_ratio", "kept_per_parameter", "skipped_steps", "unscaled_underflow_share",
                                "underflow_share", "subnormal_share", "overflow_share", "stored_value"})
            numberIn(prediction, key);
        const Series* lost = prediction.findSeries("underflow_share");
        QVERIFY(lost && lost->x.key == "loss_scale");
        QVERIFY(!prediction.findSeries("step_time")); // the same at every scale
        QVERIFY(precisionOf({"operation=train", "m=64:256:x2"}).findSeries("step_time"));
        QCOMPARE(prediction.detail["recipes"].size(), std::size_t(6));
    }

    void recipesKeepWhatThePapersSay_data()
    {
        // Rajbhandari et al. 2020 (16 Ψ with a master copy), PyTorch AMP (FP32 weights: 16 Ψ too).
        QTest::addColumn<int>("recipe");
        QTest::addColumn<double>("bytes");
        QTest::newRow("fp32") << int(Precision::Fp32) << 16.0;
        QTest::newRow("autocast") << int(Precision::Bf16Autocast) << 16.0;
        QTest::newRow("mixed") << int(Precision::Fp16Mixed) << 16.0;
        QTest::newRow("pure") << int(Precision::Bf16) << 8.0;
    }
    void recipesKeepWhatThePapersSay()
    {
        QFETCH(int, recipe);
        QFETCH(double, bytes);
        const TrainedNetwork network{128, 256, 512};
        const auto step = recipeStep(h200(), network, Precision(recipe));
        QVERIFY(step.has_value());
        const double kept = double(step->weights + step->gradients + step->master + step->state);
        // And a count of steps for each tensor, which the fused optimizer keeps on the device.
        QVERIFY(std::fabs(kept / double(network.parameters()) - bytes) < 1e-3);
        QCOMPARE(step->casts > 0, Precision(recipe) == Precision::Bf16Autocast);
    }

    void autocastSavesActivationsOnly()
    {
        // Many activations, few weights: autocast halves them, roughly.
        const Prediction wide = precisionOf({"operation=train", "m=65536", "n=256", "k=256"});
        QVERIFY(numberIn(wide, "memory_ratio") < 0.75);
        // Few activations, many weights: the casts come on top.
        const Prediction deep = precisionOf({"operation=train", "m=16", "n=4096", "k=4096"});
        QVERIFY(numberIn(deep, "memory_ratio") > 1);
        QVERIFY(std::fabs(numberIn(deep, "kept_per_parameter") - 16) < 1e-3);
    }

    void sharesFallAndRiseWithTheScale()
    {
        const Prediction prediction =
            precisionOf({"operation=train", "format=fp16", "gradient_median=1e-7", "gradient_spread=3"});
        const Series& zero = *prediction.findSeries("underflow_share");
        const Series& over = *prediction.findSeries("overflow_share");
        for (std::size_t i = 1; i < zero.y.size(); ++i) {
            QVERIFY(zero.y[i] <= zero.y[i - 1]);
            QVERIFY(over.y[i] >= over.y[i - 1]);
        }
        QVERIFY(zero.y.front() > 0.2); // 1e-7 is 2^-23.3: half an octave or so above what is lost
        QVERIFY(zero.y.back() < 1e-6);
        QVERIFY(numberIn(prediction, "underflow_share") < numberIn(prediction, "unscaled_underflow_share"));
    }

    void theValueIsRounded()
    {
        const auto stored = [](const char* format, const char* value) {
            return numberIn(precisionOf({std::string("format=") + format, std::string("value=") + value}),
                            "stored_value");
        };
        QCOMPARE(stored("bf16", "0.1"), 0.10009765625);
        QCOMPARE(stored("fp16", "0.1"), 0.0999755859375);
        QCOMPARE(stored("fp8-e4m3", "500"), std::numeric_limits<double>::quiet_NaN());
        QCOMPARE(stored("fp8-e5m2", "-500"), -512.0);
        QCOMPARE(stored("int8", "300"), 127.0);
    }

    void everyFormatIsCompared()
    {
        Device without = h200();
        without.rates.erase("fp64");
        const Json known = precisionOf({"m=4096"}, without).detail["formats"];
        QVERIFY(known[std::size_t(Format::Fp64)].contains("missing"));
        const Json formats = precisionOf({"m=4096"}).detail["formats"];
        QCOMPARE(formats.size(), numberFormats().size());
        QVERIFY(formats[std::size_t(Format::Fp64)]["time"] > formats[std::size_t(Format::Tf32)]["time"]);
        QVERIFY(formats[std::size_t(Format::Fp8E4M3)]["time"] < formats[std::size_t(Format::Bf16)]["time"]);
        QCOMPARE(formats[std::size_t(Format::Fp16)]["value"]["bits"].get<std::string>(),
                 std::string("0010111001100110")); // of 0.1
    }

    void claimsCarryNumbers()
    {
        const auto claims = precision->claims(h200(), precision.with({"operation=train", "format=fp16", "m=512"}));
        QCOMPARE(claims.size(), std::size_t(7));
        for (const Claim& claim : claims) {
            QVERIFY2(claim.ours.find_first_of("0123456789") != std::string::npos, claim.quote.c_str());
            QVERIFY(!claim.verdict.empty() && !claim.source.empty());
        }
    }

    void wrongInput_data()
    {
        QTest::addColumn<QString>("assignment");
        QTest::addColumn<QString>("code");
        QTest::newRow("format") << "format=fp61"
                                << "parameter.choice";
        QTest::newRow("size") << "m=0"
                              << "parameter.range";
        QTest::newRow("operation") << "operation=infer"
                                   << "parameter.choice";
        QTest::newRow("scale") << "loss_scale=0.5"
                               << "parameter.range";
        QTest::newRow("value") << "value=big"
                               << "parameter.type";
    }
    void wrongInput()
    {
        QFETCH(QString, assignment);
        QFETCH(QString, code);
        const auto parameters = resolve(precision->schema(), {assignment.toStdString()});
        QVERIFY(!parameters);
        QCOMPARE(QString::fromStdString(parameters.error().code), code);
        QVERIFY(!parameters.error().hint.empty());
    }

    void aDeviceWithoutTheFormat()
    {
        const auto product = precision->predict(*findDevice("nvidia-v100-sxm2"), precision.with({"format=bf16"}));
        QVERIFY(!product);
        QVERIFY(product.error().hint.find("fp16") != std::string::npos);
        const auto training = precision->predict(h200(), precision.with({"operation=train", "format=int8"}));
        QVERIFY(!training);
        QVERIFY(training.error().hint.find("bf16") != std::string::npos);
    }

    void everyFigureSaysWhy()
    {
        for (const char* operation : {"operation=matmul", "operation=train"}) {
            for (const Figure& figure : precisionOf({operation}).figures) {
                QVERIFY2(figure.why.has_value(), figure.key.c_str());
                QVERIFY2(!figure.why->formula.empty() && !figure.why->source.empty(), figure.key.c_str());
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestPrecision)
#include "tst_precision.moc"
