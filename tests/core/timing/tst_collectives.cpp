// SPDX-License-Identifier: Apache-2.0
// Steps and bytes of collectives are counted by running them: a ring of ranks that pass pieces of whole numbers, step
// by step, written here from the description in Patarasuk and Yuan 2009 and checked by its sums. Times are compared
// with a clock that adds each step; the bus bandwidth with the factors of NCCL's tests.
#include "core/timing/collectives.h"

#include <QtTest>

#include <numeric>

using namespace memscape;

namespace {

using Buffers = std::vector<std::vector<int>>; // of each rank, a number a piece

struct Ran
{
    std::int64_t steps = 0;
    std::vector<std::int64_t> sent; ///< pieces by rank
};

/// One step: every rank gives the piece that `which` names to its right neighbour, all at once.
template <typename Which, typename Take> void passOn(Buffers& ranks, Ran& ran, Which which, Take take)
{
    const Buffers before = ranks;
    const std::size_t n = ranks.size();
    for (std::size_t from = 0; from < n; ++from) {
        const std::size_t piece = which(from) % n;
        take(ranks[(from + 1) % n][piece], before[from][piece]);
        ++ran.sent[from];
    }
    ++ran.steps;
}

void runReduceScatter(Buffers& ranks, Ran& ran)
{
    const std::size_t n = ranks.size();
    for (std::size_t step = 0; step + 1 < n; ++step)
        passOn(
            ranks, ran, [&](std::size_t rank) { return rank + 2 * n - step; },
            [](int& mine, int given) { mine += given; });
}

void runAllGather(Buffers& ranks, Ran& ran)
{
    const std::size_t n = ranks.size();
    for (std::size_t step = 0; step + 1 < n; ++step)
        passOn(
            ranks, ran, [&](std::size_t rank) { return rank + n - step; }, [](int& mine, int given) { mine = given; });
}

Buffers startOf(std::size_t n)
{
    Buffers ranks(n, std::vector<int>(n));
    for (std::size_t rank = 0; rank < n; ++rank)
        for (std::size_t piece = 0; piece < n; ++piece)
            ranks[rank][piece] = int(100 * rank + piece + 1);
    return ranks;
}

int sumOf(std::size_t n, std::size_t piece)
{
    return int(100 * n * (n - 1) / 2 + n * (piece + 1));
}

/// The root's pieces go round, one behind the other.
Ran runBroadcast(std::size_t n)
{
    Ran ran{0, std::vector<std::int64_t>(n, 0)};
    std::vector<std::size_t> has(n, 0); // pieces, in order
    has[0] = n;
    while (has[n - 1] < n) {
        const std::vector<std::size_t> before = has;
        for (std::size_t rank = 0; rank + 1 < n; ++rank) {
            if (before[rank] > before[rank + 1]) {
                ++has[rank + 1];
                ++ran.sent[rank];
            }
        }
        ++ran.steps;
    }
    return ran;
}

} // namespace

class TestCollectives : public QObject
{
    Q_OBJECT

private slots:
    void aRingThatRunsTakesTheStepsAndBytes_data() { addRanks(); }
    void aRingThatRunsTakesTheStepsAndBytes()
    {
        QFETCH(int, ranks);
        const auto n = std::size_t(ranks);
        Buffers buffers = startOf(n);
        Ran ran{0, std::vector<std::int64_t>(n, 0)};
        runReduceScatter(buffers, ran);
        QCOMPARE(ran.steps, ringSteps(CollectiveKind::ReduceScatter, ranks));
        for (std::size_t rank = 0; rank < n; ++rank) { // that begins with its own and ends with the next one's
            const std::size_t own = (rank + 1) % n;
            QCOMPARE(buffers[rank][own], sumOf(n, own));
        }
        // Gathered from there: every piece is at every rank, as after an all-reduce.
        Buffers turned(n);
        for (std::size_t rank = 0; rank < n; ++rank)
            turned[(rank + 1) % n] = buffers[rank];
        runAllGather(turned, ran);
        for (std::size_t rank = 0; rank < n; ++rank)
            for (std::size_t piece = 0; piece < n; ++piece)
                QCOMPARE(turned[rank][piece], sumOf(n, piece));
        QCOMPARE(ran.steps, ringSteps(CollectiveKind::AllReduce, ranks));
        for (const std::int64_t sent : ran.sent) {
            QCOMPARE(sent, ran.steps);
            QCOMPARE(double(sent) / double(n), sentShare(CollectiveKind::AllReduce, ranks));
        }
    }

