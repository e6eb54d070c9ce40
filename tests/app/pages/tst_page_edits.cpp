// SPDX-License-Identifier: GPL-3.0-or-later
// Parameters edited on a page: by text, slider and marker, undone, predicted once for many changes, stopped.
#include "app/pages/fields/parameter_section.h"
#include "tests/support/page_fixture.h"

#include <QSignalSpy>
#include <QSlider>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

class TestPageEdits : public QObject
{
    Q_OBJECT

private slots:
    void init() { m_fixture = std::make_unique<PageFixture>(); }

    void aSectionRemembersThatItWasUnfolded()
    {
        const auto details = [](ExperimentPage& page) { return page.inspector()->form()->sections().back(); };
        auto page = open("training-memory", "nvidia-h200");
        QCOMPARE(page->inspector()->form()->sections().size(), std::size_t(5));
        QVERIFY(!details(*page)->isOpen());
        details(*page)->header()->click();
        page.reset();
        page = open("training-memory", "nvidia-h200");
        QVERIFY(details(*page)->isOpen());
        details(*page)->header()->click();
        page.reset();
        QVERIFY(!details(*open("training-memory", "nvidia-h200"))->isOpen());
    }

    void aFoldedSectionTellsWhatWasChangedInIt()
    {
        auto page = open("training-memory", "nvidia-h200");
        QVERIFY(page->setText("zero", "2"));
        QTRY_VERIFY(page->upToDate());
        const ParameterSection* parallelism = page->inspector()->form()->sections().at(1);
        QCOMPARE(parallelism->title(), QString("Parallelism and offload"));
        QCOMPARE(parallelism->changedText(), QString("ZeRO stage 2"));
        QVERIFY(page->setText("model", "mlp:784,512,10")); // without tokens
        QVERIFY(page->setText("sequence", "512"));
        QTRY_VERIFY(page->upToDate());
        QVERIFY(page->inspector()->form()->field("sequence")->isHidden());
        QCOMPARE(page->inspector()->form()->idleText(), QString("Set, but without effect here: sequence 512 tokens"));
    }

    void aLibraryBringsItsDefaultsAndTakesThemAlong()
    {
        auto page = open("training-memory", "nvidia-h200");
        QVERIFY(page->setText("batch", "3"));
        QVERIFY(page->setText("clipping", "true"));
        const Parameters before = page->parameters();
        QVERIFY(page->setText("library", "torchtune"));
        QCOMPARE(page->parameters().choice("precision"), std::string("bf16"));
        QCOMPARE(page->parameters().choice("loss"), std::string("chunked:8"));
        QCOMPARE(page->parameters().integer("batch"), std::int64_t(3));
        QVERIFY(page->setText("precision", "fp32")); // of one's own
        QVERIFY(page->setText("library", "auto"));
        QCOMPARE(page->parameters().choice("loss"), before.choice("loss"));
        QCOMPARE(page->parameters().choice("precision"), std::string("fp32"));
        QVERIFY(page->parameters().flag("clipping"));
    }

    void whatALibraryImpliesFollowsTheModelAndTheMethod()
    {
        auto page = open("training-memory", "nvidia-h200");
        const auto is = [&](const char* key) { return page->parameters().choice(key); };
        QVERIFY(page->setText("library", "torchtune"));
        QVERIFY(page->setText("optimizer", "lion")); // of one's own, where torchtune takes 8-bit Adam
        QCOMPARE(is("loss"), std::string("chunked:8"));
        QVERIFY(page->setText("adapter", "lora"));
        QCOMPARE(page->parameters().integer("adapter_rank"), std::int64_t(8));
        QCOMPARE(is("adapter_precision"), std::string("base"));
        QCOMPARE(is("optimizer"), std::string("lion"));
        m_fixture->document.undoStack()->undo(); // one step
        QCOMPARE(is("adapter"), std::string("none"));
        QCOMPARE(is("adapter_precision"), std::string("auto"));
        QVERIFY(page->setText("library", "transformers"));
        QVERIFY(page->setText("model", "gpt2")); // with dropout, and fewer positions than tokens
        QCOMPARE(page->parameters().number("dropout"), 0.1);
        QCOMPARE(page->parameters().integer("sequence"), std::int64_t(1024));
        QVERIFY(page->setText("dropout", "0"));
        QVERIFY(page->setText("model", "bert-base-uncased"));
        QCOMPARE(page->parameters().number("dropout"), 0.0);
    }

