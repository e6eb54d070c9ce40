// SPDX-License-Identifier: Apache-2.0
// Parts on several threads: each once, under the caller's flag, and a failure is the caller's.
#include "core/base/cancellation.h"
#include "core/base/parallel.h"

#include <QTest>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace memscape;

class TestParallel : public QObject
{
    Q_OBJECT

private slots:
    void everyPartIsDoneOnce_data()
    {
        QTest::addColumn<int>("count");
        QTest::addColumn<int>("threads");
        for (const int count : {0, 1, 3, 1000})
            for (const int threads : {0, 1, 2, 16})
                QTest::addRow("%d parts on %d threads", count, threads) << count << threads;
    }
    void everyPartIsDoneOnce()
    {
        QFETCH(int, count);
        QFETCH(int, threads);
        std::vector<std::atomic<int>> done(std::size_t(count) + 1);
        inParallel(std::size_t(count), std::size_t(threads), [&](std::size_t i) { ++done[i]; });
        for (int i = 0; i < count; ++i)
            QCOMPARE(done[std::size_t(i)].load(), 1);
        QCOMPARE(done.back().load(), 0);
    }

    void severalThreadsWorkAtOnce()
    {
        // Each of two parts ends when it has seen the other begin: one thread alone would wait for ever.
        std::atomic<int> begun = 0;
        std::mutex mutex;
        std::set<std::thread::id> threads;
        inParallel(2, 2, [&](std::size_t) {
            ++begun;
            while (begun < 2)
                std::this_thread::yield();
            const std::lock_guard lock(mutex);
            threads.insert(std::this_thread::get_id());
        });
        QCOMPARE(threads.size(), std::size_t(2));
        QVERIFY(threads.contains(std::this_thread::get_id()));
    }

    void theCallersFlagCounts()
    {
        std::atomic<bool> flag = true;
        const CancelScope scope(flag);
        std::atomic<int> wanted = 0;
        inParallel(8, 4, [&](std::size_t) { wanted += !isCancelled(); });
        QCOMPARE(wanted.load(), 0);
    }

    void aFailureIsTheCallers()
    {
        int begun = 0;
        const auto fourthFails = [&](std::size_t i) {
            ++begun;
            if (i == 3)
                throw std::runtime_error("the fourth part");
        };
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, inParallel(1000, 1, fourthFails));
        QCOMPARE(begun, 4);
        QVERIFY_THROWS_EXCEPTION(std::runtime_error,
                                 inParallel(8, 4, [](std::size_t) { throw std::runtime_error("every part"); }));
    }
};

QTEST_MAIN(TestParallel)
#include "tst_parallel.moc"
