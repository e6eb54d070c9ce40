// SPDX-License-Identifier: GPL-3.0-or-later
// What a measurement says of the prediction, in words.
#include "app/pages/point_text.h"
#include "app/pages/progress_row.h"

#include "tests/support/page_fixture.h"

#include <QTest>

using namespace memscape;

class TestPointText : public QObject
{
    Q_OBJECT

    /// A record of latencies whose measurement is the prediction times `scale`.
    static Record latencies(double scale, const std::string& grade = "A")
    {
        Record record = sampleRecord("hierarchy", {"working_set=24MiB"}, scale);
        record.measured->detail["quality"] = {{"grade", grade}};
        return record;
    }

    static QString stale(const Record& record) { return staleText(*record.predicted, *record.measured, "latency"); }

private slots:
    void aPointNamesTheLevelThatHoldsIt()
    {
        const Record record = latencies(1.25);
        const QString text = pointText(*record.predicted, *record.measured, "latency", 24 * 0x1p20, record.device,
                                       QStringLiteral("working set"), ByteStyle::Binary);
        QVERIFY2(text.startsWith(QStringLiteral("L2: predicted ")), qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral("ns, measured ")), qPrintable(text));
        QVERIFY2(text.endsWith(QStringLiteral(", 20 % off")), qPrintable(text));
    }

    void aPointThatWasNotMeasuredHasNoSentence()
    {
        const Record record = latencies(1.25);
        QVERIFY(pointText(*record.predicted, *record.measured, "latency", 12345, record.device, {}, ByteStyle::Binary)
                    .isEmpty());
        QVERIFY(pointText(*record.predicted, *record.measured, "no-series", 24 * 0x1p20, record.device, {},
                          ByteStyle::Binary)
                    .isEmpty());
    }

    void elsewhereTheParameterGivesTheName()
    {
        const Record record = sampleRecord("stride", {"stride=8"}, 0.5);
        const QString text = pointText(*record.predicted, *record.measured, "useful_bandwidth", 8, record.device,
                                       QStringLiteral("stride 8"), ByteStyle::Binary);
        QVERIFY2(text.startsWith(QStringLiteral("stride 8: predicted ")), qPrintable(text));
        QVERIFY2(text.endsWith(QStringLiteral(", 100 % off")), qPrintable(text));
    }

    void aCalibrationIsStaleWhenTheCurveContradictsIt()
    {
        QCOMPARE(stale(latencies(1.7)), QStringLiteral("measured 1.7× above it"));
        QCOMPARE(stale(latencies(0.5)), QStringLiteral("measured 2.0× below it"));
        QVERIFY(stale(latencies(1.2)).isEmpty());
        QVERIFY(stale(latencies(1.7, "D")).isEmpty()); // a busy machine contradicts nothing
    }

    void onePointContradictsNothing()
    {
        Record record = latencies(1.7);
        for (Series& series : record.measured->series) {
            series.x.values.resize(1);
            series.y.resize(1);
        }
        QVERIFY(stale(record).isEmpty());
    }

    void theGradeIsThatOfTheMeasurement()
    {
        QCOMPARE(gradeText(*latencies(1, "C").measured), QStringLiteral("C"));
        QCOMPARE(gradeText(Outcome{}), QString());
    }

    void theTimeThatRemainsFollowsThePace()
    {
        QCOMPARE(remainingSeconds(10, 40, 5).value_or(-1), 15);
        QVERIFY(!remainingSeconds(10, 40, 1)); // too early
        QVERIFY(!remainingSeconds(1, 100, 10));
        QVERIFY(!remainingSeconds(40, 40, 10));
        QVERIFY(!remainingSeconds(0, 0, 10));
    }
};

QTEST_MAIN(TestPointText)
#include "tst_point_text.moc"
