// SPDX-License-Identifier: Apache-2.0
// A class of thirty hands in: full, partial, empty and broken answers, another lab's, one file twice, a copied run.
// Every file has its row, in the order of the names, and none stops the others.
#include "tests/cli/run_cli.h"

#include <QDir>
#include <QFile>
#include <QMap>
#include <QTemporaryDir>
#include <QtTest>

using memscape::test::cli;
using memscape::test::Ran;

namespace {

const QString classLab = QStringLiteral("cache-size");

} // namespace

class TestLabClass : public QObject
{
    Q_OBJECT

private slots:
    /// student-01 … student-30, two of them from one file.
    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        QVERIFY(QDir(m_folder.path()).mkpath("in/group"));
        for (int i = 1; i <= 12; ++i)
            start(i, {"--solution"});
        for (int i = 13; i <= 18; ++i) { // a prediction, locked, and no more
            start(i);
            QCOMPARE(cli({"lab", "answer", fileOf(i), "guess", "ratio=1", "steps=4", "drawn=[1e-9, 1e-9, 1e-9, 1e-9]",
                          "--lock"})
                         .code,
                     0);
        }
        for (int i = 19; i <= 22; ++i)
            start(i); // nothing was answered
        start(23);
        write(fileOf(23), contentOf(fileOf(1)).left(300)); // a copy that stopped
        write(fileOf(24), "");
        write(fileOf(25), "\x80\x02}q\x01."); // a pickle
        QCOMPARE(cli({"lab", "start", "zero", "--for", "Student 26", "--solution", "-o", fileOf(26)}).code, 0);
        write(fileOf(27), contentOf(fileOf(1)).replace("\"version\": 1", "\"version\": 7"));
        write(fileOf(28), contentOf(fileOf(2))); // handed in twice, under the other's name
        start(29);                               // measured, and copied by one who changed the name in the file
        QCOMPARE(cli({"lab", "answer", fileOf(29), "guess", "ratio=1", "steps=4", "drawn=[1e-9, 1e-9, 1e-9, 1e-9]",
                      "--lock"})
                     .code,
                 0);
        QCOMPARE(cli({"lab", "answer", fileOf(29), "run", "--record",
                      SOURCE_FOLDER "/resources/labs/cache-size/replay/latency.json"})
                     .code,
                 0);
        write(fileOf(30), contentOf(fileOf(29)).replace("Student 29", "Student 30"));
    }

    void everyFileHasItsRow()
    {
        const Ran ran = cli({"grade", classLab, in(), "--format", "csv"});
        QCOMPARE(ran.code, 1); // some could not be graded
        const auto rows = rowsOf(ran.out);
        QCOMPARE(rows.size(), 30);
        for (int i = 0; i < 30; ++i)
            QVERIFY2(rows[i]["file"].endsWith(QStringLiteral("student-%1.mlab").arg(i + 1, 2, 10, QChar('0'))),
                     qPrintable(rows[i]["file"]));
        for (int i = 1; i <= 12; ++i) {
            QCOMPARE(rows[i - 1]["points"], QStringLiteral("17"));
            QCOMPARE(rows[i - 1]["student"], QStringLiteral("Student %1").arg(i));
            QVERIFY(rows[i - 1]["flags"].contains("recorded run was played"));
        }
        for (int i = 13; i <= 18; ++i)
            QCOMPARE(rows[i - 1]["points"], QStringLiteral("1")); // the levels
        for (int i = 19; i <= 22; ++i)
            QCOMPARE(rows[i - 1]["points"], QStringLiteral("0"));
        const QMap<int, QString> problems{{23, "line"},
                                          {24, "empty"},
                                          {25, "line 1"},
                                          {26, "answers to the lab zero"},
                                          {27, "version 7 is newer than this program reads"}};
        for (auto one = problems.begin(); one != problems.end(); ++one) {
            const auto& row = rows[one.key() - 1];
            QVERIFY2(row["problem"].contains(one.value()), qPrintable(row["problem"]));
            QCOMPARE(row["points"], QString());
        }
        QCOMPARE(rows[27]["student"], QStringLiteral("Student 2")); // as the file says
    }

    void aCopiedRunIsFlagged()
    {
        const auto rows = rowsOf(cli({"grade", classLab, in(), "--format", "csv"}).out);
        QVERIFY2(rows[29]["flags"].contains("the run has the samples of Student 29's"), qPrintable(rows[29]["flags"]));
        QVERIFY(rows[28]["flags"].contains("Student 30"));
        for (int i = 0; i < 28; ++i)
            QVERIFY2(!rows[i]["flags"].contains("samples of"), qPrintable(rows[i]["flags"]));
        const QByteArray text = cli({"grade", classLab, in()}).out;
        QVERIFY(text.contains("Student 30: look at: run: the run has the samples of Student 29's"));
    }

    /// What cannot be read is not written over.
    void filesThatCannotBeReadStayAsTheyAre()
    {
        for (const int student : {23, 24, 25, 27}) {
            const QByteArray before = contentOf(fileOf(student));
            const Ran ran = cli({"lab", "answer", fileOf(student), "--lab", SOURCE_FOLDER "/resources/labs/cache-size",
                                 "guess", "ratio=2"});
            QCOMPARE(ran.code, 2);
            QVERIFY(!ran.err.isEmpty());
            QCOMPARE(contentOf(fileOf(student)), before);
        }
    }

    void theOrderOfJobsDoesNotMatter()
    {
        const QByteArray one = cli({"grade", classLab, in(), "--format", "json", "--jobs", "1"}).out;
        QCOMPARE(cli({"grade", classLab, in(), "--format", "json", "--jobs", "8"}).out, one);
    }

    void everyReadableFileHasItsPage()
    {
        const QString pages = m_folder.filePath("pages");
        const Ran ran = cli({"lab", "report", in(), "-o", pages});
        QCOMPARE(ran.code, 1);
        QVERIFY(ran.says("student-24.mlab"));
        QCOMPARE(QDir(pages).entryList({"*.html"}).size() + QDir(pages + "/group").entryList({"*.html"}).size(), 26);
        const QByteArray page = contentOf(pages + "/group/student-30.html");
        QVERIFY(page.contains("Student 30") && page.contains("class=\"drawn\"") && page.contains("AMD EPYC"));
        QVERIFY(contentOf(pages + "/student-26.html").contains("ZeRO by hand")); // each with its own lab
        QCOMPARE(cli({"lab", "report", in()}).code, 2);                          // where to?
        QCOMPARE(cli({"lab", "report", m_folder.filePath("none.mlab")}).code, 2);
        QCOMPARE(cli({"lab", "report", fileOf(23), "-o", pages + "/x.html"}).code, 2);
        QVERIFY(!QFile::exists(pages + "/x.html"));
    }

