// SPDX-License-Identifier: Apache-2.0
// The roofline: ceilings and ridges against arithmetic from datasheets, every kernel under its own
// roof, words on either side of the ridge, the thresholds of the course notes.
#include "core/device/catalogue.h"
#include "core/experiments/roofline/roofline.h"

#include <QtTest>

#include <cmath>
#include <filesystem>
#include <set>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment roofline{"roofline"};

} // namespace

class TestRoofline : public QObject
{
    Q_OBJECT

private slots:
    void ridgesAreRateOverBandwidth()
    {
        const Device h200 = *findDevice("nvidia-h200");
        const auto figures = roofline->predictPoint(h200, roofline.with({"format=bf16"}));
        QVERIFY(figures.has_value());
        QVERIFY(std::fabs(numberIn(*figures, "ridge") / (989e12 / 4.11e12) - 1) < 0.01);
        QVERIFY(std::fabs(numberIn(*figures, "ridge_fp32") / (66.9e12 / 4.11e12) - 1) < 0.01);
        QVERIFY(std::fabs(numberIn(*figures, "ridge_fp8-e4m3") / numberIn(*figures, "ridge_bf16") - 2) < 0.01);
    }

    void theBoundTurnsAtTheRidge()
    {
        const Device h200 = *findDevice("nvidia-h200");
        const double ridge = 66.9e12 / rooflineLevels(h200).back().bandwidth;
        QCOMPARE(rooflineBound(h200, Format::Fp32, {}, ridge * 1.01), std::string("compute-bound"));
        QCOMPARE(rooflineBound(h200, Format::Fp32, {}, ridge * 0.99), std::string("memory-bound (DRAM)"));
        // The L2 is nearer: there the same intensity is compute-bound.
        QCOMPARE(rooflineBound(h200, Format::Fp32, "L2", ridge * 0.99), std::string("compute-bound"));
    }

    void curvesRiseAndThenStayFlat()
    {
        const Device a100 = *findDevice("nvidia-a100-80gb");
        const Prediction prediction = roofline->predict(a100, roofline.with({})).value();
        const Series& roof = *prediction.findSeries("attainable");
        QCOMPARE(roof.y.back(), 19.5e12);
        QVERIFY(std::fabs(roof.y[1] / roof.y[0] - 2) < 1e-9);
        const Series& cache = *prediction.findSeries("cache_attainable");
        for (std::size_t i = 0; i < roof.y.size(); ++i)
            QVERIFY(cache.y[i] >= roof.y[i]);
    }

    void kernelsStandUnderTheirRoof_data()
    {
        QTest::addColumn<QString>("device");
        for (const char* id : {"nvidia-h200", "nvidia-a100-80gb", "nvidia-v100-sxm2", "nvidia-rtx-4090",
                               "amd-epyc-zen4-vm", "cpu", "sysfs/arm", "sysfs/hybrid", "sysfs/zen5-vm"})
            QTest::newRow(id) << id;
    }
    void kernelsStandUnderTheirRoof()
    {
        QFETCH(QString, device);
        // Of the catalogue, or described from a recorded /sys and /proc.
        const Device known = device.startsWith("sysfs/")
            ? describeHost(std::filesystem::path(TEST_DATA) / device.toStdString())
            : *findDevice(device.toStdString());
        const auto prediction = roofline->predict(known, roofline.with({}));
        QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
        const Json& points = prediction->detail["points"];
        QVERIFY2(points.size() >= 8, qPrintable(QString::number(points.size())));
        for (const Json& point : points) {
            const std::string id = point["id"];
            QVERIFY2(point["rate"].is_number() && point["roof"].is_number(), id.c_str());
            // Streams in caches mix levels at the edge; nothing is far above its ceiling.
            QVERIFY2(point["rate"].get<double>() < 1.3 * point["roof"].get<double>(), id.c_str());
            QVERIFY2(findFigure(prediction->figures, id + "_rate"), id.c_str());
            QVERIFY2(!point["bound"].get<std::string>().empty(), id.c_str());
        }
    }

    void everyKernelOpensItsExperiment()
    {
        std::set<std::string> ids;
        for (const RooflineKernel& kernel : rooflineKernels(*findDevice("nvidia-h200"))) {
            QVERIFY2(ids.insert(kernel.id).second, kernel.id.c_str());
            QVERIFY2(findExperiment(kernel.experiment).has_value(), kernel.experiment.c_str());
            const auto parameters = rooflineParameters(kernel);
            QVERIFY2(parameters.has_value(), parameters ? "" : parameters.error().text().c_str());
            QVERIFY2(parameters->sweep() && parameters->sweep()->values.size() == 1, kernel.id.c_str());
        }
    }

    void kernelsCountTheirWork()
    {
        const Device h200 = *findDevice("nvidia-h200");
        for (const RooflineKernel& kernel : rooflineKernels(h200)) {
            const Parameters own = rooflineParameters(kernel).value();
            const auto figures = (*findExperiment(kernel.experiment))->predictPoint(h200, own);
            QVERIFY2(figures.has_value(), kernel.id.c_str());
            const RooflinePoint point = rooflinePoint(kernel, *figures).value_or(RooflinePoint{});
            QVERIFY2(point.flops > 0, kernel.id.c_str());
            if (kernel.id == "gemm_bf16_8192")
                QCOMPARE(point.intensity(), 8192.0 / 3); // 2 n³ / (3 n² × 2 B)
            if (kernel.id == "triad_dram")
                QCOMPARE(point.intensity(), 1.0 / 12);
            if (kernel.id == "stride_1")
                QCOMPARE(point.intensity(), 0.25);
            if (kernel.id == "stride_16") // 64 B apart: a sector of 32 B for each 4
                QCOMPARE(point.intensity(), 1.0 / 32);
        }
        QVERIFY(!rooflinePoint({}, {})); // no figures, no point
    }

    void cacheLevelsAreIncluded()
    {
        const Device host = *findDevice("amd-epyc-zen4-vm");
        const std::vector<RooflineLevel> levels = rooflineLevels(host);
        QCOMPARE(levels.size(), std::size_t(4)); // L1, L2, L3, DRAM
        for (std::size_t i = 1; i < levels.size(); ++i)
            QVERIFY(levels[i].bandwidth < levels[i - 1].bandwidth);
    }

    void thresholdsHoldForPlainFp32()
    {
        for (const char* id : {"nvidia-a100-80gb", "nvidia-v100-sxm2", "nvidia-h100-sxm"}) {
            const auto claims = roofline->claims(*findDevice(id), roofline.with({}));
            QCOMPARE(claims.size(), std::size_t(1));
            QVERIFY2(claims.front().verdict.find("plain FP32") != std::string::npos,
                     (claims.front().quote + ": " + claims.front().ours).c_str());
            QVERIFY(claims.front().ours.find("FP16") != std::string::npos);
        }
    }

    void aFormatThatTheDeviceLacks()
    {
        const auto figures =
            roofline->predictPoint(*findDevice("nvidia-v100-sxm2"), roofline.with({"format=fp8-e4m3"}));
        QVERIFY(!figures);
        QCOMPARE(figures.error().code, std::string("predict.format"));
        QVERIFY(figures.error().hint.find("fp16") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestRoofline)
#include "tests/support/asked_experiment.h"
#include "tst_roofline.moc"
