// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/hierarchy/chain.h"

#include <QtTest>

using memscape::cuda::sattoloCycle;

class TestChain : public QObject
{
    Q_OBJECT

private slots:
    void aChainVisitsEveryNodeBeforeItRepeats_data()
    {
        QTest::addColumn<uint>("count");
        for (uint count : {1U, 2U, 3U, 5U, 64U, 1000U, 65536U})
            QTest::addRow("%u", count) << count;
    }
    void aChainVisitsEveryNodeBeforeItRepeats()
    {
        QFETCH(uint, count);
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const auto next = sattoloCycle(count, seed);
            uint steps = 0, at = 0;
            do {
                QVERIFY(next[at] < count);
                at = next[at];
                ++steps;
            } while (at != 0 && steps <= count);
            QCOMPARE(steps, count);
        }
    }

    void theSameSeedGivesTheSameChain()
    {
        QVERIFY(sattoloCycle(1000, 7) == sattoloCycle(1000, 7));
        QVERIFY(sattoloCycle(1000, 7) != sattoloCycle(1000, 8));
    }

    void noNodeFollowsItsNeighbourMoreThanByChance()
    {
        const uint count = 100000;
        const auto next = sattoloCycle(count, 3);
        int neighbours = 0;
        for (uint i = 0; i + 1 < count; ++i)
            neighbours += next[i] == i + 1;
        QVERIFY2(neighbours < 10, qPrintable(QString::number(neighbours))); // one is expected
    }

    void noNodesAreNoChain() { QVERIFY(sattoloCycle(0, 1).empty()); }
};

QTEST_GUILESS_MAIN(TestChain)
#include "tst_chain.moc"
