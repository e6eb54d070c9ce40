// SPDX-License-Identifier: GPL-3.0-or-later
// The page Claims as a person uses it: judge, search, filter, read, open the page that shows a claim, export; with keys
// alone; and what it says when nothing matches, when it is stopped, and when the table is broken.
#include "app/claims/claims_page.h"
#include "app/settings/words.h"
#include "core/base/file.h"
#include "core/claims/claim_quotes.h"
#include "core/report/claims_report.h"
#include "tests/support/page_fixture.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QJsonDocument>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QScopeGuard>
#include <QTemporaryDir>
#include <QTest>
#include <QUndoStack>

using namespace memscape;

class TestClaimsPage : public QObject
{
    Q_OBJECT

    std::unique_ptr<PageFixture> m_fixture;
    std::unique_ptr<ClaimsPage> m_page;
    std::vector<PageVisit> m_visits;

    void showPage()
    {
        m_page = std::make_unique<ClaimsPage>(m_fixture->services());
        connect(m_page.get(), &ClaimsPage::pageWanted, this,
                [this](const PageVisit& visit) { m_visits.push_back(visit); });
        m_page->resize(1100, 800);
        m_page->show();
        QVERIFY(QTest::qWaitForWindowActive(m_page.get()));
        QTRY_VERIFY_WITH_TIMEOUT(m_page->isSettled(), 60000);
    }
    ScreenshotRequest request(const QStringList& values)
    {
        return {values,
                {},
                [](const QString&) { return false; },
                [this]() -> Result<void> {
                    return QTest::qWaitFor([this] { return m_page->isSettled(); }, 60000)
                        ? Result<void>()
                        : fail("run.timeout", "not settled");
                }};
    }

private slots:
    void init()
    {
        m_visits.clear();
        m_fixture = std::make_unique<PageFixture>();
        m_fixture->document.setDevice(claimsPageId, "nvidia-h200");
    }
    void cleanup()
    {
        m_page.reset();
        m_fixture.reset();
    }

    void theFirstQuestionIsShown()
    {
        showPage();
        QVERIFY(m_page->stateText().isEmpty());
        QVERIFY(m_page->pane()->text().contains("GPU memory bandwidth"));
        QVERIFY(m_page->pane()->visits().size() >= 3);
    }

    void aClaimIsShownInFull()
    {
        showPage();
        QVERIFY(m_page->choose({ClaimsModel::Row::Kind::Claim, "compute-overhead"}));
        const QString text = m_page->pane()->text();
        const JudgedClaim& claim = *m_page->model().result()->claim("compute-overhead");
        for (const std::string& part : {claim.entry->quote, claim.entry->place(), claim.ours, claim.right})
            QVERIFY2(text.contains(QString::fromStdString(part)), part.c_str());
        QVERIFY(text.contains("Does not hold"));
        QVERIFY(text.contains("chain=uniform:64"));
        QVERIFY(!m_page->choose({ClaimsModel::Row::Kind::Claim, "no-such-claim"}));
    }

    void showItOpensTheExperimentAtTheCase()
    {
        showPage();
        QVERIFY(m_page->choose({ClaimsModel::Row::Kind::Claim, "contiguous-optimal"}));
        m_page->pane()->findChild<QPushButton*>("show.1")->click(); // the second case: stride 8
        QCOMPARE(m_visits.size(), std::size_t(1));
        QCOMPARE(m_visits[0].page, QString("stride"));
        QCOMPARE(m_visits[0].device, std::string("nvidia-h200"));
        const std::pair<std::string, std::string> stride("stride", "8");
        QVERIFY(std::ranges::find(m_visits[0].changes, stride) != m_visits[0].changes.end());
    }

