// SPDX-License-Identifier: Apache-2.0
// A run on this host and one on a GPU of the tests' own making (fake_gpu.h) are read by the same plots, tables and
// reports: the same figures in the same units, the same columns, samples and grades at the same places, the same words
// for what went wrong, whatever the experiment.
#include "kernels/host/host_backend.h"
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/host_fakes.h"
#include "tests/support/run_shape.h"

#include <QtTest>

#include <algorithm>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::test;

namespace {

class Sink final : public RunSink
{
public:
    void progress(int done, int total, const std::string&) override
    {
        if (total > 0) // 0: of the preparation nothing is known
            steps.emplace_back(done, total);
    }
    void point(const std::string&, const Point& point) override { points.push_back(point); }
    void note(const std::string&, const std::string& code, const std::string&) override { notes.push_back(code); }
    bool cancelled() const override { return isStopped; }

    std::vector<std::pair<int, int>> steps;
    std::vector<Point> points;
    std::vector<std::string> notes;
    bool isStopped = false;
};

/// Two points of each, small enough to be measured in moments.
const std::vector<std::pair<const char*, std::vector<std::string>>>& measuredExperiments()
{
    static const std::vector<std::pair<const char*, std::vector<std::string>>> all{
        {"stride", {"stride=1,2", "bytes=65536"}},
        {"hierarchy", {"working_set=4096,8192"}},
        {"layout", {"shape=8,8", "reads=1,2"}},
        {"in-place", {"operation=silu", "bytes=4096,8192"}},
        {"transfer", {"direction=both", "bytes=16KiB,32KiB", "chunk=8KiB", "work=4"}},
        {"loading", {"model=mlp:64,32", "touched=0.5,1", "convert=bf16", "chunk=4KiB", "cache=warm"}},
        {"placement", {"strategy=layers", "graph=mlp:3x16", "batch=4,8", "format=fp32", "limit=8KiB"}},
        {"placement", {"strategy=zero-offload", "graph=mlp:3x16", "batch=4,8", "format=fp32", "limit=64KiB"}},
        {"sharding",
         {"model=from-scratch:hidden=16,layers=2,heads=2,ffn=32,vocab=64", "sequence=8", "data_parallel=2",
          "precision=fp32", "batch=1,2"}},
        {"attention",
         {"sequence=16,32", "heads=2", "head_dim=32", "pass=forward", "dtype=float32", "implementation=standard"}},
        {"precision", {"m=16,32", "format=fp32"}},
        {"precision", {"operation=train", "format=fp16", "m=8", "n=8", "k=8", "steps=6", "loss_scale=1, 1024"}},
        {"batch-size", {"model=mlp:4,2", "batch=2,4", "target_loss=0.5"}},
        {"allocator", {"trace=alloc a 3MiB; alloc b 300KiB; free a; alloc c 2MiB; free b; free c", "empty_cache=0,4"}},
        {"checkpoint", {"chain=mlp:2x16", "batch=4,8", "strategy=none"}},
    };
    return all;
}

Result<MeasuredRun> onHost(const char* id, const std::vector<std::string>& given, RunSink& sink)
{
    const auto experiment = findExperiment(id);
    MEMSCAPE_TRY(parameters, resolve((*experiment)->schema(), given));
    // By a clock that ticks when it is looked at: what is compared are no times.
    host::Instruments instruments = steadyMachine({0.004});
    instruments.processors = host::physicalCores();
    const std::unique_ptr<Backend> backend = host::makeHostBackend(std::move(instruments));
    return backend->measure(**experiment, backend->devices().front(), parameters, sink);
}

} // namespace

