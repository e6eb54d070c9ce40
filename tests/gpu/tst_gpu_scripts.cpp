// SPDX-License-Identifier: Apache-2.0
// The parts of this folder's scripts that need no PyTorch and no GPU: tst_scripts.py, run by python3.
#include <QProcess>
#include <QStandardPaths>
#include <QtTest>

class TestGpuScripts : public QObject
{
    Q_OBJECT

private slots:
    void whatNeedsNoPyTorchIsRight()
    {
        const QString python = QStandardPaths::findExecutable("python3");
        if (python.isEmpty())
            QSKIP("python3 is not installed");
        QProcess process;
        process.setProcessChannelMode(QProcess::MergedChannels);
        process.start(python,
                      {"-B", SOURCE_FOLDER "/tests/gpu/tst_scripts.py"}); // -B: nothing is written beside the sources
        QVERIFY2(process.waitForFinished(120'000), qPrintable(process.errorString()));
        const QByteArray said = process.readAll();
        QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0, said.constData());
        QVERIFY2(said.contains("\nOK"), said.constData());
    }
};

QTEST_GUILESS_MAIN(TestGpuScripts)
#include "tst_gpu_scripts.moc"
