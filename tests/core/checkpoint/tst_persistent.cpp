// SPDX-License-Identifier: Apache-2.0
// The fast solver against values that others computed, against the recursion as it is read, and
// against the replay of every schedule it returns.
#include "core/access/random.h"
#include "core/checkpoint/persistent.h"
#include "core/checkpoint/replay.h"
#include "tests/support/checkpoint_refs.h"
#include "tests/support/plain_recursion.h"

#include <QtTest>

#include <cmath>

using namespace memscape;
using namespace memscape::test;

namespace {

/// What chains are drawn from.
struct Drawing
{
    int longest = 9;
    std::uint64_t time = 12; ///< times are below
    double timeUnit = 1;
    std::uint64_t size = 7; ///< sizes are below
    std::uint64_t overhead = 3;
    std::uint64_t spike = 0; ///< one overhead in four is below this
    int options = 1;
};

std::int64_t drawOverhead(SplitMix64& random, const Drawing& drawing)
{
    const bool isSpike = drawing.spike > 0 && random.below(4) == 0;
    return std::int64_t(random.below(isSpike ? drawing.spike : drawing.overhead + 1));
}

Chain drawChain(SplitMix64& random, const Drawing& drawing)
{
    const auto time = [&] { return double(random.below(drawing.time)) * drawing.timeUnit; };
    Chain chain;
    chain.units = {false, false};
    const int length = 1 + int(random.below(std::uint64_t(drawing.longest)));
    for (int i = 0; i <= length; ++i)
        chain.values.push_back(std::int64_t(random.below(drawing.size)));
    for (int i = 0; i < length; ++i) {
        Stage stage{{}, time(), drawOverhead(random, drawing), {}};
        const int options = 1 + int(random.below(std::uint64_t(drawing.options)));
        for (int k = 0; k < options; ++k)
            stage.options.push_back({"", k == 0 ? stage.forward : time(), time(),
                                     chain.values[i + 1] + std::int64_t(random.below(drawing.size)),
                                     k == 0 ? stage.forwardOverhead : drawOverhead(random, drawing),
                                     drawOverhead(random, drawing)});
        chain.stages.push_back(std::move(stage));
    }
    chain.lossTime = time();
    chain.lossOverhead = drawOverhead(random, drawing);
    return chain;
}

/// The front's points, and that each is what its own schedule's replay says, within its budget.
void compareWithReplays(const Chain& chain, const PersistentSolution& solution, double tolerance = 0)
{
    double before = infeasible;
    for (const FrontPoint& point : solution.front()) {
        const auto schedule = solution.schedule(point.budget);
        QVERIFY(schedule.has_value());
        const auto replayed = replay(chain, *schedule);
        QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
        QVERIFY2(replayed->peak <= point.budget, qPrintable(QString("%1 > %2").arg(replayed->peak).arg(point.budget)));
        QVERIFY(std::abs(replayed->makespan - point.makespan) <= tolerance * point.makespan);
        QVERIFY(point.makespan <= before);
        before = point.makespan;
    }
}

/// Every budget from nothing to more than is needed, against the recursion as it is read.
void compareWithPlain(const Chain& chain, const std::vector<PersistentSolution>& solutions, double tolerance)
{
    const std::int64_t most = solutions.front().budgetWithoutRecomputation() + 2;
    const PlainRecursion plain(chain, most);
    for (const PersistentSolution& solution : solutions) {
        for (std::int64_t budget = 1; budget <= most; ++budget) {
            const auto found = solution.makespan(budget);
            const double expected = plain.makespan(budget);
            QCOMPARE(found.has_value(), expected < infeasible);
            QVERIFY(!found || std::abs(*found - expected) <= tolerance * expected);
        }
        QCOMPARE(minimumPersistentBudget(chain), solution.minimumBudget());
    }
}

/// In slots and in steps.
void solveAndCompare(const Chain& chain, double tolerance = 0)
{
    const auto inSlots = solvePersistent(chain), exactly = solveExactly(chain);
    QVERIFY2(inSlots.has_value(), inSlots ? "" : inSlots.error().text().c_str());
    QVERIFY2(exactly.has_value(), exactly ? "" : exactly.error().text().c_str());
    compareWithPlain(chain, {*inSlots, *exactly}, tolerance);
    for (const PersistentSolution& solution : {*inSlots, *exactly}) {
        if (!QTest::currentTestFailed())
            compareWithReplays(chain, solution, tolerance);
    }
}

/// A chain in bytes and seconds whose sizes have no common divisor.
Chain byteChain(int length)
{
    SplitMix64 random(7);
    Chain chain;
    for (int i = 0; i <= length; ++i)
        chain.values.push_back(1'000'003 + std::int64_t(random.below(4'000'000)));
    for (int i = 0; i < length; ++i)
        chain.stages.push_back(
            {{},
             1e-3 * double(1 + random.below(9)),
             4096,
             {SaveOption{"all", 1.1e-3, 2.7e-3, chain.values[i + 1] + std::int64_t(random.below(9'000'000)), 4096,
                         70'001}}});
    return chain;
}

} // namespace

class TestPersistent : public QObject
{
    Q_OBJECT

private slots:
    void fronts_data()
    {
        QTest::addColumn<QJsonObject>("entry");
        QTest::addColumn<QJsonArray>("front");
        QTest::addColumn<int>("minimum");
        QTest::addColumn<int>("limit");
        const QJsonObject references = checkpointReferences();
        for (const QJsonValue& value : references["C_homogeneous_chain"].toArray()) {
            const QJsonObject entry = value.toObject();
            QTest::newRow(
                qPrintable(QString("homogeneous %1, saved %2").arg(entry["L"].toInt()).arg(entry["cbw"].toInt())))
                << entry << entry["makespan"].toArray() << entry["M_min"].toInt() << 0;
        }
        for (const QJsonValue& value : references["C_heterogeneous_chain"].toArray()) {
            const QJsonObject entry = value.toObject(), front = entry["front"].toObject();
            QTest::newRow(qPrintable(entry["name"].toString()))
                << entry << front["makespan"].toArray() << front["M_min"].toInt() << 0;
        }
        for (const QJsonValue& value : references["C_timing_instances"].toArray()) {
            const QJsonObject entry = value.toObject();
            QTest::newRow(qPrintable(entry["name"].toString()))
                << entry << entry["makespan"].toArray() << entry["M_min"].toInt() << entry["M"].toInt();
        }
    }
    void fronts()
    {
        QFETCH(QJsonObject, entry);
        QFETCH(QJsonArray, front);
        QFETCH(int, minimum);
        QFETCH(int, limit);
        QVERIFY(!front.isEmpty());
        const Chain chain = referenceChain(entry);
        const auto solution = solvePersistent(chain, {.memoryLimit = limit});
        QVERIFY(solution.has_value());
        QCOMPARE(solution->minimumBudget(), minimum);
        const std::vector<FrontPoint> found = solution->front();
        QCOMPARE(qsizetype(found.size()), front.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            QCOMPARE(found[i].budget, minimum + std::int64_t(i));
            QCOMPARE(found[i].makespan, front[qsizetype(i)].toDouble());
        }
        QVERIFY(!solution->makespan(minimum - 1) && !solution->schedule(minimum - 1));
        compareWithReplays(chain, *solution);
    }

    void budgetsWithEverySolversValue()
    {
        int compared = 0;
        for (const QJsonValue& value : checkpointReferences()["C_heterogeneous_chain"].toArray()) {
            const QJsonObject entry = value.toObject();
            const auto solution = solvePersistent(referenceChain(entry));
            QVERIFY(solution.has_value());
            for (const QJsonValue& budget : entry["budgets"].toArray()) {
                QCOMPARE(solution->makespan(budget["M"].toInteger()).value(), budget["opt_persistent"].toDouble());
                ++compared;
            }
        }
        QVERIFY(compared > 50);
    }

    void counterexamples()
    {
        int compared = 0;
        for (const QJsonValue& value : checkpointReferences()["C_counterexamples"].toArray()) {
            const QJsonObject entry = value.toObject();
            if (!entry["opt_persistent"].isDouble() || !entry["fw"].isArray())
                continue;
            const auto solution = solvePersistent(referenceChain(entry));
            QVERIFY(solution.has_value());
            QCOMPARE(solution->makespan(entry["M"].toInteger()).value(), entry["opt_persistent"].toDouble());
            ++compared;
        }
        QVERIFY(compared >= 2);
    }

    void drawnChains_data()
    {
        QTest::addColumn<Drawing>("drawing");
        QTest::addColumn<int>("count");
        QTest::addColumn<double>("tolerance");
        QTest::newRow("small") << Drawing{} << 600 << 0.0;
        QTest::newRow("spiky overheads") << Drawing{.spike = 40} << 600 << 0.0;
        QTest::newRow("several ways to save") << Drawing{.longest = 7, .options = 3} << 500 << 0.0;
        QTest::newRow("several ways, spiky") << Drawing{.longest = 7, .spike = 40, .options = 4} << 500 << 0.0;
        QTest::newRow("mostly nothing") << Drawing{.time = 2, .size = 2, .overhead = 1} << 500 << 0.0;
        QTest::newRow("longer than a tile")
            << Drawing{.longest = 40, .time = 200, .spike = 30, .options = 2} << 40 << 0.0;
        QTest::newRow("longer than a group of tiles") << Drawing{.longest = 90, .time = 90, .size = 3} << 6 << 0.0;
        QTest::newRow("sums beyond 2^24") << Drawing{.time = 1 << 20, .options = 2} << 200 << 0.0;
        QTest::newRow("sums beyond 2^31") << Drawing{.time = std::uint64_t(1) << 40, .options = 2} << 200 << 0.0;
        QTest::newRow("times in tenths") << Drawing{.time = 100, .timeUnit = 0.1, .spike = 20, .options = 2} << 200
                                         << 1e-14;
        QTest::newRow("times in seconds") << Drawing{.time = 1 << 20, .timeUnit = 1e-9} << 200 << 1e-14;
    }
    void drawnChains()
    {
        QFETCH(Drawing, drawing);
        QFETCH(int, count);
        QFETCH(double, tolerance);
        SplitMix64 random(2026);
        for (int i = 0; i < count && !QTest::currentTestFailed(); ++i) {
            solveAndCompare(drawChain(random, drawing), tolerance);
            if (QTest::currentTestFailed())
                qInfo() << "chain" << i;
        }
    }

    void everyVectorWidthAnswersTheSame()
    {
        SplitMix64 random(11);
        for (int i = 0; i < 60; ++i) {
            const double timeUnit = i % 2 == 0 ? 1 : 0.1; // whole numbers and doubles
            const Chain chain = drawChain(
                random, {.longest = 60, .time = 50, .timeUnit = timeUnit, .size = 30, .spike = 30, .options = 2});
            const std::vector<FrontPoint> widest = solvePersistent(chain)->front();
            for (const int vectorBytes : {16, 32}) {
                const std::vector<FrontPoint> front = solvePersistent(chain, {.vectorBytes = vectorBytes})->front();
                QCOMPARE(front.size(), widest.size());
                for (std::size_t k = 0; k < front.size(); ++k) {
                    QCOMPARE(front[k].budget, widest[k].budget);
                    QVERIFY(front[k].makespan == widest[k].makespan);
                }
            }
        }
    }

    void scalingChangesNothingElse()
    {
        SplitMix64 random(5);
        for (int i = 0; i < 50; ++i) {
            const Chain chain = drawChain(random, {.longest = 12, .spike = 20});
            Chain scaled = chain;
            for (std::int64_t& value : scaled.values)
                value *= 3;
            for (Stage& stage : scaled.stages) {
                stage.forward *= 5;
                stage.forwardOverhead *= 3;
                for (SaveOption& option : stage.options)
                    option = {"",
                              option.forward * 5,
                              option.backward * 5,
                              option.saved * 3,
                              option.forwardOverhead * 3,
                              option.backwardOverhead * 3};
            }
            scaled.lossTime *= 5;
            scaled.lossOverhead *= 3;
            const auto one = solvePersistent(chain), other = solvePersistent(scaled);
            QVERIFY(one && other);
            QCOMPARE(other->minimumBudget(), 3 * one->minimumBudget());
            for (const FrontPoint& point : one->front()) {
                QCOMPARE(other->makespan(3 * point.budget).value(), 5 * point.makespan);
                QCOMPARE(other->makespan(3 * point.budget + 2).value(), 5 * point.makespan);
            }
            QCOMPARE(one->front().back().makespan, chain.timeWithoutRecomputation());
        }
    }

    void sizesInBytesAreRoundedUpAndSchedulesFit()
    {
        const Chain chain = byteChain(30);
        double before = infeasible;
        for (const int slotCount : {50, 500, 4000}) {
            const auto solution = solvePersistent(chain, {.slotCount = slotCount});
            QVERIFY(solution.has_value());
            QCOMPARE(solution->slot(), (solution->budgetWithoutRecomputation() + slotCount - 1) / slotCount);
            QVERIFY(solution->minimumBudget() >= minimumPersistentBudget(chain));
            compareWithReplays(chain, *solution, 1e-13);
            QCOMPARE(solution->front().back().budget, solution->budgetWithoutRecomputation());
            QCOMPARE(replay(chain, solution->schedule(solution->budgetWithoutRecomputation()).value())->peak,
                     solution->budgetWithoutRecomputation());
            const double half = solution->makespan(solution->budgetWithoutRecomputation() / 2).value();
            QVERIFY(half <= before); // finer slots round less
            before = half;
        }
    }

    void equalSizesInBytesAreSolvedExactly()
    {
        const std::int64_t layer = 8 << 20;
        Chain bytes = uniformChain(48, layer, 2 * layer, 0.25, 0.5);
        bytes.units = {};
        const auto inBytes = solvePersistent(bytes, {.slotCount = 200});
        const auto inUnits = solvePersistent(uniformChain(48, 1, 2, 0.25, 0.5));
        QVERIFY(inBytes && inUnits);
        QCOMPARE(inBytes->slot(), layer);
        QCOMPARE(inBytes->front().size(), inUnits->front().size());
        for (std::size_t i = 0; i < inUnits->front().size(); ++i) {
            QCOMPARE(inBytes->front()[i].budget, layer * inUnits->front()[i].budget);
            QCOMPARE(inBytes->front()[i].makespan, inUnits->front()[i].makespan);
        }
    }

    /// Whole times share the cells of equal segments, fractions do not: the same chain in three quarters of the time.
    void equalStagesAreSolvedOnce()
    {
        SplitMix64 random(11);
        for (int round = 0; round < 24; ++round) {
            Chain few = drawChain(random, {.longest = 4, .options = 2});
            Chain chain = few;
            const int period = few.length();
            for (int i = period; i < 24 + int(random.below(60)); ++i) {
                chain.stages.push_back(few.stages[std::size_t(i % period)]);
                chain.values.push_back(few.values[std::size_t(i % period) + 1]);
            }
            Chain slower = chain;
            slower.lossTime *= 0.75;
            for (Stage& stage : slower.stages) {
                stage.forward *= 0.75;
                for (SaveOption& option : stage.options) {
                    option.forward *= 0.75;
                    option.backward *= 0.75;
                }
            }
            slower.lossTime += 0.25; // a fraction, whatever was drawn
            const auto once = solvePersistent(chain), longWay = solvePersistent(slower);
            QCOMPARE(once.has_value(), longWay.has_value());
            if (!once)
                continue;
            compareWithReplays(chain, *once);
            const auto points = once->front(), others = longWay->front();
            QCOMPARE(points.size(), others.size());
            for (std::size_t i = 0; i < points.size(); ++i) {
                QCOMPARE(points[i].budget, others[i].budget);
                QCOMPARE(points[i].makespan * 0.75 + 0.25, others[i].makespan);
            }
        }
    }

    /// Counted, not timed. Of every two segments that are as long as each other one is solved, but for those near the
    /// end.
    void longerChainsOfEqualStagesTakeAsManyMoreCells()
    {
        std::vector<double> cells;
        for (const int length : {200, 400, 800}) {
            const auto solution = solvePersistent(uniformChain(length, 1, 4, 1, 2), {.memoryLimit = 64});
            QVERIFY2(solution.has_value(), solution ? "" : solution.error().text().c_str());
            const double segments = double(length + 1) * double(length + 2) / 2;
            cells.push_back(double(solution->tableBytes()) - segments * 16); // a window and a place each
        }
        QVERIFY2(cells[1] < 2.3 * cells[0], qPrintable(QString::number(cells[1] / cells[0])));
        QVERIFY2(cells[2] < 2.3 * cells[1], qPrintable(QString::number(cells[2] / cells[1])));
    }

    void aLimitCutsTheFront()
    {
        const Chain chain = uniformChain(40, 1, 4);
        const auto whole = solvePersistent(chain), cut = solvePersistent(chain, {.memoryLimit = 30});
        QVERIFY(whole && cut);
        QCOMPARE(cut->front().back().budget, std::int64_t(30));
        for (const FrontPoint& point : cut->front())
            QCOMPARE(point.makespan, whole->makespan(point.budget).value());
        QCOMPARE(cut->makespan(35).value(), whole->makespan(30).value());
        QVERIFY(cut->tableBytes() < whole->tableBytes());
        const auto more = solvePersistent(chain, {.memoryLimit = 100'000});
        QVERIFY(more.has_value());
        QCOMPARE(more->front().size(), whole->front().size());
    }

    void tooSmallBudgetsNameTheLeast()
    {
        const Chain chain = uniformChain(64);
        const auto solution = solvePersistent(chain);
        QVERIFY(solution.has_value());
        for (const std::int64_t budget : {std::int64_t(4), std::int64_t(0), std::int64_t(-7)}) {
            const auto schedule = solution->schedule(budget);
            QVERIFY(!schedule);
            QCOMPARE(schedule.error().code, "checkpoint.budget");
            QVERIFY(schedule.error().message.ends_with("the least is 5"));
        }
        const auto limited = solvePersistent(chain, {.memoryLimit = 4});
        QVERIFY(!limited);
        QCOMPARE(limited.error().code, "checkpoint.budget");
        QVERIFY(limited.error().message.ends_with("the least is 5"));
        QCOMPARE(solvePersistent(chain, {.memoryLimit = -1}).error().code, "checkpoint.budget");
        QCOMPARE(solvePersistent(chain, {.slotCount = 0}).error().code, "checkpoint.slots");
        QCOMPARE(solvePersistent(chain, {.slotCount = 2'000'000}).error().code, "checkpoint.slots");

        // Enough in bytes, not in coarse slots: the message says so.
        const Chain bytes = byteChain(30);
        const auto coarse = solvePersistent(bytes, {.slotCount = 5, .memoryLimit = minimumPersistentBudget(bytes)});
        QVERIFY(!coarse);
        QCOMPARE(coarse.error().hint, "take more slots");
    }

    void sizesThatDontFitAreRefused()
    {
        const auto longest = solvePersistent(uniformChain(100'000));
        QVERIFY(!longest);
        QCOMPARE(longest.error().code, "checkpoint.size");
        QVERIFY(longest.error().message.find("100000 stages") != std::string::npos);
        QCOMPARE(solvePersistent(uniformChain(0)).error().code, "chain.length");

        // One slot per unit is too many here; what the hint names works.
        const PersistentSettings settings{.tableLimit = 1 << 20};
        const Chain wide = uniformChain(20, 1'000'000, 1'000'000);
        const auto refused = solvePersistent(wide, settings);
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, "checkpoint.size");

        const Chain bytes = byteChain(60);
        const auto fine = solvePersistent(bytes, {.slotCount = 100'000, .tableLimit = 1 << 24});
        QVERIFY(!fine);
        const QRegularExpressionMatch match = QRegularExpression("^(\\d+) slots would work, or (\\d+) stages")
                                                  .match(QString::fromStdString(fine.error().hint));
        QVERIFY2(match.hasMatch(), fine.error().hint.c_str());
        const auto fewer = solvePersistent(bytes, {.slotCount = match.captured(1).toInt(), .tableLimit = 1 << 24});
        QVERIFY2(fewer.has_value(), fewer ? "" : fewer.error().text().c_str());
        QVERIFY(fewer->solverBytes() <= 1 << 24);
        QVERIFY(fewer->tableBytes() <= fewer->solverBytes());
    }

    void aCancelledSolveEndsAtOnce()
    {
        int asked = 0;
        const auto solution = solvePersistent(uniformChain(120, 1, 4), {.isCancelled = [&] { return ++asked == 3; }});
        QVERIFY(!solution);
        QCOMPARE(solution.error().code, "checkpoint.cancelled");
        QCOMPARE(asked, 3);
    }
};

QTEST_APPLESS_MAIN(TestPersistent)
#include "tst_persistent.moc"
