// SPDX-License-Identifier: GPL-3.0-or-later
// The list of claims: what a filter leaves, what is counted, and that a device is judged once.
#include "app/claims/claims_delegate.h"
#include "app/claims/claims_model.h"
#include "core/device/catalogue.h"

#include <QSignalSpy>
#include <QTest>

using namespace memscape;

namespace {

ClaimsResult judgedFor(ClaimsJudge& judge, const char* device)
{
    ClaimsResult result;
    QObject::connect(
        &judge, &ClaimsJudge::judged, &judge, [&](const ClaimsResult& one) { result = one; }, Qt::SingleShotConnection);
    judge.judge(*findDevice(device));
    QElapsedTimer timer;
    timer.start();
    while (!result && timer.elapsed() < 60000)
        QTest::qWait(5);
    return result;
}

} // namespace

class TestClaimsModel : public QObject
{
    Q_OBJECT

    ClaimsJudge m_judge;
    ClaimsResult m_result;

    std::size_t listedBy(const ClaimsFilter& filter)
    {
        ClaimsModel model;
        model.setResult(m_result);
        model.setFilter(filter);
        return model.listed().size();
    }

private slots:
    void initTestCase()
    {
        m_result = judgedFor(m_judge, "nvidia-h200");
        QVERIFY(m_result);
    }

    void allClaimsAreListedNoteByNote()
    {
        ClaimsModel model;
        QCOMPARE(model.rowCount(), 0);
        model.setResult(m_result);
        QCOMPARE(model.listed().size(), m_result->table->size());
        QCOMPARE(model.sources().size(), std::size_t(5));
        // six questions under a head, and a head for each note
        QCOMPARE(model.rowCount(), int(m_result->table->size()) + 6 + 1 + 5);
        QVERIFY(!(model.flags(model.index(0)) & Qt::ItemIsSelectable));
        QVERIFY(model.flags(model.index(1)) & Qt::ItemIsSelectable);
        int all = 0;
        for (const int count : model.counts())
            all += count;
        QCOMPARE(all, int(m_result->table->size()));
    }

    void filtersLeaveWhatTheySay()
    {
        ClaimsModel model;
        model.setResult(m_result);
        for (int i = 0; i < 4; ++i) {
            ClaimsFilter filter;
            filter.verdict = ClaimVerdict(i);
            const int counted = model.counts()[std::size_t(i)];
            model.setFilter(filter);
            QCOMPARE(int(model.listed().size()), counted);
            for (const JudgedClaim& claim : model.listed())
                QCOMPARE(verdictKind(claim.verdict), ClaimVerdict(i));
            QCOMPARE(model.counts()[std::size_t(i)], counted); // the counts of the others stay, too
            model.setFilter({});
        }
        QCOMPARE(listedBy({{}, "vram-bottleneck", {}, {}}), std::size_t(21));
        const std::size_t attention = listedBy({{}, {}, "attention", {}});
        QVERIFY(attention > 5 && attention < 30);
    }

    void theSearchFindsWordsInAnyOrder()
    {
        const std::size_t found = listedBy({"attention quadratic", {}, {}, {}});
        QVERIFY(found > 0);
        QCOMPARE(listedBy({"Quadratic  ATTENTION", {}, {}, {}}), found);
        QCOMPARE(listedBy({"no such words here", {}, {}, {}}), std::size_t(0));
        ClaimsModel model;
        model.setResult(m_result);
        model.setFilter({"no such words here", {}, {}, {}});
        QCOMPARE(model.rowCount(), 0); // no head is left alone
    }

    void aScreenReaderHearsTheVerdict()
    {
        ClaimsModel model;
        model.setResult(m_result);
        const QModelIndex row = model.indexOf({ClaimsModel::Row::Kind::Claim, "four-m"});
        QVERIFY(row.isValid());
        QVERIFY(row.data(Qt::AccessibleTextRole).toString().contains("holds"));
    }

    void aDeviceIsJudgedOnce()
    {
        QSignalSpy progress(&m_judge, &ClaimsJudge::progress);
        QCOMPARE(judgedFor(m_judge, "nvidia-h200"), m_result);
        QCOMPARE(progress.size(), 0);
        const ClaimsResult other = judgedFor(m_judge, "nvidia-v100-sxm2");
        QVERIFY(other && other != m_result);
        QVERIFY(other->claim("gpu-l2-size")->verdict != m_result->claim("gpu-l2-size")->verdict);
        QVERIFY(progress.size() > 10);
    }

    void aRunThatIsStoppedJudgesNothing()
    {
        ClaimsJudge judge;
        QSignalSpy judged(&judge, &ClaimsJudge::judged);
        QSignalSpy stopped(&judge, &ClaimsJudge::stopped);
        judge.judge(*findDevice("nvidia-a100-80gb"));
        judge.stop();
        QCOMPARE(stopped.size(), 1);
        QTRY_VERIFY_WITH_TIMEOUT(!judge.isBusy(), 20000);
        QCOMPARE(judged.size(), 0);
    }

    void longQuotesEndInDots()
    {
        const QFont font;
        const QString text = QString("word ").repeated(100).trimmed();
        const QStringList lines = linesOf(text, font, 200, 2);
        QCOMPARE(lines.size(), 2);
        QVERIFY(lines.back().endsWith(QStringLiteral("…")));
        QVERIFY(!lines.front().contains(QStringLiteral("…")));
        QCOMPARE(linesOf("word", font, 200, 2), QStringList("word"));
        QCOMPARE(linesOf("", font, 200, 2).join(u' '), QString());
    }
};

QTEST_MAIN(TestClaimsModel)
#include "tst_claims_model.moc"
