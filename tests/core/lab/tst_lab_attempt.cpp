// SPDX-License-Identifier: Apache-2.0
// A lab in progress: what opens when, what a lock keeps, and the document read back.
#include "core/lab/lab_grade.h"
#include "tests/core/lab/lab_folder.h"

#include <QtTest>

#include <set>

using namespace memscape;
using test::LabFolder;

class TestLabAttempt : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase() { m_lab = *m_folder.read(); }

    void stepsOpenInOrder()
    {
        LabAttempt attempt(m_lab, "Ada");
        QVERIFY(attempt.isDone("start"));
        QVERIFY(attempt.isOpen("guess"));
        QVERIFY(!attempt.isOpen("repair"));
        QCOMPARE(code(attempt.answer("repair", "choice", {{"stride", "2"}})), QStringLiteral("lab.closed"));
        QCOMPARE(code(attempt.lock("guess")), QStringLiteral("lab.answer"));
        QVERIFY(attempt.answer("guess", "used", "25%"));
        QVERIFY(!attempt.isOpen("repair"));
        QVERIFY(attempt.lock("guess"));
        QVERIFY(attempt.isLocked("guess"));
        QVERIFY(attempt.isOpen("repair"));
        QCOMPARE(code(attempt.answer("guess", "used", 0.5)), QStringLiteral("lab.locked"));
        QCOMPARE(code(attempt.lock("guess")), QStringLiteral("lab.locked"));
        QCOMPARE(code(attempt.lock("repair")), QStringLiteral("lab.step"));
        QVERIFY(attempt.answer("repair", "choice", {{"stride", "2"}}));
        QVERIFY(attempt.isDone("repair"));
    }

    void wrongAnswersSayWhatIsExpected_data()
    {
        QTest::addColumn<QString>("step");
        QTest::addColumn<QString>("question");
        QTest::addColumn<QString>("given");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, const char* step, const char* question, const char* given,
                            const char* code) { QTest::newRow(name) << step << question << given << code; };
        row("no step", "gess", "used", "1", "lab.step");
        row("no question", "guess", "us", "1", "lab.question");
        row("a word", "guess", "used", "\"much\"", "lab.answer");
        row("a comma", "guess", "used", "\"0,25\"", "lab.answer");
        row("a unit", "guess", "used", "\"3 ns\"", "lab.answer");
        row("a list", "guess", "used", "[1]", "lab.answer");
        row("nothing", "guess", "used", "null", "lab.answer");
    }
    void wrongAnswersSayWhatIsExpected()
    {
        QFETCH(QString, step);
        QFETCH(QString, question);
        QFETCH(QString, given);
        LabAttempt attempt(m_lab, "Ada");
        const auto kept = attempt.answer(step.toStdString(), question.toStdString(), *parseJson(given.toStdString()));
        QTEST(code(kept), "code");
    }

    void parametersAreTheFreeOnes()
    {
        LabAttempt attempt(m_lab, "Ada");
        QVERIFY(attempt.answer("guess", "used", 1));
        QVERIFY(attempt.lock("guess"));
        QCOMPARE(code(attempt.answer("repair", "choice", {{"element", "int8"}})), QStringLiteral("lab.answer"));
        QCOMPARE(code(attempt.answer("repair", "choice", {{"stride", "many"}})), QStringLiteral("parameter.type"));
        QCOMPARE(code(attempt.answer("repair", "choice", "stride=2")), QStringLiteral("lab.answer"));
    }

    void otherKindsOfAnswers()
    {
        LabQuestion ranking;
        ranking.key = "order";
        ranking.kind = LabQuestionKind::Ranking;
        ranking.options = {{"a", "A", "1"}, {"b", "B", "2"}};
        const LabStep& step = m_lab->steps.front();
        QCOMPARE(readLabAnswer(ranking, step, "b, a")->ranking, (std::vector<std::string>{"b", "a"}));
        QCOMPARE(readLabAnswer(ranking, step, Json::array({"a", "b"}))->ranking, (std::vector<std::string>{"a", "b"}));
        QVERIFY(!readLabAnswer(ranking, step, "a, a"));
        LabQuestion curve;
        curve.kind = LabQuestionKind::Curve;
        curve.unit = Unit::Second;
        curve.x = {"1", "2"};
        const auto drawn = readLabAnswer(curve, step, Json::array({"1.5 ns", 2e-9}))->curve;
        QCOMPARE(drawn.size(), std::size_t(2));
        QVERIFY(qFuzzyCompare(drawn[0], 1.5e-9) && drawn[1] == 2e-9);
        QVERIFY(!readLabAnswer(curve, step, Json::array({1})));
        QVERIFY(!checkLabNumbers(curve, Json::array({"1.5", "2 ns"}))); // seconds are not what is meant
        QVERIFY(!checkLabNumbers(curve, Json::array({"-1.5 ns", "2 ns"})));
        QVERIFY(checkLabNumbers(curve, Json::array({"0", "2 ns"})));
        QVERIFY(readLabAnswer(curve, step, Json::array({"1.5", "2 ns"}))); // an older answer stays as it was made
        LabQuestion bytes;
        bytes.unit = Unit::Byte;
        QCOMPARE(readLabAnswer(bytes, step, " 48 KiB ")->number, 49152.0);
    }

    void theDocumentIsReadBack()
    {
        LabAttempt attempt(m_lab, "Ada \"L\"", "2026-01-02T03:04:05Z");
        QVERIFY(attempt.hint("guess"));
        QCOMPARE(code(attempt.hint("guess")), QStringLiteral("lab.hint"));
        QVERIFY(attempt.answer("guess", "used", "25 %", "2026-01-02T03:05:05Z"));
        QVERIFY(attempt.lock("guess", "2026-01-02T03:06:05Z"));
        Json json = attempt.toJson();
        json["colour"] = "red"; // another program's keys stay
        json["steps"]["guess"]["seen"] = 3;
        json["steps"]["removed"] = {{"answers", {{"x", 1}}}};
        const auto again = LabAttempt::parse(m_lab, jsonText(json));
        QVERIFY2(again, again ? "" : again.error().text().c_str());
        QVERIFY(again->isLocked("guess"));
        QVERIFY(again->isOfThisLab());
        QCOMPARE(jsonText(again->toJson()), jsonText(json));
    }

    void foreignDocumentsAreRefused_data()
    {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("code");
        const auto row = [](const char* name, const char* key, const char* value, const char* code) {
            QTest::newRow(name) << key << value << code;
        };
        row("format", "format", "\"memscape-study\"", "document.format");
        row("newer", "version", "99", "document.newer");
        row("old", "version", "0", "document.format");
        row("another lab", "lab", "\"other\"", "lab.answers");
        row("steps", "steps", "[1]", "json.type");
        row("a record that is not there", "steps", "{\"guess\": {\"record\": 3}}", "lab.answers");
        row("study", "study", "{\"format\": \"memscape-record\"}", "document.format");
    }
    void foreignDocumentsAreRefused()
    {
        QFETCH(QString, key);
        QFETCH(QString, value);
        Json json = LabAttempt(m_lab, "Ada").toJson();
        json[key.toStdString()] = *parseJson(value.toStdString());
        const auto attempt = LabAttempt::parse(m_lab, jsonText(json));
        QVERIFY(!attempt);
        QTEST(QString::fromStdString(attempt.error().code), "code");
        QVERIFY(!LabAttempt::parse(m_lab, "{\"format\": \"memscape-ans"));
    }

    /// A copy that stopped halfway: an error that says so, and never answers that are not the student's.
    void truncatedAnswersAreRefused()
    {
        LabAttempt attempt(m_lab, "Ada");
        QVERIFY(attempt.answer("guess", "used", 0.5));
        QVERIFY(attempt.lock("guess"));
        const std::string whole = jsonText(attempt.toJson());
        for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
            const auto parsed = LabAttempt::parse(m_lab, whole.substr(0, length));
            QVERIFY2(!parsed, std::to_string(length).c_str());
            QVERIFY(!parsed.error().message.empty());
        }
        QVERIFY(LabAttempt::parse(m_lab, whole));
    }

    void hostileAnswersEndInAnErrorOrAreKept_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("value");
        QTest::addColumn<bool>("isRead");
        const auto row = [](const char* name, const char* path, const QString& value, bool isRead) {
            QTest::newRow(name) << path << value << isRead;
        };
        row("record below 0", "/steps/guess/record", "-5", true);
        row("record far away", "/steps/guess/record", "9223372036854775807", false);
        row("record beyond integers", "/steps/guess/record", "1e300", false);
        row("many hints", "/steps/guess/hints", "1000000000", true);
        row("hints without end", "/steps/guess/hints", "9223372036854775807", false);
        row("hints below 0", "/steps/guess/hints", "-1", true);
        row("a path for a replay", "/steps/guess/replay", "\"../../../../etc/passwd\"", true);
        row("locked by a number", "/steps/guess/locked", "1", false);
        row("answers as a list", "/steps/guess/answers", "[1, 2]", false);
        row("an answer of lists", "/steps/guess/answers/used", QString(40, '[') + QString(40, ']'), true);
        row("too deep", "/steps/guess/answers/used", QString(200, '[') + QString(200, ']'), false);
        row("a long name", "/student", "\"" + QString(1 << 20, 'x') + "\"", true);
        row("a name of lists", "/student", "[\"Ada\"]", false);
        row("a step that is none", "/steps/../../x", "{\"answers\": {\"used\": 1}}", true);
        row("records of numbers", "/study/records", "[1]", false);
    }
    void hostileAnswersEndInAnErrorOrAreKept()
    {
        QFETCH(QString, path);
        QFETCH(QString, value);
        QFETCH(bool, isRead);
        LabAttempt attempt(m_lab, "Ada");
        QVERIFY(attempt.answer("guess", "used", 0.5));
        Json json = attempt.toJson();
        if (path == "/steps/../../x")
            json["steps"]["../../x"] = "HERE";
        else
            json[Json::json_pointer(path.toStdString())] = "HERE";
        std::string text = jsonText(json);
        text.replace(text.find("\"HERE\""), 6, value.toStdString());
        const auto parsed = LabAttempt::parse(m_lab, text);
        QCOMPARE(bool(parsed), isRead);
        if (!parsed) {
            QVERIFY2(parsed.error().text().size() < 1000, parsed.error().text().c_str());
            return;
        }
        LabPredictions predictions;
        const auto grade = gradeLab(*parsed, predictions);
        QVERIFY2(grade, grade ? "" : grade.error().text().c_str());
        QCOMPARE(grade->points, 0.0); // nothing is locked
        QVERIFY(!parsed->run("guess"));
    }

    /// The teacher corrects a lab while students work: what fits stays, what does not is kept in the file.
    void aLabChangedUnderAnAttempt()
    {
        LabAttempt attempt(m_lab, "Ada");
        QVERIFY(
            attempt.answer("guess", "used", m_lab->variants[labVariant(*m_lab, "Ada")][0].second == "4" ? 0.25 : 0.5));
        QVERIFY(attempt.lock("guess"));
        QVERIFY(attempt.answer("repair", "choice", {{"stride", "2"}}));

        LabFolder other;
        other.json["steps"][1]["questions"][0]["ask"] = "The same, asked better?";
        other.json["steps"][1]["questions"].push_back({{"key", "more"}, {"ask", "New?"}, {"type", "number"}});
        other.json["steps"][2]["id"] = "mend"; // the step that the second answer was given to is gone
        other.json["steps"][2]["checks"][0]["a"] = "mend.efficiency";
        const auto changed = *other.read();
        QVERIFY(changed->hash != m_lab->hash);
        const auto parsed = LabAttempt::parse(changed, jsonText(attempt.toJson()));
        QVERIFY2(parsed, parsed ? "" : parsed.error().text().c_str());
        QVERIFY(!parsed->isOfThisLab());
        QVERIFY(parsed->isLocked("guess"));
        QVERIFY(!parsed->given(*changed->question("more")));
        LabPredictions predictions;
        const auto grade = gradeLab(*parsed, predictions);
        QVERIFY(grade);
        QCOMPARE(grade->points, 2.0); // of the question that is still asked
        QVERIFY(std::ranges::find(grade->flags, "the answers were written for another version of this lab")
                != grade->flags.end());
        QCOMPARE(parsed->toJson()["steps"]["repair"]["answers"]["choice"]["stride"], Json("2"));
    }

    void variantsAreDealtByName()
    {
        std::set<std::size_t> rows;
        for (int i = 0; i < 40; ++i)
            rows.insert(labVariant(*m_lab, "student " + std::to_string(i)));
        QCOMPARE(rows.size(), m_lab->variants.size());
        QCOMPARE(labVariant(*m_lab, " ADA "), labVariant(*m_lab, "ada"));
    }

private:
    template <typename Value> static QString code(const Result<Value>& result)
    {
        return result ? QStringLiteral("kept") : QString::fromStdString(result.error().code);
    }

    LabFolder m_folder;
    std::shared_ptr<const Lab> m_lab;
};

QTEST_GUILESS_MAIN(TestLabAttempt)
#include "tst_lab_attempt.moc"
