// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU of the tests' own making: the device, its arrays and launches as they are, the
// kernels thread by thread on the emulated machine, everything held against the reference in double
// and its bounds, as the self-test does on a real GPU.
#include "kernels/cuda/attention/attention_device.h"

#include "core/experiment/experiment.h"
#include "kernels/measure/attention_reference.h"
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

AttentionDeviceFactory factoryOn(cuda::Session& session)
{
    return [&session](const AttentionTask& task) -> Result<std::unique_ptr<AttentionDevice>> {
        return cuda::makeAttentionDevice(
            session, nullptr, [] { return false; }, task);
    };
}

AttentionTask taskOf(AttentionKind kind, int version, DType dtype, AttentionShape shape,
                     AttentionPass pass)
{
    AttentionTask task;
    task.problem = {shape, dtype, kind, pass};
    task.version = attentionVersions(kind, true).at(std::size_t(version) - 1);
    return task;
}

FakeRun measure(const std::vector<std::string>& given, RunSink& sink)
{
    return runOnFake("attention", given, sink);
}

} // namespace

class TestCudaAttention : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        fakeGpu() = FakeGpu{};
        fakeGpu().emulatesAttention = true;
    }
    void everyVersionIsRight_data();
    void everyVersionIsRight();
    void aMissingBarrierIsFound();
    void timesAreThoseOfTheGpu();
    void whatDoesNotFitSaysWhatItNeeds();
    void anOldGpuIsToldSo();
    void measuredBytesAreThePredictedOnes_data();
    void measuredBytesAreThePredictedOnes();
    void aSweepMeasuresEveryVersion();
    void theLibraryStandsInRecordsOfWhatUsesIt();
    void aWrongKernelIsNotTimed();
    void aScoreMatrixThatDoesNotFitIsRefused();
    void aHeadDimensionWithoutKernelIsPredictedOnly();
};

void TestCudaAttention::everyVersionIsRight_data()
{
    QTest::addColumn<int>("kind");
    QTest::addColumn<int>("version");
    QTest::addColumn<int>("dtype");
    const auto add = [](AttentionKind kind, int version, DType dtype) {
        QTest::addRow("%s v%d %s", attentionKindText(kind).data(), version, dtypeText(dtype).data())
            << int(kind) << version << int(dtype);
    };
    add(AttentionKind::Flash, 1, DType::Float32);
    add(AttentionKind::Flash, 1, DType::BFloat16);
    add(AttentionKind::Flash, 2, DType::Float16);
    add(AttentionKind::Flash, 3, DType::BFloat16);
    add(AttentionKind::Flash, 4, DType::Float16);
    add(AttentionKind::Flash, 5, DType::BFloat16);
    add(AttentionKind::Flash, 6, DType::Float16);
    for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16})
        add(AttentionKind::Standard, dtype == DType::Float16 ? 1 : 2, dtype);
}