    /// What a button hands over parses back into exactly the parameters that were judged.
    void everyCaseCanBeOpened()
    {
        showPage();
        const ClaimsOfDevice& result = *m_page->model().result();
        const auto isWhole = [](const Experiment& experiment, const Parameters& parameters) {
            std::vector<std::string> texts;
            for (const auto& [key, text] : visitOf(experiment, parameters, {}, {}).changes)
                texts.push_back(key + "=" + text);
            const auto again = resolve(experiment.schema(), texts);
            return again && *again == parameters;
        };
        for (const ClaimEntry& entry : *result.table) {
            for (const ClaimCase& one : entry.cases)
                QVERIFY2(isWhole(*entry.experiment, one.parameters), entry.id.c_str());
        }
        for (const DeepQuestion& question : *result.questions) {
            for (const QuestionStep& step : question.steps)
                QVERIFY2(isWhole(*step.experiment, step.asked.parameters), question.id.c_str());
        }
    }

    void keysAreEnough()
    {
        showPage();
        QTest::keyClick(m_page->list(), '/');
        QCOMPARE(QApplication::focusWidget(), m_page->search());
        QTest::keyClicks(m_page->search(), "stride 8/");
        QCOMPARE(m_page->search()->text(), QString("stride 8/")); // a slash is a letter there
        m_page->search()->clear();
        QTest::keyClicks(m_page->search(), "tensor cores");
        QTest::keyClick(m_page->search(), Qt::Key_Return);
        QCOMPARE(QApplication::focusWidget(), m_page->list());
        const QModelIndex first = m_page->list()->currentIndex();
        QVERIFY(first.isValid());
        QTest::keyClick(m_page->list(), Qt::Key_Down);
        QVERIFY(m_page->list()->currentIndex().row() > first.row());
        while (m_page->pane()->visits().empty())
            QTest::keyClick(m_page->list(), Qt::Key_Up);
        QTest::keyClick(m_page->list(), Qt::Key_Return);
        QCOMPARE(m_visits.size(), std::size_t(1));
        QTest::keyClick(m_page->list(), Qt::Key_F, Qt::ControlModifier);
        QCOMPARE(QApplication::focusWidget(), m_page->search());
        QTest::keyClick(m_page->search(), Qt::Key_Escape);
        QVERIFY(m_page->model().filter().isEmpty());
    }

    void whatIsChosenStaysOnAnotherDevice()
    {
        showPage();
        QVERIFY(m_page->choose({ClaimsModel::Row::Kind::Claim, "gpu-l2-size"}));
        QVERIFY(m_page->pane()->text().contains("50 MiB"));
        m_page->setDevice("nvidia-v100-sxm2");
        QTRY_VERIFY_WITH_TIMEOUT(m_page->isSettled(), 60000);
        QVERIFY(m_page->pane()->text().contains("6 MiB"));
        m_fixture->document.undoStack()->undo();
        QTRY_VERIFY(m_page->pane()->text().contains("50 MiB")); // kept
    }

    void theClaimOfAQuestionIsOneClickAway()
    {
        showPage();
        QVERIFY(m_page->choose({ClaimsModel::Row::Kind::Question, "interval"}));
        m_page->pane()->findChild<QPushButton*>("toClaim")->click();
        QTRY_VERIFY(!m_page->pane()->findChild<QPushButton*>("toClaim"));
        QVERIFY(m_page->pane()->text().contains("Minimizing this gives k = √n"));
    }

    void aSearchThatFindsNothingSaysSo()
    {
        showPage();
        m_page->search()->setText("no such words here");
        QVERIFY(m_page->stateText().contains("No claim matches"));
        QVERIFY(!m_page->exports().csv);
        m_page->findChild<QPushButton*>("clearFilter")->click();
        QVERIFY(m_page->stateText().isEmpty());
    }

    void itCanBeStoppedAndGoesOn()
    {
        m_page = std::make_unique<ClaimsPage>(m_fixture->services());
        m_page->show();
        QVERIFY(m_page->stateText().contains("Judging"));
        m_page->findChild<QPushButton*>("stopJudging")->click();
        QVERIFY(m_page->stateText().contains("Stopped"));
        QVERIFY(m_page->isSettled());
        m_page->findChild<QPushButton*>("judge")->click();
        QTRY_VERIFY_WITH_TIMEOUT(m_page->isSettled() && m_page->stateText().isEmpty(), 60000);
    }

