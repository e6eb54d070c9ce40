// SPDX-License-Identifier: Apache-2.0
// A link whose α and β the test chose is found again by its probes, however wrong the calibration is; the band is where
// the samples lie; and what is written is read again, or nothing is.
#include "core/experiment/probed_links.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

constexpr double latencyOfTest = 30e-6, rateOfTest = 2e9; ///< of the pipe as it is during the run

/// Calibrated while the pipe was three times as quick.
Device hostOfYesterday()
{
    Device host = test::twoCores("host");
    Link pipe;
    pipe.id = pipe.label = "pipe";
    pipe.latency.value = latencyOfTest / 3;
    pipe.bandwidth.value = 3 * rateOfTest;
    host.links.push_back(std::move(pipe));
    return host;
}

const Experiment& transferOfTest()
{
    return **findExperiment("transfer");
}

Parameters pipeSizes()
{
    return resolve(transferOfTest().schema(),
                   std::vector<std::string>{"kind=pipe", "bytes=100,3000,50000", "chunk=0", "work=0"})
        .value();
}

double trueSeconds(double bytes)
{
    return latencyOfTest + bytes / rateOfTest;
}

/// Below a pipe's 64 KiB; each size `factors` times its time.
LinkSamples probesOfTest(const std::vector<double>& factors)
{
    LinkSamples samples{{"pipe", "pipe", {}}, {}};
    for (const double bytes : {4.0, 1024.0, 16384.0, 65536.0}) {
        for (const double factor : factors)
            samples.seconds[bytes].push_back(factor * trueSeconds(bytes));
    }
    return samples;
}

/// What the run would measure.
Measurement measuredOfTest()
{
    Measurement measured;
    measured.detail = Json::object();
    measured.series.resize(3);
    const char* const keys[] = {"bandwidth", "time", "copy_time"};
    for (int i = 0; i < 3; ++i) {
        Series& series = measured.series[std::size_t(i)];
        series.key = keys[i];
        for (const double bytes : {100.0, 3000.0, 50000.0}) {
            series.x.values.push_back(bytes);
            series.y.push_back(i == 0 ? bytes / trueSeconds(bytes) : trueSeconds(bytes));
        }
    }
    return measured;
}

Measurement probedBy(const std::vector<LinkSamples>& samples)
{
    Measurement measured = measuredOfTest();
    addProbed(measured, transferOfTest(), hostOfYesterday(), pipeSizes(), {samples, {}});
    return measured;
}

} // namespace

class TestProbedLinks : public QObject
{
    Q_OBJECT

private slots:
    void theRunsOwnLinkIsFoundWhateverTheCalibrationSays()
    {
        const auto run = probedRun(probedBy({probesOfTest({1, 1, 1})}));
        QVERIFY(run);
        QCOMPARE(run->links.size(), std::size_t(1));
        QVERIFY(std::fabs(run->links[0].latency / latencyOfTest - 1) < 1e-6);
        QVERIFY(std::fabs(run->links[0].bandwidth / rateOfTest - 1) < 1e-6);
        QCOMPARE(run->links[0].sizes, 4);
        const Series* const time = run->predicted.findSeries("time");
        QVERIFY(time);
        for (std::size_t i = 0; i < time->y.size(); ++i)
            QVERIFY(std::fabs(time->y[i] / trueSeconds(time->x.values[i]) - 1) < 1e-6);
    }

    void theBandIsWhereTheSamplesLie()
    {
        // Quantiles 0.1 and 0.9 of eleven factors from 0.5 to 1.5; the median is the line.
        const auto run = probedRun(probedBy({probesOfTest({0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5})}));
        QVERIFY(run);
        QVERIFY(std::fabs(run->links[0].low - 0.6) < 0.05);
        QVERIFY(std::fabs(run->links[0].high - 1.4) < 0.05);
        const Series* const time = run->predicted.findSeries("time");
        QVERIFY(std::fabs(time->low[1] / time->y[1] - run->links[0].low) < 1e-6);
        QVERIFY(std::fabs(time->high[1] / time->y[1] - run->links[0].high) < 1e-6);
        const Series* const bandwidth = run->predicted.findSeries("bandwidth");
        QVERIFY(bandwidth->low[1] < bandwidth->y[1] && bandwidth->y[1] < bandwidth->high[1]);
        const ProbedError error = probedError(*run, measuredOfTest());
        QCOMPARE(error.points, 3);
        QCOMPARE(error.within, 3);
        QVERIFY(error.median < 1e-6);
    }

    void curvesThatNoLinkChangesAreLeftOut()
    {
        const auto run = probedRun(probedBy({probesOfTest({0.9, 1, 1.1})}));
        QVERIFY(run);
        QVERIFY(!run->predicted.findSeries("kernel_time")); // no work, no kernel
        QVERIFY(run->predicted.findSeries("copy_time"));
    }

    void tooFewSizesSayWhy()
    {
        QVERIFY(!probedBy({}).detail.contains("probed")); // nothing was asked
        LinkSamples one = probesOfTest({1});
        one.seconds.erase(one.seconds.begin(), std::prev(one.seconds.end()));
        const LinkSamples broken = probesOfTest({memscape::nan, 0, -1});
        for (const LinkSamples& samples : {one, broken}) {
            const Measurement measured = probedBy({samples});
            QVERIFY(!probedRun(measured));
            const QString text = QString::fromStdString(probedText(measured));
            QVERIFY2(text.contains("say nothing: too few sizes"), qPrintable(text));
        }
    }

