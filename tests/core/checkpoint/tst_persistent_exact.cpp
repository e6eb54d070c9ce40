// SPDX-License-Identifier: Apache-2.0
// The exact solver on sizes in bytes: against the recursion as it is read, asked for these bytes only,
// and between the two roundings of slots. tst_persistent holds it against every other reference.
#include "core/access/random.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/replay.h"
#include "tests/support/plain_recursion.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

/// Stages without two equal sizes, in odd bytes and in seconds.
Chain oddChain(SplitMix64& random, int length, int options = 1)
{
    const auto bytes = [&](std::uint64_t most) { return std::int64_t(2 * random.below(most / 2) + 1); };
    const auto seconds = [&] { return 1e-6 * double(1 + random.below(5000)); };
    Chain chain;
    for (int i = 0; i <= length; ++i)
        chain.values.push_back(bytes(90'000'000));
    for (int i = 0; i < length; ++i) {
        Stage stage{{}, seconds(), bytes(3'000'000), {}};
        for (int k = 0; k < options; ++k)
            stage.options.push_back({"", stage.forward, seconds(), chain.values[i + 1] + bytes(200'000'000),
                                     bytes(30'000'000), bytes(60'000'000)});
        chain.stages.push_back(std::move(stage));
    }
    chain.lossTime = seconds();
    chain.lossOverhead = bytes(5'000'000);
    return chain;
}

/// What a network is: something before, equal layers, something behind. In odd bytes.
Chain layeredChain(SplitMix64& random, int layers)
{
    const Chain parts = oddChain(random, 3);
    Chain chain = parts;
    chain.values = {parts.values[0]};
    chain.stages = {parts.stages[0]};
    for (int i = 0; i < layers; ++i) {
        chain.values.push_back(parts.values[1]);
        chain.stages.push_back(parts.stages[1]);
        chain.stages.back().options[0].saved += parts.values[1];
        chain.stages.back().name = std::to_string(i);
    }
    chain.values.push_back(parts.values[1]);
    chain.stages.push_back(parts.stages[2]);
    chain.values.push_back(parts.values[3]);
    return chain;
}

} // namespace

class TestPersistentExact : public QObject
{
    Q_OBJECT

private slots:
    void shortChainsAreSolvedToTheByte()
    {
        SplitMix64 random(15);
        for (int i = 0; i < 32; ++i) {
            const Chain chain = oddChain(random, 1 + i % 8, 1 + i % 2);
            const auto solution = solveExactly(chain);
            QVERIFY2(solution.has_value(), solution ? "" : solution.error().text().c_str());
            QVERIFY(solution->isExact());
            const std::int64_t least = solution->minimumBudget();
            QCOMPARE(least, minimumPersistentBudget(chain));
            BytewiseRecursion recursion(chain);
            QVERIFY(!(recursion.makespan(least - 1) < infeasible) && !solution->makespan(least - 1));
            // The corners of steps and the byte before each: what is a byte off, is off there.
            const std::vector<FrontPoint> front = solution->front();
            for (int k = 0; k < 8; ++k) {
                const std::int64_t budget = front[random.below(front.size())].budget;
                const double expected = recursion.makespan(budget);
                QVERIFY(std::abs(solution->makespan(budget).value() - expected) <= 1e-14 * expected);
            }
        }
    }

    void schedulesTakeWhatTheFrontSays()
    {
        SplitMix64 random(16);
        for (int i = 0; i < 20; ++i) {
            const Chain chain = i % 2 == 0 ? oddChain(random, 9, 2) : layeredChain(random, 20);
            const auto solution = solveExactly(chain);
            QVERIFY(solution.has_value());
            double before = infeasible;
            std::int64_t budget = 0;
            for (const FrontPoint& point : solution->front()) {
                const auto replayed = replay(chain, solution->schedule(point.budget).value());
                QVERIFY(replayed.has_value());
                QVERIFY(replayed->peak <= point.budget);
                QVERIFY(std::abs(replayed->makespan - point.makespan) <= 1e-13 * point.makespan);
                QVERIFY(point.makespan <= before && point.budget > budget);
                // A step begins where its schedule begins to fit.
                QVERIFY(point.makespan == before || replayed->peak == point.budget);
                before = point.makespan;
                budget = point.budget;
            }
            QCOMPARE(solution->front().back().budget, solution->budgetWithoutRecomputation());
        }
    }

