// SPDX-License-Identifier: Apache-2.0
// Schedules that need no table of memory: equal segments, √n, nothing kept, Revolve and its mixed
// variant, against the reference values (other programs' and exhaustive search's), each replayed.
#include "core/checkpoint/periodic.h"
#include "core/checkpoint/replay.h"
#include "core/checkpoint/revolve.h"
#include "tests/support/checkpoint_refs.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

void compareReplay(const Chain& chain, const Schedule& schedule, const QJsonObject& expected)
{
    const auto replayed = replay(chain, schedule);
    QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
    QCOMPARE(replayed->peak, expected["peak"].toInteger());
    QCOMPARE(replayed->makespan, expected["makespan"].toDouble());
    QCOMPARE(replayed->forwards, expected["forward_ops"].toInteger());
}

/// Nothing but the input is kept: every backward runs the chain from its start. The reference runs stage 0 once more
/// than it must, just before it is saved.
Schedule quadratic(int length)
{
    const auto forward = [](int stage) {
        return ChainOperation{stage == 0 ? OperationKind::ForwardKeep : OperationKind::ForwardDrop, stage, 0};
    };
    Schedule schedule;
    for (int i = 0; i < length; ++i)
        schedule.push_back(forward(i));
    schedule.push_back({OperationKind::Loss, length, 0});
    for (int last = length - 1; last >= 0; --last) {
        for (int i = 0; i < last; ++i)
            schedule.push_back(forward(i));
        if (last == 0)
            schedule.push_back(forward(0));
        schedule.push_back({OperationKind::ForwardSave, last, 0});
        schedule.push_back({OperationKind::Backward, last, 0});
    }
    return schedule;
}

Schedule baseline(const QString& name, int length)
{
    if (name == "no_checkpoint")
        return keepEverything(length);
    if (name == "recompute_all_quadratic")
        return quadratic(length);
    if (name.startsWith("rotor_chen_sqrt"))
        return squareRootSchedule(length);
    const int every = name.section('_', 2, 2).toInt(); // uniform_every_K_…
    return everyStages(length, every, name.endsWith("kept") ? LastSegment::Kept : LastSegment::Recomputed);
}

/// Fewest advances and, of those, writes for l steps with s states, by trying every split.
class Search
{
public:
    std::pair<std::int64_t, std::int64_t> best(int l, int s)
    {
        if (l == 1)
            return {0, 0};
        auto& known = m_known[{l, s}];
        if (known.first != 0)
            return known;
        std::pair<std::int64_t, std::int64_t> least{std::int64_t(l) * (l - 1) / 2, 0}; // nothing more is stored
        for (int j = 1; j < l && s > 1; ++j) {
            const auto behind = best(l - j, s - 1), before = best(j, s);
            least = std::min(least, {j + behind.first + before.first, 1 + behind.second + before.second});
        }
        return m_known[{l, s}] = least;
    }

private:
    std::map<std::pair<int, int>, std::pair<std::int64_t, std::int64_t>> m_known;
};

} // namespace

class TestSlotSchedules : public QObject
{
    Q_OBJECT

private slots:
    void everyBaselineIsTheReferences()
    {
        const QJsonObject all = test::checkpointReferences();
        int compared = 0;
        for (const char* group : {"C_homogeneous_chain", "C_heterogeneous_chain"}) {
            for (const QJsonValue& value : all[QLatin1String(group)].toArray()) {
                const Chain chain = test::referenceChain(value.toObject());
                const QJsonObject baselines = value["baselines"].toObject();
                for (auto it = baselines.begin(); it != baselines.end(); ++it, ++compared)
                    compareReplay(chain, baseline(it.key(), chain.length()), it.value().toObject());
            }
        }
        QVERIFY2(compared > 150, qPrintable(QString::number(compared)));
    }

