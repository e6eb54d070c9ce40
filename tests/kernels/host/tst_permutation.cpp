// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/permutation.h"

#include <cmath>
#include <vector>

#include <QTest>

using namespace memscape::host;

class TestPermutation : public QObject
{
    Q_OBJECT
private slots:
    void everyIndexOnce_data()
    {
        QTest::addColumn<quint64>("count");
        for (const quint64 count : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 65537})
            QTest::addRow("%llu", count) << count;
    }
    void everyIndexOnce()
    {
        QFETCH(const quint64, count);
        for (const std::uint64_t seed : {0u, 1u, 12345u}) {
            const IndexPermutation order(count, seed);
            std::vector<bool> seen(count);
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t index = order(i);
                QVERIFY(index < count);
                QVERIFY(!seen[index]);
                seen[index] = true;
            }
        }
    }

    void seedDecidesTheOrder()
    {
        const IndexPermutation a(1000, 1), same(1000, 1), b(1000, 2);
        int equal = 0;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            QCOMPARE(a(i), same(i));
            equal += a(i) == b(i);
        }
        QVERIFY(equal < 20);
    }

    void neighboursDoNotStayNeighbours()
    {
        const IndexPermutation order(1u << 20, 7);
        int near = 0;
        for (std::uint64_t i = 0; i + 1 < 100000; ++i)
            near += std::llabs(static_cast<long long>(order(i + 1)) - static_cast<long long>(order(i))) <= 16;
        QVERIFY2(near < 100, qPrintable(QString::number(near))); // 3 expected
    }

    void drawsAreUniform()
    {
        // χ² over 64 cells, 63 degrees of freedom: 99.9 % lie below 104.
        std::vector<int> cells(64);
        constexpr int draws = 640000;
        for (int i = 0; i < draws; ++i)
            ++cells[randomElement(static_cast<std::uint64_t>(i), 64)];
        double chi = 0;
        for (const int cell : cells)
            chi += std::pow(cell - draws / 64.0, 2) / (draws / 64.0);
        QVERIFY2(chi < 104, qPrintable(QString::number(chi)));
        for (std::uint64_t i = 0; i < 1000; ++i)
            QCOMPARE(randomElement(i, 1), std::uint64_t{0});
        QVERIFY(randomElement(5, std::uint64_t{1} << 40) < std::uint64_t{1} << 40);
    }
};

QTEST_APPLESS_MAIN(TestPermutation)
#include "tst_permutation.moc"