class TestSameShape : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        fakeGpu() = FakeGpu{};
        fakeGpu().devices = 2;
    }

    void aRunHasOneShape_data() { addExperiments(); }

    void aRunHasOneShape()
    {
        QFETCH(int, which);
        const auto& [id, given] = measuredExperiments()[std::size_t(which)];
        Sink hostSink, gpuSink;
        const auto host = onHost(id, given, hostSink);
        QVERIFY2(host, host ? "" : host.error().text().c_str());
        const auto gpu = runOnFake(id, given, gpuSink).run;
        QVERIFY2(gpu, gpu ? "" : gpu.error().text().c_str());

        QCOMPARE(curvesOf(*gpu), curvesOf(*host));
        QCOMPARE(sampleColumnsOf(*gpu), sampleColumnsOf(*host));
        for (const MeasuredRun* run : {&*host, &*gpu})
            QVERIFY2(lacking(*run).isEmpty(), qPrintable(lacking(*run)));
        for (Sink* sink : {&hostSink, &gpuSink}) {
            QVERIFY(!sink->steps.empty() && !sink->points.empty());
            const auto last = sink->steps.back();
            QCOMPARE(last.first, last.second); // all of it is done
            // Parts of a visit, a chain's stages or a training's steps, count for themselves.
            std::erase_if(sink->steps, [&](const auto& step) { return step.second != last.second; });
            QVERIFY(std::ranges::is_sorted(sink->steps));
        }
        QCOMPARE(gpuSink.steps.back(), hostSink.steps.back());
    }

    /// A host has no banks: it says why it measures none.
    void bankConflictsOfAGpuHaveIt()
    {
        Sink hostSink, gpuSink;
        const std::vector<std::string> given{"stride=1,2"};
        const auto gpu = runOnFake("bank-conflicts", given, gpuSink).run;
        QVERIFY2(gpu, gpu ? "" : gpu.error().text().c_str());
        QVERIFY2(lacking(*gpu).isEmpty(), qPrintable(lacking(*gpu)));
        QCOMPARE(gpuSink.points.size(), std::size_t(6)); // two, in three passes
        const auto host = onHost("bank-conflicts", given, hostSink);
        QVERIFY(!host);
        QCOMPARE(host.error().code, std::string("run.skipped"));
        QVERIFY(!host.error().hint.empty());
    }

    void aRunThatIsStoppedBeforeItsFirstPointIsCancelled_data() { addExperiments(); }

    void aRunThatIsStoppedBeforeItsFirstPointIsCancelled()
    {
        QFETCH(int, which);
        const auto& [id, given] = measuredExperiments()[std::size_t(which)];
        Sink hostSink, gpuSink;
        hostSink.isStopped = gpuSink.isStopped = true;
        const auto host = onHost(id, given, hostSink);
        const auto gpu = runOnFake(id, given, gpuSink).run;
        QVERIFY(!host && !gpu);
        QCOMPARE(host.error().code, std::string("run.cancelled"));
        QCOMPARE(gpu.error().code, std::string("run.cancelled"));
        QVERIFY(hostSink.points.empty() && gpuSink.points.empty());
    }

    void onePointThatFailsLeavesTheOthers()
    {
        Sink hostSink, gpuSink;
        const std::vector<std::string> given{"bytes=64KiB,1TiB"};
        const auto host = onHost("stride", given, hostSink);
        const auto gpu = runOnFake("stride", given, gpuSink).run;
        for (const auto* run : {&host, &gpu}) {
            QVERIFY2(*run, *run ? "" : run->error().text().c_str());
            const Json& points = (*run)->measurement.detail["points"];
            QCOMPARE(points.size(), std::size_t(2));
            QVERIFY(!points[0].contains("error"));
            QCOMPARE(points[1]["error"].get<std::string>(), std::string("run.memory"));
            QVERIFY(!points[1]["reason"].get<std::string>().empty());
            for (const Json& one : (*run)->provenance.samples)
                QVERIFY(one["x"] == points[0]["x"] && one["count"].get<int>() > 0);
            QVERIFY((*run)->complete);
        }
        for (const Sink* sink : {&hostSink, &gpuSink})
            QCOMPARE(std::ranges::count(sink->notes, std::string("run.memory")), 1);
    }

    void whenTheAskedPointFailsTheRunDoes()
    {
        Sink hostSink, gpuSink;
        const std::vector<std::string> given{"bytes=1TiB"}; // the curve over strides has no point that fits either
        const auto host = onHost("stride", given, hostSink);
        const auto gpu = runOnFake("stride", given, gpuSink).run;
        QVERIFY(!host && !gpu);
        QCOMPARE(host.error().code, std::string("run.memory"));
        QCOMPARE(gpu.error().code, std::string("run.memory"));
        QVERIFY(gpuSink.points.empty() && hostSink.points.empty()); // asked first, and the others were not tried
    }

private:
    static void addExperiments()
    {
        QTest::addColumn<int>("which");
        for (std::size_t i = 0; i < measuredExperiments().size(); ++i)
            QTest::addRow("%s %s", measuredExperiments()[i].first, measuredExperiments()[i].second.front().c_str())
                << int(i);
    }
};

QTEST_MAIN(TestSameShape)
#include "tst_same_shape.moc"
