// SPDX-License-Identifier: Apache-2.0
// A run in PyTorch and one of our own kernels on this host are read by the same plots, tables and reports: the same
// figures in the same units, the same columns, samples and grades at the same places. And PyTorch's results and ours
// are of the same mathematics: bytes by formula, losses step for step. Skipped where no Python has PyTorch.
#include "kernels/pytorch/python_torch.h"
#include "kernels/pytorch/pytorch_backend.h"
#include "tests/cli/run_cli.h"
#include "tests/kernels/pytorch/fake_python.h"
#include "tests/kernels/pytorch/python_with_torch.h"
#include "tests/support/run_shape.h"

#include "core/experiment/measured_by.h"

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

using Assignments = std::vector<std::string>;

/// Two points of each, small enough to be measured in moments.
const std::vector<std::pair<const char*, Assignments>>& bothMeasure()
{
    static const std::vector<std::pair<const char*, Assignments>> all{
        {"layout", {"shape=8,8", "reads=1,2"}},
        {"attention",
         {"sequence=16,32", "heads=2", "head_dim=32", "pass=both", "dtype=float32", "implementation=standard"}},
        {"precision", {"m=16,32", "format=bf16"}},
        {"precision", {"operation=train", "format=bf16", "m=8,16", "n=8", "k=8", "steps=6"}},
        {"precision", {"operation=train", "format=fp32", "m=8", "n=8", "k=8", "steps=6"}},
    };
    return all;
}

Result<MeasuredRun> measuredBy(Backend& backend, const char* id, const Assignments& given, RunSink& sink)
{
    const Experiment& experiment = **findExperiment(id);
    return backend.measure(experiment, backend.devices().front(), parametersOf(experiment, given), sink);
}

Result<MeasuredRun> inPytorch(const char* id, const Assignments& given, RunSink& sink)
{
    return measuredBy(*makePytorchBackend(torchPython().toStdString(), 20), id, given, sink);
}

QStringList figureNames(const Figures& figures)
{
    QStringList names;
    for (const Figure& figure : figures)
        names << QStringLiteral("%1 in %2").arg(QString::fromStdString(figure.key)).arg(int(figure.unit));
    names.sort();
    return names;
}

double valueAt(const Figures& figures, const char* key)
{
    const Figure* found = findFigure(figures, key);
    return found ? found->number() : std::nan("");
}

const Series& curveOf(const MeasuredRun& run, const char* key)
{
    const Series* found = run.measurement.findSeries(key);
    if (!found)
        qFatal("there is no curve %s", key);
    return *found;
}

bool hasSdpa()
{
    const auto torch = findTorch(torchPython().toStdString(), 20);
    return torch && !torch->torch.starts_with("1.");
}

} // namespace

