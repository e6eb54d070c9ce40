// SPDX-License-Identifier: Apache-2.0
// Waiting on a GPU of the test's own making: behind a blocking kernel nothing may wait, a kernel that never ends is
// left behind, and an error is reported once.
#include "kernels/cuda/attention/attention_device.h"
#include "kernels/cuda/batch-size/batch_device.h"
#include "kernels/cuda/common/errors.h"
#include "kernels/cuda/common/sampler.h"
#include "kernels/cuda/common/watchdog.h"
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::cuda;

namespace {

using Given = std::vector<std::string>;

/// The first line of a self-test about this kernel.
const SelftestLine* lineOf(const std::vector<SelftestLine>& lines, const std::string& part)
{
    for (const SelftestLine& line : lines) {
        if (line.kernel.find(part) != std::string::npos)
            return &line;
    }
    return nullptr;
}

AttentionTask standardInFloats(const AttentionShape& shape)
{
    AttentionTask task;
    task.problem = {shape, DType::Float32, AttentionKind::Standard, AttentionPass::Forward};
    task.version = attentionVersions(AttentionKind::Standard, true).front();
    return task;
}

} // namespace

// ---- behind the blocking kernel --------------------------------------------------------------------------

// ---- errors -----------------------------------------------------------------------------------

// ---- a kernel that never ends ------------------------------------------------------------------

namespace {
/// As the CUDA runtime's own end would.
void waitForever()
{
    std::_Exit(9);
}
} // namespace

// ---- Stop -------------------------------------------------------------------------------------

