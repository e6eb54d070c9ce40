// SPDX-License-Identifier: Apache-2.0
// SplitMix64 against the values of its published reference implementation, and below() against what
// uniform means.
#include "core/access/random.h"

#include <QtTest>

#include <array>

using namespace memscape;

class TestRandom : public QObject
{
    Q_OBJECT

private slots:
    void equalsTheReferenceSequence()
    {
        // Seed 1234567 of the reference C code, the values that its ports are commonly tested with.
        SplitMix64 random(1234567);
        const std::array<std::uint64_t, 5> reference = {6457827717110365317u, 3203168211198807973u,
                                                        9817491932198370423u, 4593380528125082431u,
                                                        16408922859458223821u};
        for (const std::uint64_t expected : reference)
            QCOMPARE(random.next(), expected);
    }

    void belowIsInsideItsBound()
    {
        SplitMix64 random(1);
        for (const std::uint64_t bound : {std::uint64_t(1), std::uint64_t(3), std::uint64_t(1) << 63, UINT64_MAX})
            for (int i = 0; i < 1000; ++i)
                QVERIFY(random.below(bound) < bound);
    }

    void belowIsUniform()
    {
        // Bound 3·2^62 would be drawn with 4/3 the density below 2^62 by a plain modulo.
        SplitMix64 random(42);
        const std::uint64_t third = std::uint64_t(1) << 62;
        const int draws = 60000;
        int low = 0;
        for (int i = 0; i < draws; ++i)
            low += random.below(3 * third) < third;
        // Five standard deviations of a binomial with p = 1/3.
        QVERIFY(std::abs(low - draws / 3) < 5 * 116);
    }
};

QTEST_GUILESS_MAIN(TestRandom)
#include "tst_random.moc"
