// SPDX-License-Identifier: Apache-2.0
// Grading: points, hints, dependencies, what cannot be graded, runs that are not what they say, and the formats.
#include "core/experiment/document.h"
#include "core/lab/lab_report.h"
#include "core/lab/lab_report_page.h"
#include "tests/core/lab/lab_folder.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QXmlStreamReader>
#include <QtTest>

#include <clocale>
#include <locale>

using namespace memscape;
using test::LabFolder;

class TestLabGrade : public QObject
{
    Q_OBJECT

private slots:
    void pointsHintsAndLocks()
    {
        const LabFolder folder;
        const auto lab = *folder.read();
        LabGrade grade = graded(*solvedLab(lab, "Ada"));
        QCOMPARE(grade.points, 4.0);
        QCOMPARE(grade.percent(), 100.0);

        LabAttempt hinted(lab, "Ada");
        QVERIFY(hinted.hint("guess"));
        QVERIFY(hinted.answer("guess", "used", 0.25));
        grade = graded(hinted); // never locked
        QCOMPARE(grade.points, 0.0);
        QCOMPARE(verdict(grade, "guess.used"), LabVerdict::Ungraded);
        QVERIFY(hinted.answer("guess", "used", lab->variants[labVariant(*lab, "Ada")][0].second == "4" ? 0.25 : 0.5));
        QVERIFY(hinted.lock("guess"));
        grade = graded(hinted);
        QCOMPARE(verdict(grade, "guess.used"), LabVerdict::Passed);
        QCOMPARE(grade.points, 1.5); // the hint cost half a point
        QCOMPARE(verdict(grade, "repair.half"), LabVerdict::Ungraded);
    }

    /// A program that runs with a comma as decimal sign reads and writes the same.
    void theLocaleDoesNotMatter()
    {
        struct Comma : std::numpunct<char>
        {
            char do_decimal_point() const override { return ','; }
            char do_thousands_sep() const override { return '.'; }
            std::string do_grouping() const override { return "\3"; }
        };
        const LabFolder folder;
        const auto outputs = [&] {
            const auto lab = *folder.read();
            LabAttempt attempt(lab, "Ada", "2026-01-02T03:04:05Z");
            mustWork(attempt.answer("guess", "used", "12.5 %", "2026-01-02T03:04:05Z"));
            mustWork(attempt.lock("guess", "2026-01-02T03:04:05Z"));
            const auto parsed = LabAttempt::parse(lab, jsonText(attempt.toJson()));
            const LabGrade grade = graded(*parsed);
            std::string all = jsonText(parsed->toJson());
            for (const GradeFormat format : {GradeFormat::Text, GradeFormat::Json, GradeFormat::Csv,
                                             GradeFormat::Autolab, GradeFormat::Gradescope, GradeFormat::Junit})
                all += gradesReport(format, *lab, {grade}, true);
            LabPredictions predictions;
            return all + labAnswersHtml(*parsed, grade, predictions);
        };
        const std::string plain = outputs();
        std::setlocale(LC_ALL, "de_DE.UTF-8"); // where the machine has it
        const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
        const std::string comma = outputs();
        std::locale::global(before);
        std::setlocale(LC_ALL, "C");
        QCOMPARE(QString::fromStdString(comma), QString::fromStdString(plain));
    }

    void runsOfOthersAreFlagged()
    {
        const auto lab = *findLab("cache-size");
        const auto measured = [&](const char* student, double factor) {
            LabAttempt attempt(lab, student);
            for (const LabQuestion& question : lab->step("guess")->questions) {
                const bool isCurve = question.kind == LabQuestionKind::Curve;
                mustWork(attempt.answer("guess", question.key, isCurve ? Json{1e-9, 1e-9, 1e-9, 1e-9} : Json(3)));
            }
            mustWork(attempt.lock("guess"));
            Record run = lab->replays.begin()->second;
            Json& values = run.provenance["samples"][0]["values"];
            values[0] = values[0].get<double>() * factor;
            mustWork(attempt.attach("run", std::move(run)));
            return graded(attempt);
        };
        std::vector<LabGrade> grades{measured("Ada", 1), measured("Bob", 1), measured("Carl", 1.001),
                                     measured("ada ", 1)};
        const std::string flag = "run: the run has the samples of Ada's";
        const auto before = flagCopiedRuns(grades);
        const auto added = [&](std::size_t i) { return grades[i].flags.size() - before[i]; };
        QCOMPARE(added(0), std::size_t(1)); // Bob's, not the one handed in twice
        QCOMPARE(added(1), std::size_t(2));
        QCOMPARE(added(2), std::size_t(0));
        QVERIFY2(grades[1].flags[before[1]].starts_with(flag), grades[1].flags[before[1]].c_str());

        // A recorded run is everyone's.
        std::vector<LabGrade> replays{graded(*solvedLab(lab, "Dora")), graded(*solvedLab(lab, "Emil"))};
        QCOMPARE(flagCopiedRuns(replays)[0], replays[0].flags.size());
    }

