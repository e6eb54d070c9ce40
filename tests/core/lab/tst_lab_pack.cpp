// SPDX-License-Identifier: Apache-2.0
// What a student gets of each shipped lab: it can be read, holds no right answer, and what is answered with it is
// graded with the whole lab. What it begins with can be opened.
#include "core/base/file.h"
#include "core/experiment/document.h"
#include "core/lab/lab_authoring.h"
#include "tests/core/lab/lab_folder.h"

#include <QTemporaryDir>
#include <QtTest>

using namespace memscape;

class TestLabPack : public QObject
{
    Q_OBJECT

private slots:
    void init() { QVERIFY(m_folder.emplace().isValid()); }

    void packsAreSolvedAndGradedWithTheWholeLab_data() { shippedLabs(); }
    void packsAreSolvedAndGradedWithTheWholeLab()
    {
        const auto lab = shippedLab();
        const auto pack = packOf(*lab);
        QVERIFY2(pack, pack ? "" : pack.error().text().c_str());
        QVERIFY((*pack)->isStudentPack && (*pack)->checkCount() == 0 && (*pack)->solution.is_null());
        QCOMPARE((*pack)->hash, lab->hash);

        const auto solved = solvedLab(lab, "Ada");
        QVERIFY2(solved, solved ? "" : solved.error().text().c_str());
        LabAttempt work(*pack, "Ada"); // the same answers, given one after another to the pack
        for (const LabStep& step : (*pack)->steps) {
            QVERIFY2(work.isOpen(step.id), step.id.c_str());
            for (const LabQuestion& question : step.questions) {
                const auto kept = work.answer(step.id, question.key, *solved->given(*lab->question(question.key)));
                QVERIFY2(kept, kept ? "" : kept.error().text().c_str());
            }
            if (step.kind == LabStepKind::Measure)
                QVERIFY(work.replay(step.id));
            if (step.kind == LabStepKind::Predict)
                QVERIFY(work.lock(step.id));
        }
        LabPredictions predictions;
        for (const LabStep& step : (*pack)->steps) { // every text can be shown
            const auto text = labStepText(work, step, predictions);
            QVERIFY2(text, text ? "" : text.error().text().c_str());
        }
        QCOMPARE(gradeLab(work, predictions).error().code, std::string("lab.empty"));

        const auto handedIn = LabAttempt::parse(lab, jsonText(work.toJson()));
        QVERIFY2(handedIn, handedIn ? "" : handedIn.error().text().c_str());
        QVERIFY(handedIn->isOfThisLab());
        const auto grade = gradeLab(*handedIn, predictions);
        QVERIFY2(grade, grade ? "" : grade.error().text().c_str());
        QCOMPARE(grade->points, grade->most);
    }

    void packsHoldNoRightAnswer_data() { shippedLabs(); }
    void packsHoldNoRightAnswer()
    {
        const auto lab = shippedLab();
        const auto pack = packOf(*lab);
        QVERIFY(pack);
        QVERIFY(!std::filesystem::exists(packFolder() / "solution.json"));
        const std::string json = *readFile(packFolder() / "lab.json");
        for (const char* key : {"\"checks\"", "\"because\"", "\"by\"", "\"expected\""})
            QVERIFY2(json.find(key) == std::string::npos, key);
        // Of an expression that only checks use nothing is left; one that a text shows too is there anyway.
        const Json whole = *parseJson(*readFile(lab->folder / "lab.json"));
        std::string shown;
        for (const LabStep& step : lab->steps) {
            shown += step.text;
            for (const LabHint& hint : step.hints)
                shown += hint.text;
            for (const LabQuestion& question : step.questions)
                shown += question.ask + jsonLine(question.x);
        }
        int looked = 0;
        for (const LabStep& step : lab->steps)
            for (const LabCheck& check : step.checks)
                for (const std::string* text : {&check.value, &check.than, &check.because}) {
                    if (text->size() < 12 || shown.find(*text) != std::string::npos)
                        continue;
                    const std::string quoted = jsonLine(Json(*text));
                    bool isValue = false; // a value that a text shows is computed from it
                    for (const auto& [key, expression] : (*pack)->values)
                        isValue = isValue || expression.find(*text) != std::string::npos;
                    ++looked;
                    QVERIFY2(isValue || json.find(quoted.substr(1, quoted.size() - 2)) == std::string::npos,
                             text->c_str());
                }
        QVERIFY(looked > 0);
    }

