// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workers/worker_command.h"

#include <QTest>

using namespace memscape;

class TestWorkerCommand : public QObject
{
    Q_OBJECT
private slots:
    void theEnvironmentIsOursWithoutAnAppImagesLibraries_data()
    {
        QTest::addColumn<QString>("image");
        QTest::addColumn<QString>("libraries");
        QTest::addColumn<QString>("kept");
        QTest::newRow("no image") << ""
                                  << "/opt/cuda/lib64"
                                  << "/opt/cuda/lib64";
        QTest::newRow("only the image's") << "/tmp/.mount_x"
                                          << "/tmp/.mount_x/usr/lib"
                                          << "";
        QTest::newRow("both") << "/tmp/.mount_x"
                              << "/tmp/.mount_x/usr/lib:/opt/cuda/lib64"
                              << "/opt/cuda/lib64";
    }
    void theEnvironmentIsOursWithoutAnAppImagesLibraries()
    {
        QFETCH(QString, image);
        QFETCH(QString, libraries);
        QFETCH(QString, kept);
        QProcessEnvironment ours;
        ours.insert(QStringLiteral("LC_ALL"), QStringLiteral("de_DE.UTF-8"));
        ours.insert(QStringLiteral("CUDA_VISIBLE_DEVICES"), QStringLiteral("1"));
        ours.insert(QStringLiteral("LD_LIBRARY_PATH"), libraries);
        if (!image.isEmpty())
            ours.insert(QStringLiteral("APPDIR"), image);
        const QProcessEnvironment theirs = workerEnvironment(ours);
        QCOMPARE(theirs.value(QStringLiteral("LC_ALL")), QStringLiteral("C.UTF-8"));
        QCOMPARE(theirs.value(QStringLiteral("CUDA_VISIBLE_DEVICES")), QStringLiteral("1"));
        QCOMPARE(theirs.value(QStringLiteral("LD_LIBRARY_PATH")), kept);
        QCOMPARE(theirs.contains(QStringLiteral("LD_LIBRARY_PATH")), !kept.isEmpty());
    }

    void theVariableNamesAWorkerWhenNoneIsBesideUs()
    {
        // Beside this test there is no memscape-cli.
        qputenv("MEMSCAPE_WORKER", "\"/opt/my tools/memscape-cli\"");
        QCOMPARE(defaultWorkerCommand(),
                 (QStringList{QStringLiteral("/opt/my tools/memscape-cli"), QStringLiteral("worker")}));
        qputenv("MEMSCAPE_WORKER", "ssh lab memscape-cli worker");
        QCOMPARE(defaultWorkerCommand().size(), 4);
        qunsetenv("MEMSCAPE_WORKER");
    }

    void endsBeforeHelloSayWhatToDo_data()
    {
        QTest::addColumn<QStringList>("command");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("hint");
        const QStringList ssh{QStringLiteral("/usr/bin/ssh"), QStringLiteral("lab"), QStringLiteral("memscape-cli")};
        QTest::newRow("ssh does not connect") << ssh << 255 << QByteArray("ssh connects");
        QTest::newRow("not installed there") << ssh << 127 << QByteArray("not installed");
        QTest::newRow("something else") << QStringList{QStringLiteral("srun")} << 1 << QByteArray("terminal");
    }
    void endsBeforeHelloSayWhatToDo()
    {
        QFETCH(QStringList, command);
        QFETCH(int, code);
        QFETCH(QByteArray, hint);
        const Error error = endedBeforeHello(command, code, false, QStringLiteral("last output"));
        QCOMPARE(error.code, std::string("worker.start"));
        QVERIFY(QByteArray::fromStdString(error.hint).contains(hint));
        QVERIFY(error.message.find("last output") != std::string::npos);
    }

    void commandsReadAsTyped()
    {
        QCOMPARE(commandText({QStringLiteral("a b"), QStringLiteral("c")}), QStringLiteral("\"a b\" c"));
    }
};

QTEST_GUILESS_MAIN(TestWorkerCommand)
#include "tst_worker_command.moc"
