// SPDX-License-Identifier: Apache-2.0
// A lab written, done and graded on the command line, as resources/help/labs.md tells; exit codes are a contract.
#include "tests/cli/run_cli.h"

#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>

#include <unistd.h>

using memscape::test::cli;
using memscape::test::Ran;

class TestLabCommands : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        m_lab = m_folder.filePath("my-lab");
        QCOMPARE(cli({"lab", "new", m_lab, "--title", "Half of what moves"}).code, 0);
    }

    void theListIsJson()
    {
        const Ran ran = cli({"lab", "list", "--json"});
        QCOMPARE(ran.code, 0);
        const QJsonArray labs = QJsonDocument::fromJson(ran.out).array();
        QVERIFY(!labs.isEmpty());
        for (const auto& lab : labs)
            QCOMPARE(lab.toObject().keys(), (QStringList{"id", "minutes", "needs", "points", "title"}));
    }

    void theChapterWorksAsWritten()
    {
        QFile help(SOURCE_FOLDER "/resources/help/labs.md");
        QVERIFY(help.open(QIODevice::ReadOnly));
        const QString chapter = QString::fromUtf8(help.readAll()).section("## A lab written in ten minutes", 1);
        const auto block = [&](const QString& language, int number) {
            return chapter.section("```" + language + "\n", number + 1).section("```", 0, 0);
        };
        write("steps/1-start.md", block("md", 0));
        QVERIFY(cli({"lab", "show", m_lab, "--for", "Ada"}).out.contains("Half of what moves"));
        QString json = read("lab.json"), solution = read("solution.json");
        json.replace("stride of {{stride}}?\", \"type\": \"number\"}",
                     "stride of {{stride}}?\", \"type\": \"number\"},\n" + block("json", 0));
        json.replace("\"checks\": [\n        {\"kind\": \"within\"",
                     "\"checks\": [\n" + block("json", 1) + ",\n        {\"kind\": \"within\"");
        const QString answer = chapter.section("under `guess`: `", 1).section('`', 0, 0);
        QVERIFY2(answer.startsWith("\"lines\""), qPrintable(answer));
        solution.replace("{\"used\"", "{" + answer + ", \"used\"");
        write("lab.json", json);
        write("solution.json", solution);
        Ran ran = cli({"lab", "check", m_lab});
        QCOMPARE(ran.code, 3);
        QVERIFY2(ran.says("the lab has 4 points, its checks and texts 5"), ran.err);
        json.replace("\"points\": 4", "\"points\": 5");
        write("lab.json", json);
        ran = cli({"lab", "check", m_lab});
        QVERIFY2(ran.code == 0, ran.err);
        const QString pack = m_folder.filePath("handout/my-lab");
        QCOMPARE(cli({"lab", "pack", m_lab, "--student", "-o", pack}).code, 0);
        QVERIFY(!QFile::exists(pack + "/solution.json"));
        const QString full = m_folder.filePath("class/full.mlab");
        QDir().mkpath(m_folder.filePath("class"));
        QCOMPARE(cli({"lab", "start", m_lab, "--for", "Ada L.", "--solution", "-o", full}).code, 0);
        ran = cli({"grade", m_lab, full, "--fail-under", "100"});
        QVERIFY2(ran.code == 0, ran.err);
        QVERIFY(ran.out.contains("5 of 5 points"));
        QCOMPARE(cli({"grade", pack, full}).code, 3); // no checks
    }

    void aStudentWorksThrough()
    {
        const QString mine = m_folder.filePath("class/bob.mlab");
        QCOMPARE(cli({"lab", "start", m_lab, "--for", "Bob", "-o", mine}).code, 0);
        QCOMPARE(cli({"lab", "start", m_lab, "--for", "Bob", "-o", mine}).code, 2); // not over the first
        const QStringList change{"lab", "answer", mine, "--lab", m_lab};
        QCOMPARE(cli(change + QStringList{"repair", "choice=stride=2"}).code, 2);
        QVERIFY(cli(change + QStringList{"guess", "--hint"}).out.contains("float32"));
        QCOMPARE(cli(change + QStringList{"guess", "used=0,5"}).code, 2);
        QCOMPARE(cli(change + QStringList{"guess", "used=50%", "lines=1", "--lock"}).code, 0);
        QCOMPARE(cli(change + QStringList{"guess", "used=25%"}).code, 2);
        QCOMPARE(cli(change + QStringList{"repair", "choice=stride=2"}).code, 0);
        const Ran ran = cli({"grade", m_lab, mine});
        QCOMPARE(ran.code, 0);
        QVERIFY2(ran.out.contains("repair.half: passed") && ran.out.contains("guess.lines: failed"), ran.out);
        QCOMPARE(cli({"grade", m_lab, mine, "--fail-under", "100"}).code, 1);
    }

    void aClassIsGradedWhateverOneFileHolds()
    {
        QFile broken(m_folder.filePath("class/carl.mlab"));
        QVERIFY(broken.open(QIODevice::WriteOnly));
        broken.write("{\"format\": \"memscape-ans");
        broken.close();
        const Ran ran = cli({"grade", m_lab, m_folder.filePath("class"), "--format", "csv"});
        QCOMPARE(ran.code, 1);
        const auto lines = ran.out.trimmed().split('\n');
        QCOMPARE(lines.size(), 4); // bob, carl, full
        QVERIFY(lines[1].startsWith("Bob,") && lines[3].startsWith("Ada L.,"));
        const QByteArray one = cli({"grade", m_lab, m_folder.filePath("class"), "--jobs", "1", "--format", "json"}).out;
        QCOMPARE(cli({"grade", m_lab, m_folder.filePath("class"), "--jobs", "4", "--format", "json"}).out, one);
        QCOMPARE(cli({"grade", m_lab, m_folder.filePath("class"), "--format", "gradescope"}).code, 2);
        QFile::remove(broken.fileName());
    }

    /// kill -9 at any moment: the file holds the answers before or after the command.
    void killedWhileAnswersAreWritten()
    {
        const QString mine = m_folder.filePath("killed.mlab");
        QCOMPARE(cli({"lab", "start", "cache-size", "--for", "Ada", "--solution", "-o", mine}).code, 0);
        QCOMPARE(cli({"lab", "answer", mine, "run", "--record",
                      SOURCE_FOLDER "/resources/labs/cache-size/replay/latency.json"})
                     .code,
                 0);
        const QString old =
            m_folder.filePath("old.mlab"); // written beside and renamed: another name keeps the old file
        const QByteArray first = contentOf(mine);
        QCOMPARE(::link(qPrintable(mine), qPrintable(old)), 0);
        QElapsedTimer timer;
        timer.start();
        QCOMPARE(cli({"lab", "answer", mine, "read_off", "l1=48KiB"}).code, 0);
        QCOMPARE(contentOf(old), first);
        QVERIFY(contentOf(mine) != first);
        const double whole = double(timer.elapsed());
        int killed = 0, written = 0;
        for (int i = 0; i < 24; ++i) { // from at once to when it has surely ended
            const QByteArray before = contentOf(mine);
            QProcess process;
            process.start(memscape::test::cliPath,
                          {"lab", "answer", mine, "read_off", QStringLiteral("l1=%1KiB").arg(i + 1)});
            QVERIFY(process.waitForStarted());
            QTest::qWait(int(whole * i / 12));
            process.kill();
            QVERIFY(process.state() == QProcess::NotRunning || process.waitForFinished());
            killed += process.exitStatus() == QProcess::CrashExit;
            written += contentOf(mine) != before;
            const Ran ran = cli({"lab", "answer", mine});
            QVERIFY2(ran.code == 0, ran.err);
        }
        QVERIFY2(killed > 0 && written > 0,
                 qPrintable(QStringLiteral("%1 killed, %2 written").arg(killed).arg(written)));
    }

    void aPageOfAnswers()
    {
        const QString full = m_folder.filePath("class/full.mlab"), page = m_folder.filePath("full.html");
        QCOMPARE(cli({"lab", "report", full, "--lab", m_lab, "-o", page}).code, 0);
        QVERIFY(contentOf(page).contains("5 of 5, 100 %"));
        QCOMPARE(cli({"lab", "report", full, "--lab", m_lab}).out, contentOf(page));
        const QString pack = m_folder.filePath("handout/my-lab"); // no checks: the answers without points
        QVERIFY(cli({"lab", "report", full, "--lab", pack}).out.contains("not graded"));
        QCOMPARE(cli({"lab", "report", full}).code, 2); // no shipped lab has that name
        QCOMPARE(cli({"lab", "report"}).code, 2);
    }

    void pagesAreBegunWithAStudy()
    {
        const QString mine = m_folder.filePath("begun.mlab"), study = m_folder.filePath("start.memscape");
        QCOMPARE(cli({"lab", "start", "zero", "--for", "Ada", "-o", mine, "--study", study}).code, 0);
        const Ran ran = cli({"check", study});
        QVERIFY2(ran.code == 0 && ran.out.contains("study of 1 record"), ran.err + ran.out);
        QVERIFY(contentOf(study).contains("params:7.5e9"));
        QCOMPARE(cli({"lab", "start", "zero", "--for", "Ada", "-o", m_folder.filePath("b.mlab"), "--study",
                      m_folder.filePath("none/start.memscape")})
                     .code,
                 2);
    }

    void exitCodes()
    {
        const QString full = m_folder.filePath("class/full.mlab");
        QCOMPARE(cli({"lab"}).code, 2);
        QCOMPARE(cli({"lab", "shwo", "x"}).code, 2);
        QCOMPARE(cli({"lab", "show", "cache-sizes"}).code, 2);
        QVERIFY(cli({"lab", "show", "cache-sizes"}).says("cache-size"));
        QCOMPARE(cli({"lab", "pack", m_lab}).code, 2);
        QCOMPARE(cli({"lab", "new", m_lab}).code, 2);
        QCOMPARE(cli({"grade", m_lab}).code, 2);
        QCOMPARE(cli({"grade", m_lab, full, "--format", "xml"}).code, 2);
        QCOMPARE(cli({"grade", m_lab, full, "--show", "all"}).code, 2);
        QCOMPARE(cli({"grade", m_lab, full, "--jobs", "0"}).code, 2);
        QCOMPARE(cli({"grade", m_lab, m_folder.filePath("none.mlab")}).code, 1);
        QCOMPARE(cli({"grade", m_lab, m_folder.path() + "/handout"}).code, 2); // a folder without answers
        QCOMPARE(cli({"check", m_lab + "/lab.json"}).code, 0);
        write("lab.json", read("lab.json").replace("\"equals\"", "\"equal\""));
        QCOMPARE(cli({"grade", m_lab, full}).code, 3);
        QCOMPARE(cli({"lab", "check", m_lab}).code, 3);
    }

private:
    void write(const QString& name, const QString& text)
    {
        QFile file(m_lab + '/' + name);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text.toUtf8());
    }
    static QByteArray contentOf(const QString& path)
    {
        QFile file(path);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    QString read(const QString& name)
    {
        QFile file(m_lab + '/' + name);
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }

    QTemporaryDir m_folder;
    QString m_lab;
};

QTEST_GUILESS_MAIN(TestLabCommands)
#include "tst_lab_commands.moc"
