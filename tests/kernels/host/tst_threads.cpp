// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/common/threads.h"
#include "tests/support/waiting.h"

#include <new>

#include <QDir>
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

using namespace memscape;
using namespace memscape::host;

namespace {

void writeSiblings(const QTemporaryDir& root, int cpu, const QByteArray& siblings)
{
    const QString folder = root.filePath(QString("sys/devices/system/cpu/cpu%1/topology").arg(cpu));
    QVERIFY(QDir().mkpath(folder));
    QFile file(folder + "/thread_siblings_list");
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(siblings + "\n");
}

} // namespace

class TestThreads : public QObject
{
    Q_OBJECT
private slots:
    void oneThreadPerPhysicalCore()
    {
        const QTemporaryDir root;
        for (const auto& [cpu, siblings] : {std::pair{0, "0,2"}, {1, "1,3"}, {2, "0,2"}, {3, "1,3"}})
            writeSiblings(root, cpu, siblings);
        const std::string path = root.path().toStdString();
        QCOMPARE(physicalCores(path, {0, 1, 2, 3}), (std::vector<int>{0, 1}));
        QCOMPARE(physicalCores(path, {2, 3}), (std::vector<int>{2, 3}));
        QCOMPARE(physicalCores(path, {7, 9}), (std::vector<int>{7, 9})); // no topology
        QVERIFY(!physicalCores().empty());
    }

    void everyThreadWorksOnce()
    {
        const SteadyClock clock;
        const int processor = physicalCores().front();
        ThreadTeam team({processor, processor, processor}, clock);
        for (int round = 0; round < 20; ++round) {
            std::atomic<int> calls{0}, sum{0};
            const double seconds = team.run([&](int thread) {
                ++calls;
                sum += thread;
            });
            QCOMPARE(calls.load(), 3);
            QCOMPARE(sum.load(), 0 + 1 + 2);
            QVERIFY(seconds >= 0);
        }
        std::atomic<int> calls{0};
        team.run([&](int) { ++calls; }, 2);
        QCOMPARE(calls.load(), 2);
        QVERIFY(team.pinned());
    }

    void timeIsThatOfTheSlowest()
    {
        const SteadyClock clock;
        ThreadTeam team(physicalCores(), clock);
        const double seconds =
            team.run([&](int thread) { std::this_thread::sleep_for(std::chrono::milliseconds(thread == 0 ? 30 : 1)); });
        QVERIFY(seconds >= 0.03);
    }

    void stopsWhenPollSaysSo()
    {
        const SteadyClock clock;
        std::atomic<bool> stop{false};
        ThreadTeam team(physicalCores(), clock, [&] { return stop.load(); });
        QVERIFY(!team.checkStop());
        stop = true;
        QElapsedTimer timer;
        timer.start();
        team.run([&](int) {
            while (!team.stopping())
                std::this_thread::yield();
        });
        QVERIFY(timer.elapsed() < test::notStuck);
        QVERIFY(team.stopping());
    }

    void whatABodyThrowsReachesTheCaller()
    {
        const SteadyClock clock;
        const int processor = physicalCores().front();
        ThreadTeam team({processor, processor, processor}, clock);
        std::atomic<int> calls{0};
        const auto body = [&](int thread) {
            ++calls;
            if (thread > 0)
                throw std::bad_alloc();
        };
        QVERIFY_EXCEPTION_THROWN(team.run(body), std::bad_alloc);
        QCOMPARE(calls.load(), 3);                     // no thread was left behind
        QVERIFY(team.run([&](int) { ++calls; }) >= 0); // it works on, and has forgotten it
        QCOMPARE(calls.load(), 6);
    }

    void partsCoverEverythingOnce()
    {
        for (const std::size_t count : {0u, 1u, 5u, 64u, 1000u, 4097u}) {
            for (const int threads : {1, 2, 3, 7}) {
                for (const std::size_t grain : {1u, 64u}) {
                    std::size_t next = 0;
                    for (int thread = 0; thread < threads; ++thread) {
                        const Part part = partOf(count, thread, threads, grain);
                        QCOMPARE(part.begin, next);
                        QVERIFY(part.end >= part.begin && part.end <= count);
                        next = part.end;
                    }
                    QCOMPARE(next, count);
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestThreads)
#include "tst_threads.moc"