    void aBrokenTableNamesFileAndEntry()
    {
        QTemporaryDir folder;
        QVERIFY(QDir(folder.path()).mkpath("claims"));
        const Json entry{{"id", "odd"}, {"line", 1}, {"heading", "H"}, {"quote", "q"}, {"topic", "t"}, {"verdickt", 1}};
        const Json table{{"format", "memscape-claims"},
                         {"version", 1},
                         {"source", "broken"},
                         {"title", "Broken"},
                         {"claims", Json::array({entry})}};
        QVERIFY(writeFileAtomically(folder.filePath("claims/broken.json").toStdString(), jsonText(table)));
        const QByteArray before = qgetenv("MEMSCAPE_RESOURCES");
        const auto back = qScopeGuard([&] { qputenv("MEMSCAPE_RESOURCES", before); });
        qputenv("MEMSCAPE_RESOURCES", folder.path().toUtf8());
        showPage();
        QVERIFY(!m_page->stateText().isEmpty());
        m_page->findChild<QPushButton*>("copyDetails")->click();
        const QString details = QGuiApplication::clipboard()->text();
        QVERIFY2(details.contains("broken.json") && details.contains("\"odd\""), qPrintable(details));
        qputenv("MEMSCAPE_RESOURCES", before);
        m_page->findChild<QPushButton*>("judge")->click();
        QTRY_VERIFY_WITH_TIMEOUT(m_page->isSettled() && m_page->stateText().isEmpty(), 60000);
    }

    void whatIsListedIsExportedAsTheCommandLineWritesIt()
    {
        showPage();
        m_page->setFilter({{}, "vram-bottleneck", {}, {}});
        const PageExports exports = m_page->exports();
        QTemporaryDir folder;
        const auto written = [&](const PageExports::Write& write, const char* name) {
            const QString path = folder.filePath(name);
            return write(path) ? *readFile(pathOf(path)) : std::string();
        };
        const auto listed = m_page->model().listed();
        QCOMPARE(written(exports.json, "claims.json"), claimsDocument(listed));
        QCOMPARE(written(exports.csv, "claims.txt"), claimsText(listed, m_page->model().result()->device));
        const std::string csv = written(exports.csv, "claims.csv");
        QCOMPARE(std::ranges::count(csv, '\n'), std::ptrdiff_t(22)); // a head and 21 claims
        QCOMPARE(exports.data().count(u'\n'), qsizetype(22));
        QVERIFY(!exports.csv(QStringLiteral("/nowhere/claims.csv")));
    }

    void screenshotsMayAskForAnything()
    {
        showPage();
        QVERIFY(m_page->apply(request({"device=nvidia-a100-80gb", "source=vram-bottleneck", "verdict=does-not-hold"})));
        QCOMPARE(m_page->deviceId(), std::string("nvidia-a100-80gb"));
        QCOMPARE(m_page->model().filter().source, std::string("vram-bottleneck"));
        QCOMPARE(m_page->model().filter().verdict, ClaimVerdict::Fails);
        QVERIFY(m_page->apply(request({"entry=four-m"})));
        QVERIFY(m_page->apply(request({"question=pools", "search=pool"})));
        const std::pair<const char*, const char*> refused[] = {{"entri=four-m", "did you mean entry"},
                                                               {"entry=five-m", "no claim"},
                                                               {"verdict=hold", "holds"},
                                                               {"source=vram", "vram-bottleneck"},
                                                               {"topic=atention", "attention"},
                                                               {"device=nvidia-h20", "no device"}};
        for (const auto& [word, message] : refused) {
            const auto applied = m_page->apply(request({word}));
            QVERIFY2(!applied, word);
            QVERIFY2(applied.error().text().find(message) != std::string::npos, applied.error().text().c_str());
        }
    }

    void everythingHasANameForTheScreenReader()
    {
        showPage();
        for (QWidget* widget : m_page->findChildren<QWidget*>()) {
            if (!(widget->focusPolicy() & Qt::TabFocus) || !widget->isVisible())
                continue;
            const auto* button = qobject_cast<QAbstractButton*>(widget);
            const bool isNamed = !widget->accessibleName().isEmpty() || (button && !button->text().isEmpty());
            QVERIFY2(isNamed, widget->metaObject()->className());
        }
    }
};

QTEST_MAIN(TestClaimsPage)
#include "tst_claims_page.moc"
