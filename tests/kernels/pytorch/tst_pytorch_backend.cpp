// SPDX-License-Identifier: Apache-2.0
// The PyTorch backend against programs that are no Python, hang, lie, print or die: each is said with its remedy, in
// seconds, and leaves no process.
#include "kernels/pytorch/python_torch.h"
#include "kernels/pytorch/pytorch_backend.h"
#include "tests/kernels/pytorch/fake_python.h"

#include "core/device/catalogue.h"
#include "core/experiment/record.h"
#include "core/timing/pytorch_operations.h"
#include "tests/support/operator_probes.h"

using namespace memscape;
using namespace memscape::test;

namespace {

const std::vector<std::string> small{"model=mlp:64,64,8", "batch=4", "precision=fp32"};

std::string missingOf(const QString& python)
{
    const auto backend = makePytorchBackend(python.toStdString());
    const auto devices = backend->devices();
    return devices.size() == 1 && devices.front().id == "pytorch:cpu" ? devices.front().missing : "other devices";
}

bool has(const std::string& text, const char* words)
{
    if (text.find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, text.c_str());
    return false;
}

Result<MeasuredRun> measured(const FakePython& python, Listener& listener,
                             const std::vector<std::string>& assignments = small)
{
    const auto backend = makePytorchBackend(python.path().toStdString());
    const auto devices = backend->devices();
    if (!devices.front().missing.empty())
        return fail("device.missing", devices.front().missing);
    return backend->measure(training(), devices.front(), parametersOf(training(), assignments), listener);
}

/// Reads its command and answers with a done of that JSON.
QByteArray answering(const QByteArray& done)
{
    return helloLine() + "read command\necho '{\"type\":\"started\",\"id\":1}'\necho '{\"type\":\"done\",\"id\":1,"
        + done + "}'\nread more\n";
}

} // namespace

class TestPytorchBackend : public QObject
{
    Q_OBJECT

private slots:
    void devices()
    {
        const FakePython python(factsLine(), helloLine());
        const auto backend = makePytorchBackend(python.path().toStdString());
        const auto devices = backend->devices();
        QCOMPARE(devices.size(), std::size_t(1));
        QCOMPARE(devices.front().id, std::string("pytorch:cpu"));
        QCOMPARE(devices.front().name, std::string("PyTorch 2.9.1+cpu on this CPU"));
        QCOMPARE(devices.front().missing, std::string());
        const Device& device = devices.front().device;
        QCOMPARE(device.framework->version, std::string("2.9.1+cpu"));
        QCOMPARE(device.units, findDevice("cpu")->units);
        QVERIFY(!device.isGpu());
    }

    void no_python_and_no_torch()
    {
        QVERIFY(has(missingOf("/nowhere/python3"), "No such file"));
        QVERIFY(has(missingOf("/"), "--python"));
        QVERIFY(has(missingOf("/bin/cat"), "no Python that can be used"));
        QVERIFY(has(missingOf("/bin/true"), "no Python that can run memscape_probe"));
        QVERIFY(has(missingOf(FakePython(factsLine("null"), "").path()), "packaging/run --with-pytorch"));
        QVERIFY(has(missingOf(FakePython("echo '[1'; echo '{\"memscape_probe\": 3}'", "").path()), ""));
    }

    void another_torch_and_another_probe()
    {
        const FakePython old(factsLine(R"({"version": "1.12.1", "cuda": false})"), "");
        QVERIFY(has(missingOf(old.path()), "PyTorch 1.12.1, which is too old"));
        const FakePython other(factsLine("null", "0.0.7"), "");
        QVERIFY(has(missingOf(other.path()), "memscape_probe 0.0.7"));
        Listener listener;
        const FakePython replaced(factsLine(), helloLine("0.0.8") + "read command\n");
        const auto run = measured(replaced, listener);
        QCOMPARE(run.error().code, std::string("run.skipped"));
        QVERIFY(has(run.error().text(), "memscape_probe 0.0.8"));
    }

