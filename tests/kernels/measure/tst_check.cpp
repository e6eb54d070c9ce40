// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/check.h"

#include <cmath>
#include <limits>

#include <QTest>

using namespace memscape;

class TestCheck : public QObject
{
    Q_OBJECT
private slots:
    void equalPasses()
    {
        Check check;
        check.compareAll<float>(std::vector<float>{1, 2, 3}, std::vector<float>{1, 2, 3});
        QVERIFY(check.passed());
        QCOMPARE(check.compared(), std::size_t{3});
        QVERIFY(check.result("kernel").has_value());
    }

    void toleranceIsAbsolutePlusRelative()
    {
        Check check(Tolerance{0.1, 0.01});
        check.compare(0, 101.0, 100.0); // allowed 1.1
        check.compare(1, 0.05, 0.0);    // allowed 0.1
        QVERIFY(check.passed());
        check.compare(2, 101.2, 100.0);
        QCOMPARE(check.mismatches(), std::size_t{1});
        QCOMPARE(check.worstIndex(), std::size_t{2});
    }

    void notANumberNeverPasses()
    {
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double infinity = std::numeric_limits<double>::infinity();
        for (const auto& [found, reference] :
             {std::pair{nan, 1.0}, std::pair{1.0, nan}, std::pair{infinity, 1.0}, std::pair{nan, nan}}) {
            Check check(Tolerance{1e9, 1.0});
            check.compare(7, found, reference);
            QVERIFY(!check.passed());
            QVERIFY(std::isinf(check.worstError()));
        }
        Check same;
        same.compare(0, infinity, infinity);
        QVERIFY(same.passed());
    }

    void atMostTenAreSpelledOut()
    {
        Check check;
        for (std::size_t i = 0; i < 1000; ++i)
            check.compare(i, 1.0 + static_cast<double>(i), 0.0);
        QCOMPARE(check.mismatches(), std::size_t{1000});
        QCOMPARE(check.listed().size(), Check::listedMismatches);
        QCOMPARE(check.worstIndex(), std::size_t{999});
    }

    void failureNamesTheKernel()
    {
        Check check;
        check.require(3, false, "the sum is wrong");
        const auto result = check.result("stride read v2");
        QVERIFY(!result);
        QCOMPARE(result.error().code, std::string("check.failed"));
        QVERIFY(QString::fromStdString(result.error().message).contains("stride read v2"));
        QVERIFY(QString::fromStdString(result.error().message).contains("the sum is wrong"));
    }

    void differentSizesFail()
    {
        Check check;
        check.compareAll<int>(std::vector<int>{1, 2}, std::vector<int>{1});
        QVERIFY(!check.passed());
    }
};

QTEST_APPLESS_MAIN(TestCheck)
#include "tst_check.moc"