    void aCheckWhoseDependencyFailedIsSkipped()
    {
        LabFolder folder;
        Json more = folder.json["steps"][2]["checks"][0];
        more["id"] = "more";
        more["b"] = "0.1";
        more["after"] = {"half"};
        folder.json["steps"][2]["checks"].push_back(more);
        folder.json["points"] = 6;
        LabAttempt attempt(*folder.read(), "Ada");
        QVERIFY(attempt.answer("guess", "used", 1));
        QVERIFY(attempt.lock("guess"));
        QVERIFY(attempt.answer("repair", "choice", {{"stride", "4"}}));
        const LabGrade grade = graded(attempt);
        QCOMPARE(verdict(grade, "repair.half"), LabVerdict::Failed);
        QCOMPARE(verdict(grade, "repair.more"), LabVerdict::Skipped);
        QCOMPARE(grade.checks.back().needs, std::string("repair.half"));
    }

    void aBrokenCheckIsTheLabsFault()
    {
        LabFolder folder;
        folder.json["steps"][1]["checks"][0]["value"] = "far.time"; // seconds against a plain number
        LabAttempt attempt(*folder.read(), "Ada");
        QVERIFY(attempt.answer("guess", "used", 1));
        QVERIFY(attempt.lock("guess"));
        LabPredictions predictions;
        const auto grade = gradeLab(attempt, predictions);
        QVERIFY(!grade);
        QCOMPARE(grade.error().code, std::string("lab.broken"));

        LabFolder none;
        for (Json& step : none.json["steps"])
            step.erase("checks");
        none.json["points"] = 0;
        const auto empty = gradeLab(LabAttempt(*none.read(), "Ada"), predictions);
        QVERIFY(!empty);
        QCOMPARE(empty.error().code, std::string("lab.empty"));
    }

