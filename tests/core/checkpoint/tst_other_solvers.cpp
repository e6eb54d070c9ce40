// SPDX-License-Identifier: Apache-2.0
// The knapsack, the adaptive heuristic and the search over everything: against the reference, the
// plain recursion, and each other; every schedule replayed.
#include "core/checkpoint/adaptive.h"
#include "core/checkpoint/exhaustive.h"
#include "core/checkpoint/knapsack.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/replay.h"
#include "tests/support/checkpoint_refs.h"
#include "tests/support/plain_recursion.h"
#include "tests/support/random_chain.h"

#include <QtTest>

#include <bit>

using namespace memscape;

namespace {

std::vector<KnapsackItem> itemsOf(const QJsonValue& entry)
{
    std::vector<KnapsackItem> items;
    for (qsizetype i = 0; i < entry["memory"].toArray().size(); ++i)
        items.push_back({entry["memory"][i].toInteger(), entry["runtime"][i].toDouble()});
    return items;
}

} // namespace

class TestOtherSolvers : public QObject
{
    Q_OBJECT

private slots:
    void knapsackIsTheReferences()
    {
        const QJsonArray entries = test::checkpointReferences()["E_knapsack"].toArray();
        QVERIFY(entries.size() >= 9);
        for (const QJsonValue& entry : entries) {
            const auto items = itemsOf(entry);
            const std::int64_t budget = entry["budget"].toInteger();
            const auto knapsack = Knapsack::make(items, budget);
            QVERIFY(knapsack.has_value());
            const Selection best = knapsack->best(knapsack->slotCount()), greedy = greedySelection(items, budget);
            QCOMPARE(best.runtime, entry["opt_runtime_kept"].toDouble());
            QVERIFY(best.memory <= budget);
            QCOMPARE(greedy.runtime, entry["greedy_runtime_kept"].toDouble());
            QVERIFY(greedy.memory <= budget);
        }
    }

    void roundedKnapsacksNeverPassTheCapacity()
    {
        // Two items of a quarter and a bit: PyTorch's rounding lets both pass half of the memory.
        const auto knapsack = Knapsack::make({{25004, 1}, {25004, 1}}, 50000, 10000);
        QCOMPARE(knapsack->best(knapsack->slotCount()).runtime, 1.0);
        std::mt19937 random(7);
        for (int i = 0; i < 200; ++i) {
            std::vector<KnapsackItem> items;
            for (int k = 0; k < 12; ++k)
                items.push_back({std::int64_t(random() % 100000), double(random() % 1000)});
            const std::int64_t capacity = 1 + random() % 300000;
            const auto rounded = Knapsack::make(items, capacity, 50), exact = Knapsack::make(items, capacity);
            const Selection coarse = rounded->best(rounded->slotCount()), best = exact->best(exact->slotCount());
            QVERIFY(coarse.memory <= capacity);
            QVERIFY(coarse.runtime <= best.runtime);
            QVERIFY(greedySelection(items, capacity).runtime <= best.runtime);
        }
    }

    void everySelectionIsASchedule()
    {
        std::mt19937 random(3);
        const Chain chain = test::randomChain(random, 9, true);
        for (unsigned mask = 0; mask < 512; ++mask) {
            std::vector<bool> kept;
            for (unsigned i = 0; i < 9; ++i) {
                kept.push_back(mask >> i & 1);
            }
            double expected = chain.lossTime;
            for (std::size_t i = 0; i < 9; ++i)
                expected += (kept[i] ? chain.stages[i].options[0].forward
                                     : chain.stages[i].forward + chain.stages[i].options[0].forward)
                    + chain.stages[i].options[0].backward;
            for (const Borders borders : {Borders::Kept, Borders::Dropped}) {
                const auto replayed = replay(chain, selectiveSchedule(kept, borders));
                QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
                QCOMPARE(replayed->makespan, expected); // what is not kept runs twice, no more
                QCOMPARE(replayed->recomputed, std::int64_t(9 - std::popcount(mask)));
            }
        }
    }

