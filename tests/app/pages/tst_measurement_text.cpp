// SPDX-License-Identifier: GPL-3.0-or-later
// What a measurement says of itself and of the prediction, in words.
#include "app/pages/measurement_text.h"
#include "app/pages/progress_row.h"

#include "tests/support/page_fixture.h"

#include <QTest>

using namespace memscape;

class TestMeasurementText : public QObject
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

QTEST_MAIN(TestMeasurementText)
#include "tst_measurement_text.moc"
