// SPDX-License-Identifier: Apache-2.0
// What ranks keep against the ZeRO paper's table (Rajbhandari et al. 2020, table 1 and figure 1: 7.5 B parameters, 64
// GPUs: 120, 31.4, 16.6 and 1.9 GB) and its section 7 (volumes); what they send against the closed forms and the
// memory budget. What they wait for: tst_sharding_time.
#include "core/base/file.h"
#include "tests/core/experiments/sharding_cases.h"

#include <QtTest>

#include <cmath>

#include <nlohmann/json.hpp>

using namespace memscape;
using namespace memscape::test;

class TestSharding : public QObject
{
    Q_OBJECT

private slots:
    void eachStageKeepsWhatThePaperSays_data()
    {
        QTest::addColumn<int>("stage");
        QTest::addColumn<double>("gigabytes");
        QTest::newRow("data parallel") << 0 << 120.0;
        QTest::newRow("P_os") << 1 << 31.4;
        QTest::newRow("P_os+g") << 2 << 16.6;
        QTest::newRow("P_os+g+p") << 3 << 1.9;
    }
    void eachStageKeepsWhatThePaperSays()
    {
        QFETCH(int, stage);
        QFETCH(double, gigabytes);
        const double stored = shardFigure(
            "stored", {"model=params:7.5e9", "data_parallel=64", "zero=" + std::to_string(stage), "sequence=64"});
        QVERIFY2(std::abs(stored / 1e9 - gigabytes) < 0.05, qPrintable(QString::number(stored / 1e9)));
    }

    void theNotesRatiosAreLimits()
    {
        const ShardTexts model{"model=params:7.5e9", "sequence=64"};
        const auto ratio = [&](const char* zero, const char* ranks) {
            return shardFigure("memory_ratio", {model[0], model[1], zero, ranks});
        };
        QVERIFY(shardsNear(ratio("zero=1", "data_parallel=8"), 16 / 5.5, 1e-6)); // 2.91, not 4
        QVERIFY(shardsNear(ratio("zero=2", "data_parallel=8"), 16 / (2 + 14.0 / 8), 1e-6));
        QVERIFY(shardsNear(ratio("zero=3", "data_parallel=8"), 8, 1e-6));
        QVERIFY(shardsNear(ratio("zero=1", "data_parallel=1024"), 4, 0.01));
        QVERIFY(shardsNear(ratio("zero=2", "data_parallel=1024"), 8, 0.01));
    }

    /// Section 7 of the paper: 2 Ψ without ZeRO and with stages 1 and 2, 3 Ψ with stage 3, each (N − 1)/N of it.
    void volumesHaveTheirClosedForms()
    {
        for (const int ranks : {2, 8, 64}) {
            const std::string n = "data_parallel=" + std::to_string(ranks);
            const double parameters = shardFigure("weights", {shardModel, "zero=0", n}) / 2; // bf16
            const double share = double(ranks - 1) / ranks;
            for (const auto& [stage, times] : {std::pair{0, 2.0}, {1, 2.0}, {2, 2.0}, {3, 3.0}}) {
                const double sent = shardFigure("sent", {shardModel, "zero=" + std::to_string(stage), n});
                // Pieces are padded: at most one element for each parameter or bucket and rank.
                QVERIFY(sent >= times * 2 * parameters * share - 1);
                QVERIFY(sent <= times * 2 * parameters * share + 3 * 200 * 2 * ranks);
            }
        }
    }

    void theMemoryBudgetCountsTheSame()
    {
        for (const auto& [zero, implementation] : {std::pair{"zero=0", "ideal"},
                                                   {"zero=1", "ideal"},
                                                   {"zero=2", "ideal"},
                                                   {"zero=3", "ideal"},
                                                   {"zero=1", "deepspeed"},
                                                   {"zero=2", "deepspeed"},
                                                   {"zero=3", "deepspeed"},
                                                   {"zero=2", "fsdp2"},
                                                   {"zero=3", "fsdp2"},
                                                   {"zero=3", "fsdp1"}}) {
            const ShardTexts texts{shardModel,        zero,
                                   "data_parallel=4", "batch=1",
                                   "sequence=128",    std::string("sharding_implementation=") + implementation};
            ShardTexts budget = texts;
            budget.push_back("advice=none");
            const auto other = shardFigures(budget, shardGpu(), "training-memory");
            QVERIFY(other);
            const auto own = shardFigures(texts);
            QVERIFY(own);
            QVERIFY(
                shardsNear(findFigure(*own, "sent")->number(), findFigure(*other, "communication")->number(), 1e-3));
            for (const char* key : {"weights", "gradients", "optimizer_state", "master_weights", "activations"})
                QCOMPARE(findFigure(*own, key)->number(), findFigure(*other, key)->number());
        }
    }