    void valuesThatOnlyChecksUseAreLeftOut()
    {
        const auto lab = *findLab("zero");
        const auto pack = packOf(*lab);
        QVERIFY(pack);
        const auto has = [](const Lab& one, const char* key) {
            return std::ranges::any_of(one.values, [&](const auto& value) { return value.first == key; });
        };
        QVERIFY(has(*lab, "held1") && !has(**pack, "held1"));
        for (const LabPrediction& one : lab->predictions)
            QVERIFY(std::any_of((*pack)->predictions.begin(), (*pack)->predictions.end(),
                                [&](const LabPrediction& other) { return other.key == one.key; }));
    }

    /// The pages of tune and fix steps as the lab sets them, for the window.
    void theStartCanBeOpened_data() { shippedLabs(); }
    void theStartCanBeOpened()
    {
        const auto lab = shippedLab();
        std::vector<const LabStep*> steps;
        for (const LabStep& step : lab->steps)
            if (step.kind == LabStepKind::Tune || step.kind == LabStepKind::Fix)
                steps.push_back(&step);
        const LabAttempt attempt(lab, "Ada");
        LabPredictions predictions;
        const auto study = labStartStudy(attempt, predictions);
        if (steps.empty()) {
            QCOMPARE(study.error().code, std::string("lab.step"));
            return;
        }
        QVERIFY2(study, study ? "" : study.error().text().c_str());
        const std::filesystem::path file = std::filesystem::path(m_folder->path().toStdString()) / "start.memscape";
        QVERIFY(writeStudy(file, *study));
        const auto opened = readStudy(file);
        QVERIFY2(opened, opened ? "" : opened.error().text().c_str());
        QCOMPARE(opened->records.size(), steps.size());
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const Record& record = opened->records[i];
            QCOMPARE(record.experiment, steps[i]->request->experiment);
            QVERIFY(record.predicted && !record.measured);
            const auto texts = *attempt.parameters(*steps[i]);
            const auto wanted = *resolve((*findExperiment(record.experiment))->schema(), texts);
            QVERIFY(record.parameters.values() == wanted.values());
        }
    }

    void aBrokenStartIsReported()
    {
        const test::LabFolder folder;
        const auto lab = *folder.read();
        QVERIFY(checkLab(lab).empty());
        folder.write("start.memscape", "{\"format\": \"memscape-study\", \"version\": 1, \"records\": [1]}");
        const auto problems = checkLab(lab);
        QCOMPARE(problems.size(), std::size_t(1));
        QVERIFY2(problems[0].text().find("start.memscape") != std::string::npos, problems[0].text().c_str());
    }

private:
    static void shippedLabs()
    {
        QTest::addColumn<QString>("lab");
        for (const auto& folder : labFolders())
            QTest::newRow(folder.filename().c_str()) << QString::fromStdString(folder.string());
        QVERIFY(labFolders().size() >= 14);
    }
    static std::shared_ptr<const Lab> shippedLab()
    {
        QFETCH(QString, lab);
        return *readLab(lab.toStdString());
    }
    std::filesystem::path packFolder() const { return std::filesystem::path(m_folder->path().toStdString()) / "pack"; }
    Result<std::shared_ptr<const Lab>> packOf(const Lab& lab) const
    {
        MEMSCAPE_CHECK(packLabForStudents(lab, packFolder()));
        return readLab(packFolder());
    }

    std::optional<QTemporaryDir> m_folder;
};

QTEST_GUILESS_MAIN(TestLabPack)
#include "tst_lab_pack.moc"
