// SPDX-License-Identifier: GPL-3.0-or-later
// A student at a lab: the list, a prediction that hides what it predicts until it is locked, errors beside their
// fields, runs and recorded runs, what is fixed and what is free, goals that follow, files that come and go.
#include "tests/app/labs/lab_bench.h"

#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QTemporaryDir>
#include <QToolButton>

using namespace memscape;
using namespace memscape::test;

namespace {

bool isRole(const LabPage& page, CurveRole role)
{
    for (const Curve& one : page.board()->plot()->curves())
        if (one.role == role)
            return true;
    return false;
}

void typeInto(LabPage& page, const char* question, const QString& text)
{
    auto* field = qobject_cast<NumberAnswer*>(page.steps()->field(question));
    field->edit()->clear();
    QTest::keyClicks(field->edit(), text);
    QTest::keyClick(field->edit(), Qt::Key_Return);
}

void answerGuess(LabPage& page)
{
    page.showStep("guess");
    typeInto(page, "ratio", "80");
    typeInto(page, "steps", "4");
    page.answer("drawn", Json::array({"1 ns", "4 ns", "12 ns", "100 ns"}));
}

} // namespace

class TestLabPage : public QObject
{
    Q_OBJECT

    std::unique_ptr<LabBench> m_bench;
    QTemporaryDir m_folder;
    LabPage& page() { return m_bench->page; }

private slots:
    void init() { m_bench = std::make_unique<LabBench>(); }
    void cleanup() { m_bench.reset(); }

    void theListShowsEveryLabAndHowFarOneIs()
    {
        QVERIFY(m_bench->settles());
        QCOMPARE(page().list()->entries().size(), labFolders().size());
        QPushButton* start = page().list()->button("cache-size");
        QVERIFY(start);
        QCOMPARE(start->text(), QString("Start"));
        start->click();
        QVERIFY(page().session());
        answerGuess(page());
        page().lock();
        page().closeLab();
        QVERIFY(m_bench->settles());
        QCOMPARE(page().list()->button("cache-size")->text(), QString("Continue"));
        QCOMPARE(page().list()->entries().front().progress, QString("2 of 5 steps done"));
    }

