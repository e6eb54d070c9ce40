// SPDX-License-Identifier: Apache-2.0
// The experiment `checkpoint` as its callers see it: figures, schedule, front and strategies, for
// chains of every kind, and what wrong input is answered with.
#include "core/base/cancellation.h"
#include "core/device/catalogue.h"
#include "core/experiments/checkpoint/checkpoint.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "tests/support/asked_experiment.h"
#include "tests/support/checkpoint_refs.h"
#include "tests/support/devices.h"
#include "tests/support/random_chain.h"

#include <QtTest>

#include <cmath>
#include <set>

#include <fmt/format.h>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr AskedExperiment checkpoint{"checkpoint"};

} // namespace

/// A prediction without what a clock measured.
Json timeless(Prediction prediction)
{
    std::erase_if(prediction.figures, [](const Figure& one) { return one.key == "solver_time"; });
    prediction.detail["strategy"].erase("solver_time");
    for (Json& strategy : prediction.detail["strategies"])
        strategy.erase("solver_time");
    return outcomeToJson(prediction);
}

class TestCheckpoint : public QObject
{
    Q_OBJECT

private slots:
    void figuresAndDetailKeepTheContract()
    {
        const auto prediction = checkpoint.predict({});
        QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
        for (const char* key : {"peak", "makespan", "recomputed_forwards", "forward_evaluations", "feasible",
                                "lower_bound_memory", "solver_time"}) {
            const Figure* found = findFigure(prediction->figures, key);
            QVERIFY2(found, key);
            QVERIFY2(std::isfinite(found->number()), key);
            QVERIFY2(found->why && !found->why->formula.empty() && !found->why->with.empty()
                         && !found->why->source.empty(),
                     key);
        }
        QCOMPARE(findFigure(prediction->figures, "peak")->unit, Unit::Byte);
        QCOMPARE(findFigure(prediction->figures, "makespan")->unit, Unit::Second);
        QCOMPARE(prediction->series.front().key, std::string("memory"));
        const Json& detail = prediction->detail;
        QVERIFY(!detail["schedule"].empty() && !detail["front"].empty() && !detail["strategies"].empty()
                && !detail["claims"].empty());
        QCOMPARE(detail["chain"]["forward"].size(), std::size_t(24));
        for (const char* key : {"operation", "stage", "option", "begin", "end", "during", "after", "recomputation"})
            QVERIFY2(detail["schedule"][0].contains(key), key);
        std::vector<std::string> keys;
        for (const Json& strategy : detail["strategies"])
            keys.push_back(strategy["key"]);
        for (const char* key : {"none", "every:1", "sqrt", "revolve", "mixed", "optimal", "selective", "adaptive"})
            QVERIFY2(std::find(keys.begin(), keys.end(), key) != keys.end(), key);
        QCOMPARE(numberIn(*prediction, "feasible"), 1.0);
    }

    void uniformChainsGiveTheReferencesFront()
    {
        for (const QJsonValue& entry : test::checkpointReferences()["C_homogeneous_chain"].toArray()) {
            const int length = entry["L"].toInt();
            if (length > 64)
                continue; // the solver's own test goes further
            const auto chain = QString("chain=uniform:%1,value=%2,saved=%3")
                                   .arg(length)
                                   .arg(entry["cw"].toInt())
                                   .arg(entry["cbw"].toInt());
            const QJsonArray makespans = entry["makespan"].toArray();
            const std::int64_t least = entry["M_min"].toInteger();
            const auto prediction =
                checkpoint.predict({chain.toStdString(), QString("budget=%1").arg(least + 1).toStdString()});
            QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
            const Json& front = prediction->detail["front"];
            QCOMPARE(front.size(), std::size_t(makespans.size()));
            for (std::size_t i = 0; i < front.size(); ++i) {
                QCOMPARE(front[i]["budget"].get<std::int64_t>(), least + std::int64_t(i));
                QCOMPARE(front[i]["makespan"].get<double>(), makespans[qsizetype(i)].toDouble());
            }
            QCOMPARE(numberIn(*prediction, "makespan"), makespans[1].toDouble());
            QCOMPARE(numberIn(*prediction, "lower_bound_memory"), double(least));
            QCOMPARE(findFigure(prediction->figures, "peak")->unit, Unit::One);
        }
    }