void TestCudaAttention::everyVersionIsRight()
{
    QFETCH(int, kind);
    QFETCH(int, version);
    QFETCH(int, dtype);
    auto session = cuda::Session::open(0);
    QVERIFY(session.has_value());
    const auto& versions = attentionVersions(AttentionKind(kind), true);
    const auto check = checkAttentionDevice(
        factoryOn(**session), cuda::compiledVersion(versions.at(std::size_t(version) - 1)),
        DType(dtype), 1);
    QVERIFY2(check.has_value(), check ? "" : check.error().text().c_str());
    QVERIFY2(check->passed(), check->text().c_str());
    QVERIFY(check->compared() > 100'000);
}

void TestCudaAttention::aMissingBarrierIsFound()
{
    auto session = cuda::Session::open(0);
    QVERIFY(session.has_value());
    fakeGpu().forgetsBarriers = true;
    const auto check = checkAttentionDevice(
        factoryOn(**session),
        cuda::compiledVersion(attentionVersions(AttentionKind::Flash, true).back()), DType::Float16, 1);
    QVERIFY(!check.has_value());
}

void TestCudaAttention::timesAreThoseOfTheGpu()
{
    auto session = cuda::Session::open(0);
    QVERIFY(session.has_value());
    const AttentionShape shape{1, 16, 16, 4096, 4096, 128, false};
    auto device = factoryOn(**session)(
        taskOf(AttentionKind::Flash, 6, DType::BFloat16, shape, AttentionPass::Both));
    QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
    const FakeGpu& gpu = fakeGpu();
    const double forward =
        attentionFlops(shape, AttentionPass::Forward) / gpu.tensorFlopsPerSecond + gpu.launchSeconds;
    const auto seen = (*device)->sample(AttentionPass::Forward);
    QVERIFY2(seen.has_value(), seen ? "" : seen.error().text().c_str());
    QVERIFY(std::abs(*seen - forward) < 1e-3 * forward);
    const auto backward = (*device)->sample(AttentionPass::Backward);
    QVERIFY(std::abs(*backward / forward - 3.5) < 5e-2); // seven products instead of two
    const auto both = (*device)->sample(AttentionPass::Both);
    QVERIFY(std::abs(*both - *seen - *backward) < 1e-3 * *both);
}

void TestCudaAttention::whatDoesNotFitSaysWhatItNeeds()
{
    auto session = cuda::Session::open(0);
    QVERIFY(session.has_value());
    const AttentionShape shape{4, 16, 16, 16384, 16384, 128, false}; // 32 GiB of scores, GPU of 8
    const auto device = factoryOn(**session)(
        taskOf(AttentionKind::Standard, 2, DType::BFloat16, shape, AttentionPass::Forward));
    QVERIFY(!device.has_value());
    QCOMPARE(device.error().code, std::string("run.memory"));
    QVERIFY2(QString::fromStdString(device.error().text()).contains("implementation=flash"),
             device.error().text().c_str());
    const auto flash = factoryOn(**session)(
        taskOf(AttentionKind::Flash, 6, DType::BFloat16, shape, AttentionPass::Forward));
    QVERIFY(flash.has_value());
}

void TestCudaAttention::anOldGpuIsToldSo()
{
    auto session = cuda::Session::open(0);
    QVERIFY(session.has_value());
    fakeGpu().computeCapability = 75;
    const AttentionShape shape{1, 1, 1, 64, 64, 64, false};
    const auto make = [&](AttentionKind kind, int version, DType dtype) {
        return factoryOn(**session)(taskOf(kind, version, dtype, shape, AttentionPass::Forward));
    };
    for (int version = 4; version <= cuda::flashVersions; ++version)
        QCOMPARE(make(AttentionKind::Flash, version, DType::Float16).error().code,
                 std::string("attention.unsupported"));
    QCOMPARE(make(AttentionKind::Flash, 3, DType::BFloat16).error().code,
             std::string("attention.unsupported"));
    QCOMPARE(make(AttentionKind::Standard, 2, DType::BFloat16).error().code,
             std::string("attention.unsupported"));
    QCOMPARE(make(AttentionKind::Standard, 3, DType::Float16).error().code,
             std::string("attention.unsupported")); // no library
    for (int version = 1; version <= 3; ++version)
        QVERIFY(make(AttentionKind::Flash, version, DType::Float16).has_value());
    QVERIFY(make(AttentionKind::Standard, 1, DType::Float16).has_value());
}

void TestCudaAttention::measuredBytesAreThePredictedOnes_data()
{
    QTest::addColumn<QString>("pass");
    for (const char* pass : {"forward", "backward", "both"})
        QTest::newRow(pass) << pass;
}

void TestCudaAttention::measuredBytesAreThePredictedOnes()
{
    QFETCH(QString, pass);
    fakeGpu().emulatesAttention = false;
    test::Listener listener;
    const auto [run, predicted] =
        measure({"heads=8", "kv_heads=2", "sequence=2049", "head_dim=128", "pass=" + pass.toStdString()},
                listener);
    QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
    for (const char* key : {"standard_extra_peak", "standard_saved_for_backward", "flash_extra_peak",
                            "flash_saved_for_backward", "standard_flops", "flash_flops"}) {
        QVERIFY2(findFigure(predicted.figures, key) != nullptr, key);
        QCOMPARE(findFigure(run->measurement.figures, key)->number(),
                 findFigure(predicted.figures, key)->number());
    }
    QVERIFY(findFigure(run->measurement.figures, "speedup")->number() > 0);
    QCOMPARE(listener.count("cublaslt.missing"), 1);
    QCOMPARE(run->provenance.at("method").at("kernels").size(), std::size_t(2));
    QVERIFY(!run->provenance.contains("cublaslt"));
    QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
}

void TestCudaAttention::aSweepMeasuresEveryVersion()
{
    fakeGpu().emulatesAttention = false;
    test::Listener listener;
    const auto run = measure({"heads=8", "sequence=2048", "implementation=flash", "pass=forward",
                              "version=1:" + std::to_string(cuda::flashVersions) + ":1"},
                             listener)
                         .run;
    QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
    QCOMPARE(run->measurement.detail.at("points").size(), std::size_t(cuda::flashVersions));
    for (int version = 1; version <= cuda::flashVersions; ++version) {
        const Json& point = run->measurement.detail.at("points").at(std::size_t(version) - 1);
        QCOMPARE(point.at("flash").at("method").at("version").get<int>(), version);
        QVERIFY(!point.at("flash").at("samples").empty());
    }
}

void TestCudaAttention::theLibraryStandsInRecordsOfWhatUsesIt()
{
    fakeGpu().emulatesAttention = false;
    fakeGpu().hasLibrary = true;
    for (const char* implementation : {"standard", "flash"}) {
        test::Listener listener;
        const auto run = measure({QString("implementation=%1").arg(implementation).toStdString(), "pass=forward",
                                  "heads=8", "sequence=2048:2048"},
                                 listener)
                             .run;
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        QCOMPARE(run->provenance.contains("cublaslt"), std::string(implementation) == "standard");
        QCOMPARE(run->measurement.detail.at("points").size(), std::size_t(1)); // a range of one
    }
}

void TestCudaAttention::aWrongKernelIsNotTimed()
{
    fakeGpu().emulatesAttention = false;
    fakeGpu().wrongKernel = true;
    test::Listener listener;
    const auto run = measure({"implementation=flash", "pass=forward", "sequence=64,128"},
                             listener)
                         .run;
    QVERIFY2(!run.has_value(), run ? run->measurement.detail.dump().c_str() : "");
    QCOMPARE(run.error().code, std::string("check.failed"));
}

void TestCudaAttention::aScoreMatrixThatDoesNotFitIsRefused()
{
    fakeGpu().emulatesAttention = false;
    test::Listener listener;
    const auto run = measure({"implementation=standard", "pass=forward", "batch=4",
                              "sequence=16384,32768"},
                             listener)
                         .run;
    QVERIFY(!run.has_value());
    QCOMPARE(run.error().code, std::string("run.memory"));
    QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
}

void TestCudaAttention::aHeadDimensionWithoutKernelIsPredictedOnly()
{
    fakeGpu().emulatesAttention = false;
    test::Listener listener;
    const auto [run, predicted] = measure({"implementation=flash", "head_dim=96"}, listener);
    QVERIFY(findFigure(predicted.figures, "flash_time") != nullptr);
    QVERIFY(!run.has_value());
    QCOMPARE(run.error().code, std::string("attention.unsupported"));
    QVERIFY(QString::fromStdString(run.error().hint).contains("head_dim=64"));
}

QTEST_APPLESS_MAIN(TestCudaAttention)
#include "tst_cuda_attention.moc"