    /// What is locked takes no keys any more: they go on to the next step, not to another part of the window.
    void theKeyboardStaysInTheLabWhenAnswersAreLocked()
    {
        QVERIFY(page().openLab("cache-size"));
        QVERIFY(m_bench->settles());
        answerGuess(page());
        page().activateWindow();
        auto* steps = page().findChild<StepPane*>();
        steps->lockButton()->setFocus();
        QTRY_VERIFY(steps->lockButton()->hasFocus());
        page().lock();
        QVERIFY(m_bench->settles());
        QVERIFY(!steps->lockButton()->isVisible());
        QVERIFY(steps->isAncestorOf(QApplication::focusWidget()));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_PageDown, Qt::ControlModifier);
        QCOMPARE(page().session()->step().id, std::string("run"));
    }

    void withoutANameNothingBegins()
    {
        page().list()->name()->clear();
        QVERIFY(!page().openLab("cache-size"));
        QVERIFY(!page().session());
        page().list()->name()->setText("王小明");
        QVERIFY(page().openLab("cache-size"));
        QCOMPARE(page().session()->attempt().student(), std::string("王小明"));
        QCOMPARE(m_bench->fixture.settings.student(), QString("王小明"));
    }

    void whatCannotBeOpenedIsSaid()
    {
        QVERIFY(!page().openLab("/nowhere/lab"));
        QVERIFY(page().noticeText().contains("/nowhere/lab"));
        QVERIFY(!page().openAnswers("/nowhere/a.mlab"));
        QVERIFY(page().noticeText().contains("/nowhere/a.mlab"));
        const QString other = m_folder.filePath("other.mlab");
        QVERIFY(writeFileAtomically(other.toStdString(),
                                    R"({"format": "memscape-answers", "version": 1, "lab": "not-known-here"})"));
        QVERIFY(!page().openAnswers(other));
        QVERIFY(page().noticeText().contains("Open a lab folder"));
    }

    void stepsOpenOneAfterAnother()
    {
        QVERIFY(page().openLab("cache-size"));
        QVERIFY(m_bench->settles());
        QVERIFY(page().steps()->text().contains("staircase"));
        QVERIFY(!page().steps()->text().contains("{{"));
        page().showStep("run");
        QCOMPARE(page().session()->step().id, std::string("start"));
        QVERIFY(page().noticeText().contains("not open yet"));
        page().steps()->nextButton()->click();
        QCOMPARE(page().session()->step().id, std::string("guess"));
        QVERIFY(!page().steps()->nextButton()->isEnabled());
        answerGuess(page());
        page().steps()->lockButton()->click();
        QVERIFY(page().steps()->nextButton()->isEnabled());
        QVERIFY(page().steps()->lockButton()->isHidden());
    }

    void aPredictionHidesWhatItPredicts()
    {
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        QVERIFY(m_bench->settles());
        QVERIFY(!page().labStage()->page());
        QVERIFY(page().board()->isVisible());
        QVERIFY(isRole(page(), CurveRole::Drawn));
        QVERIFY(!isRole(page(), CurveRole::Predicted) && !isRole(page(), CurveRole::Measured));
        QVERIFY(page().results()->texts().isEmpty());
        page().lock();
        QVERIFY(page().labStage()->page()); // the measurement is open now
        page().showStep("run");
        page().playReplay();
        QVERIFY(m_bench->settles());
        QVERIFY(isRole(page(), CurveRole::Drawn) && isRole(page(), CurveRole::Predicted)
                && isRole(page(), CurveRole::Measured));
        const QString table = page().results()->texts().join('\n');
        QVERIFY2(table.contains("your curve | median ") && table.contains("ratio | 80"), qPrintable(table));
    }

    void aLockedAnswerStays()
    {
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        page().lock();
        page().answer("ratio", Json("3"));
        QCOMPARE(*page().session()->attempt().given(*page().session()->lab().question("ratio")), Json("80"));
        QVERIFY(page().steps()->field("ratio")->errorText().contains("locked"));
    }

    void anErrorStandsBesideItsField()
    {
        QVERIFY(page().openLab("cache-size"));
        page().showStep("guess");
        typeInto(page(), "ratio", "1,5");
        QVERIFY(page().steps()->field("ratio")->errorText().contains("point as decimal sign"));
        QVERIFY(page().steps()->field("steps")->errorText().isEmpty());
        auto* field = qobject_cast<NumberAnswer*>(page().steps()->field("ratio"));
        QCOMPARE(field->edit()->text(), QString("1,5")); // as it was typed
        typeInto(page(), "ratio", "1.5");
        QVERIFY(page().steps()->field("ratio")->errorText().isEmpty());
        page().lock();
        QVERIFY(!page().session()->attempt().isLocked("guess"));
        QCOMPARE(page().steps()->field("steps")->errorText(), QString("No answer yet."));
        QVERIFY(page().steps()->field("ratio")->errorText().isEmpty());
        page().answer("steps", Json("3"));
        QVERIFY(page().steps()->field("steps")->errorText().isEmpty());
    }

    void whatCannotBeReadIsSaidInTheReadersWords()
    {
        QVERIFY(page().openLab("training-bytes"));
        page().showStep("moments");
        typeInto(page(), "before_forward", "many");
        const QString said = page().steps()->field("before_forward")->errorText();
        QVERIFY2(said.contains("many") && !said.contains("before_forward"), qPrintable(said)); // no key of the file
        typeInto(page(), "after_forward", "5");
        const auto remarks = page().steps()->field("after_forward")->findChildren<QLabel*>();
        QVERIFY(std::ranges::any_of(remarks, [](const QLabel* one) { return one->text() == "read as 5 B"; }));
        page().lock();
        QCOMPARE(page().steps()->field("after_backward")->errorText(), QString("No answer yet."));
        QVERIFY(page().steps()->field("before_forward")->isAncestorOf(page().focusWidget()));
    }

    void whatSomebodyElseHandedInStaysAsItIs()
    {
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        const QString handed = m_folder.filePath("ada.mlab");
        page().handIn(handed);
        page().closeLab();
        const auto before = readFile(pathOf(handed));
        QVERIFY(before);
        m_bench->fixture.settings.setStudent("The teacher");
        QVERIFY(page().openAnswers(handed));
        QVERIFY2(page().noticeText().contains("Opened to read"), qPrintable(page().noticeText()));
        QVERIFY(page().subtitle().contains("answers of Ada L."));
        page().lock();
        QVERIFY(page().session()->attempt().isLocked("guess")); // of the copy
        page().closeLab();
        QCOMPARE(*readFile(pathOf(handed)), *before);
        QVERIFY(page().openAnswers(handed));
        for (QPushButton* one : page().findChildren<QPushButton*>())
            if (one->text() == "Work on it as Ada L.")
                QTimer::singleShot(0, one, &QPushButton::click);
        QTRY_COMPARE(page().session()->path(), handed);
        QVERIFY(!page().session()->isCopy());
    }

    void aFileToHandInNamesWhoHandsItIn()
    {
        QCOMPARE(handInName("Ada L.", "cache-size"), QString("ada-l-cache-size.mlab"));
        QCOMPARE(handInName("  ", "stride"), QString("stride.mlab"));
    }

    void aRecordedRunIsPredictedWhereItsDeviceIsMissing()
    {
        QVERIFY(page().openLab("training-bytes"));
        page().showStep("moments");
        page().solveStep();
        page().showStep("run");
        page().playReplay();
        QVERIFY(m_bench->settles());
        const QString said = page().steps()->findChild<QLabel*>("runText")->text();
        QVERIFY2(said.contains("on another CPU"), qPrintable(said));
        const auto shown = page().labStage()->page()->shownRecord();
        QVERIFY(shown && shown->measured && shown->predicted);
        QVERIFY(page().labStage()->page()->prediction()); // of the machine that it ran on
    }

    void numbersReadTheSameWithCommasInTheLocale()
    {
        const QLocale before;
        QLocale::setDefault(QLocale(QLocale::German));
        const auto back = qScopeGuard([&] { QLocale::setDefault(before); });
        QVERIFY(page().openLab("cache-size"));
        page().showStep("guess");
        typeInto(page(), "ratio", "80.5");
        QVERIFY(page().steps()->field("ratio")->errorText().isEmpty());
        auto* field = qobject_cast<NumberAnswer*>(page().steps()->field("ratio"));
        QCOMPARE(field->edit()->text(), QString("80.5"));
    }

    void aHintIsShownAndCounted()
    {
        QVERIFY(page().openLab("cache-size"));
        page().showStep("guess");
        QVERIFY(m_bench->settles());
        QVERIFY(page().steps()->hintButton()->text().contains("−1 point"));
        page().steps()->hintButton()->click();
        QVERIFY(m_bench->settles());
        QCOMPARE(page().steps()->hints().size(), 1);
        QVERIFY(page().steps()->hints().front().contains("plateau"));
        QVERIFY(page().steps()->hintButton()->text().contains("0.5"));
        page().hint();
        QVERIFY(m_bench->settles());
        QVERIFY(page().steps()->hintButton()->isHidden());
    }

    void aRecordedRunSaysThatItIsOne()
    {
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        page().lock();
        page().showStep("run");
        QVERIFY(m_bench->settles());
        auto* replay = page().steps()->findChild<QPushButton*>("replay");
        QVERIFY(replay->isVisible());
        replay->click();
        QVERIFY(m_bench->settles());
        const QString said = page().steps()->findChild<QLabel*>("runText")->text();
        QVERIFY2(said.contains("nothing was measured here") && said.contains("AMD EPYC") && said.contains("grade D")
                     && said.contains("2026"),
                 qPrintable(said));
        QVERIFY(page().labStage()->page()->shownRecord()->measured); // its points stand on the live page
    }

    void aRunOfTheOwnMachineIsAttached()
    {
        m_bench = std::make_unique<LabBench>(QStringList{FAKE_WORKER, "ok"});
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        page().lock();
        page().showStep("run");
        QVERIFY(m_bench->settles());
        m_bench->fixture.devices.startAll();
        page().setDevice("cpu");
        QTRY_VERIFY_WITH_TIMEOUT(page().steps()->measureButton()->isEnabled(), 10'000);
        page().steps()->measureButton()->click();
        QTRY_VERIFY_WITH_TIMEOUT(page().session()->attempt().run("run"), 10'000);
        QVERIFY(page().session()->attempt().state("run")->replay.empty());
        QCOMPARE(m_bench->fixture.document.records().size(), std::size_t(0)); // nothing gets into the study
        QVERIFY(page().steps()->findChild<QLabel*>("runText")->text().startsWith("Measured:"));
    }

    void aRunThatFailsIsSaidAndNothingIsLost()
    {
        m_bench = std::make_unique<LabBench>(QStringList{FAKE_WORKER, "failed"});
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        page().lock();
        page().showStep("run");
        m_bench->fixture.devices.startAll();
        page().setDevice("cpu");
        QTRY_VERIFY_WITH_TIMEOUT(page().steps()->measureButton()->isEnabled(), 10'000);
        page().measure();
        QTRY_VERIFY_WITH_TIMEOUT(!page().noticeText().isEmpty(), 10'000);
        QVERIFY(!page().session()->attempt().run("run"));
        QVERIFY(page().session()->attempt().isLocked("guess"));
    }

    void whatTheLabFixesIsPutBack()
    {
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        page().lock();
        page().showStep("run");
        QVERIFY(m_bench->settles());
        ExperimentPage* live = page().labStage()->page();
        QVERIFY(!live->inspector()->form()->field("pages")->isEnabled());
        QVERIFY(live->setText("pages", "4k"));
        QCOMPARE(live->parameters().choice("pages"), std::string("huge"));
        QVERIFY(page().noticeText().contains("The lab sets"));
        QVERIFY(live->setText("working_set", "1MiB")); // reads the curve off
        QCOMPARE(live->parameters().number("working_set"), double(1 << 20));
    }

    /// A goal that counts once another is reached says so in the words of the other.
    void aGoalThatWaitsSaysForWhat()
    {
        QVERIFY(page().openLab("zero"));
        for (const char* step : {"start", "divide", "send"}) {
            page().showStep(step);
            page().solveStep();
        }
        page().showStep("fit");
        QVERIFY(m_bench->settles());
        QVERIFY(page().labStage()->page()->setText("data_parallel", "2"));
        QVERIFY(m_bench->settles());
        const QString goals = page().steps()->goals().join('\n');
        QVERIFY2(goals.contains("✗ fits") && goals.contains("few: counts once “fits” is reached"), qPrintable(goals));
    }

    void whatIsTunedIsTheAnswerAndTheGoalFollows()
    {
        QVERIFY(page().openLab("cache-size"));
        for (const char* step : {"start", "guess", "run", "read_off"}) {
            page().showStep(step);
            page().solveStep();
        }
        page().showStep("fit");
        QVERIFY(m_bench->settles());
        const LabQuestion& question = *page().session()->lab().question("blocked");
        QVERIFY(!page().session()->attempt().given(question)); // looking is no answer
        ExperimentPage* live = page().labStage()->page();
        QVERIFY(live->inspector()->form()->field("working_set")->isEnabled());
        QVERIFY(live->setText("working_set", "64MiB"));
        QVERIFY(m_bench->settles());
        QVERIFY2(page().steps()->goals().join('\n').contains("✗ fast"), qPrintable(page().steps()->goals().join('\n')));
        QVERIFY(live->setText("working_set", "768KiB"));
        QVERIFY(m_bench->settles());
        QCOMPARE((*page().session()->attempt().given(question))["working_set"], Json("786432"));
        QVERIFY2(page().steps()->goals().join('\n').contains("✓ fast")
                     && page().steps()->goals().join('\n').contains("✓ large"),
                 qPrintable(page().steps()->goals().join('\n')));
        QVERIFY(page().labStage()->page() == live); // it was not made anew under the mouse
    }

    void answersGoOnInAnotherFile()
    {
        QVERIFY(page().openLab("cache-size"));
        answerGuess(page());
        const QString handed = m_folder.filePath("ada.mlab");
        page().handIn(handed);
        QVERIFY(page().noticeText().contains("Not done yet"));
        QVERIFY(page().openAnswers(handed));
        QCOMPARE(page().session()->path(), handed);
        QCOMPARE(page().session()->step().id, std::string("guess"));
        page().lock();
        QVERIFY(page().session()->attempt().isLocked("guess"));
        page().closeLab();
        QVERIFY(page().openLab("cache-size")); // the first file is as it was
        QVERIFY(!page().session()->attempt().isLocked("guess"));
    }

    void aBrokenFileIsKeptBeside()
    {
        const QString path = labAnswersPath("cache-size", "Ada L.");
        QDir().mkpath(QFileInfo(path).absolutePath());
        QVERIFY(writeFileAtomically(pathOf(path), "{\"format\": \"memscape-answers\", "));
        QVERIFY(!page().openLab("cache-size"));
        QVERIFY2(page().noticeText().contains("cache-size.mlab"), qPrintable(page().noticeText()));
        for (QPushButton* one : page().findChildren<QPushButton*>())
            if (one->text().startsWith("Begin anew"))
                QTimer::singleShot(0, one, &QPushButton::click);
        QTRY_VERIFY(page().session());
        QVERIFY(QFile::exists(path + ".broken"));
    }

    void reportsAreWritten()
    {
        QVERIFY(page().openLab("cache-size"));
        for (const char* step : {"start", "guess", "run"}) {
            page().showStep(step);
            page().solveStep();
        }
        QVERIFY(m_bench->settles());
        const QString html = m_folder.filePath("a.html"), pdf = m_folder.filePath("a.pdf");
        page().exportReport(html);
        page().exportReport(pdf);
        QVERIFY(QString::fromStdString(*readFile(pathOf(html))).contains("Ada L."));
        const std::string bytes = *readFile(pathOf(pdf));
        QVERIFY(bytes.starts_with("%PDF-"));
        QVERIFY(bytes.size() > 10'000); // with its charts
        page().exportReport(m_folder.filePath("a.docx"));
        QVERIFY(page().noticeText().contains(".html or .pdf"));
    }

    void theKeyboardIsEnough()
    {
        QVERIFY(page().openLab("cache-size"));
        page().activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&page()));
        page().steps()->circles()->circles().front()->setFocus();
        QTest::keyClick(&page(), Qt::Key_PageDown, Qt::ControlModifier);
        QCOMPARE(page().session()->step().id, std::string("guess"));
        page().answer("drawn", Json::array({"1 ns", "4 ns", "12 ns", "100 ns"}));
        auto* ratio = qobject_cast<NumberAnswer*>(page().steps()->field("ratio"))->edit();
        auto* steps = qobject_cast<NumberAnswer*>(page().steps()->field("steps"))->edit();
        ratio->setFocus();
        QTest::keyClicks(ratio, "80");
        QTest::keyClick(ratio, Qt::Key_Tab);
        QVERIFY(steps->hasFocus());
        QTest::keyClicks(steps, "4");
        QTest::keyClick(steps, Qt::Key_Return, Qt::ControlModifier);
        QVERIFY(page().session()->attempt().isLocked("guess"));
        QTest::keyClick(&page(), Qt::Key_H, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(page().session()->attempt().state("guess")->hints, std::size_t(1));
        QTest::keyClick(&page(), Qt::Key_PageUp, Qt::ControlModifier);
        QCOMPARE(page().session()->step().id, std::string("start"));
        for (const StepCircle* one : page().steps()->circles()->circles())
            QVERIFY(!one->accessibleName().isEmpty());
    }
};

QTEST_MAIN(TestLabPage)
#include "tst_lab_page.moc"
