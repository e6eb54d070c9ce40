// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/counting_pool.h"

#include <QtTest>

#include <map>
#include <random>

using namespace memscape;

class TestCountingPool : public QObject
{
    Q_OBJECT

private slots:
    void everyPieceIsRoundedAndCounted()
    {
        CountingPool pool(4096);
        QCOMPARE(*pool.take(1), std::int64_t(0));
        QCOMPARE(*pool.take(512), std::int64_t(512));
        QCOMPARE(*pool.take(513), std::int64_t(1024));
        QCOMPARE(pool.used(), std::int64_t(512 + 512 + 1024));
    }

    void whatIsGivenBackIsTakenAgain()
    {
        CountingPool pool(2048);
        const auto first = pool.take(1024);
        QVERIFY(pool.take(1024).has_value());
        pool.give(*first);
        QCOMPARE(*pool.take(1000), *first);
    }

    void theHighWaterOutlivesTheBlocks()
    {
        CountingPool pool(2048);
        const auto first = pool.take(1024), second = pool.take(1024);
        pool.give(*first);
        QCOMPARE(pool.highWater(), std::int64_t(2048));
        pool.resetHighWater();
        QCOMPARE(pool.highWater(), std::int64_t(1024));
        pool.give(*second);
        QCOMPARE(pool.used(), std::int64_t(0));
        QCOMPARE(pool.highWater(), std::int64_t(1024));
    }

    void aFullPoolSaysWhatItHas()
    {
        CountingPool pool(1024);
        QVERIFY(pool.take(1024).has_value());
        const auto more = pool.take(1);
        QVERIFY(!more.has_value());
        QCOMPARE(more.error().code, std::string("run.memory"));
        QVERIFY(more.error().message.find("1 KiB") != std::string::npos);
        QVERIFY(!CountingPool(1024).take(std::int64_t(1) << 60).has_value());
    }

    void neverTwoOwnersOfOneByte()
    {
        CountingPool pool(1 << 20);
        std::mt19937 random(1);
        std::map<std::int64_t, std::int64_t> mine; // offset to bytes asked for
        for (int turn = 0; turn < 20'000; ++turn) {
            if (random() % 2 == 0 && !mine.empty()) {
                auto block = std::next(mine.begin(), long(random() % mine.size()));
                pool.give(block->first);
                mine.erase(block);
            } else if (const std::int64_t bytes = 1 + random() % 30'000; const auto offset = pool.take(bytes)) {
                const auto next = mine.lower_bound(*offset);
                QVERIFY(next == mine.end() || *offset + bytes <= next->first);
                QVERIFY(next == mine.begin() || std::prev(next)->first + std::prev(next)->second <= *offset);
                QVERIFY(*offset + bytes <= pool.capacity());
                mine[*offset] = bytes;
            }
        }
    }
};

QTEST_APPLESS_MAIN(TestCountingPool)
#include "tst_counting_pool.moc"