    void aBroadcastThatRunsTakesTheStepsAndBytes_data() { addRanks(); }
    void aBroadcastThatRunsTakesTheStepsAndBytes()
    {
        QFETCH(int, ranks);
        const Ran ran = runBroadcast(std::size_t(ranks));
        QCOMPARE(ran.steps, ringSteps(CollectiveKind::Broadcast, ranks));
        const auto all = std::accumulate(ran.sent.begin(), ran.sent.end(), std::int64_t(0));
        QCOMPARE(double(all) / double(ranks) / double(ranks), sentShare(CollectiveKind::Broadcast, ranks));
    }

    void oneRankSendsNothing()
    {
        for (const auto kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather,
                                CollectiveKind::Broadcast}) {
            QCOMPARE(ringSteps(kind, 1), std::int64_t(0));
            QCOMPARE(sentShare(kind, 1), 0.0);
            QCOMPARE(ringSeconds(kind, 1e9, 1, {1e-6, 1e9}), 0.0);
        }
    }

    void aRingsTimeIsTheSumOfItsSteps()
    {
        const RankLink link{3e-6, 20e9};
        double clock = 0;
        for (std::int64_t step = 0; step < ringSteps(CollectiveKind::AllReduce, 6); ++step)
            clock += link.latency + 6e6 / 6 / link.bandwidth;
        QVERIFY(std::abs(ringSeconds(CollectiveKind::AllReduce, 6e6, 6, link) / clock - 1) < 1e-12);
    }

    /// nccl-tests, doc/PERFORMANCE.md: bus bandwidth = algorithm bandwidth × 2 (n − 1) / n for all-reduce, × (n − 1) /
    /// n for reduce-scatter and all-gather. Without latency it is that of the link.
    void theBusBandwidthIsThatOfTheLink()
    {
        const double bytes = 1 << 30;
        for (const std::int64_t n : {2, 3, 8, 1024}) {
            const auto algorithm = [&](CollectiveKind kind) { return bytes / ringSeconds(kind, bytes, n, {0, 45e9}); };
            const double share = double(n - 1) / double(n);
            QVERIFY(std::abs(algorithm(CollectiveKind::AllReduce) * 2 * share / 45e9 - 1) < 1e-12);
            QVERIFY(std::abs(algorithm(CollectiveKind::AllGather) * share / 45e9 - 1) < 1e-12);
            QVERIFY(std::abs(algorithm(CollectiveKind::ReduceScatter) * share / 45e9 - 1) < 1e-12);
        }
    }

    /// Two machines of 8 with 50 GB/s for each GPU and 300 GB/s within.
    void ringsLeaveAMachineThroughAllItsAdapters()
    {
        using enum CollectiveKind;
        const Machines machines{8, 50e9};
        const auto seconds = [&](CollectiveKind kind, int degree, int stride) {
            return exchangeSeconds({"", kind, 1e9, 1, degree, stride}, 300e9, machines);
        };
        const double sixteenth = 15.0 / 16;
        QCOMPARE(seconds(AllGather, 8, 1), 7.0 / 8 / 300);
        QCOMPARE(seconds(AllGather, 16, 1), sixteenth / 300); // 8 adapters are faster than the links
        QCOMPARE(seconds(AllReduce, 4, 4), 2 * 0.75 / 100);   // two members in each machine
        QCOMPARE(seconds(AllReduce, 2, 8), 2 * 0.5 / 50);
        QCOMPARE(seconds(Send, 2, 8), 1.0 / 50);
        QCOMPARE(seconds(Send, 2, 4), 1.0 / 300);
        QCOMPARE(seconds(AllToAll, 16, 1), sixteenth * 8 / 15 / 50);
        QCOMPARE(exchangeSeconds({"", AllGather, 1e9, 1, 16, 1}, 300e9, {}), sixteenth / 300);
    }

private:
    static void addRanks()
    {
        QTest::addColumn<int>("ranks");
        for (const int ranks : {2, 3, 4, 5, 8, 13})
            QTest::addRow("%d", ranks) << ranks;
    }
};

QTEST_GUILESS_MAIN(TestCollectives)
#include "tst_collectives.moc"
