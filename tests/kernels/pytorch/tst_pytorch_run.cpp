// SPDX-License-Identifier: Apache-2.0
// The probe in a real Python: with a package `torch` that is none, for its manners; with PyTorch where there is one
// (python3-torch), for its figures.
#include "kernels/pytorch/pytorch_backend.h"
#include "tests/cli/run_cli.h"
#include "tests/kernels/pytorch/fake_python.h"
#include "tests/kernels/pytorch/python_with_torch.h"

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

/// A folder for PYTHONPATH whose torch says that it is 2.9.1 and does something when it is imported.
FakePython fakeTorch(const QByteArray& onImport)
{
    FakePython folder("", "");
    folder.write("torch/version.py", "__version__ = '2.9.1'\ncuda = None\n");
    folder.write("torch/__init__.py",
                 "import os, time\nopen('" + folder.markPath().toUtf8() + "', 'w').write(str(os.getpid()))\n" + onImport
                     + "\n");
    return folder;
}

QStringList words(const QString& python, const QStringList& more = {})
{
    return QStringList{"measure",  "training-memory", "model=mlp:64,64,8", "batch=4", "precision=fp32",
                       "--device", "pytorch:cpu",     "--python",          python}
    + more;
}

double figure(const Figures& figures, const char* key)
{
    for (const Figure& one : figures) {
        if (one.key == key)
            return one.number();
    }
    return std::nan("");
}

MeasuredRun run(const std::string& id, const std::vector<std::string>& assignments)
{
    const auto backend = makePytorchBackend(pythonWithTorch().python);
    const Experiment& experiment = **findExperiment(id);
    Listener listener;
    auto measured =
        backend->measure(experiment, backend->devices().front(), parametersOf(experiment, assignments), listener);
    if (!measured) {
        qWarning("%s", measured.error().text().c_str());
        return {};
    }
    return *measured;
}

const std::vector<std::string> decoder{"model=from-scratch:hidden=64,layers=3,heads=4,ffn=128,vocab=211", "batch=2",
                                       "sequence=32", "operators=written-out"};

std::vector<std::string> decoderWith(std::vector<std::string> more)
{
    more.insert(more.end(), decoder.begin(), decoder.end());
    return more;
}

} // namespace

