// SPDX-License-Identifier: Apache-2.0
// `roofline` end to end on a GPU of the test's own making (fake_gpu.h): every kernel by its own experiment,
// and every point where the fake's own rates put it.
#include "core/experiments/roofline/roofline.h"
#include "tests/kernels/cuda/fake_backend.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

/// A point of the run, by its kernel.
Json pointOf(const MeasuredRun& run, const std::string& id)
{
    for (const Json& point : run.measurement.detail.at("points")) {
        if (point.at("id") == id)
            return point;
    }
    return {};
}

} // namespace

class TestCudaRoofline : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = FakeGpu{}; }

    void everyKernelIsAPointWhereTheGpuPutsIt()
    {
        fakeGpu().hasLibrary = true;
        test::Listener listener;
        const auto run = measure(*backend(), "roofline", {}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(run->complete);
        QVERIFY(run->provenance.machine.contains("cublaslt"));
        for (const RooflineKernel& kernel : rooflineKernels(backend()->devices().front().device)) {
            const Json point = pointOf(*run, kernel.id);
            QVERIFY2(!point.is_null(), kernel.id.c_str());
            QVERIFY2(point.at("rate").get<double>() > 0, kernel.id.c_str());
            QVERIFY2(run->provenance.method.contains(kernel.id), kernel.id.c_str());
            QVERIFY2(findFigure(run->measurement.figures, kernel.id + "_rate") != nullptr, kernel.id.c_str());
        }
        const FakeGpu& gpu = fakeGpu();
        const struct
        {
            const char* id;
            double rate, tolerance;
            const char* bound;
        } expected[] = {
            {"triad_dram", gpu.streamBytesPerSecond * 2 / 24, 0.03, "memory-bound (DRAM)"},
            {"stride_1", gpu.sectorBytesPerSecond / 4, 0.05, "memory-bound (DRAM)"},
            {"stride_16", gpu.sectorBytesPerSecond / 32, 0.08, "memory-bound (DRAM)"},
            {"gemm_fp32_8192", gpu.flopsPerSecond, 0.01, "compute-bound"},
            {"gemm_bf16_8192", gpu.tensorFlopsPerSecond, 0.01, "compute-bound"},
            {"gemm_int8_8192", gpu.tensorFlopsPerSecond, 0.01, "compute-bound"},
            {"attention_flash", gpu.tensorFlopsPerSecond, 0.02, "compute-bound"},
        };
        for (const auto& [id, rate, tolerance, bound] : expected) {
            const Json point = pointOf(*run, id);
            const double found = point.at("rate").get<double>();
            QVERIFY2(std::fabs(found / rate - 1) < tolerance,
                     qPrintable(QString("%1: %2, not %3").arg(id).arg(found).arg(rate)));
            QCOMPARE(point.at("bound").get<std::string>(), std::string(bound));
        }
        // Writes and reads the matrix of scores: slower than flash by what that takes.
        QVERIFY(pointOf(*run, "attention_standard").at("rate").get<double>() < 0.9 * gpu.tensorFlopsPerSecond);
        const double chain = pointOf(*run, "chain").at("rate").get<double>();
        QVERIFY2(chain > 0.5 * gpu.flopsPerSecond && chain < gpu.flopsPerSecond, qPrintable(QString::number(chain)));
        QCOMPARE(run->provenance.machine.at("backend").get<std::string>(), std::string("cuda"));
        QCOMPARE(run->provenance.quality->grade, 'A'); // the fake has no noise
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void whatIsMissingIsSaidOnce()
    {
        test::Listener listener;
        const auto run = measure(*backend(), "roofline", {}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(listener.count("cublaslt.missing") > 0);
        auto notes = listener.notes;
        std::ranges::sort(notes);
        QVERIFY(std::ranges::adjacent_find(notes) == notes.end());
        for (const auto& [code, text] : notes)
            QVERIFY2(code == "cublaslt.missing" || code == "run.length" || code == "run.skipped",
                     (code + ": " + text).c_str());
    }

    void stopKeepsWhatWasMeasured()
    {
        test::Listener listener;
        listener.stopAfter = 400;
        const auto run = measure(*backend(), "roofline", {}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QVERIFY(!run->complete);
        const std::size_t points = run->measurement.detail.at("points").size();
        QVERIFY2(points > 0 && points < 10, qPrintable(QString::number(points)));
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aLostGpuEndsIt()
    {
        fakeGpu().fillsUntilFault = 20;
        test::Listener listener;
        const auto run = measure(*backend(), "roofline", {}, listener);
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.sticky"));
    }
};

QTEST_APPLESS_MAIN(TestCudaRoofline)
#include "tst_cuda_roofline.moc"
