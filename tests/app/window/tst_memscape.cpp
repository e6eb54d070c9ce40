// SPDX-License-Identifier: GPL-3.0-or-later
// The program itself, started as a person or a script would: with no display it answers, draws or
// says what is missing, with the exit codes of the contract.
#include "tests/support/page_fixture.h"

#include <QImage>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

using namespace memscape;

namespace {

struct Ran
{
    int code;
    QString out, error;
};

Ran run(const QStringList& arguments)
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
        environment.remove(QString::fromLatin1(name));
    process.setProcessEnvironment(environment);
    process.start(BINARY_FOLDER "/memscape", arguments);
    if (!process.waitForFinished(60000) || process.exitStatus() != QProcess::NormalExit)
        return {-1, {}, process.errorString()};
    return {process.exitCode(), QString::fromUtf8(process.readAllStandardOutput()),
            QString::fromUtf8(process.readAllStandardError())};
}

} // namespace

class TestMemscape : public QObject
{
    Q_OBJECT

private slots:
    void helpAndVersionNeedNoDisplay()
    {
        QCOMPARE(run({"--help"}).code, 0);
        QVERIFY(run({"--help"}).out.contains("--screenshot"));
        QVERIFY(run({"--version"}).out.startsWith("memscape "));
    }

    void noDisplayIsAMessageNotAnAbort()
    {
        const Ran ran = run({});
        QCOMPARE(ran.code, 2);
        QVERIFY2(ran.error.contains("memscape-cli") && ran.error.contains("packaging/run"), qPrintable(ran.error));
    }

    void screenshots_data()
    {
        QTest::addColumn<QString>("page");
        QTest::addColumn<QString>("theme");
        for (const Experiment* experiment : experiments()) {
            for (const char* theme : {"light", "dark"}) {
                const QString id = QString::fromStdString(experiment->id());
                QTest::addRow("%s %s", qPrintable(id), theme) << id << theme;
            }
        }
    }
    void screenshots()
    {
        QFETCH(QString, page);
        QFETCH(QString, theme);
        const QString file = m_folder.filePath(page + theme + ".png");
        const Ran ran =
            run({"--screenshot", page, "-o", file, "--size", "1280x800", "--theme", theme, "--device", "nvidia-h200"});
        QVERIFY2(ran.code == 0, qPrintable(ran.error));
        const QImage image(file);
        QCOMPARE(image.size(), QSize(1280, 800));
        QVERIFY(image.pixelColor(640, 780) != image.pixelColor(0, 0) || theme == "dark");
    }

    void render_data()
    {
        QTest::addColumn<QString>("suffix");
        for (const char* suffix : {"png", "svg", "pdf"})
            QTest::newRow(suffix) << suffix;
    }
    void render()
    {
        QFETCH(QString, suffix);
        const QString record = m_folder.filePath("record.json");
        QVERIFY(writeRecord(record.toStdString(), sampleRecord("stride", {})));
        const QString file = m_folder.filePath("plot." + suffix);
        const Ran ran = run({"--render", record, "-o", file, "--size", "1600x1000"});
        QVERIFY2(ran.code == 0, qPrintable(ran.error));
        if (suffix == "png")
            QCOMPARE(QImage(file).size(), QSize(1600, 1000));
        else
            QVERIFY(QFile(file).size() > 1000);
    }

    void wrongInput_data()
    {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("says");
        const QString out = m_folder.filePath("x.png");
        QTest::newRow("page") << QStringList{"--screenshot", "strid", "-o", out} << 2 << "stride";
        QTest::newRow("value") << QStringList{"--screenshot", "stride", "-o", out, "stride=lots"} << 2 << "stride";
        QTest::newRow("parameter") << QStringList{"--screenshot", "stride", "-o", out, "strife=1"} << 2 << "stride";
        QTest::newRow("device") << QStringList{"--screenshot", "stride", "-o", out, "--device", "nvidia-h20"} << 3
                                << "nvidia-h200";
        QTest::newRow("record") << QStringList{"--render", "/nowhere.json", "-o", out} << 2 << "/nowhere.json";
        QTest::newRow("folder") << QStringList{"--screenshot", "stride", "-o", "/nowhere/x.png"} << 2 << "/nowhere";
        QTest::newRow("option") << QStringList{"--frobnicate"} << 2 << "--help";
    }
    void wrongInput()
    {
        QFETCH(QStringList, arguments);
        QFETCH(int, code);
        QFETCH(QString, says);
        const Ran ran = run(arguments);
        QCOMPARE(ran.code, code);
        QVERIFY2(ran.error.contains(says), qPrintable(ran.error));
    }

private:
    QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestMemscape)
#include "tst_memscape.moc"