    void textSetsValuesSweepsAndRefusesTheRest()
    {
        auto page = open("stride", "nvidia-h200");
        QVERIFY(page->setText("stride", "8"));
        QCOMPARE(page->parameters().number("stride"), 8.0);
        QVERIFY(page->setText("stride", "1:16:x2"));
        QCOMPARE(page->parameters().sweep()->values.size(), std::size_t(5));
        QVERIFY(page->setText("stride", "3")); // ends the sweep
        QVERIFY(!page->parameters().sweep());
        QVERIFY(!page->setText("stride", "many"));
        QVERIFY(!page->setText("no such", "1"));
        QCOMPARE(page->parameters().number("stride"), 3.0);
    }

    void undoRestoresEverything()
    {
        auto page = open("stride", "nvidia-h200");
        const Parameters before = page->parameters();
        QVERIFY(page->setText("stride", "8"));
        QVERIFY(page->setText("element", "float64"));
        QVERIFY(page->setText("stride", "1,2,4"));
        page->resetParameters();
        QCOMPARE(page->parameters(), before);
        while (m_fixture->document.undoStack()->canUndo())
            m_fixture->document.undoStack()->undo();
        QCOMPARE(page->parameters(), before);
        QVERIFY(m_fixture->document.device("stride").empty());
    }

    void aDragIsOneStep()
    {
        auto page = open("stride", "nvidia-h200");
        const int before = m_fixture->document.undoStack()->index();
        auto* slider = page->inspector()->form()->field("stride")->findChild<QSlider*>();
        slider->setSliderDown(true);
        for (int i = 0; i < 10; ++i)
            slider->setValue(slider->value() + 1);
        slider->setSliderDown(false);
        QCOMPARE(m_fixture->document.undoStack()->index(), before + 1);
    }

    void manyChangesAreOnePrediction()
    {
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        QTest::qWait(50);
        QSignalSpy updated(page.get(), &ExperimentPage::updated);
        const int replots = page->plot()->view()->replotCount();
        for (int i = 1; i <= 200; ++i)
            QVERIFY(page->setText("stride", QString::number(1 + i % 128)));
        QTRY_VERIFY(page->upToDate());
        QTest::qWait(50);
        QVERIFY2(updated.size() <= 3, qPrintable(QString::number(updated.size())));
        QVERIFY(page->plot()->view()->replotCount() - replots <= 3);
    }

    void theMarkerSetsTheParameter()
    {
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        emit page->plot()->view()->markerDragged("stride", 15.7);
        emit page->plot()->view()->markerReleased("stride", 15.7);
        QCOMPARE(page->parameters().number("stride"), 16.0);
        emit page->plot()->view()->markerDragged("stride", -5);
        QCOMPARE(page->parameters().number("stride"), 0.0);
    }

    void aLongPredictionIsStoppedByEscape()
    {
        auto page = open("checkpoint", "nvidia-h200");
        page->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(page.get()));
        const Record* before = page->prediction();
        QVERIFY(before);
        QVERIFY(page->setText("chain", "mlp:150x4096"));
        QVERIFY(page->setText("slots", "300:499:1")); // solved two hundred times: many seconds
        QTRY_VERIFY_WITH_TIMEOUT(page->plot()->statusText().contains("Esc"), 10000);
        QCOMPARE(page->prediction(), before); // the old answer stays meanwhile
        QTest::keyClick(page.get(), Qt::Key_Escape);
        QTRY_VERIFY_WITH_TIMEOUT(page->upToDate(), 5000);
        QCOMPARE(page->prediction(), before);
        QVERIFY2(page->inspector()->noteText().contains("stopped"), qPrintable(page->inspector()->noteText()));
        QVERIFY(!page->plot()->statusText().contains("Esc"));
        page->resetParameters();
        QTRY_VERIFY(page->upToDate() && !page->inspector()->noteText().contains("stopped"));
    }

    void changeToRepaintIsFast()
    {
        auto page = open("hierarchy", "cpu");
        page->resize(1280, 800);
        QTRY_VERIFY(page->upToDate());
        int i = 0;
        QBENCHMARK
        {
            static_cast<void>(page->setText("working_set", QString::number(65536 + 4096 * ++i)));
            page->updateNow();
        }
    }

private:
    std::unique_ptr<ExperimentPage> open(const std::string& id, const std::string& device)
    {
        return m_fixture->open(id, device);
    }

    std::unique_ptr<PageFixture> m_fixture;
};

QTEST_MAIN(TestPageEdits)
#include "tst_page_edits.moc"
