// SPDX-License-Identifier: Apache-2.0
// Rings within this machine, real and small: sums against sums made here, between threads and processes, of any number
// of ranks; bytes counted where they are read against what is predicted; no process is left, also when a rank or the
// parent is killed.
#include "core/device/catalogue.h"
#include "kernels/host/sharding/rank_group.h"
#include "kernels/host/sharding/sharding.h"
#include "tests/support/host_fakes.h"

#include <QElapsedTimer>
#include <QFile>
#include <QTest>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace memscape;
using namespace memscape::host;

namespace {

struct RingSession
{
    Device device;
    test::Listener listener;
    HostSession session{device, listener};
};

/// Gone, or dead and waiting for an init that does not come.
bool isGone(pid_t process)
{
    QFile stat(QStringLiteral("/proc/%1/stat").arg(process));
    if (!stat.open(QIODevice::ReadOnly))
        return true;
    const QByteArray text = stat.readAll();
    return text.mid(text.lastIndexOf(')') + 2).startsWith('Z');
}

/// The ring's ranks in threads of the test, over its own numbers.
template <typename Number>
std::vector<std::vector<Number>> afterRing(const RingOperation& operation, std::vector<std::vector<Number>> start)
{
    const std::size_t bytes = start.front().size() * sizeof(Number);
    std::vector<std::byte> memory(bytes * start.size());
    RingState state;
    for (std::size_t rank = 0; rank < start.size(); ++rank)
        std::memcpy(memory.data() + rank * bytes, start[rank].data(), bytes);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < int(start.size()); ++rank)
        threads.emplace_back([&, rank] {
            RingRank ring(state, memory.data(), bytes, rank, int(start.size()));
            ring.run(operation);
        });
    for (std::thread& thread : threads)
        thread.join();
    for (std::size_t rank = 0; rank < start.size(); ++rank)
        std::memcpy(start[rank].data(), memory.data() + rank * bytes, bytes);
    return start;
}

std::vector<std::vector<float>> numbersOf(std::size_t ranks, std::size_t count)
{
    std::vector<std::vector<float>> numbers(ranks, std::vector<float>(count));
    for (std::size_t rank = 0; rank < ranks; ++rank)
        for (std::size_t i = 0; i < count; ++i)
            numbers[rank][i] = float(1000 * rank + i);
    return numbers;
}

RingPlan planOf(const char* model, const char* zero, const char* ranks, ShardingAnswer& answer)
{
    PredictionContext once;
    answer = *answerSharding(
        describeHost(),
        *resolve(shardingSchema(),
                 std::vector<std::string>{model, zero, ranks, "precision=fp32", "sequence=16", "bucket=120KB"}),
        once);
    return ringPlan(answer.step.collectives(), answer.asked.plan().zeroStage);
}

Result<MeasuredRun> measured(const std::vector<std::string>& texts)
{
    test::Listener listener;
    const Experiment& experiment = **findExperiment("sharding");
    const auto backend = makeHostBackend();
    return backend->measure(experiment, backend->devices().front(), *resolve(experiment.schema(), texts), listener);
}

} // namespace

