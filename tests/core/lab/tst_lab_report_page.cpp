// SPDX-License-Identifier: Apache-2.0
// The page of one student's answers: what it says, what it keeps to itself, and that no answer becomes markup.
#include "core/base/file.h"
#include "core/lab/lab_report_page.h"
#include "tests/core/lab/lab_folder.h"

#include <QRegularExpression>
#include <QtTest>

using namespace memscape;
using test::LabFolder;

class TestLabReportPage : public QObject
{
    Q_OBJECT

private slots:
    void saysWhatWasAnsweredAndWhatIsRight()
    {
        const LabFolder folder;
        const auto lab = *folder.read();
        LabAttempt attempt(lab, "Ada", "2026-11-25T08:00:00Z");
        QVERIFY(attempt.hint("guess"));
        QVERIFY(attempt.answer("guess", "used", "90 %", "2026-11-25T08:10:00Z"));
        QVERIFY(attempt.lock("guess", "2026-11-25T08:11:00Z"));
        const QString page = pageOf(attempt);
        for (const char* words :
             {"<title>A small lab · Ada</title>", "2026-11-25T08:00:00Z", "locked 2026-11-25T08:11:00Z", "0 of 4, 0 %",
              "Answer: 90 %", "it is too large", "No answer."})
            QVERIFY2(page.contains(words), words);
        const bool isFourth = lab->variants[labVariant(*lab, "Ada")][0].second == "4";
        QVERIFY(page.contains(isFourth ? "Right: 0.25 ± 2 %" : "Right: 0.5 ± 2 %"));
        QVERIFY(page.contains(isFourth ? "one element in 4 is used" : "one element in 2 is used"));
    }

    void aHiddenCheckSaysItsVerdictAlone()
    {
        LabFolder folder;
        folder.json["steps"][1]["checks"][0]["hidden"] = true;
        LabAttempt attempt(*folder.read(), "Ada");
        QVERIFY(attempt.answer("guess", "used", 0.9));
        QVERIFY(attempt.lock("guess"));
        const QString page = pageOf(attempt);
        QVERIFY(page.contains("hidden check: failed"));
        for (const char* words : {"Right: 0.", "it is too large", "is used."})
            QVERIFY2(!page.contains(words), words);
    }

    /// Of a shipped lab: the curve that was drawn, the predicted and the measured one, and whose run it was.
    void curvesLieOnTheSameAxes()
    {
        const auto lab = findLab("cache-size");
        QVERIFY2(lab, lab ? "" : lab.error().text().c_str());
        const auto text = readFile(TEST_DATA "/labs/cache-size/full.mlab");
        QVERIFY(text);
        const auto attempt = LabAttempt::parse(*lab, *text);
        QVERIFY(attempt);
        const QString page = pageOf(*attempt);
        const QString chart = page.mid(page.indexOf("<svg"), page.indexOf("</svg>") - page.indexOf("<svg"));
        for (const char* words : {"class=\"drawn\"", "class=\"predicted\"", "class=\"measured\"", ">4 MiB<", "ns<"})
            QVERIFY2(chart.contains(words), words);
        QVERIFY(page.contains("recorded run was played"));
        QVERIFY(page.contains(QString::fromStdString((*lab)->replays.begin()->second.device.name).toHtmlEscaped()));
        QVERIFY(page.contains("L1 evicts the least recently used line of each set"));
    }

    void anUnlockedPredictionDoesNotSeeTheOtherCurves()
    {
        const auto lab = *findLab("cache-size");
        LabAttempt attempt(lab, "Ada");
        QVERIFY(attempt.answer("guess", "drawn", {"1 ns", "4 ns", "12 ns", "0.1 us"}));
        const QString page = pageOf(attempt);
        QVERIFY(page.contains("class=\"drawn\"") && page.contains("never locked"));
        QVERIFY(!page.contains("class=\"measured\"") && !page.contains("class=\"predicted\""));
        QVERIFY(page.contains("Nothing was measured."));
    }