    void statesGiveTheReferencesForwards()
    {
        for (const QJsonValue& entry : test::checkpointReferences()["A_B_homogeneous_slots"].toArray()) {
            const int length = entry["L"].toInt();
            if (length > 32)
                continue;
            for (qsizetype i = 0; i < entry["slots"].toArray().size(); ++i) {
                const auto answer = [&](const char* strategy) {
                    return *answerCheckpoint(
                        h200(),
                        checkpoint.with({QString("chain=uniform:%1").arg(length).toStdString(),
                                         std::string("strategy=") + strategy,
                                         QString("budget=slots:%1").arg(entry["slots"][i].toInt()).toStdString()}));
                };
                const CheckpointAnswer revolve = answer("revolve"), mixed = answer("mixed");
                QCOMPARE(revolve.chosen.replay.forwards, entry["total_forward_executions"][i].toInteger());
                QCOMPARE(revolve.chosen.replay.makespan, entry["makespan_fwd1_bwd2"][i].toDouble());
                QCOMPARE(mixed.chosen.replay.forwards, entry["mixed_total_forward_executions"][i].toInteger());
                QVERIFY(revolve.chosen.isFeasible && mixed.chosen.isFeasible);
            }
        }
    }

    void everyScheduleIsWhatItsFiguresSay()
    {
        for (const char* strategy :
             {"none", "every:3", "sqrt", "revolve", "mixed", "optimal", "selective", "adaptive", "exhaustive"}) {
            const auto prediction =
                checkpoint.predict({"chain=uniform:7,saved=3", std::string("strategy=") + strategy, "budget=17"});
            QVERIFY2(prediction.has_value(), strategy);
            QVERIFY2(numberIn(*prediction, "feasible") == (std::string(strategy) == "none" ? 0.0 : 1.0), strategy);
            double peak = 0, forwards = 0, end = 0;
            for (const Json& operation : prediction->detail["schedule"]) {
                peak = std::max(peak, operation["during"].get<double>());
                forwards += operation["operation"].get<std::string>().starts_with("forward");
                QCOMPARE(operation["begin"].get<double>(), end);
                end = operation["end"].get<double>();
            }
            QCOMPARE(numberIn(*prediction, "peak"), peak);
            QCOMPARE(numberIn(*prediction, "forward_evaluations"), forwards);
            QCOMPARE(numberIn(*prediction, "recomputed_forwards"), forwards - 7);
            QCOMPARE(numberIn(*prediction, "makespan"), end);
            const Series& memory = prediction->series.front();
            QCOMPARE(*std::max_element(memory.y.begin(), memory.y.end()), peak);
            QCOMPARE(memory.x.values.back(), end);
        }
    }

    void bytesAreNeverPassed()
    {
        const auto full = answerCheckpoint(h200(), checkpoint.with({"chain=mlp:20x512", "batch=33"}));
        QVERIFY(full.has_value());
        for (int percent = 0; percent <= 110; percent += 10) {
            const std::int64_t budget = full->leastMemory + (full->fullMemory - full->leastMemory) * percent / 100;
            for (const char* strategy : {"optimal", "revolve", "mixed", "selective", "adaptive"}) {
                const auto answer = answerCheckpoint(
                    h200(),
                    checkpoint.with({"chain=mlp:20x512", "batch=33", std::string("strategy=") + strategy,
                                     QString("budget=%1B").arg(budget).toStdString()}));
                QVERIFY(answer.has_value());
                if (std::string(strategy) == "optimal")
                    QVERIFY2(answer->chosen.isFeasible,
                             answer->chosen.missing ? answer->chosen.missing->text().c_str() : "");
                if (answer->chosen.hasSchedule())
                    QVERIFY(answer->chosen.replay.peak <= budget);
                if (percent >= 100 && std::string(strategy) == "optimal")
                    QCOMPARE(answer->chosen.replay.recomputed, std::int64_t(0));
            }
        }
    }