class TestCudaWaiting : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        fakeGpu() = FakeGpu{};
        forgetHang();
        qputenv("MEMSCAPE_GPU_DEADLINE", "0.02");
    }
    void cleanupTestCase() { forgetHang(); }

    void nothingWaitsBehindTheBlockingKernel_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QStringList>("given");
        QTest::newRow("stride") << "stride" << QStringList{"stride=1,2", "bytes=1MiB"};
        QTest::newRow("cold gather") << "stride" << QStringList{"pattern=random", "bytes=1MiB,2MiB", "cache=cold"};
        QTest::newRow("hierarchy") << "hierarchy" << QStringList{"working_set=64KiB,4MiB,512MiB"};
        QTest::newRow("layout") << "layout" << QStringList{"shape=256,256", "reads=1,2"};
        QTest::newRow("in place, a copy first") << "in-place" << QStringList{"operation=silu", "bytes=64KiB,1MiB"};
        QTest::newRow("transfer") << "transfer" << QStringList{"direction=both", "bytes=16KiB,64KiB", "chunk=8KiB"};
        QTest::newRow("transfer, mapped") << "transfer" << QStringList{"kind=mapped", "bytes=16KiB,64KiB"};
        QTest::newRow("loading") << "loading" << QStringList{"model=mlp:64,32", "touched=0.5,1", "cache=warm"};
        QTest::newRow("placement, layers")
            << "placement" << QStringList{"graph=mlp:3x16", "batch=4,8", "format=fp32", "limit=8KiB"};
        QTest::newRow("placement, training")
            << "placement"
            << QStringList{"graph=mlp:3x16", "batch=4,8", "format=fp32", "strategy=zero-offload", "limit=64KiB"};
        QTest::newRow("sharding") << "sharding"
                                  << QStringList{"model=from-scratch:hidden=16,layers=2,heads=2,ffn=32,vocab=64",
                                                 "sequence=8", "data_parallel=2", "batch=1,2"};
        QTest::newRow("banks") << "bank-conflicts" << QStringList{"stride=1,2"};
        QTest::newRow("flash") << "attention"
                               << QStringList{"implementation=flash", "pass=both", "heads=2", "sequence=1024,2048"};
        QTest::newRow("standard by the library")
            << "attention" << QStringList{"implementation=standard", "pass=both", "heads=2", "sequence=1024,2048"};
        QTest::newRow("products") << "precision" << QStringList{"format=bf16", "m=512,1024"};
        QTest::newRow("FP8") << "precision" << QStringList{"format=fp8-e4m3", "m=512,1024"};
        QTest::newRow("training") << "precision" << QStringList{"operation=train", "m=43", "n=50", "k=37", "steps=2"};
        QTest::newRow("allocator, a pool")
            << "allocator"
            << QStringList{"trace=alloc a 3MiB; alloc b 30MiB; free a; free b; empty_cache", "empty_cache=0,2"};
        QTest::newRow("allocator, the driver")
            << "allocator" << QStringList{"trace=alloc a 3MiB; free a; alloc b 5MiB", "setting=cudaMalloc"};
        QTest::newRow("allocator, a stream's pool")
            << "allocator" << QStringList{"trace=alloc a 3MiB; free a; alloc b 5MiB", "setting=cudaMallocAsync"};
        QTest::newRow("batch size") << "batch-size" << QStringList{"model=mlp:12,8,4", "batch=2,4", "target_loss=0.9"};
        QTest::newRow("checkpoint") << "checkpoint" << QStringList{"chain=mlp:3x32", "batch=20", "strategy=every:2"};
    }
    void nothingWaitsBehindTheBlockingKernel()
    {
        QFETCH(QString, id);
        QFETCH(QStringList, given);
        for (const bool hasLibrary : {true, false}) {
            fakeGpu() = FakeGpu{};
            fakeGpu().devices = 2;
            fakeGpu().hasLibrary = hasLibrary;
            fakeGpu().launchSeconds = 1e-4; // a few runs are enough
            Given words;
            for (const QString& word : given)
                words.push_back(word.toStdString());
            test::Listener listener;
            const auto run = runOnFake(qPrintable(id), words, listener).run;
            QVERIFY2(run.has_value(), run ? "" : (run.error().text() + ": " + fakeGpu().heldUp).c_str());
            QCOMPARE(QString::fromStdString(fakeGpu().heldUp), QString());
        }
    }

    void calibrationMeetsItsKernelsToo()
    {
        const std::unique_ptr<Backend> gpu = backend();
        fakeGpu().hasLibrary = true;
        test::Listener listener;
        const auto device = gpu->calibrate(gpu->devices().front(), listener);
        QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
        QCOMPARE(QString::fromStdString(fakeGpu().heldUp), QString());
    }

    void aStepAtTheSameAddressIsMetAgain()
    {
        fakeGpu().hasLibrary = true;
        auto session = GpuSession::open(0);
        QVERIFY(session.has_value());
        const auto blas = CublasLt::open();
        BatchShape shape;
        shape.sizes = {64, 64};
        shape.batch = 64;
        auto device = batchDevices(
            **session, blas.get(), [] { return false; }, nullptr)(shape, 1 << 20);
        QVERIFY(device.has_value());
        float* const arena = (*device)->arena();
        BatchOperations step(1);
        for (const std::int64_t rows : {16, 32}) { // the second step lies where the first one lay
            step.front() = {BatchOperation::Kind::InputGradient,
                            rows,
                            8,
                            8,
                            arena,
                            arena + 4096,
                            nullptr,
                            arena + 8192,
                            nullptr,
                            nullptr};
            const auto seconds = (*device)->sample(step, 1);
            QVERIFY2(seconds.has_value(), seconds ? "" : seconds.error().text().c_str());
        }
        QCOMPARE(QString::fromStdString(fakeGpu().heldUp), QString());
    }

    void onlyWhatTheQueueHoldsIsHeld()
    {
        // Floats by our own product take one head at a time: 1041 launches, and the queue holds 1024.
        fakeGpu().memoryBytes = 80ULL << 30;
        auto session = GpuSession::open(0);
        QVERIFY(session.has_value());
        const AttentionShape shape{1, 520, 520, 2048, 2048, 64, false};
        auto device = makeAttentionDevice(
            **session, nullptr, [] { return false; }, standardInFloats(shape));
        QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
        const auto seconds = (*device)->sample(AttentionPass::Forward);
        QVERIFY2(seconds.has_value(), seconds ? "" : (seconds.error().text() + ": " + fakeGpu().heldUp).c_str());
    }

    void waitingGivesBackWhatWasFreed()
    {
        auto session = GpuSession::open(0);
        QVERIFY(session.has_value());
        const std::uint64_t all = (*session)->freeBytes();
        QVERIFY((*session)->allocate(6ULL << 30).has_value()); // and freed, into the pool
        QVERIFY((*session)->freeBytes() < all);
        QVERIFY((*session)->synchronize("freeing the arrays").has_value());
        QCOMPARE((*session)->freeBytes(), all);
    }

    void anErrorIsReportedOnce()
    {
        auto session = GpuSession::open(0);
        QVERIFY(session.has_value());
        QCOMPARE((*session)->allocate(1ULL << 50).error().code, std::string("run.memory"));
        const Work innocent{[&](int) { return launchEmpty((*session)->stream()); }, "an empty kernel"};
        const auto seconds = warmUp(**session, innocent);
        QVERIFY2(seconds.has_value(), seconds ? "" : seconds.error().text().c_str());
    }

    void errorsThatLoseTheContext_data()
    {
        QTest::addColumn<int>("error");
        QTest::newRow("illegal address") << int(cudaErrorIllegalAddress);
        QTest::newRow("contained") << 226;
        QTest::newRow("tensor memory leak") << 721;
        QTest::newRow("MPS client terminated") << 810;
    }
    void errorsThatLoseTheContext()
    {
        QFETCH(int, error);
        QCOMPARE(cudaFailure(static_cast<cudaError_t>(error), "measuring").code, std::string("run.sticky"));
    }

    void aKernelThatHangsEndsTheRun_data()
    {
        // At a later launch: the kernels that are queued behind it are loaded by then. The first launch of
        // another one would wait with it, and that cannot be reported.
        QTest::addColumn<QString>("kernel");
        QTest::addColumn<int>("launch");
        QTest::addColumn<QString>("id");
        QTest::addColumn<QStringList>("given");
        QTest::addColumn<QString>("named");
        QTest::newRow("stride") << "stride" << 5 << "stride" << QStringList{"stride=1,2"} << "the read of the pattern";
        QTest::newRow("chase") << "chase" << 5 << "hierarchy" << QStringList{"working_set=64KiB,1MiB"}
                               << "pointer chase";
        QTest::newRow("banks") << "banks" << 5 << "bank-conflicts" << QStringList{"stride=1,2"} << "the requests";
        QTest::newRow("flash") << "flash forward v6" << 5 << "attention"
                               << QStringList{"implementation=flash", "version=6", "sequence=1024,2048"}
                               << "flash attention v6";
        QTest::newRow("product") << "tensor product" << 5 << "precision" << QStringList{"format=bf16", "m=512,1024"}
                                 << "the product";
        QTest::newRow("training") << "Adam" << 3 << "precision"
                                  << QStringList{"operation=train", "m=43", "n=50", "k=37", "steps=2"} << "training";
        QTest::newRow("batch size") << "batch elements" << 40 << "batch-size"
                                    << QStringList{"model=mlp:12,8,4", "batch=2,4", "target_loss=0.9"} << "training";
        QTest::newRow("checkpoint") << "gelu" << 40 << "checkpoint"
                                    << QStringList{"chain=mlp:3x32", "batch=20", "strategy=every:2"} << "the chain";
        QTest::newRow("placement") << "gelu" << 40 << "placement"
                                   << QStringList{"graph=mlp:3x16", "batch=4,8", "format=fp32", "limit=8KiB"}
                                   << "placed program";
        QTest::newRow("a ring of GPUs") << "ring add" << 40 << "sharding"
                                        << QStringList{"model=from-scratch:hidden=16,layers=2,heads=2,ffn=32,vocab=64",
                                                       "sequence=8", "data_parallel=2", "batch=1,2"}
                                        << "the ring";
        QTest::newRow("roofline") << "stream" << 5 << "roofline" << QStringList{} << "stream";
        QTest::newRow("the harness itself") << "spin" << 3 << "stride" << QStringList{"stride=1,2"} << "idle clock";
    }
    void aKernelThatHangsEndsTheRun()
    {
        QFETCH(QString, kernel);
        QFETCH(int, launch);
        QFETCH(QString, id);
        QFETCH(QStringList, given);
        QFETCH(QString, named);
        const std::unique_ptr<Backend> gpu = backend();
        const BackendDevice device = gpu->devices().front();
        const auto experiment = *findExperiment(id.toStdString());
        Given words;
        for (const QString& word : given)
            words.push_back(word.toStdString());
        const auto parameters = resolve(experiment->schema(), words);
        QVERIFY(parameters.has_value());
        fakeGpu().devices = 2;
        fakeGpu().hangs = kernel.toStdString();
        fakeGpu().hangsAt = launch;
        test::Listener listener;
        const auto run = gpu->measure(*experiment, device, *parameters, listener);
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.hung"));
        QVERIFY2(QString::fromStdString(run.error().message).contains(named), run.error().message.c_str());
        QVERIFY(!run.error().hint.empty());
        QCOMPARE(QString::fromStdString(fakeGpu().blockedBy), QString()); // no call waited for it
        QVERIFY(gpu->isSpent());
        const int launches = fakeGpu().launches;
        const auto again = gpu->measure(*experiment, device, *parameters, listener);
        QCOMPARE(again.error().code, std::string("run.hung"));
        QCOMPARE(fakeGpu().launches, launches);
    }

    void learningStopsAtTheHang()
    {
        // The steps of learning are not waited for: a thousand launches later one would wait for its place.
        fakeGpu().hangs = "batch elements";
        fakeGpu().hangsAt = 3000;
        test::Listener listener;
        const auto run = runOnFake("batch-size", {"model=mlp:32,8", "batch=8,32", "target_loss=0.2"}, listener).run;
        QVERIFY2(!run.has_value(), qPrintable(QString::number(fakeGpu().hangsAt)));
        QCOMPARE(run.error().code, std::string("run.hung"));
        QCOMPARE(QString::fromStdString(fakeGpu().blockedBy), QString());
    }

    void samplesFromBeforeTheHangAreKept()
    {
        // Small sets are read in laps, the large one by a stream, which never ends.
        fakeGpu().hangs = "stream";
        test::Listener listener;
        const auto run = runOnFake("hierarchy", {"working_set=32KiB,64KiB,128KiB,1MiB,512MiB"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.hung"));
        QVERIFY(!listener.points.empty());
    }

    void theSelftestNamesWhatHangs()
    {
        const std::unique_ptr<Backend> gpu = backend();
        const BackendDevice device = gpu->devices().front();
        fakeGpu().hangs = "flash forward v3";
        test::Listener listener;
        auto lines = gpu->selftest(device, listener);
        const SelftestLine* hung = lineOf(lines, "flash attention v3");
        QVERIFY(hung != nullptr);
        QVERIFY(!hung->passed && !hung->skipped);
        QVERIFY2(hung->detail.find("had not finished") != std::string::npos, hung->detail.c_str());
        QVERIFY(lineOf(lines, "flash attention v2")->passed); // what came before is said
        QVERIFY(lines.back().skipped);
        QCOMPARE(lines.back().detail, std::string("not run: the GPU was lost"));
        QVERIFY(gpu->isSpent());
        QCOMPARE(QString::fromStdString(fakeGpu().blockedBy), QString());

        fakeGpu() = FakeGpu{};
        forgetHang();
        fakeGpu().hangs = "gelu";
        fakeGpu().hangsAt = 40;
        const std::unique_ptr<Backend> other = backend();
        lines = other->selftest(device, listener);
        QVERIFY(lineOf(lines, "MLP chain") != nullptr && !lineOf(lines, "MLP chain")->passed);
        QVERIFY(lineOf(lines, "products and conversions")->skipped); // a group that was never begun
        QCOMPARE(QString::fromStdString(fakeGpu().blockedBy), QString());
    }

    void aWorkerWhoseGpuHangsEnds()
    {
        const Json sets = Json::array({32768, 65536, 1 << 29});
        const EndedWorker worker = workerOnFake([](FakeGpu& gpu) { gpu.hangs = "stream"; },
                                                {1, "hierarchy", "cuda:0", Json{{"working_set", sets}}});
        QCOMPARE(worker.exitCode, 1);
        QVERIFY2(worker.said.find("run.hung") != std::string::npos, worker.said.c_str());
    }

    void theProcessEndsWithItsStatus()
    {
        const pid_t child = fork();
        if (child == 0) {
            std::atexit(waitForever);
            auto session = GpuSession::open(0);
            fakeGpu().hangs = "empty";
            static_cast<void>(launchEmpty((*session)->stream()));
            const auto waited = (*session)->synchronize("waiting");
            session->reset(); // what is left may be taken apart
            std::exit(waited || !fakeGpu().blockedBy.empty() ? 8 : 1);
        }
        int status = 0;
        QCOMPARE(waitpid(child, &status, 0), child);
        QVERIFY(WIFEXITED(status));
        QCOMPARE(WEXITSTATUS(status), 1);
    }

    void theDeadlineIsReadFromTheEnvironment_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<double>("seconds");
        QTest::newRow("none") << QByteArray() << 20.0;
        QTest::newRow("longer") << QByteArray("120") << 120.0;
        QTest::newRow("no number") << QByteArray("soon") << 20.0;
        QTest::newRow("none at all") << QByteArray("0") << 20.0;
    }
    void theDeadlineIsReadFromTheEnvironment()
    {
        QFETCH(QByteArray, text);
        if (text.isNull())
            qunsetenv("MEMSCAPE_GPU_DEADLINE");
        else
            qputenv("MEMSCAPE_GPU_DEADLINE", text);
        QTEST(waitingDeadline(), "seconds");
    }

    void stoppedBeforeTheFirstPoint_data()
    {
        QTest::addColumn<QString>("id");
        for (const char* id : {"stride", "hierarchy", "layout", "bank-conflicts", "attention", "precision"})
            QTest::newRow(id) << id;
    }
    void stoppedBeforeTheFirstPoint()
    {
        QFETCH(QString, id);
        test::Listener listener;
        listener.stop = true;
        const auto run = runOnFake(qPrintable(id), {}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.cancelled")); // as the host says
    }
};

QTEST_GUILESS_MAIN(TestCudaWaiting)
#include "tst_cuda_waiting.moc"
