// SPDX-License-Identifier: Apache-2.0
// The answer that is named optimal against every strategy beside it: networks of many shapes at many
// budgets, the front that is drawn, chains too irregular for an exact answer, and the claims whose
// verdicts follow from it.
#include "core/device/catalogue.h"
#include "core/experiments/checkpoint/checkpoint.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/devices.h"
#include "tests/support/random_chain.h"

#include <QtTest>

#include <cmath>

#include <fmt/format.h>

using namespace memscape;
using namespace memscape::test;

namespace {

/// Sums of seconds in another order differ by less.
constexpr double sameTime = 1 + 1e-9;

constexpr AskedExperiment checkpointing{"checkpoint"};

/// What the drawn line says at a budget.
double frontAt(const std::vector<FrontPoint>& line, std::int64_t budget)
{
    double makespan = std::numeric_limits<double>::infinity();
    for (const FrontPoint& point : line) {
        if (point.budget <= budget)
            makespan = std::min(makespan, point.makespan);
    }
    return makespan;
}

/// The optimal answer at a budget, held against all that stand beside it; and at the memory that each
/// of them takes.
void holdAgainstOthers(CheckpointAnswer& answer, const Parameters& parameters)
{
    const auto all = compareStrategies(answer, parameters);
    const StrategyAnswer* optimal = nullptr;
    for (const StrategyAnswer& strategy : all) {
        if (strategy.key == "optimal")
            optimal = &strategy;
    }
    QVERIFY(optimal);
    const std::vector<FrontPoint> line = bestFront(answer, all);
    for (const StrategyAnswer& strategy : all) {
        if (!strategy.hasSchedule())
            continue;
        const auto told = [&] {
            return fmt::format("{} at {}: {} in {}", strategy.key, answer.budget.memory, strategy.replay.makespan,
                               strategy.replay.peak);
        };
        const double time = strategy.replay.makespan;
        if (strategy.replay.peak <= answer.budget.memory)
            QVERIFY2(optimal->hasSchedule() && optimal->replay.makespan <= time, told().c_str());
        QVERIFY2(frontAt(line, strategy.replay.peak) <= time * sameTime, told().c_str());
        if (strategy.key == "adaptive" || strategy.key == "exhaustive" || strategy.key == "selective"
            || !optimal->takenFrom.empty())
            continue; // those forget and make again, and can be quicker than every persistent one
        const auto there = answer.tables->optimum(strategy.replay.peak);
        QVERIFY2(there && there->replay.makespan <= time * sameTime, told().c_str());
        QVERIFY2(there->replay.peak <= strategy.replay.peak, told().c_str());
        QVERIFY2(there->bound <= there->replay.makespan * sameTime, told().c_str());
    }
    for (std::size_t i = 1; i < line.size(); ++i)
        QVERIFY(line[i].budget > line[i - 1].budget && line[i].makespan <= line[i - 1].makespan);
    if (!optimal->hasSchedule())
        return;
    QVERIFY(optimal->replay.peak <= answer.budget.memory);
    const auto replayed = replay(answer.chain(), optimal->schedule);
    QVERIFY(replayed && replayed->peak == optimal->replay.peak && replayed->makespan == optimal->replay.makespan);
}

/// The optimal answer to a chain in these shares of the way from the least memory to all of it.
void holdAtShares(const std::vector<std::string>& chain, const Device& device, std::initializer_list<int> shares,
                  double* largestGap = nullptr)
{
    PredictionContext context;
    std::vector<std::string> sizes = chain;
    sizes.push_back("strategy=none");
    const auto whole = answerCheckpoint(device, checkpointing.with(sizes), context);
    QVERIFY2(whole.has_value(), whole ? "" : whole.error().text().c_str());
    for (const int share : shares) {
        std::vector<std::string> assignments = chain;
        const std::int64_t budget = whole->leastMemory + (whole->fullMemory - whole->leastMemory) * share / 100;
        assignments.push_back(fmt::format("budget={}", budget));
        const Parameters parameters = checkpointing.with(assignments);
        auto answer = answerCheckpoint(device, parameters, context);
        QVERIFY2(answer.has_value(), answer ? "" : answer.error().text().c_str());
        QVERIFY2(answer->chosen.isFeasible, answer->chosen.missing ? answer->chosen.missing->text().c_str() : "");
        holdAgainstOthers(*answer, parameters);
        if (largestGap)
            *largestGap = std::max(*largestGap, answer->chosen.gap());
        if (QTest::currentTestFailed())
            return;
    }
}

/// The parameter that names a chain of one's own.
std::string inFile(const QTemporaryDir& folder, const Chain& chain)
{
    const QString path = folder.filePath("chain.json");
    QFile file(path);
    if (file.open(QIODevice::WriteOnly))
        file.write(QByteArray::fromStdString(jsonText(chainToJson(chain))));
    return "chain=" + path.toStdString();
}

} // namespace