    void moreBudgetIsNeverSlower()
    {
        const auto answer = answerCheckpoint(h200(), checkpoint.with({"chain=uniform:40,saved=4"}));
        double before = std::numeric_limits<double>::infinity();
        for (const FrontPoint& point : answer->front->front()) {
            QVERIFY(point.makespan <= before);
            before = point.makespan;
        }
        QCOMPARE(before, answer->fullTime);
        for (const StrategyAnswer& strategy :
             compareStrategies(*answer, checkpoint.with({"chain=uniform:40,saved=4"}))) {
            if (strategy.hasSchedule() && strategy.key != "adaptive"
                && strategy.key != "exhaustive") // those may forget and make again
                QVERIFY2(*answer->front->makespan(strategy.replay.peak) <= strategy.replay.makespan,
                         strategy.key.c_str());
        }
    }

    void askingAgainGivesTheSameAnswer()
    {
        // Up and down, to another chain and back, in other slots: what was kept must not show.
        PredictionContext context;
        const auto ask = [&](const std::vector<std::string>& assignments) {
            const auto again = checkpoint->predict(h200(), checkpoint.with(assignments), context);
            const auto first = checkpoint.predict(assignments);
            QVERIFY2(again.has_value(), again ? "" : again.error().text().c_str());
            QVERIFY(first.has_value());
            QVERIFY(timeless(*again) == timeless(*first));
        };
        for (const char* budget : {"budget=9MB", "budget=3MB", "budget=3.1MB", "budget=20MB", "budget=2MB"})
            ask({"chain=mlp:20x256", "batch=333", budget});
        ask({"chain=uniform:30,saved=3", "budget=25"});
        ask({"chain=mlp:20x256", "batch=333", "budget=3MB", "slots=100"});
        ask({"chain=mlp:20x256", "batch=333", "budget=3MB"});
        ask({"chain=mlp:20x256", "batch=334", "budget=3MB"});
    }