    /// Whether a line through equal times rises by a rounding or not at all is chance: on no device does it end the
    /// run.
    void sizesOfOneTimeEndNoRun()
    {
        for (int seconds = 1; seconds < 400; ++seconds) {
            LinkSamples samples{{"ring", "ring", {}}, {}};
            for (const double bytes : {0x1p10, 0x1p12, 0x1p14, 0x1p16, 0x1p20, 0x1p24})
                samples.seconds[bytes].assign(3, 1e-5 * seconds);
            samples.link.touched = 2;
            const Measurement measured = probedBy({samples});
            QVERIFY(probedRun(measured) || !probedText(measured).empty());
        }
    }

    void disturbedProbesSaySo()
    {
        const Measurement measured = probedBy({probesOfTest({0.8, 1, 1, 1, 4, 5})});
        QVERIFY(!probedRun(measured));
        const QString text = QString::fromStdString(probedText(measured));
        QVERIFY2(text.contains("differ 5-fold, so others used the machine"), qPrintable(text));
        QVERIFY(probedRun(probedBy({probesOfTest({0.8, 1, 1, 1, 2, 2.5})})));
    }

    /// A line is no curve of what was measured: nothing stands beside it.
    void whatWasNotMeasuredIsNoLine()
    {
        Measurement measured = measuredOfTest();
        measured.series.erase(measured.series.begin() + 1, measured.series.end());
        addProbed(measured, transferOfTest(), hostOfYesterday(), pipeSizes(), {{probesOfTest({0.9, 1, 1.1})}, {}});
        const auto run = probedRun(measured);
        QVERIFY(run);
        QCOMPARE(run->predicted.series.size(), std::size_t(1));
        QCOMPARE(run->predicted.series[0].key, std::string("bandwidth"));
        measured.series.clear();
        addProbed(measured, transferOfTest(), hostOfYesterday(), pipeSizes(), {{probesOfTest({0.9, 1, 1.1})}, {}});
        QVERIFY(probedText(measured).find("no measured curve depends on them") != std::string::npos);
    }

    /// Products at 125 % of what is predicted: the time of a placement without copies is so much longer.
    void theRunsOwnPaceOfProductsIsFound()
    {
        const Experiment& placement = **findExperiment("placement");
        Device host = test::twoCores("host");
        host.clock.value = 2e9;
        host.rates["fp32"].flops.value = 128e9;
        const Parameters chains =
            resolve(placement.schema(), std::vector<std::string>{"graph=mlp:2x64", "strategy=device", "batch=4,16,64"})
                .value();
        Measurement measured = placement.predict(host, chains).value();
        for (Series& series : measured.series)
            for (double& y : series.y)
                y *= 1.25;
        const WorkSamples work{"products", "products of 64 × 64 × 64", 2e-6, {2.4e-6, 2.5e-6, 2.5e-6, 2.6e-6}};
        addProbed(measured, placement, host, chains, {{}, {work}});
        const auto run = probedRun(measured);
        QVERIFY2(run, probedText(measured).c_str());
        QVERIFY(std::fabs(run->links[0].pace - 1.25) < 1e-9);
        const Series* const time = run->predicted.findSeries("time");
        QVERIFY(time);
        QVERIFY(probedError(*run, measured).median < 0.1); // what memory bounds does not change
        QVERIFY(time->low[1] < time->y[1] && time->y[1] < time->high[1]);
        QVERIFY(probedText(measured).find("products of 64 × 64 × 64 at 125 % of their calibrated time")
                != std::string::npos);
    }

    void foreignTextIsNoLine_data()
    {
        QTest::addColumn<QString>("text");
        QTest::newRow("no object") << "7";
        QTest::newRow("no links") << R"({"predicted": {"figures": {}, "series": []}})";
        QTest::newRow("a link of words") << R"({"links": [{"id": "pipe", "label": "pipe", "latency": "soon"}]})";
        QTest::newRow("no reason") << R"({"none": ""})";
        QTest::newRow("no curves") << R"({"links": [], "predicted": {"figures": {}, "series": [], "detail": {}}})";
    }
    void foreignTextIsNoLine()
    {
        QFETCH(QString, text);
        Measurement measured = measuredOfTest();
        measured.detail["probed"] = *parseJson(text.toStdString());
        QVERIFY(!probedRun(measured));
        QVERIFY(probedText(measured).empty());
    }

    void theSentenceNamesLinkErrorAndBand()
    {
        QVERIFY(probedText(std::nullopt).empty());
        QVERIFY(probedText(measuredOfTest()).empty());
        const QString text = QString::fromStdString(probedText(probedBy({probesOfTest({0.9, 1, 1.1})})));
        QVERIFY2(text.contains("pipe, α 30 µs, β 2 GB/s") && text.contains("median of 3 points, 3 within"),
                 qPrintable(text));
    }
};

QTEST_GUILESS_MAIN(TestProbedLinks)
#include "tst_probed_links.moc"
