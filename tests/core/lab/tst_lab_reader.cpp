// SPDX-License-Identifier: Apache-2.0
// What a lab may say: a small one is changed in one place, and the error names the place.
#include "tests/core/lab/lab_folder.h"

#include <QtTest>

#include <filesystem>

using namespace memscape;
using test::LabFolder;

class TestLabReader : public QObject
{
    Q_OBJECT

private slots:
    void aNewLabIsSound()
    {
        const LabFolder folder;
        const auto lab = folder.read();
        QVERIFY2(lab, lab ? "" : lab.error().text().c_str());
        QCOMPARE((*lab)->steps.size(), std::size_t(3));
        QCOMPARE((*lab)->title, std::string("A small lab"));
        QCOMPARE((*lab)->steps[1].after, std::vector<std::string>{"start"}); // the one before, unless it says others
        for (const Error& one : checkLab(*lab))
            QFAIL(one.text().c_str());
    }

    void errorsNameThePlace_data()
    {
        QTest::addColumn<QString>("pointer");
        QTest::addColumn<QString>("value"); // JSON; empty: the key is removed
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        const auto row = [](const char* name, const char* pointer, const char* value, const char* code,
                            const char* place) { QTest::newRow(name) << pointer << value << code << place; };
        row("format", "/format", "\"memscape-study\"", "lab.format", "format");
        row("newer", "/version", "2", "document.newer", "version");
        row("no title", "/title", "", "json.missing", "lab.json");
        row("id", "/id", "\"../up\"", "lab.value", "id");
        row("unknown key", "/minuets", "3", "lab.key", "minuets");
        row("key of a check", "/steps/1/checks/0/relative", "0.1", "lab.key", "steps[1].checks[0].relative");
        row("kind", "/steps/1/kind", "\"gess\"", "lab.value", "steps[1].kind");
        row("points", "/points", "5", "lab.points", "points");
        row("no points of a check", "/steps/1/checks/0/points", "", "lab.points", "steps[1].checks[0]");
        row("path up", "/steps/0/text", "\"../../etc/passwd\"", "lab.path", "steps[0].text");
        row("absolute path", "/steps/0/text", "\"/etc/passwd\"", "lab.path", "steps[0].text");
        row("text that is not there", "/steps/0/text", "\"steps/none.md\"", "file.missing", "");
        row("replay outside", "/steps/2/replay", "\"../run.json\"", "lab.path", "steps[2].replay");
        row("experiment", "/steps/2/experiment", "\"strid\"", "experiment.unknown", "steps[2].experiment");
        row("parameter", "/steps/2/parameters/strides", "\"4\"", "lab.key", "steps[2]");
        row("parameter out of range", "/steps/2/parameters/stride", "\"-4\"", "parameter.range", "step repair");
        row("free", "/steps/2/free", "[\"strides\"]", "lab.key", "steps[2].free");
        row("no free ones", "/steps/2/free", "[]", "lab.key", "step repair, question choice");
        row("variant key", "/predictions/1/parameters/stride", "\"{strides}\"", "lab.name", "predictions, far");
        row("variants differ", "/variants/1", "{\"other\": \"1\"}", "lab.key", "variants[1]");
        row("twice", "/predictions/0/key", "\"far\"", "lab.key", "predictions");
        row("question of the name of a step", "/steps/1/questions/0/key", "\"guess\"", "lab.key", "question guess");
        row("name of nothing", "/steps/1/checks/0/value", "\"fra.efficiency\"", "lab.key", "check guess.used");
        row("syntax", "/steps/1/checks/0/value", "\"far.efficiency *\"", "expression.syntax", "check guess.used");
        row("no such question", "/steps/1/checks/0/question", "\"unused\"", "lab.key", "check guess.unused, question");
        row("tolerance", "/steps/1/checks/0/rel", "", "lab.key", "check guess.used");
        row("later step", "/steps/0/after", "[\"guess\"]", "lab.key", "step start, after");
        row("itself", "/steps/1/after", "[\"guess\"]", "lab.key", "step guess, after");
        row("check after nothing", "/steps/1/checks/0/after", "[\"other\"]", "lab.key", "check guess.used, after");
        row("ask", "/steps/1/questions/0/ask", "\"{{x}}?\"", "lab.key", "question used");
        row("a time", "/steps/1/questions/0/unit", "\"s\"", "lab.absolute", "check guess.used");
        row("a rate", "/steps/1/questions/0/unit", "\"B/s\"", "lab.absolute", "check guess.used");
        row("a time in a ratio", "/steps/2/checks/0/b", "\"10us\"", "expression.absolute", "check repair.half");
        row("a time in a value", "/values", "{\"limit\": \"10ns\"}", "expression.absolute", "values.limit");
        row("a read step with checks", "/steps/1/kind", "\"read\"", "lab.key", "step guess");
        row("a tune step without choice", "/steps/2/questions", "[]", "lab.key", "step repair");
    }
    void errorsNameThePlace()
    {
        QFETCH(QString, pointer);
        QFETCH(QString, value);
        QFETCH(QString, code);
        QFETCH(QString, place);
        LabFolder folder;
        const Json::json_pointer at(pointer.toStdString());
        if (value.isEmpty())
            folder.json.at(at.parent_pointer()).erase(at.back());
        else
            folder.json[at] = *parseJson(value.toStdString());
        const auto lab = folder.read();
        QVERIFY(!lab);
        QCOMPARE(QString::fromStdString(lab.error().code), code);
        const QString text = QString::fromStdString(lab.error().text());
        QVERIFY2(text.contains(place), qPrintable(text));
        if (code != "file.missing")
            QVERIFY2(text.contains("lab.json"), qPrintable(text));
    }