    void nothingIsBetweenTheRoundings()
    {
        SplitMix64 random(17);
        int strictly = 0;
        for (int i = 0; i < 12; ++i) {
            const Chain chain = i % 2 == 0 ? oddChain(random, 10) : layeredChain(random, 30);
            const auto exactly = solveExactly(chain);
            const auto up = solvePersistent(chain, {.slotCount = 200});
            const auto down = solvePersistent(chain, {.slotCount = 200, .rounding = SlotRounding::Down});
            QVERIFY(exactly && up && down);
            QVERIFY(!up->isExact() && !down->isExact());
            const std::int64_t least = exactly->minimumBudget(), full = exactly->budgetWithoutRecomputation();
            for (std::int64_t budget = least; budget <= full; budget += (full - least) / 50) {
                const double optimum = exactly->makespan(budget).value();
                QVERIFY(down->makespan(budget).value() <= optimum * (1 + 1e-12));
                const auto above = up->makespan(budget);
                QVERIFY(!above || *above >= optimum * (1 - 1e-12));
                strictly += !above || *above > optimum * (1 + 1e-9);
            }
        }
        QVERIFY(strictly > 100); // that rounding costs something is why all this is done
    }

    void roundedDownIsNeverAbove()
    {
        SplitMix64 random(18);
        for (int i = 0; i < 14; ++i) {
            const Chain chain = oddChain(random, 1 + i % 7, 2);
            const auto down = solvePersistent(chain, {.slotCount = 50, .rounding = SlotRounding::Down});
            QVERIFY(down.has_value());
            BytewiseRecursion recursion(chain);
            const std::int64_t least = minimumPersistentBudget(chain);
            QVERIFY(down->minimumBudget() <= least);
            for (int k = 0; k < 6; ++k) {
                const std::int64_t budget = least + std::int64_t(random.below(std::uint64_t(least)));
                QVERIFY(down->makespan(budget).value() <= recursion.makespan(budget) * (1 + 1e-12));
            }
        }
    }

    void equalLayersAreSolvedAtOnce()
    {
        SplitMix64 random(19);
        const Chain chain = layeredChain(random, 120);
        const auto solution = solveExactly(chain, {.work = 20'000'000});
        QVERIFY2(solution.has_value(), solution ? "" : solution.error().text().c_str());
        QVERIFY(solution->front().size() > 100);
        QVERIFY2(solution->tableBytes() < 20'000'000, qPrintable(QString::number(solution->tableBytes())));
        QCOMPARE(solution->minimumBudget(), minimumPersistentBudget(chain));
    }

    void sizesWithoutAnythingInCommonAreRefused()
    {
        SplitMix64 random(20);
        const auto muchWork = solveExactly(oddChain(random, 50), {.work = 1'000'000});
        QVERIFY(!muchWork);
        QCOMPARE(muchWork.error().code, "checkpoint.size");
        const auto solution = solveExactly(oddChain(random, 150)); // at once
        QVERIFY(!solution);
        QCOMPARE(solution.error().code, "checkpoint.size");
        QCOMPARE(solveExactly(uniformChain(exactLengthLimit + 1)).error().code, "checkpoint.size");
        QCOMPARE(solveExactly(uniformChain(0)).error().code, "chain.length");
    }

    void aCancelledSolveEnds()
    {
        const auto solution = solveExactly(uniformChain(90, 1, 4), {.isCancelled = [] { return true; }});
        QVERIFY(!solution);
        QCOMPARE(solution.error().code, "checkpoint.cancelled");
    }
};

QTEST_APPLESS_MAIN(TestPersistentExact)
#include "tst_persistent_exact.moc"