    void kindsOfChecks_data()
    {
        QTest::addColumn<QString>("question"); // JSON of the question
        QTest::addColumn<QString>("check");    // JSON of the check
        QTest::addColumn<QString>("answer");
        QTest::addColumn<bool>("passes");
        const auto row = [](const char* name, const char* question, const char* check, const char* answer,
                            bool passes) { QTest::newRow(name) << question << check << answer << passes; };
        const char* number = R"({"type": "number"})";
        row("equal", number, R"({"kind": "equals", "value": "1 / 3"})", "0.3333333333333333", true);
        row("not equal", number, R"({"kind": "equals", "value": "1 / 3"})", "0.33", false);
        row("within relative", number, R"({"kind": "within", "value": "10", "rel": 0.1})", "11", true);
        row("outside", number, R"({"kind": "within", "value": "10", "rel": 0.1})", "11.1", false);
        row("within absolute", number, R"({"kind": "within", "value": "10", "abs": 2})", "8", true);
        row("one of", number, R"({"kind": "one_of", "values": ["2", "3"]})", "3", true);
        row("none of", number, R"({"kind": "one_of", "values": ["2", "3"]})", "4", false);
        row("model", number, R"({"kind": "model_agrees", "value": "near.efficiency", "rel": 0.01})", "1", true);
        const char* bytes = R"({"type": "number", "unit": "B"})";
        row("bytes", bytes, R"({"kind": "within", "value": "48KiB", "rel": 0.01})", "\"48 KiB\"", true);
        row("decimal bytes", bytes, R"({"kind": "within", "value": "48KiB", "rel": 0.01})", "\"48 kB\"", false);
        const char* choice = R"({"type": "choice", "options": [{"key": "a"}, {"key": "b"}]})";
        row("choice", choice, R"({"kind": "equals", "value": "b"})", "\"b\"", true);
        row("other choice", choice, R"({"kind": "equals", "value": "b"})", "\"a\"", false);
        row("computed choice", choice,
            "{\"kind\": \"equals\", \"value\": \"if(near.efficiency > 0.5, \\\"a\\\", \\\"b\\\")\"}", "\"a\"", true);
        const char* ranking = R"({"type": "ranking", "items": [{"key": "a", "by": "1"}, {"key": "b", "by": "3"},
                                 {"key": "c", "by": "2.9"}]})";
        row("order", ranking, R"({"kind": "order"})", "[\"b\", \"c\", \"a\"]", true);
        row("wrong order", ranking, R"({"kind": "order"})", "[\"c\", \"b\", \"a\"]", false);
        row("tie", ranking, R"({"kind": "order", "tie": 0.05})", "[\"c\", \"b\", \"a\"]", true);
        row("smallest first", ranking, R"({"kind": "order", "smallest_first": true})", "\"a, c, b\"", true);
        const char* curve = R"({"type": "curve", "unit": "1", "x": ["1", "2", "8"]})";
        const char* near = R"({"kind": "within", "curve": "walk.efficiency", "decades": 0.05})";
        row("curve", curve, near, "[1, 0.5, 0.125]", true); // float32 at strides 1, 2, 8
        row("between points", curve, near, "[1, 0.55, 0.13]", true);
        row("far curve", curve, near, "[3, 1.5, 0.4]", false);
        row("shape of a curve", curve,
            R"({"kind": "within", "curve": "walk.efficiency", "decades": 0.05, "shape": true})", "[3, 1.5, 0.375]",
            true);
        row("no curve", curve, near, "[0, 0.5, 0.125]", false);
    }
    void kindsOfChecks()
    {
        QFETCH(QString, question);
        QFETCH(QString, check);
        QFETCH(QString, answer);
        QFETCH(bool, passes);
        LabFolder folder;
        folder.json["predictions"].push_back({{"key", "walk"},
                                              {"experiment", "stride"},
                                              {"device", "amd-epyc-zen4-vm"},
                                              {"parameters", {{"stride", "1:16:x2"}}}});
        Json& step = folder.json["steps"][1];
        step["questions"][0] = *parseJson(question.toStdString());
        step["questions"][0]["key"] = "used";
        step["questions"][0]["ask"] = "?";
        step["checks"][0] = *parseJson(check.toStdString());
        step["checks"][0]["question"] = "used";
        step["checks"][0]["points"] = 2;
        const auto lab = folder.read();
        QVERIFY2(lab, lab ? "" : lab.error().text().c_str());
        LabAttempt attempt(*lab, "Ada");
        const auto kept = attempt.answer("guess", "used", *parseJson(answer.toStdString()));
        QVERIFY2(kept, kept ? "" : kept.error().text().c_str());
        QVERIFY(attempt.lock("guess"));
        const LabGrade grade = graded(attempt);
        QCOMPARE(verdict(grade, "guess.used"), passes ? LabVerdict::Passed : LabVerdict::Failed);
        QCOMPARE(grade.points, passes ? 2.0 : 0.0);
        QVERIFY(!grade.checks.front().actual.empty() || !grade.checks.front().message.empty());
    }

    void runsThatAreNotWhatTheySay()
    {
        const Record run = *readRecord(SOURCE_FOLDER "/resources/records/zen4-vm-hierarchy.json");
        QCOMPARE(runProblems(run).size(), std::size_t(0));
        Record faster = run; // a curve typed in
        for (Series& series : faster.measured->series)
            for (double& y : series.y)
                y /= 2;
        QVERIFY(!runProblems(faster).empty());
        QVERIFY2(runProblems(faster).front().find("outside of its") != std::string::npos,
                 runProblems(faster).front().c_str());
        Record samples = run;
        samples.provenance["samples"][1]["values"][0] = 1e-12;
        QVERIFY(runProblems(samples).front().find("fastest sample") != std::string::npos);
        Record moved = run;
        moved.provenance["samples"][0]["x"] = 5000;
        QVERIFY(runProblems(moved).front().find("no point is") != std::string::npos);
        Record predicted = *predictRecord(**findExperiment("stride"), run.device,
                                          *resolve((*findExperiment("stride"))->schema(), std::vector<std::string>{}));
        QCOMPARE(reproductionProblem(predicted), std::string());
        predicted.predicted->series.front().y.front() *= 1.001;
        QVERIFY(!reproductionProblem(predicted).empty());
        QVERIFY(!runProblems(predicted).empty());
    }

    void aRunMadeBeforeTheLockIsFlagged()
    {
        LabFolder folder;
        folder.write("replay/run.json", *readFile(SOURCE_FOLDER "/resources/records/zen4-vm-stride.json"));
        folder.json["steps"].push_back({{"id", "run"},
                                        {"title", "Measure"},
                                        {"kind", "measure"},
                                        {"text", "steps/1-start.md"},
                                        {"after", {"guess"}},
                                        {"experiment", "stride"},
                                        {"replay", "replay/run.json"},
                                        {"checks",
                                         {{{"kind", "ratio_at_least"},
                                           {"id", "falls"},
                                           {"a", "at(run, \"useful_bandwidth\", 1)"},
                                           {"b", "at(run, \"useful_bandwidth\", 16)"},
                                           {"x", 2},
                                           {"points", 1}}}}});
        folder.json["points"] = 5;
        const auto lab = folder.read();
        QVERIFY2(lab, lab ? "" : lab.error().text().c_str());
        LabAttempt attempt(*lab, "Ada");
        QVERIFY(!attempt.replay("run")); // closed
        QVERIFY(attempt.answer("guess", "used", 1));
        QVERIFY(attempt.lock("guess", "2030-01-01T00:00:00Z"));
        QVERIFY(attempt.replay("run"));
        LabGrade grade = graded(attempt);
        QCOMPARE(verdict(grade, "run.falls"), LabVerdict::Passed);
        QVERIFY(grade.flags.front().find("recorded run was played") != std::string::npos);
        Record own = (*lab)->replays.begin()->second;
        QVERIFY(attempt.attach("run", own));
        grade = graded(attempt);
        QVERIFY2(grade.flags.front().find("locked at 2030") != std::string::npos, grade.flags.front().c_str());
        own.experiment = "hierarchy";
        QVERIFY(!attempt.attach("run", own));
        own = (*lab)->replays.begin()->second;
        own.measured.reset();
        QVERIFY(!attempt.attach("run", own));
    }

    void formats()
    {
        LabFolder folder;
        folder.json["steps"][2]["checks"][0]["hidden"] = true;
        const auto lab = *folder.read();
        LabGrade full = graded(*solvedLab(lab, "=Ada, \"A\""));
        full.file = "a.mlab";
        LabGrade nothing = graded(LabAttempt(lab, "<Bob>\x1b[31m"));
        LabGrade broken;
        broken.file = "c.mlab";
        broken.problem = Error{"json.syntax", "not valid JSON"};
        const std::vector<LabGrade> all{full, nothing, broken};

        const QString csv = QString::fromStdString(gradesReport(GradeFormat::Csv, *lab, all, false));
        const QStringList lines = csv.split("\r\n");
        QCOMPARE(
            lines[0],
            QStringLiteral("student,file,points,most,percent,by_person,guess.used,repair.half,hints,flags,problem"));
        QCOMPARE(lines[1], QStringLiteral("\"'=Ada, \"\"A\"\"\",a.mlab,4,4,100,0,2,2,0,,"));
        QVERIFY(lines[3].endsWith("not valid JSON"));
        QCOMPARE(lines[3].count(','), lines[0].count(','));

        const QJsonObject json =
            QJsonDocument::fromJson(gradesReport(GradeFormat::Json, *lab, all, false).c_str()).object();
        QCOMPARE(json["submissions"].toArray().size(), 3);
        const QJsonObject hidden = json["submissions"].toArray()[0].toObject()["checks"].toArray()[1].toObject();
        QVERIFY(hidden["hidden"].toBool() && !hidden.contains("expected"));

        const QString text = QString::fromStdString(gradesReport(GradeFormat::Text, *lab, all, false));
        QVERIFY(text.contains("4 of 4 points") && text.contains("hidden check") && !text.contains(QChar(0x1b)));
        QVERIFY(!text.contains("repair.half"));
        QVERIFY(QString::fromStdString(gradesReport(GradeFormat::Text, *lab, all, true)).contains("repair.half"));

        const auto lastLine = QString::fromStdString(gradesReport(GradeFormat::Autolab, *lab, {full}, false))
                                  .trimmed()
                                  .split('\n')
                                  .last();
        QCOMPARE(QJsonDocument::fromJson(lastLine.toUtf8()).object()["scores"].toObject()["guess"].toDouble(), 2.0);
        const QJsonObject scope =
            QJsonDocument::fromJson(gradesReport(GradeFormat::Gradescope, *lab, {full}, false).c_str()).object();
        QCOMPARE(scope["score"].toDouble(), 4.0);
        QCOMPARE(scope["tests"].toArray()[1].toObject()["visibility"].toString(), QStringLiteral("hidden"));
        const QString junit = QString::fromStdString(gradesReport(GradeFormat::Junit, *lab, all, false));
        QXmlStreamReader xml(junit);
        while (!xml.atEnd())
            xml.readNext();
        QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
        QCOMPARE(junit.count("<testsuite "), 3);
        QVERIFY(!gradeFormatFromText("xml"));
    }

private:
    static void mustWork(const Result<void>& done) { QVERIFY2(done, done ? "" : done.error().text().c_str()); }
    LabGrade graded(const LabAttempt& attempt)
    {
        LabPredictions predictions;
        const auto grade = gradeLab(attempt, predictions);
        if (!grade)
            qWarning("%s", grade.error().text().c_str());
        return grade.value_or(LabGrade());
    }
    static LabVerdict verdict(const LabGrade& grade, const std::string& id)
    {
        for (const LabCheckResult& one : grade.checks)
            if (one.id == id)
                return one.verdict;
        qWarning("there is no check %s", id.c_str());
        return LabVerdict::Failed;
    }
};

QTEST_GUILESS_MAIN(TestLabGrade)
#include "tst_lab_grade.moc"