    void hostileFoldersAreRefused()
    {
        LabFolder folder;
        std::filesystem::create_directory_symlink("/etc", folder.path() / "away");
        folder.json["steps"][0]["text"] = "away/hostname";
        auto lab = folder.read();
        QVERIFY(!lab);
        QCOMPARE(lab.error().code, std::string("lab.path"));

        LabFolder large;
        large.write("steps/1-start.md", std::string(labFileLimit + 1, 'x'));
        lab = large.read();
        QVERIFY(!lab);
        QCOMPARE(lab.error().code, std::string("file.limit"));

        LabFolder bytes;
        bytes.write("steps/1-start.md", "\xff\xfe");
        lab = bytes.read();
        QVERIFY(!lab);
        QCOMPARE(lab.error().code, std::string("lab.value"));

        LabFolder deep;
        deep.write("lab.json", std::string(100, '[') + std::string(100, ']'));
        lab = readLab(deep.path());
        QVERIFY(!lab);
        QCOMPARE(lab.error().code, std::string("json.limit"));
        QVERIFY(!readLab("/nowhere"));
    }

    void theHashIsThatOfWhatAStudentSees()
    {
        LabFolder folder;
        const std::string hash = (*folder.read())->hash;
        QCOMPARE(hash.size(), std::size_t(16));
        folder.json["steps"][1]["checks"][0]["rel"] = 0.1;
        QCOMPARE((*folder.read())->hash, hash);
        folder.write("steps/1-start.md", "Other words.\n");
        QVERIFY((*folder.read())->hash != hash);
    }

    void aPackForStudentsHoldsNoAnswers()
    {
        const LabFolder folder;
        const auto lab = *folder.read();
        const auto pack = folder.path().parent_path() / "pack" / "small-lab";
        QVERIFY(packLabForStudents(*lab, pack));
        QVERIFY(!std::filesystem::exists(pack / "solution.json"));
        const auto packed = readLab(pack);
        QVERIFY2(packed, packed ? "" : packed.error().text().c_str());
        QCOMPARE((*packed)->hash, lab->hash);
        QCOMPARE((*packed)->checkCount(), std::size_t(0));
        LabPredictions predictions;
        const auto grade = gradeLab(LabAttempt(*packed, "Ada"), predictions);
        QVERIFY(!grade);
        QCOMPARE(grade.error().code, std::string("lab.empty"));
        QVERIFY(!packLabForStudents(*lab, pack)); // not over another
    }

    void checkFindsWhatIsWrong()
    {
        LabFolder folder;
        folder.write("steps/1-start.md", "See [this](missing.svg).\n");
        folder.write("solution.json", R"({"format": "memscape-solution", "version": 1, "steps":
            {"guess": {"used": 0.9}, "repair": {"choice": {"stride": "16"}}}})");
        QStringList said;
        for (const Error& one : checkLab(*folder.read()))
            said.append(QString::fromStdString(one.text()));
        const QString all = said.join('\n');
        QVERIFY2(all.contains("missing.svg"), qPrintable(all));
        QVERIFY2(all.contains("variant 1: the solution does not pass guess.used"), qPrintable(all));
        QVERIFY2(all.contains("variant 2: the solution does not pass repair.half"), qPrintable(all));

        LabFolder gift;
        gift.json["steps"][2]["kind"] = "fix";
        gift.json["steps"][2]["start"] = {{"stride", "2"}};
        QVERIFY(QString::fromStdString(checkLab(*gift.read()).at(0).text()).contains("who does nothing gets 2 points"));
    }
};

QTEST_GUILESS_MAIN(TestLabReader)
#include "tst_lab_reader.moc"