    void oddCurvesStillDraw_data()
    {
        QTest::addColumn<QStringList>("x"); // expressions
        QTest::addColumn<QString>("y");
        const QStringList plain{"1", "2", "8"};
        QTest::newRow("zero y") << plain << "[0, 1, 2]";
        QTest::newRow("negative") << plain << "[-1, -2, -3]";
        QTest::newRow("x without a value") << QStringList{"0 / 0", "2", "8"} << "[1, 2, 3]";
        QTest::newRow("x backwards") << QStringList{"8", "2", "1"} << "[1, 2, 3]";
        QTest::newRow("words") << QStringList{"\"a\"", "\"b\"", "\"a\""} << "[1, 2, 3]";
        QTest::newRow("a word and a huge number") << QStringList{"\"a\"", "1e200", "2"} << "[1, 2, 3]";
        QTest::newRow("huge") << plain << "[1e300, 1e308, 1]";
        QTest::newRow("too few") << plain << "[1]";
    }
    void oddCurvesStillDraw()
    {
        QFETCH(QStringList, x);
        QFETCH(QString, y);
        LabFolder folder;
        Json& step = folder.json["steps"][1];
        step["questions"][0] = {{"key", "used"}, {"ask", "?"}, {"type", "curve"}, {"x", Json::array()}};
        for (const QString& one : x)
            step["questions"][0]["x"].push_back(one.toStdString());
        step["checks"] = Json::array();
        folder.json["points"] = 2;
        const auto lab = folder.read();
        QVERIFY2(lab, lab ? "" : lab.error().text().c_str());
        const LabAttempt made(*lab, "Ada");
        Json json = made.toJson(); // as a file may hold it
        json["steps"]["guess"]["answers"]["used"] = *parseJson(y.toStdString());
        const auto attempt = LabAttempt::parse(*lab, jsonText(json));
        QVERIFY(attempt);
        const QString page = pageOf(*attempt);
        QVERIFY(page.contains("<svg") || page.contains("a list of 3 values"));
        QVERIFY(!page.contains("nan") && !page.contains(">inf"));
    }

    void hostileAnswersStayText()
    {
        const auto lab = *findLab("cache-size");
        const std::string evil = "</title><script>alert(1)</script><img src=x onerror=\"alert(2)\">\x1b[31m'&";
        LabAttempt attempt(lab, evil, evil);
        Json json = attempt.toJson();
        for (const LabStep& step : lab->steps)
            for (const LabQuestion& question : step.questions)
                json["steps"][step.id]["answers"][question.key] = evil;
        json["steps"]["guess"]["locked"] = evil;
        json["steps"]["guess"]["answered"] = evil;
        json["steps"]["run"]["replay"] = evil;
        const auto parsed = LabAttempt::parse(lab, jsonText(json));
        QVERIFY2(parsed, parsed ? "" : parsed.error().text().c_str());
        const QString page = pageOf(*parsed);
        QVERIFY(page.contains("&lt;script&gt;"));
        for (const char* tag : {"<script", "<img", "onerror=\"", "\x1b"})
            QVERIFY2(!page.contains(tag), tag);
        QCOMPARE(page.count("</title>"), 1);
    }

    void withoutPointsTheAnswersAreStillThere()
    {
        const LabFolder folder;
        LabAttempt attempt(*folder.read(), "");
        QVERIFY(attempt.answer("guess", "used", 0.5));
        LabPredictions predictions;
        LabGrade broken;
        broken.problem = Error{"lab.answers", "these are answers to another lab"};
        const QString page = QString::fromStdString(labAnswersHtml(attempt, broken, predictions));
        for (const char* words : {"not graded", "these are answers to another lab", "Answer: 0.5", "(no name)"})
            QVERIFY2(page.contains(words), words);
    }

    void everyElementIsClosed()
    {
        const auto lab = *findLab("cache-size");
        const QString page = pageOf(*solvedLab(lab, "Ada"));
        for (const char* name :
             {"section", "table", "tr", "td", "details", "svg", "g", "figure", "dl", "ul", "p", "div", "blockquote"}) {
            const QRegularExpression open(QString("<%1[ >]").arg(name));
            QCOMPARE(page.count(open), page.count(QString("</%1>").arg(name)));
        }
    }

private:
    static QString pageOf(const LabAttempt& attempt)
    {
        LabPredictions predictions;
        const auto grade = gradeLab(attempt, predictions);
        if (!grade)
            return QString::fromStdString("no grade: " + grade.error().text());
        return QString::fromStdString(labAnswersHtml(attempt, *grade, predictions));
    }
};

QTEST_GUILESS_MAIN(TestLabReportPage)
#include "tst_lab_report_page.moc"