    void exhaustiveIsTheReferences()
    {
        int compared = 0, lower = 0;
        for (const QJsonValue& entry : test::checkpointReferences()["C_heterogeneous_chain"].toArray()) {
            if (entry["L"].toInt() > exhaustiveLengthLimit)
                continue;
            const Chain chain = test::referenceChain(entry.toObject());
            for (const QJsonValue& row : entry["budgets"].toArray()) {
                const QJsonValue expected = row["bruteforce_unrestricted"];
                if (expected.isUndefined())
                    continue;
                const std::int64_t budget = row["M"].toInteger();
                const auto schedule = exhaustiveSchedule(chain, budget);
                QCOMPARE(schedule.has_value(), !expected.isNull());
                if (!schedule)
                    continue;
                const auto replayed = replay(chain, *schedule);
                QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
                QVERIFY(replayed->peak <= budget);
                QCOMPARE(replayed->makespan, expected.toDouble());
                QCOMPARE(test::PlainRecursion(chain, budget).makespan(budget), row["bruteforce_persistent"].toDouble());
                compared += 1;
                lower += expected.toDouble() < row["bruteforce_persistent"].toDouble();
            }
        }
        QVERIFY2(compared > 50, qPrintable(QString::number(compared)));
        qInfo("%d budgets compared, %d of them below the persistent optimum", compared, lower);
    }

    void theCounterexamplesHold()
    {
        int compared = 0;
        for (const QJsonValue& entry : test::checkpointReferences()["C_counterexamples"].toArray()) {
            const Chain chain = test::referenceChain(entry.toObject());
            const std::int64_t budget = entry["M"].toInteger();
            if (entry["opt_persistent"].isDouble()) {
                QCOMPARE(test::PlainRecursion(chain, budget).makespan(budget), entry["opt_persistent"].toDouble());
                compared += 1;
            }
            if (entry["true_optimum"].isDouble()) { // forgetting a kept value and making it again is better
                const auto schedule = exhaustiveSchedule(chain, budget);
                QVERIFY(schedule.has_value());
                QCOMPARE(replay(chain, *schedule)->makespan, entry["true_optimum"].toDouble());
                compared += 1;
            }
        }
        QVERIFY(compared >= 4);
    }

    void exhaustiveIsNeverAbovePersistent()
    {
        std::mt19937 random(11);
        int lower = 0;
        for (int i = 0; i < 80; ++i) {
            const Chain chain = test::randomChain(random, 2 + i % 4, i % 2, 1 + i % 2);
            const std::int64_t least = minimumPersistentBudget(chain);
            for (const std::int64_t budget : {least, least + 3, least + 9}) {
                const auto schedule = exhaustiveSchedule(chain, budget);
                QVERIFY(schedule.has_value());
                const auto replayed = replay(chain, *schedule);
                QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
                QVERIFY(replayed->peak <= budget);
                const double persistent = test::PlainRecursion(chain, budget).makespan(budget);
                QVERIFY(replayed->makespan <= persistent);
                lower += replayed->makespan < persistent;
            }
        }
        QVERIFY(lower > 0);
    }

    void adaptiveKeepsTheBudget()
    {
        std::mt19937 random(5);
        int feasible = 0, refused = 0;
        for (int i = 0; i < 300; ++i) {
            const Chain chain = test::randomChain(random, 3 + i % 20, i % 3 == 0);
            const std::int64_t least = minimumPersistentBudget(chain);
            for (const std::int64_t budget : {least - 1, least, least + 5, least + 30, std::int64_t(2000)}) {
                const auto schedule = adaptiveSchedule(chain, budget);
                if (!schedule) {
                    refused += 1;
                    QCOMPARE(schedule.error().code, std::string("checkpoint.budget"));
                    QCOMPARE(schedule.error().place, std::string("budget"));
                    continue;
                }
                const auto replayed = replay(chain, *schedule);
                QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
                QVERIFY(replayed->peak <= budget);
                QVERIFY(replayed->makespan >= chain.timeWithoutRecomputation());
                if (budget == 2000)
                    QCOMPARE(replayed->makespan, chain.timeWithoutRecomputation());
                feasible += 1;
                QCOMPARE(*adaptiveSchedule(chain, budget), *schedule); // the same again
            }
        }
        QVERIFY(feasible > 500);
        QVERIFY(refused > 0);
    }

    void whatCannotBeIsRefused()
    {
        QCOMPARE(exhaustiveSchedule(uniformChain(8), 100).error().code, std::string("chain.length"));
        QCOMPARE(exhaustiveSchedule(uniformChain(7), 1).error().code, std::string("checkpoint.budget"));
        QVERIFY(exhaustiveSchedule(uniformChain(7), 10).has_value());
        QCOMPARE(Knapsack::make(std::vector<KnapsackItem>(100'000, {1, 1}), 1'000'000, 1'000'000).error().code,
                 std::string("chain.length"));
        QCOMPARE(adaptiveSchedule(uniformChain(3), -5).error().code, std::string("checkpoint.budget"));
    }
};

QTEST_APPLESS_MAIN(TestOtherSolvers)
#include "tst_other_solvers.moc"
