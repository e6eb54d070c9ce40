// SPDX-License-Identifier: Apache-2.0
// What a person reads when the CUDA module is not there, or is not ours.
#include "kernels/cuda/loader.h"

#include "tests/support/listener.h"

#include <QTemporaryDir>
#include <QtTest>

#include <dlfcn.h>

using namespace memscape;

class TestLoader : public QObject
{
    Q_OBJECT

private slots:
    void cleanup() { qunsetenv("MEMSCAPE_CUDA_MODULE"); }

    void looksBesideTheProgramAndInLib()
    {
        const auto paths = cudaModulePaths();
        QCOMPARE(int(paths.size()), 2);
        const auto folder = QCoreApplication::applicationDirPath().toStdString();
        QCOMPARE(paths[0].string(), folder + "/libmemscape-cuda.so");
        QCOMPARE(paths[1].string(), folder + "/../lib/memscape/libmemscape-cuda.so");
    }

    void theVariableIsTheOnlyPlace()
    {
        qputenv("MEMSCAPE_CUDA_MODULE", "/somewhere/else.so");
        const auto paths = cudaModulePaths();
        QCOMPARE(int(paths.size()), 1);
        QCOMPARE(paths[0].string(), std::string("/somewhere/else.so"));
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("says");
        QTest::newRow("nothing there") << "/nowhere/libmemscape-cuda.so"
                                       << "does not exist";
        QTest::newRow("not a library") << SOURCE_FOLDER "/CMakeLists.txt"
                                       << "cannot be loaded";
        QTest::newRow("a folder") << SOURCE_FOLDER << "cannot be loaded";
        QTest::newRow("another library") << MODULES_FOLDER "/foreign_module.so"
                                         << "is not a Memscape CUDA module";
        QTest::newRow("another version") << MODULES_FOLDER "/older_module.so"
                                         << "belongs to another build";
        QTest::newRow("other layout") << MODULES_FOLDER "/relaid_module.so"
                                      << "belongs to another build";
    }
    void refuses()
    {
        QFETCH(QString, path);
        QFETCH(QString, says);
        qputenv("MEMSCAPE_CUDA_MODULE", path.toUtf8());
        const auto loaded = loadCudaModule(cudaModulePaths());
        QVERIFY(!loaded);
        QCOMPARE(loaded.error().code, std::string("device.missing"));
        const QString text = QString::fromStdString(loaded.error().text());
        QVERIFY2(text.contains(says), qPrintable(text));
        QVERIFY2(!loaded.error().hint.empty(), "what to do is missing");
        QVERIFY2(!text.contains('\n'), qPrintable(text));
    }

    void makingTheBackendOpensNothing()
    {
        // A program that never uses GPU devices does not load the driver.
        const QTemporaryDir folder;
        const QString module = folder.filePath("module.so"); // a file of its own: no other test has opened it
        QVERIFY(QFile::copy(MODULES_FOLDER "/relaid_module.so", module));
        qputenv("MEMSCAPE_CUDA_MODULE", module.toUtf8());
        const auto backend = makeCudaBackend();
        QCOMPARE(backend->id(), std::string("cuda"));
        QVERIFY(::dlopen(module.toUtf8(), RTLD_LAZY | RTLD_NOLOAD) == nullptr);
        backend->devices();
        QVERIFY(::dlopen(module.toUtf8(), RTLD_LAZY | RTLD_NOLOAD) != nullptr); // whatever it then says of it
    }

    void aMissingModuleIsADeviceWithAReason()
    {
        qputenv("MEMSCAPE_CUDA_MODULE", "/nowhere/libmemscape-cuda.so");
        const auto backend = makeCudaBackend();
        const auto devices = backend->devices();
        QCOMPARE(int(devices.size()), 1);
        QCOMPARE(devices[0].id, std::string("cuda:0"));
        QVERIFY(!devices[0].missing.empty());
        test::Listener sink;
        const auto lines = backend->selftest(devices[0], sink);
        QCOMPARE(int(lines.size()), 1);
        QVERIFY(lines[0].skipped);
        QVERIFY(!lines[0].passed);
    }
};

QTEST_GUILESS_MAIN(TestLoader)
#include "tst_loader.moc"
