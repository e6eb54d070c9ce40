// SPDX-License-Identifier: GPL-3.0-or-later
// Claims and experiments lead to each other: a claim opens the page that shows it as a step of the history, the card
// Textbook says tells the table's story at the table's parameters and links back.
#include "app/claims/claims_page.h"
#include "core/claims/claim_quotes.h"
#include "tests/support/quiet_window.h"

#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

class TestClaimsWindow : public QObject
{
    Q_OBJECT

    std::unique_ptr<MainWindow> m_window;

    /// The page, while it is shown.
    ClaimsPage* claims() const { return qobject_cast<ClaimsPage*>(m_window->tool()); }

    void openClaims()
    {
        m_window->document().setDevice(claimsPageId, "nvidia-h200");
        QVERIFY(m_window->showPage(claimsPageId));
        QTRY_VERIFY_WITH_TIMEOUT(claims()->isSettled(), 60000);
    }
    QString cardText()
    {
        QStringList texts;
        for (const QLabel* label : m_window->page()->inspector()->claims()->findChildren<QLabel*>())
            texts << (label->isHidden() ? QString() : label->text());
        return texts.join(u'\n');
    }

private slots:
    void init() { m_window = shownWindow(); }
    void cleanup() { m_window.reset(); }

    void itIsOnTheRailUnderLearn()
    {
        m_window->rail().button("claims")->click();
        QVERIFY(claims());
        bool isTitled = false;
        for (const QLabel* label : m_window->rail().findChildren<QLabel*>())
            isTitled = isTitled || label->text() == "LEARN";
        QVERIFY(isTitled);
    }

    void itFitsIntoANarrowWindow()
    {
        openClaims();
        m_window->resize(1024, 700);
        QTRY_COMPARE(m_window->size(), QSize(1024, 700));
    }

    void theSearchIsAKeyAway()
    {
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
        m_window->rail().button("claims")->setFocus();
        QTest::keyClick(m_window->rail().button("claims"), '/');
        QVERIFY(QApplication::focusWidget() == m_window->rail().button("claims")); // another page is shown
        openClaims();
        m_window->rail().button("claims")->setFocus();
        QTest::keyClick(m_window->rail().button("claims"), '/');
        QCOMPARE(QApplication::focusWidget(), claims()->search());
    }

    void aClaimOpensItsPageAndUndoLeadsBack()
    {
        m_window->document().setDevice("stride", "nvidia-v100-sxm2");
        openClaims();
        QVERIFY(claims()->choose({ClaimsModel::Row::Kind::Claim, "contiguous-optimal"}));
        claims()->pane()->findChild<QPushButton*>("show.1")->click();
        QVERIFY(m_window->page());
        QCOMPARE(m_window->page()->experiment().id(), std::string("stride"));
        QCOMPARE(m_window->page()->parameters().integer("stride"), std::int64_t(8));
        QCOMPARE(m_window->page()->deviceId(), std::string("nvidia-h200"));
        m_window->document().undoStack()->undo(); // one step
        QVERIFY(claims());
        QCOMPARE(m_window->document().device("stride"), std::string("nvidia-v100-sxm2"));
        QVERIFY(m_window->document().parameters("stride").integer("stride") != 8);
        m_window->document().undoStack()->redo();
        QVERIFY(m_window->page());
        QCOMPARE(m_window->page()->parameters().integer("stride"), std::int64_t(8));
    }

    void theCardTellsTheTablesStory_data()
    {
        QTest::addColumn<QString>("id");
        for (const char* id : {"contiguous-optimal", "in-place-constant", "sqrt-recomputation", "flash-traffic"})
            QTest::newRow(id) << QString(id);
    }
    void theCardTellsTheTablesStory()
    {
        QFETCH(QString, id);
        openClaims();
        const JudgedClaim claim = *claims()->model().result()->claim(id.toStdString());
        QVERIFY(claims()->choose({ClaimsModel::Row::Kind::Claim, id.toStdString()}));
        claims()->showChosen();
        QVERIFY(m_window->page());
        QTRY_VERIFY_WITH_TIMEOUT(m_window->page()->upToDate() && !m_window->page()->isSeeking(), 60000);
        QTRY_VERIFY2(cardText().contains(QString::fromStdString(claim.entry->quote)), qPrintable(cardText()));
        QVERIFY2(cardText().contains(QString::fromStdString(claim.verdict)), qPrintable(cardText()));
    }

    void theCardLinksToTheClaim()
    {
        openClaims();
        QVERIFY(claims()->choose({ClaimsModel::Row::Kind::Claim, "contiguous-optimal"}));
        claims()->showChosen();
        QVERIFY(claims() == nullptr);
        m_window->document().setDevice("stride", "nvidia-a100-80gb");
        QTRY_VERIFY_WITH_TIMEOUT(m_window->page()->upToDate() && !m_window->page()->isSeeking(), 60000);
        QVERIFY2(cardText().contains("href=\"contiguous-optimal\""), qPrintable(cardText()));
        emit m_window->page()->inspector()->claims()->claimWanted("contiguous-optimal");
        QVERIFY(claims());
        QCOMPARE(claims()->deviceId(), std::string("nvidia-a100-80gb")); // as on the page
        QTRY_VERIFY_WITH_TIMEOUT(claims()->isSettled(), 60000);
        QVERIFY(claims()->pane()->text().contains("Contiguous: Optimal memory bandwidth utilization"));
        m_window->document().undoStack()->undo();
        QVERIFY(m_window->page());
    }

    void itIsExportedByTheMenu()
    {
        openClaims();
        QTemporaryDir folder;
        QString next;
        m_window->exporter().askName = [&](const QString&, const QString&, const QString&) { return next; };
        for (const auto& [name, action] : {std::pair{"claims.csv", "file.exportCsv"},
                                           {"claims.txt", "file.exportCsv"},
                                           {"claims.json", "file.exportJson"}}) {
            next = folder.filePath(name);
            m_window->actions().at(action).trigger();
            QTRY_VERIFY2(!m_window->exporter().isBusy(), name);
            QVERIFY2(QFileInfo(next).size() > 10000, name);
        }
        m_window->actions().at("file.exportPlot").trigger(); // says that there is none
    }

    void theFirstJudgingBlocksNoFrame()
    {
        m_window->document().setDevice(claimsPageId, "nvidia-t4");
        QVERIFY(m_window->showPage(claimsPageId));
        qint64 longest = 0;
        QElapsedTimer timer;
        timer.start();
        while (!claims()->isSettled() && timer.elapsed() < 60000) {
            QElapsedTimer turn;
            turn.start();
            QCoreApplication::processEvents();
            longest = std::max(longest, turn.elapsed());
            QTest::qSleep(1);
        }
        QVERIFY(claims()->isSettled());
        QVERIFY2(longest * 4 < timer.elapsed() || longest < 500, qPrintable(QString::number(longest)));
    }
};

QTEST_MAIN(TestClaimsWindow)
#include "tst_claims_window.moc"