class TestPytorchShape : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        if (torchPython().isEmpty())
            QSKIP("no Python here has torch");
        qputenv("OMP_NUM_THREADS", "1"); // on a busy machine threads wait for each other at every operator
    }

    void a_run_has_the_hosts_shape_data()
    {
        QTest::addColumn<int>("which");
        for (std::size_t i = 0; i < bothMeasure().size(); ++i)
            QTest::addRow("%s %s", bothMeasure()[i].first, bothMeasure()[i].second[1].c_str()) << int(i);
    }

    void a_run_has_the_hosts_shape()
    {
        QFETCH(int, which);
        const auto& [id, given] = bothMeasure()[std::size_t(which)];
        Listener hostSink, torchSink;
        const auto host = measuredBy(*makeHostBackend(), id, given, hostSink);
        QVERIFY2(host, host ? "" : host.error().text().c_str());
        const auto torch = inPytorch(id, given, torchSink);
        QVERIFY2(torch, torch ? "" : torch.error().text().c_str());
        QStringList names = figureNames(host->measurement.figures);
        names.removeIf([](const QString& name) { return name.startsWith("l1_misses"); }); // of a processor's counter
        QCOMPARE(figureNames(torch->measurement.figures), names);
        QStringList curves = curvesOf(*host);
        curves.removeIf([](const QString& curve) { return curve.contains("l1_misses"); });
        QCOMPARE(curvesOf(*torch), curves);
        QCOMPARE(sampleColumnsOf(*torch), sampleColumnsOf(*host));
        QVERIFY2(lacking(*torch).isEmpty() || lacking(*host) == lacking(*torch), qPrintable(lacking(*torch)));
        QCOMPARE(torch->provenance.machine["backend"], Json("pytorch"));
        QCOMPARE(torch->provenance.passes, host->provenance.passes);
        QCOMPARE(torchSink.points.empty(), hostSink.points.empty());
        QVERIFY(torch->complete);
        for (const Figure& figure : torch->measurement.figures) {
            if (figure.unit == Unit::Second || figure.unit == Unit::FlopPerSecond)
                QVERIFY2(figure.number() > 0 || figure.key == "copy_time", figure.key.c_str());
        }
    }

    void bytes_of_attention_are_those_of_its_arrays()
    {
        Listener sink;
        const auto run = inPytorch(
            "attention", {"sequence=64", "heads=2", "head_dim=32", "dtype=float32", "implementation=both"}, sink);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const double matrix = 2.0 * 64 * 64 * 4;
        const Figures& figures = run->measurement.figures;
        QVERIFY(std::abs(valueAt(figures, "standard_saved_for_backward") - matrix) <= 16);
        QCOMPARE(valueAt(figures, "standard_flops"), 3.5 * 4 * 2 * 64 * 64 * 32);
        QCOMPARE(findFigure(figures, "flash_time") != nullptr, hasSdpa());
        QCOMPARE(findFigure(figures, "speedup") != nullptr, hasSdpa());
        if (hasSdpa()) {
            QCOMPARE(valueAt(figures, "flash_saved_for_backward"), 2.0 * 64 * 4);
            const double speedup = valueAt(figures, "standard_time") / valueAt(figures, "flash_time");
            QVERIFY(std::abs(valueAt(figures, "speedup") / speedup - 1) < 1e-12);
        } else {
            QVERIFY(std::any_of(sink.notes.begin(), sink.notes.end(), [](const std::string& note) {
                return note.find("no scaled_dot_product_attention") != std::string::npos;
            }));
        }
    }

    /// PyTorch's training and our own are two programs: the same task, batches and first weights.
    void losses_are_those_of_our_own_programs()
    {
        const Assignments given{"operation=train", "format=bf16", "m=32", "n=24", "k=16", "steps=20"};
        Listener sink;
        const auto ours = measuredBy(*makeHostBackend(), "precision", given, sink);
        const auto theirs = inPytorch("precision", given, sink);
        QVERIFY2(ours && theirs, theirs ? "" : theirs.error().text().c_str());
        const Series &one = curveOf(*ours, "loss_fp32"), &other = curveOf(*theirs, "loss_fp32");
        QCOMPARE(other.y.size(), one.y.size());
        for (std::size_t i = 0; i < one.y.size(); ++i)
            QVERIFY2(std::abs(one.y[i] - other.y[i]) < 1e-5, qPrintable(QString::number(one.y[i] - other.y[i])));
        const Figures &a = ours->measurement.figures, &b = theirs->measurement.figures;
        for (const char* key : {"gradient_median", "gradient_spread", "largest_gradient"})
            QVERIFY2(std::abs(valueAt(a, key) / valueAt(b, key) - 1) < 1e-3, key);
        QCOMPARE(valueAt(b, "stored_value"), valueAt(a, "stored_value"));
        // Ours rounds each block up to 512 B, as a GPU does; a CPU does not.
        for (const char* key : {"peak_memory", "fp32_peak_memory"})
            QVERIFY2(valueAt(b, key) <= valueAt(a, key) && valueAt(b, key) > 0.7 * valueAt(a, key), key);
    }

    void a_view_is_read_in_its_order()
    {
        Listener sink;
        const auto run = inPytorch("layout", {"shape=64,48", "views=transpose(0,1);narrow(1,2,30)", "reads=4"}, sink);
        QVERIFY2(run, run ? "" : run.error().text().c_str());
        const Figures& figures = run->measurement.figures;
        QCOMPARE(valueAt(figures, "elements"), 48.0 * 30);
        QCOMPARE(valueAt(figures, "copy_bandwidth"), 2.0 * 48 * 30 * 4 / valueAt(figures, "copy_time"));
        QCOMPARE(run->provenance.method["code"], Json("x.transpose(0, 1).narrow(1, 2, 30)"));
    }

    void what_pytorch_cannot_do_names_its_parameter()
    {
        struct Case
        {
            const char* id;
            Assignments given;
            const char* place;
            const char* remedy;
        };
        const std::vector<Case> cases{
            {"attention", {"version=2", "sequence=32"}, "version", "version=0"},
            {"attention",
             {"sequence=32", "heads=2", "backend=efficient", "implementation=flash"},
             hasSdpa() ? "backend" : "implementation",
             "implementation=standard"},
            {"layout", {"shape=8,8", "version=3"}, "version", "version=0"},
            {"layout", {"shape=0,8"}, "shape", "above 0"},
            {"precision", {"m=32", "format=tf32"}, "format", "format=bf16"},
            {"precision", {"operation=train", "format=int8", "m=8"}, "format", "bf16"},
        };
        for (const Case& one : cases) {
            Listener sink;
            const auto run = inPytorch(one.id, one.given, sink);
            QVERIFY2(!run, one.given.back().c_str());
            QCOMPARE(run.error().code, std::string("run.skipped"));
            QCOMPARE(run.error().place, std::string(one.place));
            QVERIFY2(run.error().hint.find(one.remedy) != std::string::npos, run.error().hint.c_str());
        }
    }

    void a_stop_before_the_first_point_is_cancelled()
    {
        Listener sink(0);
        const auto run = inPytorch("layout", {"shape=8,8", "reads=1,2"}, sink);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.cancelled"));
        QVERIFY(sink.points.empty());
    }

    void predictions_and_lists_know_the_device()
    {
        for (const char* id : {"attention", "layout", "precision"}) {
            const Ran ran = cli({"predict", id, "--device", "pytorch:cpu", "--python", torchPython(), "--json"});
            QCOMPARE(ran.code, 0);
            QVERIFY(!ran.json()["predicted"].toObject()["figures"].toObject().isEmpty());
        }
        const Ran devices = cli({"devices", "--json"}, {}, {"MEMSCAPE_PYTHON=" + torchPython()});
        QStringList measured;
        for (const auto& device : devices.json()["devices"].toArray()) {
            if (device.toObject()["id"] == "pytorch:cpu") {
                for (const auto& id : device.toObject()["measures"].toArray())
                    measured << id.toString();
            }
        }
        measured.sort();
        QCOMPARE(measured,
                 (QStringList{"allocator", "attention", "inference-memory", "layout", "precision", "training-memory"}));
    }
};

QTEST_GUILESS_MAIN(TestPytorchShape)
#include "tst_pytorch_shape.moc"