private:
    QString in() const { return m_folder.filePath("in"); }
    QString fileOf(int student) const
    {
        return QStringLiteral("%1/%2student-%3.mlab")
            .arg(in(), student > 28 ? "group/" : "")
            .arg(student, 2, 10, QChar('0'));
    }
    void start(int student, const QStringList& more = {})
    {
        const Ran ran = cli(QStringList{"lab", "start", classLab, "--for", QStringLiteral("Student %1").arg(student),
                                        "-o", fileOf(student)}
                            + more);
        QVERIFY2(ran.code == 0, ran.err);
    }
    static void write(const QString& path, const QByteArray& text)
    {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
    }
    static QByteArray contentOf(const QString& path)
    {
        QFile file(path);
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }

    /// RFC 4180, by the names of the header, in the order of the students' numbers.
    static QList<QMap<QString, QString>> rowsOf(const QByteArray& csv)
    {
        QList<QStringList> lines(1);
        QString cell;
        bool quoted = false;
        const QString text = QString::fromUtf8(csv);
        for (qsizetype i = 0; i < text.size(); ++i) {
            const QChar c = text[i];
            if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
                cell += text[++i];
            } else if (c == '"') {
                quoted = !quoted;
            } else if (quoted || (c != ',' && c != '\r' && c != '\n')) {
                cell += c;
            } else if (c != '\r') {
                lines.last() << cell;
                cell.clear();
                if (c == '\n')
                    lines.append(QStringList());
            }
        }
        lines.removeLast();
        QList<QMap<QString, QString>> rows;
        for (qsizetype i = 1; i < lines.size(); ++i) {
            QMap<QString, QString> row;
            for (qsizetype j = 0; j < lines[0].size(); ++j)
                row[lines[0][j]] = lines[i].value(j);
            rows << row;
        }
        std::ranges::sort(
            rows, [](const auto& a, const auto& b) { return a["file"].section('/', -1) < b["file"].section('/', -1); });
        return rows;
    }

    QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestLabClass)
#include "tst_lab_class.moc"
