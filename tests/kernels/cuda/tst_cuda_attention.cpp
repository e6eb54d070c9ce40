// SPDX-License-Identifier: Apache-2.0
// Attention on a GPU of the tests' own making: the device, its arrays and launches as they are, the
// kernels thread by thread on the emulated machine, everything held against the reference in double
// and its bounds, as the self-test does on a real GPU.
#include "kernels/cuda/attention/attention_device.h"
#include "kernels/cuda/attention/flash_hopper_map.h"
#include "kernels/cuda/common/watchdog.h"

#include "core/experiment/experiment.h"
#include "kernels/programs/attention/attention_reference.h"
#include "tests/kernels/cuda/fake_run.h"
#include "tests/support/listener.h"

#include <QtTest>

#include <nlohmann/json.hpp>

using namespace memscape;

namespace {

AttentionDeviceFactory factoryOn(cuda::GpuSession& session)
{
    return [&session](const AttentionTask& task) -> Result<std::unique_ptr<AttentionDevice>> {
        return cuda::makeAttentionDevice(
            session, nullptr, [] { return false; }, task);
    };
}

AttentionTask taskOf(AttentionKind kind, int version, DType dtype, AttentionShape shape, AttentionPass pass)
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

    void everyVersionIsRight_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<int>("version");
        QTest::addColumn<int>("dtype");
        QTest::addColumn<bool>("emulated");
        // Thread by thread each version is checked by itself (tst_flash and its neighbours): here one of each kind of
        // launch is, and the others plainly.
        const auto add = [](AttentionKind kind, int version, DType dtype, bool emulated = false) {
            QTest::addRow("%s v%d %s", attentionKindText(kind).data(), version, dtypeText(dtype).data())
                << int(kind) << version << int(dtype) << emulated;
        };
        add(AttentionKind::Flash, 1, DType::Float32, true);
        add(AttentionKind::Flash, 1, DType::BFloat16);
        add(AttentionKind::Flash, 2, DType::Float16);
        add(AttentionKind::Flash, 3, DType::BFloat16, true);
        add(AttentionKind::Flash, 4, DType::Float16);
        add(AttentionKind::Flash, 5, DType::BFloat16);
        add(AttentionKind::Flash, 6, DType::Float16, true);
        add(AttentionKind::Flash, 8, DType::Float16);
        add(AttentionKind::Flash, 8, DType::BFloat16, true);
        add(AttentionKind::Flash, 9, DType::Float16, true);
        add(AttentionKind::Flash, 9, DType::BFloat16);
        for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16})
            add(AttentionKind::Standard, dtype == DType::Float16 ? 1 : 2, dtype, dtype == DType::Float32);
    }
    void everyVersionIsRight()
    {
        QFETCH(int, kind);
        QFETCH(int, version);
        QFETCH(int, dtype);
        QFETCH(bool, emulated);
        fakeGpu().emulatesAttention = emulated;
        auto session = cuda::GpuSession::open(0);
        QVERIFY(session.has_value());
        const auto& versions = attentionVersions(AttentionKind(kind), true);
        const auto check = checkAttentionDevice(
            factoryOn(**session), cuda::compiledVersion(versions.at(std::size_t(version) - 1)), DType(dtype), 1);
        QVERIFY2(check.has_value(), check ? "" : check.error().text().c_str());
        QVERIFY2(check->passed(), check->text().c_str());
        QVERIFY(check->compared() > 100'000);
    }

    void aMissingBarrierIsFound()
    {
        auto session = cuda::GpuSession::open(0);
        QVERIFY(session.has_value());
        fakeGpu().forgetsBarriers = true;
        const auto check = checkAttentionDevice(
            factoryOn(**session), cuda::compiledVersion(attentionVersions(AttentionKind::Flash, true).back()),
            DType::Float16, 1);
        QVERIFY(!check.has_value());
    }

    void timesAreThoseOfTheGpu()
    {
        auto session = cuda::GpuSession::open(0);
        QVERIFY(session.has_value());
        const AttentionShape shape{1, 16, 16, 4096, 4096, 128, false};
        auto device =
            factoryOn(**session)(taskOf(AttentionKind::Flash, 6, DType::BFloat16, shape, AttentionPass::Both));
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
        auto onePass =
            factoryOn(**session)(taskOf(AttentionKind::Flash, 9, DType::BFloat16, shape, AttentionPass::Backward));
        QVERIFY2(onePass.has_value(), onePass ? "" : onePass.error().text().c_str());
        const auto five = (*onePass)->sample(AttentionPass::Backward);
        QVERIFY(std::abs(*five / forward - 2.5) < 5e-2);
    }

    /// On the tests' GPU blocks end in another order at every second launch: dQ's bits change, and nothing
    /// else's may. The record says so.
    void onlyVersionNinesQueryGradientHasNoOrder()
    {
        auto session = cuda::GpuSession::open(0);
        QVERIFY(session.has_value());
        const AttentionShape shape{1, 1, 1, 256, 768, 128, false}; // so many that rounding hides not all
        const auto gradients = [&](int version) {
            auto device = *factoryOn(**session)(
                taskOf(AttentionKind::Flash, version, DType::Float16, shape, AttentionPass::Both));
            std::vector<std::vector<float>> all;
            if (!device->fill(AttentionInputs::Normal) || !device->forward() || !device->backward())
                return all;
            for (const AttentionTensor tensor :
                 {AttentionTensor::QueryGradient, AttentionTensor::KeyGradient, AttentionTensor::ValueGradient})
                all.push_back(*device->read(tensor));
            return all;
        };
        const auto first = gradients(9), second = gradients(9);
        QVERIFY(first.size() == 3 && second.size() == 3);
        QVERIFY(first[0] != second[0]);
        QVERIFY(first[1] == second[1] && first[2] == second[2]);
        const auto method = [&](int version) {
            return (*factoryOn(**session)(
                        taskOf(AttentionKind::Flash, version, DType::BFloat16, shape, AttentionPass::Both)))
                ->method();
        };
        QVERIFY(method(9).contains("sums"));
        QVERIFY(!method(7).contains("sums"));
    }

    void whatDoesNotFitSaysWhatItNeeds()
    {
        auto session = cuda::GpuSession::open(0);
        QVERIFY(session.has_value());
        const AttentionShape shape{4, 16, 16, 16384, 16384, 128, false}; // 32 GiB of scores, GPU of 8
        const auto device =
            factoryOn(**session)(taskOf(AttentionKind::Standard, 2, DType::BFloat16, shape, AttentionPass::Forward));
        QVERIFY(!device.has_value());
        QCOMPARE(device.error().code, std::string("run.memory"));
        QVERIFY2(QString::fromStdString(device.error().text()).contains("implementation=flash"),
                 device.error().text().c_str());
        const auto flash =
            factoryOn(**session)(taskOf(AttentionKind::Flash, 6, DType::BFloat16, shape, AttentionPass::Forward));
        QVERIFY(flash.has_value());
    }

    void anOldGpuGetsAnError()
    {
        auto session = cuda::GpuSession::open(0);
        QVERIFY(session.has_value());
        fakeGpu().computeCapability = 75;
        const AttentionShape shape{1, 1, 1, 64, 64, 64, false};
        const auto make = [&](AttentionKind kind, int version, DType dtype) {
            return factoryOn(**session)(taskOf(kind, version, dtype, shape, AttentionPass::Forward));
        };
        for (int version = 4; version <= cuda::flashVersions; ++version)
            QCOMPARE(make(AttentionKind::Flash, version, DType::Float16).error().code,
                     std::string("attention.unsupported"));
        QCOMPARE(make(AttentionKind::Flash, 3, DType::BFloat16).error().code, std::string("attention.unsupported"));
        QCOMPARE(make(AttentionKind::Standard, 2, DType::BFloat16).error().code, std::string("attention.unsupported"));
        QCOMPARE(make(AttentionKind::Standard, 3, DType::Float16).error().code,
                 std::string("attention.unsupported")); // no library
        for (int version = 1; version <= 3; ++version)
            QVERIFY(make(AttentionKind::Flash, version, DType::Float16).has_value());
        QVERIFY(make(AttentionKind::Standard, 1, DType::Float16).has_value());
    }

    /// Version 8 is Hopper's alone, and of a driver that can make it tensor maps.
    void otherGpusHaveNoVersionEight()
    {
        auto session = cuda::GpuSession::open(0);
        QVERIFY(session.has_value());
        const AttentionTask task =
            taskOf(AttentionKind::Flash, 8, DType::BFloat16, {1, 1, 1, 64, 64, 64, false}, AttentionPass::Forward);
        for (const int capability : {80, 89, 100, 120}) {
            fakeGpu().computeCapability = capability;
            const auto made = factoryOn(**session)(task);
            QVERIFY(!made.has_value());
            QCOMPARE(made.error().code, std::string("attention.unsupported"));
            QVERIFY2(made.error().text().find("9.0 and no other") != std::string::npos, made.error().text().c_str());
            QVERIFY2(made.error().hint.find("version=7") != std::string::npos, made.error().hint.c_str());
        }
        fakeGpu().computeCapability = 90;
        const auto made = factoryOn(**session)(task);
        QVERIFY(made.has_value());
        QVERIFY((*made)->fill(AttentionInputs::Normal).has_value());
        QVERIFY((*made)->forward().has_value());
        fakeGpu().hasTensorMaps = false;
        QCOMPARE((*made)->forward().error().code, std::string("run.failed"));
    }

    /// The driver refuses what its copy engine cannot fetch (fake_hopper.cpp has its rules).
    void tensorMapsAreWhatTheDriverTakes()
    {
        alignas(64) CUtensorMap encoded;
        alignas(16) static const char data[32] = {};
        const cuda::TileMap good{data, 128, 1000, 32, 128, true};
        QCOMPARE(cuda::encodeTileMap(good, &encoded), cudaSuccess);
        const auto refused = [&](auto change) {
            cuda::TileMap map = good;
            change(map);
            return cuda::encodeTileMap(map, &encoded) == cudaErrorInvalidValue;
        };
        QVERIFY(refused([](cuda::TileMap& map) { map.data = data + 8; }));
        QVERIFY(refused([](cuda::TileMap& map) { map.columns = 60; }));
        QVERIFY(refused([](cuda::TileMap& map) { map.rows = 0; }));
        QVERIFY(refused([](cuda::TileMap& map) { map.rows = std::uint64_t(1) << 33; }));
        QVERIFY(refused([](cuda::TileMap& map) { map.boxRows = 257; }));
        fakeGpu().hasTensorMaps = false;
        QCOMPARE(cuda::encodeTileMap(good, &encoded), cudaErrorNotSupported);
    }

    void measuredBytesAreThePredictedOnes_data()
    {
        QTest::addColumn<QString>("pass");
        for (const char* pass : {"forward", "backward", "both"})
            QTest::newRow(pass) << pass;
    }
    void measuredBytesAreThePredictedOnes()
    {
        QFETCH(QString, pass);
        fakeGpu().emulatesAttention = false;
        test::Listener listener;
        const auto [run, predicted] =
            measure({"heads=8", "kv_heads=2", "sequence=2049", "head_dim=128", "pass=" + pass.toStdString()}, listener);
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        for (const char* key : {"standard_extra_peak", "standard_saved_for_backward", "flash_extra_peak",
                                "flash_saved_for_backward", "standard_flops", "flash_flops"}) {
            QVERIFY2(findFigure(predicted.figures, key) != nullptr, key);
            QCOMPARE(findFigure(run->measurement.figures, key)->number(), findFigure(predicted.figures, key)->number());
        }
        QVERIFY(findFigure(run->measurement.figures, "speedup")->number() > 0);
        QCOMPARE(listener.count("cublaslt.missing"), 1);
        QCOMPARE(run->provenance.method.at("kernels").size(), std::size_t(2));
        QVERIFY(!run->provenance.machine.contains("cublaslt"));
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aSweepMeasuresEveryVersion()
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
            QVERIFY(point.at("samples").at("flash_time").at("count").get<int>() > 0);
        }
    }

    void recordsNameTheLibraryTheyUse()
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
            QCOMPARE(run->provenance.machine.contains("cublaslt"), std::string(implementation) == "standard");
            QCOMPARE(run->measurement.detail.at("points").size(), std::size_t(1)); // a range of one
        }
    }

    void aWrongKernelIsNotTimed()
    {
        fakeGpu().emulatesAttention = false;
        fakeGpu().wrongKernel = true;
        test::Listener listener;
        const auto run = measure({"implementation=flash", "pass=forward", "sequence=64,128"}, listener).run;
        QVERIFY2(!run.has_value(), run ? run->measurement.detail.dump().c_str() : "");
        QCOMPARE(run.error().code, std::string("check.failed"));
    }

    /// Unless it was asked for by its number.
    void anOlderVersionRunsForOneThatIsWrong()
    {
        fakeGpu().emulatesAttention = false;
        fakeGpu().wrongFlash = 7;
        const std::vector<std::string> given{"implementation=flash", "pass=forward", "heads=8", "sequence=2048,4096"};
        test::Listener listener;
        const auto run = measure(given, listener).run;
        QVERIFY2(run.has_value(), run ? "" : run.error().text().c_str());
        for (const Json& point : run->measurement.detail.at("points"))
            QCOMPARE(point.at("flash").at("method").at("version").get<int>(), 6);
        QCOMPARE(listener.count("attention.version"), 1);
        const std::string kernels = run->provenance.method.at("kernels").dump();
        QVERIFY2(kernels.find("flash v6 bfloat16") != std::string::npos, kernels.c_str());
        QVERIFY2(kernels.find("\"failed\"") != std::string::npos, kernels.c_str());

        test::Listener strict;
        std::vector<std::string> chosen = given;
        chosen.push_back("version=7");
        QCOMPARE(measure(chosen, strict).run.error().code, std::string("check.failed"));
    }

    /// This process has lost the GPU: the next one is given the version to run.
    void aVersionThatHangsNamesTheOneToChoose()
    {
        fakeGpu().emulatesAttention = false;
        fakeGpu().hangs = "flash forward v7";
        qputenv("MEMSCAPE_GPU_DEADLINE", "0.02");
        test::Listener listener;
        const auto run = measure({"implementation=flash", "pass=forward", "heads=8", "sequence=2048"}, listener).run;
        qunsetenv("MEMSCAPE_GPU_DEADLINE");
        cuda::forgetHang();
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.hung"));
        QVERIFY2(run.error().message.find("flash attention v7") != std::string::npos, run.error().message.c_str());
        QVERIFY2(run.error().hint.starts_with("choose version=6; "), run.error().hint.c_str());
    }

    void aScoreMatrixThatDoesNotFitIsRefused()
    {
        fakeGpu().emulatesAttention = false;
        test::Listener listener;
        const auto run =
            measure({"implementation=standard", "pass=forward", "batch=4", "sequence=16384,32768"}, listener).run;
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("run.memory"));
        QCOMPARE(fakeGpu().usedBytes, std::uint64_t(0));
    }

    void aHeadDimensionWithoutKernelIsPredictedOnly()
    {
        fakeGpu().emulatesAttention = false;
        test::Listener listener;
        const auto [run, predicted] = measure({"implementation=flash", "head_dim=96"}, listener);
        QVERIFY(findFigure(predicted.figures, "flash_time") != nullptr);
        QVERIFY(!run.has_value());
        QCOMPARE(run.error().code, std::string("attention.unsupported"));
        QVERIFY(QString::fromStdString(run.error().hint).contains("head_dim=64"));
    }
};

QTEST_APPLESS_MAIN(TestCudaAttention)
#include "tst_cuda_attention.moc"