    void tensorParallelRanksDivideTheModel()
    {
        const double alone = shardFigure("stored", {shardModel, "zero=0", "data_parallel=1"});
        const double two = shardFigure("stored", {shardModel, "zero=0", "data_parallel=1", "tensor_parallel=2"});
        QVERIFY(two < 0.6 * alone && two > 0.5 * alone); // norms stay whole
        const ShardTexts texts{shardModel, "zero=0", "data_parallel=1", "tensor_parallel=2", "sequence=128"};
        const auto budget = shardFigures({texts[0], texts[1], texts[2], texts[3], texts[4], "batch=1", "advice=none"},
                                         shardGpu(), "training-memory");
        QVERIFY(budget);
        QVERIFY(shardsNear(shardFigure("sent", texts), findFigure(*budget, "communication")->number(), 1e-6));
        // Every one of them is waited for.
        QVERIFY(shardsNear(shardFigure("exposed_time", texts), shardFigure("communication_time", texts), 1e-6));
        // Sequence parallelism sends as much in other collectives, and divides what lies between the products.
        ShardTexts sequence = texts;
        sequence.push_back("sequence_parallel=true");
        QVERIFY(shardFigure("activations", sequence) < shardFigure("activations", texts));
    }

    void publishedPeaksUnderFsdp()
    {
        const auto text = readFile(resourcesFolder() / "published/fsdp-qlora.json");
        QVERIFY2(text, text ? "" : text.error().text().c_str());
        const Json table = Json::parse(*text);
        double own = 0, ideal = 0;
        for (const Json& row : table["rows"]) {
            ShardTexts texts = table["parameters"].get<ShardTexts>();
            for (const std::string& one : row["parameters"].get<ShardTexts>())
                texts.push_back(one);
            const auto key = row["figure"].get<std::string>();
            const double published = row["value"].get<double>() * 0x1p30;
            const auto error = [&](const ShardTexts& asked) {
                const auto figures = shardFigures(asked, shardGpu(), "training-memory");
                return figures ? findFigure(*figures, key)->number() / published - 1 : memscape::nan;
            };
            const double here = error(texts);
            std::replace(texts.begin(), texts.end(), std::string("sharding_implementation=fsdp1"),
                         std::string("sharding_implementation=ideal"));
            QVERIFY2(std::abs(here) < (key == "peak_allocated" ? 0.03 : 0.24),
                     (row.dump() + std::to_string(here)).c_str());
            own += std::abs(here);
            ideal += std::abs(error(texts));
        }
        QVERIFY2(own < ideal, qPrintable(QString("%1 %2").arg(own).arg(ideal)));
    }

    // FSDP's root is gathered once and stays; its stage 2 gathers nothing in backward.
    void fsdpKeepsItsRoot()
    {
        const auto step = [](const char* zero, const char* implementation) {
            return shardAnswer({shardModel, zero, "data_parallel=8", "batch=64", "sequence=512",
                                std::string("sharding_implementation=") + implementation})
                .step;
        };
        const auto gathers = [](const ShardStep& one, ShardPhase phase) {
            int count = 0;
            for (const ShardCollective& collective : one.collectives())
                count += collective.kind == CollectiveKind::AllGather && collective.phase == phase;
            return count;
        };
        const ShardStep ideal = step("zero=3", "ideal"), third = step("zero=3", "fsdp2"),
                        second = step("zero=2", "fsdp2");
        const int layers = gathers(third, ShardPhase::Backward);
        QVERIFY(layers > 1 && gathers(ideal, ShardPhase::Backward) > layers);
        QCOMPARE(gathers(third, ShardPhase::Forward), layers + 1);
        QCOMPARE(gathers(second, ShardPhase::Forward), layers + 1);
        QCOMPARE(gathers(second, ShardPhase::Backward), 0);
        QVERIFY(third.gathered > ideal.gathered && second.gathered > third.gathered);
        QCOMPARE(third.gatheredOver.back().second, 0.0);
        QCOMPARE(second.gatheredOver.back().second, 0.0);
    }