QString verdictOf(const char* quote, const std::vector<std::string>& assignments)
{
    for (const Claim& claim : checkpointing->claims(h200(), checkpointing.with(assignments))) {
        if (claim.id == quote || claim.quote.find(quote) != std::string::npos)
            return QString::fromStdString(claim.verdict);
    }
    return {};
}

class TestCheckpointOptimal : public QObject
{
    Q_OBJECT

private slots:
    void noStrategyIsQuicker_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("batch");
        QTest::addColumn<int>("sequence");
        struct Shape
        {
            int batch, sequence;
        };
        for (const char* model : {"gpt2", "bert-base-uncased", "bert-large-uncased", "pythia-410m", "opt-1.3b",
                                  "llama-2-7b", "qwen2-0.5b", "gemma-3-1b"}) {
            for (const Shape& shape : {Shape{1, 128}, {7, 333}, {32, 512}})
                QTest::addRow("%s, %d × %d", model, shape.batch, shape.sequence)
                    << model << shape.batch << shape.sequence;
        }
        for (const char* model : {"resnet50", "resnet152", "vit-b-16"}) {
            for (const int batch : {3, 32})
                QTest::addRow("%s, %d", model, batch) << model << batch << 128;
        }
        QTest::addRow("llama-2-70b, 1 × 4096") << "llama-2-70b" << 1 << 4096;
    }
    void noStrategyIsQuicker()
    {
        QFETCH(QString, model);
        QFETCH(int, batch);
        QFETCH(int, sequence);
        const std::vector<std::string> chain{"chain=model:" + model.toStdString(), fmt::format("batch={}", batch),
                                             fmt::format("sequence={}", sequence)};
        double gap = 0;
        holdAtShares(chain, h200(), {0, 3, 25, 60}, &gap);
        QVERIFY2(gap <= 1e-9, qPrintable(QString::number(gap))); // a network is solved exactly
    }

    void irregularChainsAreEnclosed_data()
    {
        QTest::addColumn<int>("length");
        QTest::addColumn<double>("largestGap");
        QTest::newRow("exactly") << 8 << 1e-9;
        QTest::newRow("exactly, longer") << 40 << 1e-9;
        QTest::newRow("enclosed") << 70 << 0.02;
        QTest::newRow("long") << 140 << 0.06;
    }
    void irregularChainsAreEnclosed()
    {
        QFETCH(int, length);
        QFETCH(double, largestGap);
        const QTemporaryDir folder;
        double gap = 0;
        holdAtShares({inFile(folder, test::irregularChain(length, 3))}, h200(), {2, 20, 55}, &gap);
        QVERIFY2(gap <= largestGap, qPrintable(QString::number(gap)));
    }

    /// 3 equal stages: 10 by forgetting, 11 without.
    void aScheduleThatRecomputesIsTakenAndNamed()
    {
        const Parameters parameters = checkpointing.with({"chain=uniform:3", "budget=5"});
        const auto answer = answerCheckpoint(h200(), parameters);
        QVERIFY(answer.has_value());
        QCOMPARE(answer->chosen.bound, 11.0);
        QCOMPARE(answer->chosen.replay.makespan, 10.0);
        QCOMPARE(answer->chosen.takenFrom, std::string("exhaustive"));
        QVERIFY(answer->chosen.note.starts_with("optimal among all schedules"));
        const auto all = compareStrategies(*answer, parameters);
        QCOMPARE(frontAt(bestFront(*answer, all), 5), 10.0);
        const auto enough = answerCheckpoint(h200(), checkpointing.with({"chain=uniform:3", "budget=6"}));
        QVERIFY(enough && enough->chosen.takenFrom.empty());
        QVERIFY(enough->chosen.note.starts_with("optimal among persistent schedules"));
    }

    void verdictsFollowTheNumbers_data()
    {
        QTest::addColumn<QString>("quote");
        QTest::addColumn<QString>("holds");
        QTest::addColumn<QString>("fails");
        const auto row = [](const char* name, const char* quote, const char* holds, const char* fails) {
            QTest::newRow(name) << quote << holds << fails;
        };
        row("√n memory", "O(√n)", "uniform:64", "uniform:3");
        row("one third", "checkpoint-third", "uniform:64", "uniform:64,forward=1,backward=1");
        row("reduction", "memory-reduction", "uniform:64,saved=100", "uniform:64");
        row("one segment", "compute-overhead", "uniform:1", "uniform:64");
        row("spacing", "spacing", "uniform:64,saved=100", "uniform:64");
        row("constant memory", "n² compute", "uniform:64", "uniform:2");
        row("Revolve", "Revolve", "uniform:4,saved=4", "uniform:64");
    }
    void verdictsFollowTheNumbers()
    {
        QFETCH(QString, quote);
        QFETCH(QString, holds);
        QFETCH(QString, fails);
        const QByteArray said = quote.toUtf8();
        const QString good = verdictOf(said.constData(), {"chain=" + holds.toStdString()});
        const QString bad = verdictOf(said.constData(), {"chain=" + fails.toStdString()});
        QVERIFY2(good.startsWith("holds"), qPrintable(good));
        QVERIFY2(bad.startsWith("does not hold"), qPrintable(bad));
    }

    void theKnobIsMonotoneOnlyWhereThePeakGrows()
    {
        QVERIFY(verdictOf("monotone", {"chain=uniform:64"}).contains("has no effect"));
        const QTemporaryDir folder;
        // Every setting keeps the small, slow stage in the middle; the rest follows one by one.
        Chain chain = uniformChain(3, 1, 100);
        chain.stages[1].options.front().saved = 2;
        chain.stages[1].forward = chain.stages[1].options.front().forward = 50;
        const QString grows = verdictOf("monotone", {inFile(folder, chain)});
        QVERIFY2(grows.startsWith("holds"), qPrintable(grows));
        const QString falls = verdictOf("monotone", {inFile(folder, test::irregularChain(40, 3))});
        QVERIFY2(falls.contains("the peak does not"), qPrintable(falls));
    }

    /// √n segments are optimal here; slots as coarse as these can't show it, finer ones can.
    void roundedSizesLeaveAVerdictOpen()
    {
        Chain chain = uniformChain(81, 20'000'000, 100'000'000);
        chain.units.isBytes = true;
        for (int i = 0; i < 81; ++i)
            chain.stages[std::size_t(i)].options.front().saved += 7 * i * i;
        const QTemporaryDir folder;
        const std::string file = inFile(folder, chain);
        const QString coarse = verdictOf("spacing", {file, "slots=8"}),
                      fine = verdictOf("spacing", {file, "slots=500"});
        QVERIFY2(coarse.startsWith("open"), qPrintable(coarse));
        QVERIFY2(fine.startsWith("holds"), qPrintable(fine));
    }
};

QTEST_APPLESS_MAIN(TestCheckpointOptimal)
#include "tst_checkpoint_optimal.moc"