    void revolveIsTheReferences()
    {
        int compared = 0;
        for (const QJsonValue& value : test::checkpointReferences()["A_B_homogeneous_slots"].toArray()) {
            const int length = value["L"].toInt();
            const Chain chain = uniformChain(length);
            for (qsizetype i = 0; i < value["slots"].toArray().size(); ++i, ++compared) {
                const std::int64_t states = value["slots"][i].toInteger();
                QCOMPARE(revolveRepetitions(length, states), value["repetition_number_r"][i].toInteger());
                QCOMPARE(revolveAdvances(length, states), value["advances"][i].toInteger());
                const auto plan = revolve(length, states);
                QVERIFY(plan.has_value());
                QCOMPARE(plan->writes, value["min_checkpoint_writes"][i].toInteger());
                const auto replayed = replay(chain, plan->schedule);
                QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
                QCOMPARE(replayed->forwards, value["total_forward_executions"][i].toInteger());
                QCOMPARE(replayed->makespan, value["makespan_fwd1_bwd2"][i].toDouble());
            }
        }
        QVERIFY(compared > 100);
    }

    void mixedIsTheReferences()
    {
        for (const QJsonValue& value : test::checkpointReferences()["A_B_homogeneous_slots"].toArray()) {
            const int length = value["L"].toInt();
            const auto table = MixedTable::make(length, length - 1);
            QVERIFY(table.has_value());
            for (qsizetype i = 0; i < value["slots"].toArray().size(); ++i) {
                const std::int64_t states = value["slots"][i].toInteger(),
                                   expected = value["mixed_total_forward_executions"][i].toInteger();
                QCOMPARE(table->forwards(states), expected);
                const auto plan = table->plan(states);
                QVERIFY(plan.has_value());
                const auto replayed = replay(uniformChain(length, 1, 3), plan->schedule);
                QVERIFY2(replayed.has_value(), replayed ? "" : replayed.error().text().c_str());
                QCOMPARE(replayed->forwards, expected);
            }
        }
    }

    void theSplitHasFewestAdvancesAndWrites()
    {
        Search search;
        for (int length = 1; length <= 60; ++length) {
            for (int states = 1; states <= std::min(length + 1, 12); ++states) {
                const auto [advances, writes] = search.best(length, states);
                QCOMPARE(revolveAdvances(length, states), advances);
                QCOMPARE(revolve(length, states)->writes, writes + 1); // and x_0
            }
        }
    }

    void longChains()
    {
        const auto wide = revolve(chainLengthLimit, chainLengthLimit);
        QVERIFY(wide.has_value());
        QCOMPARE(wide->forwards, std::int64_t(2) * chainLengthLimit - 1);
        for (const auto& refused :
             {revolve(chainLengthLimit, 1),
              MixedTable::make(chainLengthLimit, 100).and_then([](auto table) { return table.plan(100); })}) {
            QVERIFY(!refused);
            QCOMPARE(refused.error().code, std::string("chain.length"));
            QVERIFY(refused.error().hint.find("strategy=") != std::string::npos);
        }
        QCOMPARE(squareRootSchedule(1), keepEverything(1));
        QCOMPARE(everyStages(5, 1 << 30, LastSegment::Kept), keepEverything(5));
        const auto replayed = replay(uniformChain(chainLengthLimit), squareRootSchedule(chainLengthLimit));
        QVERIFY(replayed.has_value());
        QVERIFY(double(replayed->peak) < 3 * std::sqrt(double(chainLengthLimit)));
    }

    void binomialsDoNotOverflow()
    {
        QCOMPARE(binomial(10, 3), std::int64_t(120));
        QCOMPARE(binomial(62, 31), std::int64_t(465428353255261088));
        QCOMPARE(binomial(200'000, 100'000), std::int64_t(1) << 62);
        QCOMPARE(binomial(5, 6), std::int64_t(0));
    }
};

QTEST_APPLESS_MAIN(TestSlotSchedules)
#include "tst_slot_schedules.moc"