class TestShardingRing : public QObject
{
    Q_OBJECT

private slots:
    void sumsAreThoseOfTheRanks_data()
    {
        QTest::addColumn<int>("ranks");
        for (const int ranks : {2, 3, 4, 7, 8})
            QTest::addRow("%d", ranks) << ranks;
    }
    void sumsAreThoseOfTheRanks()
    {
        QFETCH(int, ranks);
        const auto n = std::size_t(ranks);
        const std::size_t piece = 5, count = n * piece;
        const auto start = numbersOf(n, count);
        const auto sum = [&](std::size_t i) { return float(1000 * n * (n - 1) / 2 + n * i); };

        const auto reduced = afterRing<float>({CollectiveKind::AllReduce, piece, 4}, start);
        const auto scattered = afterRing<float>({CollectiveKind::ReduceScatter, piece, 4}, start);
        const auto gathered = afterRing<float>({CollectiveKind::AllGather, piece, 4}, start);
        for (std::size_t rank = 0; rank < n; ++rank) {
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t owner = i / piece;
                QCOMPARE(reduced[rank][i], sum(i));
                QCOMPARE(gathered[rank][i], float(1000 * owner + i));
                if (owner == rank)
                    QCOMPARE(scattered[rank][i], sum(i));
            }
        }
    }

    void piecesCanLieElsewhere()
    {
        const std::size_t n = 3, piece = 4;
        auto start = numbersOf(n, n * piece + piece); // the last four are the rank's own
        for (std::size_t rank = 0; rank < n; ++rank)
            for (std::size_t i = 0; i < piece; ++i)
                start[rank][n * piece + i] = float(7 * rank + i);
        const std::size_t own = n * piece * 4;
        const auto gathered = afterRing<float>({CollectiveKind::AllGather, piece, 4, 0, own}, start);
        const auto scattered = afterRing<float>({CollectiveKind::ReduceScatter, piece, 4, 0, own}, start);
        for (std::size_t rank = 0; rank < n; ++rank) {
            for (std::size_t i = 0; i < n * piece; ++i)
                QCOMPARE(gathered[rank][i], float(7 * (i / piece) + i % piece));
            for (std::size_t i = 0; i < piece; ++i)
                QCOMPARE(scattered[rank][n * piece + i], float(3000 + 3 * (rank * piece + i)));
        }
    }

    void integersOfTwoBytesAreSummed()
    {
        std::vector<std::vector<std::uint16_t>> start(4, std::vector<std::uint16_t>(8));
        for (std::size_t rank = 0; rank < 4; ++rank)
            for (std::size_t i = 0; i < 8; ++i)
                start[rank][i] = std::uint16_t(60000 + rank + i);
        const auto reduced = afterRing<std::uint16_t>({CollectiveKind::AllReduce, 2, 2}, start);
        for (std::size_t rank = 0; rank < 4; ++rank)
            for (std::size_t i = 0; i < 8; ++i)
                QCOMPARE(reduced[rank][i], std::uint16_t(4 * 60000 + 6 + 4 * i));
    }

    void everyWayIsExact_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<bool>("areProcesses");
        for (const int ranks : {2, 3, 5}) {
            QTest::addRow("%d threads", ranks) << ranks << false;
            QTest::addRow("%d processes", ranks) << ranks << true;
        }
    }
    void everyWayIsExact()
    {
        QFETCH(int, ranks);
        QFETCH(bool, areProcesses);
        using enum CollectiveKind;
        RingSession one;
        const std::size_t payload = std::size_t(ranks) * 333 * 4;
        RankGroup group(one.session, ranks, areProcesses, 3 * payload + 333 * 4,
                        {{AllReduce, 333, 4, 0},
                         {ReduceScatter, 333, 2, payload},
                         {AllGather, 333, 4, 2 * payload, 3 * payload},
                         {AllReduce, 333, 4, 0}});
        const auto started = group.start();
        QVERIFY2(started, started ? "" : started.error().text().c_str());
        const auto checked = group.check();
        QVERIFY2(checked, checked ? "" : checked.error().text().c_str());
        QCOMPARE(group.sentBytes(), std::uint64_t(ranks - 1) * 333 * (2 * 4 + 2 + 4 + 2 * 4));
        QVERIFY(group.run(3) > 0);
        QVERIFY(group.whole());
    }

    /// What is written between two steps of a training is here what was there; no rank leaves the meeting before all
    /// came.
    void ranksMeetAndRewriteWhatTheyHave()
    {
        constexpr int ranks = 3;
        constexpr std::size_t bytes = 200; // of a rank, and its third line is not full
        std::vector<std::byte> memory(ranks * bytes);
        for (std::size_t i = 0; i < memory.size(); ++i)
            memory[i] = std::byte(i * 7);
        const std::vector<std::byte> before = memory;
        RingState state;
        state.isCrowded = true;
        std::atomic<int> came{0};
        std::atomic<bool> wereAllThere{true};
        std::vector<std::thread> threads;
        for (int rank = 0; rank < ranks; ++rank)
            threads.emplace_back([&, rank] {
                RingRank ring(state, memory.data(), bytes, rank, ranks);
                for (int round = 1; round <= 20; ++round) {
                    ring.rewrite(bytes);
                    ++came;
                    wereAllThere = ring.meet() && came >= round * ranks && wereAllThere;
                    wereAllThere = ring.meet() && wereAllThere;
                }
            });
        for (std::thread& thread : threads)
            thread.join();
        QVERIFY(wereAllThere);
        QCOMPARE(came.load(), 20 * ranks);
        QVERIFY(memory == before);
    }

    /// A gather whose piece is overwritten by its own result: the check does not let that pass.
    void aWrongElementIsFound()
    {
        RingSession one;
        // The own piece lies within what is gathered, where the other rank's is put.
        RankGroup group(one.session, 2, false, 1024, {{CollectiveKind::AllGather, 16, 4, 0, 16}});
        QVERIFY(group.start());
        const auto checked = group.check();
        QVERIFY(!checked);
        QCOMPARE(checked.error().code, std::string("check.failed"));
    }

    void bytesAreThosePredicted_data()
    {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<QByteArray>("zero");
        QTest::addColumn<QByteArray>("ranks");
        for (const char* zero : {"zero=0", "zero=1", "zero=2", "zero=3"}) {
            for (const char* ranks : {"data_parallel=2", "data_parallel=3"})
                QTest::addRow("%s %s", zero, ranks)
                    << QByteArray("model=from-scratch:hidden=64,layers=2,heads=2,ffn=128,vocab=101") << QByteArray(zero)
                    << QByteArray(ranks);
        }
    }
    void bytesAreThosePredicted()
    {
        QFETCH(QByteArray, model);
        QFETCH(QByteArray, zero);
        QFETCH(QByteArray, ranks);
        ShardingAnswer answer;
        RingPlan plan = planOf(model, zero, ranks, answer);
        QVERIFY(!plan.operations.empty());
        QCOMPARE(double(plan.gathered), double(answer.step.gathered));
        RingSession one;
        RankGroup group(one.session, int(answer.asked.ranks()), false, plan.memory, plan.operations);
        QVERIFY(group.start());
        const auto checked = group.check();
        QVERIFY2(checked, checked ? "" : checked.error().text().c_str());
        QCOMPARE(double(group.sentBytes()), answer.step.sent);
    }

    void aKilledRankIsAnError()
    {
        RingSession one;
        RankGroup group(one.session, 3, true, 4096, {{CollectiveKind::AllReduce, 64, 4}});
        QVERIFY(group.start());
        QVERIFY(group.check());
        ::kill(group.processOf(2), SIGKILL);
        QTRY_VERIFY(isGone(group.processOf(2)));
        static_cast<void>(group.run(1));
        const auto whole = group.whole();
        QVERIFY(!whole);
        QCOMPARE(whole.error().code, std::string("run.failed"));
        QVERIFY(whole.error().message.find("rank 2") != std::string::npos);
    }

    void noProcessIsLeft()
    {
        std::array<pid_t, 2> processes{};
        {
            RingSession one;
            RankGroup group(one.session, 3, true, 4096, {{CollectiveKind::AllReduce, 64, 4}});
            QVERIFY(group.start());
            processes = {group.processOf(1), group.processOf(2)};
            QVERIFY(processes[0] > 0 && processes[1] > 0);
            QCOMPARE(::kill(processes[0], 0), 0);
        }
        for (const pid_t process : processes) {
            QCOMPARE(::kill(process, 0), -1); // not even a zombie
            QCOMPARE(errno, ESRCH);
        }
    }

    void aKilledParentLeavesNoProcess()
    {
        std::array<int, 2> told{};
        QCOMPARE(::pipe(told.data()), 0);
        const pid_t parent = ::fork();
        if (parent == 0) { // becomes a parent itself, and is killed as it waits
            RingSession one;
            RankGroup group(one.session, 2, true, 4096, {{CollectiveKind::AllReduce, 64, 4}});
            const pid_t child = group.start() ? group.processOf(1) : 0;
            static_cast<void>(!::write(told[1], &child, sizeof(child)));
            ::pause();
            ::_exit(0);
        }
        pid_t child = 0;
        QCOMPARE(::read(told[0], &child, sizeof(child)), ssize_t(sizeof(child)));
        QVERIFY(child > 0 && !isGone(child));
        ::kill(parent, SIGKILL);
        ::waitpid(parent, nullptr, 0);
        QTRY_VERIFY(isGone(child));
        ::close(told[0]);
        ::close(told[1]);
    }

    /// A rank that waits for one that does not come ends when the run is stopped.
    void stopEndsAWait()
    {
        RingSession one;
        RankGroup group(one.session, 2, true, 4096, {{CollectiveKind::AllReduce, 64, 4}});
        QVERIFY(group.start());
        ::kill(group.processOf(1), SIGSTOP);
        one.listener.stop = true;
        QElapsedTimer timer;
        timer.start();
        static_cast<void>(group.run(1));
        QVERIFY(timer.elapsed() < 5000);
        QCOMPARE(group.whole().error().code, std::string("run.cancelled"));
    }

    void tooMuchIsRefused()
    {
        RingSession one;
        RankGroup group(one.session, 8, false, std::size_t(1) << 44, {{CollectiveKind::AllReduce, 64, 4}});
        const auto started = group.start();
        QVERIFY(!started);
        QCOMPARE(started.error().code, std::string("run.memory"));
    }

    void whatIsNotMeasuredSaysWhy_data()
    {
        QTest::addColumn<QString>("assignments");
        QTest::addColumn<QString>("says");
        QTest::newRow("one rank") << "data_parallel=1"
                                  << "one rank sends nothing";
        QTest::newRow("nine ranks") << "data_parallel=9"
                                    << "9 ranks are more than the 8";
        QTest::newRow("both") << "data_parallel=2 tensor_parallel=2"
                              << "one at a time";
        QTest::newRow("FSDP") << "data_parallel=2 zero=3 sharding_implementation=fsdp2"
                              << "keeps its root";
        QTest::newRow("too large") << "data_parallel=2 model=gpt2-xl precision=fp32 sequence=8"
                                   << "is the most";
    }
    void whatIsNotMeasuredSaysWhy()
    {
        QFETCH(QString, assignments);
        QFETCH(QString, says);
        std::vector<std::string> texts;
        for (const QString& one : assignments.split(u' '))
            texts.push_back(one.toStdString());
        if (!assignments.contains(QLatin1String("model")))
            texts.insert(texts.end(), {"model=from-scratch:hidden=64,layers=1,heads=2,ffn=64,vocab=16", "sequence=8"});
        // A sweep of one value: nothing else is measured in its place.
        for (std::string& text : texts) {
            if (text.starts_with("data_parallel="))
                text += ":" + text.substr(text.find('=') + 1);
        }
        const auto run = measured(texts);
        QVERIFY(!run);
        QCOMPARE(run.error().code, std::string("run.skipped"));
        QVERIFY2(run.error().message.find(says.toStdString()) != std::string::npos, run.error().text().c_str());
        QVERIFY(!run.error().hint.empty());
    }
};

QTEST_GUILESS_MAIN(TestShardingRing)
#include "tst_sharding_ring.moc"
