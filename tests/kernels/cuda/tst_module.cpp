// SPDX-License-Identifier: Apache-2.0
// The module itself: one exported function, no library of CUDA needed to load it, and on a machine
// without a GPU a reason instead of a crash.
#include "kernels/cuda/loader.h"

#include "tests/support/listener.h"

#include <QtTest>

#include <QProcess>

using namespace memscape;

namespace {

QString readelf(const QStringList& arguments)
{
    QProcess process;
    process.start(READELF, arguments + QStringList{CUDA_MODULE});
    process.waitForFinished();
    return QString::fromUtf8(process.readAllStandardOutput());
}

} // namespace

class TestModule : public QObject
{
    Q_OBJECT

private slots:
    void init() { qputenv("MEMSCAPE_CUDA_MODULE", CUDA_MODULE); }
    void cleanup() { qunsetenv("MEMSCAPE_CUDA_MODULE"); }

    void needsNoLibraryOfCuda()
    {
        const QString needed = readelf({"-d"});
        QVERIFY2(needed.contains("NEEDED"), qPrintable(needed));
        for (const char* library : {"libcuda", "libcudart", "libnvidia", "libQt"}) {
            for (const QString& line : needed.split('\n'))
                QVERIFY2(!line.contains("NEEDED") || !line.contains(library), qPrintable(line));
        }
    }

    void exportsOneFunction()
    {
        QStringList exported;
        for (const QString& line : readelf({"--dyn-syms", "-W"}).split('\n')) {
            // Num Value Size Type Bind Vis Ndx Name. Weak and unique ones are templates of the standard
            // library, the same in every program.
            const QStringList fields = line.simplified().split(' ');
            if (fields.size() >= 8 && fields[6] != "UND" && fields[4] == "GLOBAL" && fields[3] == "FUNC")
                exported << fields[7];
        }
        QCOMPARE(exported, QStringList{"memscape_cuda_module"});
    }

    void loadsAndListsDevices()
    {
        const auto loaded = loadCudaModule(cudaModulePaths());
        QVERIFY2(loaded.has_value(), loaded ? "" : loaded.error().text().c_str());
        const auto devices = (*loaded)->devices();
        QVERIFY(!devices.empty());
        QCOMPARE(devices[0].id, std::string("cuda:0"));
        if (devices[0].missing.empty()) {
            QVERIFY(devices[0].device.isGpu());
            QVERIFY(devices[0].device.units > 0);
        }
    }

    void withoutAGpuEveryAnswerIsAReason()
    {
        const auto backend = makeCudaBackend();
        const auto devices = backend->devices();
        if (devices[0].missing.empty())
            QSKIP("this machine has a GPU");
        qInfo("%s", devices[0].missing.c_str());
        QVERIFY(!QString::fromStdString(devices[0].missing).contains('\n'));
        const auto experiment = findExperiment("stride");
        QVERIFY(experiment.has_value());
        const auto parameters = resolve((*experiment)->schema(), std::vector<std::string>{});
        test::Listener sink;
        const auto run = backend->measure(**experiment, devices[0], *parameters, sink);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("device.missing"));
        QCOMPARE(int(exitCodeFor(run.error())), 3);
        QVERIFY(!backend->calibrate(devices[0], sink));
        const auto lines = backend->selftest(devices[0], sink);
        QCOMPARE(int(lines.size()), 1);
        QVERIFY(lines[0].skipped);
    }
};

QTEST_GUILESS_MAIN(TestModule)
#include "tst_module.moc"