class TestPytorchRun : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        if (QStandardPaths::findExecutable("python3").isEmpty())
            QSKIP("python3 is not installed");
    }

    void what_a_model_prints_is_not_part_of_the_protocol()
    {
        const FakePython torch =
            fakeTorch("os.write(1, b'to the descriptor\\n'); print('to the stream'); raise RuntimeError('as it is')");
        const Ran ran = cli(words("python3", {"--json"}), {}, {"PYTHONPATH=" + QFileInfo(torch.path()).path()});
        QCOMPARE(ran.code, 1);
        QVERIFY(ran.says("RuntimeError: as it is"));
        QVERIFY(ran.says("to the descriptor"));
        QVERIFY(!ran.out.contains("to the stream"));
    }

    void a_cancel_stops_within_a_second_and_leaves_nothing()
    {
        const FakePython torch = fakeTorch("time.sleep(600)");
        QProcess process;
        auto variables = QProcessEnvironment::systemEnvironment();
        variables.insert("PYTHONPATH", QFileInfo(torch.path()).path());
        process.setProcessEnvironment(variables);
        process.start(cliPath, words("python3"));
        QTRY_VERIFY_WITH_TIMEOUT(torch.pid() > 0, 20'000);
        QElapsedTimer timer;
        timer.start();
        ::kill(static_cast<pid_t>(process.processId()), SIGINT);
        QVERIFY(process.waitForFinished(10'000));
        QVERIFY2(timer.elapsed() < 3000, "a machine that is busy may take more than the second");
        QCOMPARE(process.exitCode(), 130);
        QTRY_VERIFY(!isAlive(torch.pid()));
    }

    void a_parent_that_is_killed_leaves_nothing()
    {
        const FakePython torch = fakeTorch("time.sleep(600)");
        QProcess process;
        auto variables = QProcessEnvironment::systemEnvironment();
        variables.insert("PYTHONPATH", QFileInfo(torch.path()).path());
        process.setProcessEnvironment(variables);
        process.start(cliPath, words("python3"));
        QTRY_VERIFY_WITH_TIMEOUT(torch.pid() > 0, 20'000);
        QVERIFY(isAlive(torch.pid()));
        process.kill();
        QVERIFY(process.waitForFinished(10'000));
        QTRY_VERIFY(!isAlive(torch.pid()));
    }

    void a_training_step()
    {
        if (pythonWithTorch().python.empty())
            QSKIP(noTorchHere);
        const MeasuredRun measured = run("training-memory", decoderWith({"precision=fp32"}));
        const Figures& figures = measured.measurement.figures;
        // 2 x 211 x 64 + 3 (4 x 64 x 64 + 3 x 64 x 128 + 2 x 64) + 64
        const double parameters = 2 * 211 * 64 + 3 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64;
        QCOMPARE(figure(figures, "parameter_count"), parameters);
        QCOMPARE(figure(figures, "weights"), 4 * parameters);
        QCOMPARE(figure(figures, "gradients"), 4 * parameters);
        QCOMPARE(figure(figures, "optimizer_state"), 8 * parameters);
        QVERIFY(figure(figures, "peak_allocated") > 16 * parameters);
        QVERIFY(figure(figures, "step_time") > 0);
        QCOMPARE(figure(figures, "fits"), 1.0);
        QVERIFY(measured.complete);
        QCOMPARE(measured.provenance.machine["backend"], Json("pytorch"));
        QCOMPARE(measured.measurement.series.front().key, std::string("timeline"));

        const Json& detail = measured.measurement.detail;
        double sum = 0;
        for (const Json& part : detail["parts"])
            sum += part["bytes"].get<double>();
        QCOMPARE(sum, figure(figures, "device_total"));
        std::vector<std::string> phases;
        for (const Json& phase : detail["timeline"]["phases"])
            phases.push_back(phase["key"]);
        QCOMPARE(phases, (std::vector<std::string>{"forward", "backward", "optimizer", "zero_grad"}));
        QVERIFY(detail["notes"].empty()); // the events' sum is the profiler's
    }

    void what_changes_a_step()
    {
        if (pythonWithTorch().python.empty())
            QSKIP(noTorchHere);
        const auto with = [](const std::vector<std::string>& more) {
            std::vector<std::string> assignments = decoderWith(more);
            assignments.emplace_back("optimizer=sgd");
            return run("training-memory", assignments).measurement.figures;
        };
        const Figures plain = with({"precision=fp32"}), blocks = with({"precision=fp32", "checkpointing=block"});
        QVERIFY(figure(blocks, "activations") < 0.8 * figure(plain, "activations"));
        QVERIFY(figure(blocks, "peak_allocated") < figure(plain, "peak_allocated"));
        QCOMPARE(figure(plain, "optimizer_state"), 0.0);
        const Figures mixed = with({"precision=bf16-mixed"});
        QCOMPARE(figure(mixed, "weights"), figure(plain, "weights") / 2);
        QCOMPARE(figure(mixed, "master_weights"), figure(plain, "weights"));
    }

    void a_sweep()
    {
        if (pythonWithTorch().python.empty())
            QSKIP(noTorchHere);
        const MeasuredRun measured = run("training-memory", {"model=mlp:64,64,8", "batch=8,16,32", "precision=fp32"});
        const Series* activations = measured.measurement.findSeries("activations");
        QVERIFY(activations != nullptr);
        QCOMPARE(activations->x.values, (std::vector<double>{8, 16, 32}));
        QVERIFY(activations->y[0] < activations->y[1] && activations->y[1] < activations->y[2]);
        QVERIFY(measured.complete);
    }

    void a_forward_pass()
    {
        if (pythonWithTorch().python.empty())
            QSKIP(noTorchHere);
        const MeasuredRun measured =
            run("inference-memory", {"model=mlp:64,64,8", "batch=4", "precision=fp32", "context=16", "sequence=16"});
        const Figures& figures = measured.measurement.figures;
        QCOMPARE(figure(figures, "weights"), 4.0 * (64 * 64 + 64 + 64 * 8 + 8));
        QVERIFY(figure(figures, "activations") > 0);
        QVERIFY(figure(figures, "prefill_time") > 0);
    }

    /// The same figures as a host's, of blocks that PyTorch takes from malloc: 63 MiB are written, 4 KiB a fault.
    void requests_of_an_allocator()
    {
        if (pythonWithTorch().python.empty())
            QSKIP(noTorchHere);
        constexpr double mib = 1 << 20;
        const MeasuredRun measured =
            run("allocator", {"trace=alloc a 40MiB; alloc b 3MiB; free a; alloc c 20MiB; empty_cache"});
        const Figures& figures = measured.measurement.figures;
        QVERIFY(figure(figures, "peak_allocated") >= 43 * mib && figure(figures, "peak_allocated") < 44 * mib);
        QVERIFY(figure(figures, "peak_reserved") >= figure(figures, "peak_allocated"));
        QVERIFY(figure(figures, "page_faults") >= 63 * mib / 4096 && figure(figures, "page_faults") < 64 * mib / 4096);
        QVERIFY(figure(figures, "time") > 0 && figure(figures, "first_touch") > 0);
        QCOMPARE(figure(figures, "bound"), 43 * mib);
        const Series* reserved = measured.measurement.findSeries("reserved");
        QVERIFY(reserved && reserved->y.size() == 5);
        QVERIFY(measured.complete);
        const Ran refused = cli({"measure", "allocator", "trace=alloc a 1MiB", "setting=best-fit", "--device",
                                 "pytorch:cpu", "--python", torchPython()});
        QVERIFY(refused.code != 0);
        QVERIFY(refused.says("choose setting=default or malloc"));
    }

    void what_is_not_installed_or_not_possible()
    {
        if (pythonWithTorch().python.empty())
            QSKIP(noTorchHere);
        const Ran missing = cli({"measure", "training-memory", "model=torchvision:none_such", "batch=1", "--device",
                                 "pytorch:cpu", "--python", torchPython()});
        QVERIFY(missing.code != 0);
        QVERIFY(missing.says("pip install torchvision") || missing.says("torchvision has no model"));
        const Ran sharded = cli(words(torchPython(), {"zero=2", "data_parallel=2"}));
        QVERIFY(sharded.says("ZeRO shards over several processes"));
        const Ran predicted = cli({"predict", "training-memory", "model=mlp:64,64,8", "--device", "pytorch:cpu",
                                   "--python", torchPython(), "--json"});
        QCOMPARE(predicted.code, 0);
        QCOMPARE(predicted.json()["device"].toObject()["framework"].toObject()["name"].toString(), QString("pytorch"));
    }

    void its_own_check()
    {
        if (pythonWithTorch().python.empty())
            QSKIP(noTorchHere);
        const Ran ran = cli({"selftest", "--device", "pytorch:cpu", "--python", torchPython()});
        QCOMPARE(ran.code, 0);
        QVERIFY(ran.out.contains("memscape_probe"));
    }
};

QTEST_GUILESS_MAIN(TestPytorchRun)
#include "tst_pytorch_run.moc"
