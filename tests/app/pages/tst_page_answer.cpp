// SPDX-License-Identifier: GPL-3.0-or-later
// Below its question a page says the answer, of what was measured where it was, and links to the parameters that
// would change it most.
#include "tests/support/page_fixture.h"

#include <QFile>
#include <QLabel>
#include <QTemporaryDir>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

class TestPageAnswer : public QObject
{
    Q_OBJECT

private slots:
    void init() { m_fixture = std::make_unique<PageFixture>(); }

    void everyPageAnswersItsQuestion_data()
    {
        QTest::addColumn<QString>("id");
        for (const Experiment* experiment : experiments())
            QTest::newRow(experiment->id().c_str()) << QString::fromStdString(experiment->id());
    }
    void everyPageAnswersItsQuestion()
    {
        QFETCH(QString, id);
        auto page = open(id.toStdString(), "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        QVERIFY(page->header()->answer().endsWith(u'.'));
        QVERIFY(!page->header()->answer().startsWith(QStringLiteral("Measured")));
    }

    void aMeasurementIsWhatIsSaid()
    {
        m_fixture->document.addRecord(sampleRecord("stride", {}, 2));
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(page->upToDate());
        QVERIFY2(page->header()->answer().startsWith(QStringLiteral("Measured: ")),
                 qPrintable(page->header()->answer()));
        QVERIFY(page->header()->answer().contains(QStringLiteral("2.21 TB/s")));
        QVERIFY(page->setText("stride", "8"));
        QTRY_VERIFY(page->upToDate());
        QVERIFY(!page->header()->answer().startsWith(QStringLiteral("Measured")));
    }

    /// Twice the batch takes longer a step and less an example.
    void theTimeOfOneExampleIsNamed()
    {
        auto page = open("batch-size", "nvidia-h200");
        QTRY_VERIFY_WITH_TIMEOUT(!page->isSeeking(), 30000);
        QVERIFY2(page->header()->changes().contains("Less time per example: "), qPrintable(page->header()->changes()));
    }

    void aLinkTakesTheChangeInOneStep()
    {
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(!page->isSeeking() && page->header()->changes().contains(QStringLiteral("stride=2")));
        const int before = m_fixture->document.undoStack()->index();
        emit page->header()->findChild<QLabel*>(QStringLiteral("changes"))->linkActivated(QStringLiteral("stride=2"));
        QTRY_VERIFY(page->upToDate());
        QCOMPARE(page->parameters().integer("stride"), 2);
        QCOMPARE(m_fixture->document.undoStack()->index(), before + 1);
        QTRY_VERIFY(page->header()->changes().contains(QStringLiteral("stride=1\"")));
    }

    /// The way out stands beside the refusal, not only under the figures.
    void aRefusalLinksToItsRemedy()
    {
        QTemporaryDir folder;
        QFile file(folder.filePath("config.json"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(R"({"model_type": "frobnicator", "hidden_size": 512, "num_hidden_layers": 4,
                       "num_attention_heads": 8, "vocab_size": 1000, "intermediate_size": 2048})");
        file.close();
        auto page = open("training-memory", "nvidia-t4");
        QVERIFY(page->setText("model", file.fileName()));
        QTRY_VERIFY(page->upToDate());
        QVERIFY2(page->header()->answer().startsWith("No answer: "), qPrintable(page->header()->answer()));
        QVERIFY2(page->header()->changes().contains("href=\"assume=llama\""), qPrintable(page->header()->changes()));
        emit page->header()->findChild<QLabel*>(QStringLiteral("changes"))->linkActivated("assume=llama");
        QTRY_VERIFY(page->upToDate() && page->prediction());
        QVERIFY(!page->header()->answer().startsWith("No answer"));
    }

    // Those of the last parameters would be wrong, if only for a moment.
    void changesOfOtherParametersDoNotStay()
    {
        auto page = open("stride", "nvidia-h200");
        QTRY_VERIFY(!page->isSeeking() && page->header()->changes().contains(QStringLiteral("stride=2")));
        QVERIFY(page->setText("stride", "8"));
        QTRY_VERIFY(page->upToDate());
        QVERIFY2(!page->header()->changes().contains(QStringLiteral("stride=2")),
                 qPrintable(page->header()->changes()));
        QTRY_VERIFY(!page->isSeeking() && page->header()->changes().contains(QStringLiteral("stride=4")));
    }

    void pagesOfMemoryLinkWhatWouldTakeLess_data()
    {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QString>("link");
        QTest::newRow("serving") << "inference-memory"
                                 << "weight_precision=";
        QTest::newRow("checkpointing") << "checkpoint"
                                       << "strategy=";
    }
    void pagesOfMemoryLinkWhatWouldTakeLess()
    {
        QFETCH(QString, id);
        QFETCH(QString, link);
        auto page = open(id.toStdString(), "nvidia-h200");
        QTRY_VERIFY2(!page->isSeeking() && page->header()->changes().contains(link),
                     qPrintable(page->header()->changes()));
    }

    void aFurtherPageHasAnotherQuestion()
    {
        auto page = open("training-memory", "nvidia-h200", "step-timeline");
        QTRY_VERIFY2(page->header()->answer().startsWith(QStringLiteral("The peak is ")),
                     qPrintable(page->header()->answer()));
        QVERIFY(page->header()->answer().contains(QStringLiteral(" phase")));
    }

private:
    std::unique_ptr<ExperimentPage> open(const std::string& id, const std::string& device,
                                         const std::string& further = {})
    {
        return m_fixture->open(id, device, further);
    }

    std::unique_ptr<PageFixture> m_fixture;
};

QTEST_MAIN(TestPageAnswer)
#include "tst_page_answer.moc"