    void budgetsShareTablesThatAreFineEnough()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath("chain.json");
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray::fromStdString(jsonText(chainToJson(test::irregularChain(80, 1)))));
        file.close();
        const auto answer = answerCheckpoint(h200(), checkpoint.with({"chain=" + path.toStdString()}));
        QVERIFY(answer && answer->front && !answer->front->isExact());
        CheckpointTables& tables = *answer->tables;
        std::set<std::int64_t> slotSizes;
        int asked = 0;
        for (std::int64_t budget = answer->leastMemory; budget <= answer->fullMemory;
             budget += (answer->fullMemory - answer->leastMemory) / 50, ++asked) {
            const auto solution = tables.within(budget);
            QVERIFY2(solution.has_value(), solution ? "" : solution.error().text().c_str());
            slotSizes.insert(solution->slot());
            const bool isFront = solution->slot() == answer->front->slot();
            QVERIFY(isFront || solution->slot() <= budget / 500 + 1);
            if (const auto schedule = solution->schedule(budget)) {
                const auto replayed = replay(answer->chain(), *schedule);
                QVERIFY(replayed && replayed->peak <= budget);
            }
        }
        QVERIFY(asked > 40);
        QVERIFY2(slotSizes.size() < 10, qPrintable(QString::number(slotSizes.size())));
    }

    void aCancelledSolveStops()
    {
        const std::atomic<bool> isUnwanted = true;
        const CancelScope scope(isUnwanted);
        PredictionContext context;
        const auto stopped = checkpoint->predict(h200(), checkpoint.with({"chain=mlp:30x256"}), context);
        QVERIFY(!stopped);
        QCOMPARE(stopped.error().code, std::string("predict.cancelled"));
        QVERIFY(!context.kept.has_value()); // half a table is none
    }

    void aChainFileIsSolvedInItsUnits()
    {
        QTemporaryDir folder;
        int compared = 0;
        for (const QJsonValue& entry : test::checkpointReferences()["C_heterogeneous_chain"].toArray()) {
            if (entry["L"].toInt() > 20)
                continue;
            const std::string path = folder.filePath(QString("%1.json").arg(compared)).toStdString();
            QFile file(QString::fromStdString(path));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray::fromStdString(jsonText(chainToJson(test::referenceChain(entry.toObject())))));
            file.close();
            for (const QJsonValue& row : entry["budgets"].toArray()) {
                const auto answer = answerCheckpoint(
                    h200(),
                    checkpoint.with({"chain=" + path, QString("budget=%1").arg(row["M"].toInteger()).toStdString()}));
                QVERIFY2(answer.has_value(), answer ? "" : answer.error().text().c_str());
                if (row["opt_persistent"].isNull()) {
                    QVERIFY(!answer->chosen.hasSchedule());
                    continue;
                }
                QCOMPARE(answer->chosen.bound, row["opt_persistent"].toDouble());
                if (answer->chosen.takenFrom.empty())
                    QCOMPARE(answer->chosen.replay.makespan, answer->chosen.bound);
                else // one that forgets and makes again
                    QVERIFY(answer->chosen.replay.makespan < answer->chosen.bound);
                QVERIFY(answer->chosen.replay.peak <= row["M"].toInteger());
                compared += 1;
            }
        }
        QVERIFY(compared > 50);
    }

    void modelsAreCutIntoLayers_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("stages");
        QTest::newRow("gpt2") << "gpt2" << 14;
        QTest::newRow("llama") << "llama-2-7b" << 34;
        QTest::newRow("bert") << "bert-base-uncased" << 14;
    }
    void modelsAreCutIntoLayers()
    {
        QFETCH(QString, model);
        const auto source = chainSource(
            h200(),
            checkpoint.with({"chain=model:" + model.toStdString(), "batch=2", "sequence=128", "precision=fp32"}));
        QVERIFY2(source.has_value(), source ? "" : source.error().text().c_str());
        const Chain& chain = source->chain;
        QTEST(chain.length(), "stages");
        QCOMPARE(chain.stages[3].options[0].saved,
                 chain.stages[4].options[0].saved); // layers are alike
        QCOMPARE(chain.values[3], chain.values[4]);
        QCOMPARE(chain.values.back(), std::int64_t(4)); // the loss, one float
        // Between layers: batch × sequence × hidden floats.
        const auto description = readModel(model.toStdString());
        QCOMPARE(chain.values[3], 2 * 128 * description->hidden * 4);
        // What the stages save is what autograd packs, plus results that only the next stage reads.
        std::int64_t saved = 0, values = 0;
        for (int i = 0; i < chain.length(); ++i) {
            saved += chain.stages[std::size_t(i)].options[0].saved;
            values += chain.values[std::size_t(i + 1)];
        }
        auto build = BuildOptions{};
        build.batch = 2;
        build.sequence = 128;
        build.attention = AttentionKernel::Library;
        const auto graph = buildNetwork(*description, build);
        QVERIFY(graph.has_value());
        const SavedBytes packed = savedBytes(*graph);
        QVERIFY(saved >= packed.activations);
        QVERIFY(saved <= packed.activations + packed.scalars + values);
        QVERIFY(
            answerCheckpoint(h200(), checkpoint.with({"chain=model:" + model.toStdString(), "batch=2", "sequence=128"}))
                ->chosen.isFeasible);
    }

    void aModelIsNamedAsElsewhere()
    {
        const std::vector<std::string> few{"batch=2", "sequence=128"};
        const auto named = [&](const std::string& chain) {
            std::vector<std::string> assignments = few;
            assignments.push_back("chain=" + chain);
            return answerCheckpoint(h200(), checkpoint.with(assignments));
        };
        const auto withPrefix = named("model:gpt2");
        for (const char* name : {"gpt2", "GPT-2 small (124M)", "openai-community/gpt2"}) {
            const auto plain = named(name);
            QVERIFY2(plain, name);
            QCOMPARE(plain->chosen.replay.makespan, withPrefix->chosen.replay.makespan);
            QCOMPARE(plain->chain().name, withPrefix->chain().name);
        }
        const auto slip = named("gtp2");
        QVERIFY(!slip);
        QVERIFY2(slip.error().hint.find("did you mean gpt2") != std::string::npos, slip.error().hint.c_str());
        QVERIFY(slip.error().hint.find("mlp:48x4096") != std::string::npos);
    }

    void selectiveLayersAreNeverSlower()
    {
        const std::vector<std::string> model{"chain=model:gpt2", "batch=4", "sequence=512", "attention=eager",
                                             "slots=1000"};
        const auto answer = [&](std::vector<std::string> more) {
            more.insert(more.end(), model.begin(), model.end());
            return *answerCheckpoint(h200(), checkpoint.with(more));
        };
        const CheckpointAnswer whole = answer({}), both = answer({"layer_options=selective"});
        QCOMPARE(whole.chain().stages[2].options.size(), std::size_t(1));
        QCOMPARE(both.chain().stages[2].options.size(), std::size_t(2));
        const SaveOption &all = both.chain().stages[2].options[0], &selective = both.chain().stages[2].options[1];
        QVERIFY(selective.saved < all.saved);
        QVERIFY(selective.backward > all.backward);
        // The probabilities: 512 × 512 half floats a head and sequence.
        QVERIFY(all.saved - selective.saved >= std::int64_t(4) * 12 * 512 * 512 * 2);
        const std::string budget = fmt::format("budget={}B", whole.budget.memory);
        QVERIFY(answer({"layer_options=selective", budget}).chosen.replay.makespan
                <= answer({budget}).chosen.replay.makespan);
    }

    void claimsCarryNumbers()
    {
        const auto claims = checkpoint->claims(h200(), checkpoint.with({"chain=uniform:64"}));
        QVERIFY(claims.size() >= 8);
        const auto ours = [&](const char* quote) {
            for (const Claim& claim : claims) {
                if (claim.id == quote || claim.quote.find(quote) != std::string::npos)
                    return QString::fromStdString(claim.ours);
            }
            return QString();
        };
        // The numbers of the reference for n = 64: 18 of 67, 87.5 % of a forward, 29.2 % of the step,
        // 73.1 % less memory.
        QVERIFY2(ours("sqrt-memory").contains("everything 67, √n segments 18"), qPrintable(ours("sqrt-memory")));
        QVERIFY2(ours("compute-overhead").contains("10.9 %") && ours("compute-overhead").contains("87.5 %"),
                 qPrintable(ours("compute-overhead")));
        QVERIFY2(ours("compute-overhead").contains("29.2 %"), qPrintable(ours("compute-overhead")));
        QVERIFY2(ours("memory-reduction").contains("73.1 %"), qPrintable(ours("memory-reduction")));
        QVERIFY2(ours("checkpoint-third").contains("33.3 %"), qPrintable(ours("checkpoint-third")));
        QVERIFY2(ours("spacing").contains("245"), qPrintable(ours("spacing")));
        QVERIFY2(ours("n²").contains("2016"), qPrintable(ours("n²")));
    }

    void infeasibleIsAnAnswer()
    {
        for (const char* strategy : {"optimal", "revolve", "mixed", "selective", "adaptive", "exhaustive"}) {
            const auto prediction =
                checkpoint.predict({"chain=uniform:6,saved=3", std::string("strategy=") + strategy, "budget=2"});
            QVERIFY2(prediction.has_value(), strategy);
            QCOMPARE(numberIn(*prediction, "feasible"), 0.0);
            QVERIFY(std::isnan(numberIn(*prediction, "peak")));
            QVERIFY(prediction->detail["schedule"].empty());
            QVERIFY(prediction->detail["strategy"]["missing"]["message"].is_string());
            QVERIFY(numberIn(*prediction, "lower_bound_memory") > 2);
        }
        const auto answer = answerCheckpoint(h200(), checkpoint.with({"chain=uniform:6,saved=3", "budget=2"}));
        const std::string least = fmt::format("{}", answer->leastMemory);
        QVERIFY(answer->chosen.missing->hint.find(least) != std::string::npos);
        const auto enough = answerCheckpoint(h200(), checkpoint.with({"chain=uniform:6,saved=3", "budget=" + least}));
        QVERIFY(enough->chosen.isFeasible);
        const auto large = answerCheckpoint(h200(), checkpoint.with({"chain=uniform:6,saved=3", "budget=1000000"}));
        QCOMPARE(large->chosen.replay.recomputed, std::int64_t(0));
    }

    void wrongInputNamesTheParameter_data()
    {
        QTest::addColumn<QString>("assignment");
        QTest::addColumn<QString>("place");
        for (const char* budget : {"0", "-5", "1.5", "many", "slots:0", "slots:", "5GiB", "nan", "1e400"})
            QTest::newRow(budget) << QString("budget=%1").arg(budget) << "budget";
        for (const char* chain : {"uniform:0", "uniform:-3", "uniform:", "uniform:100001", "uniform:2.5",
                                  "uniform:5,saved", "uniform:5,size=3", "uniform:5,saved=0,value=2", "mlp:0x5",
                                  "mlp:5", "/no/such/file.json", "model:gpt2,", "model:"})
            QTest::newRow(chain) << QString("chain=%1").arg(chain)
                                 << (QString(chain).startsWith("model") ? "" : "chain");
    }
    void wrongInputNamesTheParameter()
    {
        QFETCH(QString, assignment);
        QFETCH(QString, place);
        const bool isChain = assignment.startsWith("chain");
        const auto answer = answerCheckpoint(h200(),
                                             isChain ? checkpoint.with({assignment.toStdString()})
                                                     : checkpoint.with({"chain=uniform:9", assignment.toStdString()}));
        QVERIFY(!answer);
        if (!place.isEmpty())
            QCOMPARE(QString::fromStdString(answer.error().place), place);
        QVERIFY(!answer.error().hint.empty());
    }

    void longChainsAreRefusedWithAWayOut()
    {
        for (const std::vector<std::string>& assignments :
             {std::vector<std::string>{"chain=uniform:100000"},
              {"chain=uniform:8", "strategy=exhaustive"},
              {"chain=uniform:100000", "strategy=revolve", "budget=slots:1"},
              {"chain=uniform:100000", "strategy=mixed", "budget=slots:50"}}) {
            const auto answer = answerCheckpoint(h200(), checkpoint.with(assignments));
            QVERIFY(!answer);
            QVERIFY2(answer.error().hint.find("strategy=") != std::string::npos, answer.error().text().c_str());
            QVERIFY(!answer.error().place.empty());
        }
        const auto sqrt = answerCheckpoint(h200(), checkpoint.with({"chain=uniform:100000", "strategy=sqrt"}));
        QVERIFY(sqrt->chosen.hasSchedule());
        QVERIFY(answerCheckpoint(h200(), checkpoint.with({"chain=uniform:1"}))->chosen.isFeasible);
    }

    void aDeviceWithFewFields()
    {
        Device device;
        device.name = "a machine";
        const auto answer = answerCheckpoint(device, checkpoint.with({"chain=mlp:4x64", "strategy=sqrt"}));
        QVERIFY2(answer.has_value(), answer ? "" : answer.error().text().c_str());
        QCOMPARE(answer->timeUnit(), Unit::One); // counted in forwards
        QCOMPARE(answer->fullTime, 12.0);
        QCOMPARE(answer->memoryUnit(), Unit::Byte);
    }

    void aSweepGivesCurves()
    {
        const auto prediction = checkpoint.predict({"chain=uniform:16", "budget=\"8\",\"10\",\"12\""});
        QVERIFY2(prediction.has_value(), prediction ? "" : prediction.error().text().c_str());
        QCOMPARE(prediction->series.size(), checkpoint->series().size() + 1);
        const Series& makespan = prediction->series[2];
        QCOMPARE(makespan.key, std::string("makespan"));
        QCOMPARE(makespan.y.size(), std::size_t(3));
        QVERIFY(makespan.y[0] > makespan.y[1] && makespan.y[1] > makespan.y[2]);
        QCOMPARE(numberIn(*prediction, "makespan"), makespan.y[0]);
    }
};

QTEST_APPLESS_MAIN(TestCheckpoint)
#include "tst_checkpoint.moc"
