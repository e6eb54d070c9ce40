// SPDX-License-Identifier: Apache-2.0
// Loadings onto the fake GPU: every byte arrives, from pinned and pageable memory, read and mapped, converted and not;
// a bit that is lost on the link fails the run; nothing is left behind.
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

const std::vector<std::string> smallModel{"model=mlp:128,32", "touched=1,0.5", "cache=warm", "chunk=4KiB"};

std::vector<std::string> loadedWith(std::initializer_list<const char*> more)
{
    std::vector<std::string> given = smallModel;
    for (const char* one : more)
        given.emplace_back(one);
    return given;
}

Result<MeasuredRun> loadedOnFake(const std::vector<std::string>& given)
{
    test::Listener listener;
    return runOnFake("loading", given, listener).run;
}

double figureOf(const Result<MeasuredRun>& run, const char* key)
{
    const Figure* const figure = run ? findFigure(run->measurement.figures, key) : nullptr;
    return figure ? figure->number() : memscape::nan;
}

} // namespace

class TestCudaLoading : public QObject
{
    Q_OBJECT

private slots:
    void init() { fakeGpu() = FakeGpu{}; }

    void everyWayBringsTheModel_data()
    {
        QTest::addColumn<QStringList>("more");
        QTest::addColumn<double>("hostMemory"); // in files of this model
        QTest::newRow("read, pinned") << QStringList{"low_cpu_mem=once"} << 1.0;
        QTest::newRow("read, pageable") << QStringList{"staging=pageable", "low_cpu_mem=once"} << 1.0;
        QTest::newRow("mapped, pageable") << QStringList{"method=mmap", "staging=pageable"} << 0.0;
        QTest::newRow("mapped, pinned, two buffers") << QStringList{"method=mmap"} << 0.5;
        QTest::newRow("parallel, two buffers") << QStringList{"method=parallel"} << 0.5;
        QTest::newRow("converted") << QStringList{"convert=bf16", "low_cpu_mem=once"}
                                   << 1.25; // and two buffers of halves
        QTest::newRow("state dict and model") << QStringList{"convert=bf16", "low_cpu_mem=twice"} << 1.5;
    }
    void everyWayBringsTheModel()
    {
        QFETCH(QStringList, more);
        QFETCH(double, hostMemory);
        std::vector<std::string> given = loadedWith({"dtype=fp32"});
        for (const QString& one : more)
            given.push_back(one.toStdString());
        const auto run = loadedOnFake(given);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const double bytes = figureOf(run, "bytes");
        QCOMPARE(bytes, 4.0 * (128 * 32 + 32));
        QCOMPARE(figureOf(run, "gpu_bytes"), more.contains("convert=bf16") ? bytes / 2 : bytes);
        // Buffers are whole pages.
        QVERIFY(std::fabs(figureOf(run, "peak_host_memory") - hostMemory * bytes) < 4096 + 256);
        QVERIFY(figureOf(run, "time") > 0 && figureOf(run, "copy_time") > 0 && figureOf(run, "read_time") > 0);
    }

    void aLostBitFailsTheRun()
    {
        fakeGpu().wrongCopyAt = 1;
        const auto run = loadedOnFake({"model=mlp:128,32", "cache=warm", "touched=1"});
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("check.failed"));
        QVERIFY(run.error().message.find("GPU") != std::string::npos);
    }

    void onlyOneGpuIsLoaded()
    {
        const auto run = loadedOnFake(loadedWith({"gpus=2"}));
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.skipped"));
        QVERIFY(run.error().hint.find("gpus=1") != std::string::npos);
    }

    void otherMediaAreRefused()
    {
        const auto run = loadedOnFake(loadedWith({"medium=hdd"}));
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.skipped"));
        QVERIFY(run.error().hint.find("medium=host") != std::string::npos);
    }

    void nothingIsLeftBehind()
    {
        const std::uint64_t before = fakeGpu().usedBytes;
        QVERIFY(std::isfinite(figureOf(loadedOnFake(smallModel), "time")));
        QCOMPARE(fakeGpu().usedBytes, before);
        QCOMPARE(fakeGpu().heldUp, std::string());
    }
};

QTEST_GUILESS_MAIN(TestCudaLoading)
#include "tst_cuda_loading.moc"