    void offloadLeavesTheDeviceTheWeights()
    {
        // ZeRO-Offload, Ren et al. 2021: 2 Ψ on the GPU, gradients 2 Ψ down and weights 2 Ψ up.
        const ShardTexts texts{"model=params:1e9", "zero=2", "data_parallel=1", "offload=gradients", "sequence=64"};
        const double weights = shardFigure("weights", texts);
        QCOMPARE(shardFigure("stored", texts), weights);
        QVERIFY(shardsNear(shardFigure("copied", texts), 2 * weights, 1e-6));
        QCOMPARE(shardFigure("sent", texts), 0.0);
        // Where the host keeps everything no ratio says how much less it is.
        const ShardTexts infinity{"model=params:1e9", "zero=3", "data_parallel=4", "offload=parameters", "sequence=64"};
        QCOMPARE(shardFigure("stored", infinity), 0.0);
        QVERIFY(std::isnan(shardFigure("memory_ratio", infinity)));
        QVERIFY(shardFigure("on_host", infinity) > 0 && shardFigure("gathered", infinity) > 0);
    }

    void whatCannotBeIsSaid_data()
    {
        QTest::addColumn<QString>("assignment");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        const auto row = [](const char* name, const char* assignment, const char* code, const char* place) {
            QTest::newRow(name) << assignment << code << place;
        };
        row("no rank", "data_parallel=0", "parameter.range", "data_parallel");
        row("2^31 ranks", "data_parallel=2147483648", "parameter.range", "data_parallel");
        row("a rank and a half", "data_parallel=1.5", "parameter.type", "data_parallel");
        row("not a number", "data_parallel=nan", "parameter.range", "data_parallel");
        row("stage 4", "zero=4", "parameter.range", "zero");
        row("heads", "tensor_parallel=3", "", "tensor_parallel");
        row("threads on a GPU", "link=threads", "predict.device", "link");
        row("sequence alone", "sequence_parallel=true", "plan.combination", "");
        row("weights on the host", "offload=parameters", "plan.combination", "");
        row("buckets of a byte", "bucket=1", "predict.buckets", "bucket");
        row("no such model", "model=nosuch", "", "");
    }
    void whatCannotBeIsSaid()
    {
        QFETCH(QString, assignment);
        QFETCH(QString, code);
        QFETCH(QString, place);
        ShardTexts texts{assignment.toStdString()};
        if (!assignment.startsWith(QLatin1String("model")))
            texts.emplace_back(shardModel);
        const Error error = shardError(texts);
        QVERIFY(!error.message.empty() && !error.hint.empty());
        if (!code.isEmpty())
            QCOMPARE(QString::fromStdString(error.code), code);
        if (!place.isEmpty())
            QVERIFY2(error.place.find(place.toStdString()) != std::string::npos, error.text().c_str());
    }

    void aCountThatDoesNotDivideIsPadded()
    {
        // Every rank has as much: the last piece is padded by less than an element a parameter.
        const ShardingAnswer answer = shardAnswer({shardModel, "zero=3", "data_parallel=7"});
        const double whole = double(answer.network->alone.weights);
        QVERIFY(double(answer.kept.weights) * 7 >= whole);
        QVERIFY(double(answer.kept.weights) * 7 < whole + 7 * 2 * 200);
    }

    void aGpuWithoutALinkAsksForOne()
    {
        Device lonely = shardGpu();
        lonely.links.clear();
        const Error error = shardError({shardModel}, lonely);
        QCOMPARE(error.code, std::string("predict.device"));
        QVERIFY(error.hint.find("link_bandwidth") != std::string::npos);
        QVERIFY(shardFigure("exposed_time", {shardModel, "link_bandwidth=10GB/s"}, lonely) > 0);
        QCOMPARE(shardError({shardModel, "link=peer"}, lonely).code, std::string("predict.device"));
    }

    void theDetailSaysWhatIsDrawn()
    {
        const ShardingAnswer answer =
            shardAnswer({shardModel, "zero=2", "data_parallel=32", "bucket=4KB", "sequence=64"});
        const Json detail = shardingDetail(answer);
        QCOMPARE(detail["ranks"].get<int>(), 32);
        QCOMPARE(detail["rank"]["weights"].get<std::int64_t>(), answer.kept.weights);
        double sent = 0;
        std::size_t count = 0;
        for (const Json& span : detail["spans"]) {
            sent += span.value("sent", 0.0);
            ++count;
        }
        QVERIFY(count < 4 * 400 && answer.step.tasks[std::size_t(ShardLane::Data)].size() > 1000); // joined
        QVERIFY(shardsNear(sent, answer.step.sent));
    }
};

QTEST_GUILESS_MAIN(TestSharding)
#include "tst_sharding.moc"