    void one_that_hangs_is_given_up()
    {
        const FakePython hangs("echo $$ > $MARK; sleep 600", "");
        QElapsedTimer timer;
        timer.start();
        QVERIFY(has(missingOf(hangs.path()), "did not answer within"));
        QVERIFY(timer.elapsed() < 10'000);
        QTRY_VERIFY(!isAlive(hangs.pid()));
    }

    void one_that_prints()
    {
        Listener listener;
        const FakePython prints("echo welcome; echo; " + factsLine(),
                                "echo 'a sitecustomize that talks'\n"
                                    + answering(R"("status":"skipped","error":{"code":"run.skipped","message":"no"})"));
        const auto run = measured(prints, listener);
        QCOMPARE(run.error().message, std::string("no"));
        const FakePython later(factsLine(), helloLine() + "read command\necho 'not of the protocol'\nread more\n");
        QCOMPARE(measured(later, listener).error().code, std::string("protocol.syntax"));
    }

    void one_that_dies_in_the_middle()
    {
        Listener listener;
        const FakePython ends(factsLine(), helloLine() + "read command\nexit 3\n");
        QVERIFY(has(measured(ends, listener).error().text(), "code 3"));
        const FakePython killed(factsLine(), helloLine() + "read command\nkill -9 $$\n");
        QCOMPARE(measured(killed, listener).error().code, std::string("run.memory"));
        const FakePython early(factsLine(), "exit 1\n");
        QVERIFY(has(measured(early, listener).error().text(), "code 1"));
    }

    void a_cancel_ends_one_that_does_not_listen()
    {
        const FakePython deaf(factsLine(), "echo $$ > $MARK\n" + helloLine() + "read command\nsleep 600\n");
        Listener listener(700);
        const auto run = measured(deaf, listener);
        QCOMPARE(run.error().code, std::string("run.cancelled"));
        QVERIFY(listener.elapsed() < 700 + 2000);
        QTRY_VERIFY(!isAlive(deaf.pid()));
    }

    void out_of_memory_keeps_what_was_measured()
    {
        const QByteArray figures = R"({"weights":{"value":1000,"unit":"B","label":"weights"},)"
                                   R"("fits":{"value":0,"unit":"1","label":"fits"}})";
        const FakePython full(
            factsLine(),
            answering(
                R"("status":"failed","error":{"code":"run.memory","message":"the memory ran out"},"result":{"figures":)"
                + figures + R"(,"series":[],"detail":{}})"));
        Listener listener;
        QCOMPARE(measured(full, listener).error().code, std::string("run.memory"));
        QCOMPARE(listener.points.size(), std::size_t(1));
        QCOMPARE(listener.points.front().figures.front().number(), 1000.0);
    }

    void a_result_that_is_wrong()
    {
        const QByteArray head = R"("status":"ok","result":)";
        Listener listener;
        for (const QByteArray result :
             {"{\"figures\":{}", "{\"figures\":7}", "{\"figures\":{},\"detail\":{\"trace\":{\"events\":[1]}}}"}) {
            const FakePython lies(factsLine(), answering(head + result));
            QVERIFY(!measured(lies, listener).has_value());
        }
    }

    void a_model_that_is_too_large_is_refused_before_it_starts()
    {
        const FakePython python(factsLine(), "echo $$ > $MARK\n" + helloLine() + "read command\nread more\n");
        Listener listener;
        const auto run = measured(python, listener, {"model=llama-3.1-405b", "batch=1", "sequence=64"});
        QCOMPARE(run.error().code, std::string("run.memory"));
        QVERIFY(has(run.error().message, "it is predicted to take"));
        Listener forced;
        forced.forced = true;
        const FakePython answers(factsLine(),
                                 answering(R"("status":"skipped","error":{"code":"run.skipped","message":"tried"})"));
        QCOMPARE(measured(answers, forced, {"model=llama-3.1-405b", "batch=1", "sequence=64"}).error().message,
                 std::string("tried"));
        QCOMPARE(forced.notes.size(), std::size_t(1));
    }

    void other_experiments_say_who_measures_them()
    {
        const FakePython python(factsLine(), helloLine());
        const auto backend = makePytorchBackend(python.path().toStdString());
        const BackendDevice device = backend->devices().front();
        Listener listener;
        for (const Experiment* experiment : experiments()) {
            const std::string reason = experiment->notMeasuredOn(device.device);
            const bool isOfPytorch = experiment->id() == "training-memory" || experiment->id() == "inference-memory";
            const bool isMeasured = isOfPytorch || experiment->id() == "allocator" || experiment->id() == "attention"
                || experiment->id() == "layout" || experiment->id() == "precision"; // which hosts measure, too
            QCOMPARE(reason.empty(), isMeasured);
            QVERIFY(!isOfPytorch || !experiment->notMeasuredOn(*findDevice("cpu")).empty());
            if (isMeasured)
                continue;
            const auto run = backend->measure(*experiment, device, parametersOf(*experiment, {}), listener);
            QCOMPARE(run.error().code, std::string("run.skipped"));
        }
    }

    void aCalibrationIsOfPytorchsOperators()
    {
        const Json result{{"figures", Json::object()},
                          {"series", Json::array()},
                          {"detail", {{"threads", 2}, {"probes", knownProbes()}}}};
        const auto calibrated = [](const QByteArray& done) {
            const FakePython python(factsLine(), answering(done));
            const auto backend = makePytorchBackend(python.path().toStdString());
            Listener listener;
            return backend->calibrate(backend->devices().front(), listener);
        };
        const auto device = calibrated("\"status\":\"ok\",\"result\":" + QByteArray::fromStdString(result.dump()));
        QVERIFY2(device.has_value(), device ? "" : device.error().text().c_str());
        QCOMPARE(device->id, std::string("pytorch:cpu"));
        QCOMPARE(device->basis, std::string("calibrated"));
        const PytorchOperations kept = pytorchOperations(deviceFromJson(deviceToJson(*device)).value());
        QVERIFY(kept.evidence == Evidence::Measured);
        QVERIFY(std::abs(kept.firstTouch / knownCall - 1) < 1e-6);
        QCOMPARE(device->calibration->raw["product_rates"]["bf16"].get<double>(), 400e9);
        Json few = result;
        few["detail"]["probes"].erase(0);
        const auto partly = calibrated("\"status\":\"ok\",\"result\":" + QByteArray::fromStdString(few.dump()));
        QVERIFY(has(partly.error().text(), "'kernel call' was measured"));
        few["detail"]["probes"] = 7;
        const auto wrong = calibrated("\"status\":\"ok\",\"result\":" + QByteArray::fromStdString(few.dump()));
        QCOMPARE(wrong.error().place, std::string("result.detail.probes"));
        QVERIFY(has(calibrated("\"status\":\"failed\",\"error\":{\"code\":\"run.failed\",\"message\":\"no room\"}")
                        .error()
                        .text(),
                    "no room"));
    }

    void the_package_and_its_version()
    {
        QVERIFY(std::filesystem::exists(probeFolder() / "memscape_probe/__main__.py"));
        QFile init(QString::fromStdString((probeFolder() / "memscape_probe/__init__.py").string()));
        QVERIFY(init.open(QFile::ReadOnly));
        QVERIFY(init.readAll().contains(QByteArray("__version__ = \"") + programVersion().c_str() + "\""));
    }
};

QTEST_GUILESS_MAIN(TestPytorchBackend)
#include "tst_pytorch_backend.moc"
