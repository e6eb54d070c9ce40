// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/quality.h"

#include <limits>
#include <vector>

#include <QTest>

using namespace memscape;

namespace {

/// Forty samples whose middle half spans `spread` of the median.
std::vector<double> spreadOver(double spread)
{
    std::vector<double> samples;
    for (int i = 0; i < 41; ++i)
        samples.push_back(1 + 2 * spread * (i - 20) / 40.0);
    return samples;
}

} // namespace

class TestQuality : public QObject
{
    Q_OBJECT
private slots:
    void spreadDecides_data()
    {
        QTest::addColumn<double>("spread");
        QTest::addColumn<QString>("grade");
        QTest::newRow("A") << 0.009 << "A";
        QTest::newRow("B") << 0.02 << "B";
        QTest::newRow("C") << 0.05 << "C";
        QTest::newRow("D") << 0.2 << "D";
    }
    void spreadDecides()
    {
        QFETCH(const double, spread);
        QFETCH(const QString, grade);
        const Quality quality = gradeOf(summarize(spreadOver(spread)));
        QCOMPARE(QString(QChar(quality.grade)), grade);
        QVERIFY(!quality.reason.empty());
    }

    void clockDropIsSaid()
    {
        // The clock fell by 1.5×: the samples agree with each other and are wrong together.
        RunConditions seen;
        seen.clockShare = 1 / 1.5;
        const Quality quality = gradeOf(summarize(spreadOver(0.001)), seen);
        QCOMPARE(quality.grade, 'C');
        QVERIFY(QString::fromStdString(quality.reason).contains("clock"));
    }

    void aClockThatHeldKeepsTheA()
    {
        RunConditions seen;
        seen.clockShare = 0.98;
        QCOMPARE(gradeOf(summarize(spreadOver(0.001)), seen).grade, 'A');
    }

    void aClockThatPowerCapsIsJudgedByItsDrift()
    {
        RunConditions seen;
        seen.clockShare = 0.82; // no dense product ever reaches the reference
        seen.clockDrift = 0.004;
        const Quality held = gradeOf(summarize(spreadOver(0.001)), seen);
        QCOMPARE(held.grade, 'A');
        QVERIFY2(QString::fromStdString(held.reason).contains("drift within the run"), held.reason.c_str());
        QVERIFY2(QString::fromStdString(held.reason).contains("82 %"), held.reason.c_str());
        seen.clockDrift = 0.06;
        QCOMPARE(gradeOf(summarize(spreadOver(0.001)), seen).grade, 'C');
    }

    void driftIsBetweenThirds()
    {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        QCOMPARE(driftOf({}), 0.0);
        QCOMPARE(driftOf({1, 2, nan}), 0.0);
        QCOMPARE(driftOf({2, 2, 2}), 0.0);
        QCOMPARE(driftOf({2.2, 2, 1.8}), 0.2);
        QCOMPARE(driftOf({1.0, 9.0, 1.0, 1.0, 9.0, 1.0, 1.0, 9.0, 1.0}), 0.0); // noise is no drift
        QCOMPARE(driftOf({1.1, nan, 1.1, 1.0, 1.0, 1.0, 1.0}), 0.1);
    }

    void strangersOnTheMachineAreSaid()
    {
        RunConditions seen;
        seen.stealShare = 0.05;
        seen.preemptions = 12;
        seen.drift = 0.1;
        const Quality quality = gradeOf(summarize(spreadOver(0.001)), seen);
        QCOMPARE(quality.grade, 'C');
        for (const char* const word : {"hypervisor", "context switches", "drifted"})
            QVERIFY2(QString::fromStdString(quality.reason).contains(word), quality.reason.c_str());
    }

    void neverEmpty_data()
    {
        QTest::addColumn<QVector<double>>("samples");
        const double nan = std::numeric_limits<double>::quiet_NaN();
        QTest::newRow("none") << QVector<double>{};
        QTest::newRow("not a number") << QVector<double>{nan};
        QTest::newRow("one") << QVector<double>{1.0};
        QTest::newRow("two") << QVector<double>{1.0, 1.0};
    }
    void neverEmpty()
    {
        QFETCH(const QVector<double>, samples);
        const Quality quality = gradeOf(summarize(std::vector<double>(samples.begin(), samples.end())));
        QCOMPARE(quality.grade, 'D');
        QVERIFY(!quality.reason.empty());
    }

    void failureForcesD()
    {
        RunConditions seen;
        seen.failure = "the device vanished";
        const Quality quality = gradeOf(summarize(spreadOver(0.001)), seen);
        QCOMPARE(quality.grade, 'D');
        QCOMPARE(quality.reason, std::string("the device vanished"));
    }

    void theWorstPartGradesARun()
    {
        const std::vector<double> calm(9, 0.004), noisy{0.2, 0.2, 0.2, 0.2, 0.001, 0.2, 0.2};
        const double unknown = std::numeric_limits<double>::quiet_NaN();
        QCOMPARE(gradeOfParts({{"latency", calm}, {"walks", calm}}, unknown).grade, 'A');
        const Quality worst = gradeOfParts({{"latency", calm}, {"walks", noisy}}, unknown);
        QCOMPARE(worst.grade, 'D');
        QCOMPARE(worst.reason, std::string("walks: a typical probe's middle half lies within 20 %"));
    }

    void aHypervisorThatTakesTimeLowersEveryPart()
    {
        const Quality shared = gradeOfParts({{"latency", std::vector<double>(9, 0.004)}}, 0.05);
        QCOMPARE(shared.grade, 'C');
        QVERIFY2(QString::fromStdString(shared.reason).contains("the hypervisor took 5 %"), shared.reason.c_str());
    }

    void worseKeepsItsReason()
    {
        QCOMPARE(worse({'A', "fine"}, {'C', "shared"}).reason, std::string("shared"));
        QCOMPARE(worse({'B', "first"}, {'B', "second"}).reason, std::string("first"));
        QCOMPARE(worse({'A', {}}, {'A', "second"}).reason, std::string("second"));
    }
};

QTEST_APPLESS_MAIN(TestQuality)
#include "tst_quality.moc"
