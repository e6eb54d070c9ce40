// SPDX-License-Identifier: Apache-2.0
// training-memory over pipelines, shared sequences, shared experts and hybrid sharding: what each rank keeps and sends
// in closed form, which rank is named, and what is refused with which remedy.
#include "core/experiments/memory/memory_parameters.h"
#include "core/experiments/training-memory/training_memory.h"
#include "core/timing/reached_step.h"
#include "core/training/communication.h"
#include "tests/support/devices.h"

#include <QtTest>

#include <fmt/format.h>

using namespace memscape;
using namespace memscape::test;

namespace {

const Experiment& training()
{
    return **findExperiment("training-memory");
}

TrainingAnswer answered(std::vector<std::string> assignments, const char* sequence = "sequence=1024")
{
    assignments.insert(assignments.end(),
                       {"precision=bf16-mixed", "attention=flash", sequence, "batch=1",
                        "optimizer_implementation=fused", "advice=none"});
    const auto parameters = resolve(trainingSchema(), assignments);
    if (!parameters)
        qFatal("%s", parameters.error().text().c_str());
    auto answer = answerTraining(h200(), *parameters);
    if (!answer)
        qFatal("%s", answer.error().text().c_str());
    return std::move(*answer);
}

/// B that a rank sends of it in one step.
double sent(const TrainingAnswer& answer, std::string_view what, std::optional<CollectiveKind> kind = {})
{
    double bytes = 0;
    for (const Collective& one : answer.collectives)
        bytes += one.what == what && kind.value_or(one.kind) == one.kind ? one.sentBytes() : 0;
    return bytes;
}

} // namespace

/// Ranks that differ in one coordinate alone, numbered with the first of `sizes` innermost (megatron/core/
/// parallel_state.py, RankGenerator).
std::vector<std::vector<int>> groupsAlong(const std::vector<int>& sizes, std::size_t along)
{
    std::vector<std::vector<int>> groups;
    int stride = 1, world = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        stride *= i < along ? sizes[i] : 1;
        world *= sizes[i];
    }
    for (int rank = 0; rank < world; ++rank) {
        if (rank / stride % sizes[along] > 0)
            continue;
        groups.emplace_back();
        for (int i = 0; i < sizes[along]; ++i)
            groups.back().push_back(rank + i * stride);
    }
    return groups;
}

class TestParallelRanks : public QObject
{
    Q_OBJECT

private slots:
    void theFirstRankIsTheFullest()
    {
        const auto answer = answered({"model=llama-2-7b", "pipeline_parallel=4", "accumulation=8"}, "sequence=4096");
        QCOMPARE(answer.ranks.size(), std::size_t(4));
        QCOMPARE(answer.rank(), 0);
        QCOMPARE(answer.ranks[0].inFlight, 4);
        QCOMPARE(answer.ranks[0].allocated, answer.simulation.allocatedBytes());
        for (std::size_t i = 1; i < 4; ++i)
            QVERIFY(answer.ranks[0].allocated > answer.ranks[i].allocated);
        QVERIFY(answer.ranks[1].allocated > answer.ranks[2].allocated);
    }

    // With one micro-batch nothing else is in flight: the logits are what the first rank does not have.
    void theHeadCanMakeTheLastRankTheFullest()
    {
        const auto answer = answered({"model=llama-2-7b", "pipeline_parallel=4", "accumulation=1"});
        QCOMPARE(answer.rank(), 3);
        QCOMPARE(answer.ranks[3].inFlight, 1);
        QCOMPARE(answer.ranks[3].allocated, answer.simulation.allocatedBytes());
    }

    void everyRankIsListed()
    {
        const auto parameters = resolve(training().schema(),
                                        std::vector<std::string>{"model=gpt2", "sequence=128", "batch=1",
                                                                 "pipeline_parallel=3", "pipeline_schedule=interleaved",
                                                                 "virtual_stages=2", "accumulation=6", "advice=none"});
        const auto prediction = training().predict(h200(), *parameters);
        QVERIFY2(prediction, prediction ? "" : prediction.error().text().c_str());
        const Json& pipeline = prediction->detail["pipeline"];
        QCOMPARE(pipeline["ranks"].size(), std::size_t(3));
        QCOMPARE(pipeline["rank"].get<int>(), 0);
        QCOMPARE(pipeline["ranks"][0]["in_flight"].get<int>(), 2 * 2 + 3 + 1);
        QCOMPARE(pipeline["ranks"][1]["layers"].get<int>(), 4);
        QCOMPARE(findFigure(prediction->figures, "fullest_rank")->number(), 0.0);
        QCOMPARE(findFigure(prediction->figures, "peak_allocated")->number(),
                 pipeline["ranks"][0]["allocated"].get<double>());
        const std::string why = findFigure(prediction->figures, "peak_allocated")->why->with;
        QVERIFY2(why.find("rank 0 of 3") != std::string::npos, why.c_str());
    }

    void theBubbleIsNamed()
    {
        const auto answer = answered({"model=gpt2", "pipeline_parallel=4", "accumulation=8"});
        QVERIFY(answer.time.bubble > 0);
        QCOMPARE(answer.time.total,
                 answer.time.forward + answer.time.backward + answer.time.optimizer + answer.time.exposed
                     + answer.time.bubble + answer.time.dispatch);
        const auto chunks = answered({"model=gpt2", "pipeline_parallel=2", "accumulation=8"});
        QVERIFY(chunks.time.bubble < answer.time.bubble);
    }

    void ranksOfAPipelineSendWhatTheyMake()
    {
        const auto answer = answered({"model=llama-2-7b", "pipeline_parallel=4", "accumulation=8"});
        const double border = 8.0 * 1024 * 4096 * 2; // m s b h, bf16
        QCOMPARE(sent(answer, "activations to the next stage"), border);
        QCOMPARE(sent(answer, "gradients to the stage before"), 0.0); // the first rank
        const auto tied = answered({"model=gpt2", "pipeline_parallel=2", "accumulation=4"});
        QCOMPARE(sent(tied, "gradient of embedding and head"), 2.0 / 2 * 50257 * 768 * 2); // an all-reduce of two
    }

    void aSharedSequenceHasAShareOfTheActivations()
    {
        const auto whole = answered({"model=llama-2-7b"});
        const auto shared = answered({"model=llama-2-7b", "context_parallel=4"});
        const double share = double(highestBytes(shared.simulation.trace, Category::Activations))
            / double(highestBytes(whole.simulation.trace, Category::Activations));
        QVERIFY2(share > 0.249 && share < 0.251, qPrintable(QString::number(share)));
        QCOMPARE(shared.simulation.kept.weights, whole.simulation.kept.weights);
    }

    void keysAndValuesGoRound()
    {
        const auto answer = answered({"model=llama-2-7b", "context_parallel=4", "accumulation=2"});
        const double block = 2.0 * 256 * 4096 * 2;                           // keys and values of 256 tokens, bf16
        QCOMPARE(sent(answer, "keys and values"), 2.0 * 32 * 2 * 3 * block); // forward and backward
        QCOMPARE(sent(answer, "gradients of keys and values"), 2.0 * 32 * 4 * block); // and home
        QVERIFY(answer.time.communication > answer.time.exposed);                     // behind attention
    }

    void sharedExpertsAreAShareOfTheWeights()
    {
        const auto whole = answered({"model=mixtral-8x7b", "data_parallel=8"});
        const auto shared = answered({"model=mixtral-8x7b", "data_parallel=8", "expert_parallel=8"});
        const double experts = 32.0 * 8 * 3 * 4096 * 14336 * 2; // B of bf16
        QCOMPARE(double(whole.simulation.kept.weights - shared.simulation.kept.weights), experts * 7 / 8);
    }

    void tokensTravelToTheirExperts()
    {
        const auto answer = answered({"model=mixtral-8x7b", "data_parallel=8", "expert_parallel=8"});
        // There and back, forward and backward, of two experts for each of 1024 tokens.
        QCOMPARE(sent(answer, "tokens to and from experts"), 32.0 * 4 * (7.0 / 8) * 2 * 1024 * 4096 * 2);
    }

    void expertsAreShardedOverTheRanksThatHaveThem()
    {
        const auto answer = answered({"model=mixtral-8x7b", "data_parallel=8", "expert_parallel=4", "zero=1"});
        const double experts = 32.0 * 2 * 3 * 4096 * 14336, all = double(elementCount(answer.simulation.parameters()));
        const double ours = double(answer.simulation.kept.state);
        const double expected = 8 * ((all - experts) / 8 + experts / 2);
        QVERIFY2(std::abs(ours / expected - 1) < 1e-6, qPrintable(QString::number(ours / expected)));
    }

    /// Each row that arrives belongs to one expert: its gradient is written once and added to no other.
    void gradientsOfExpertsGoBackAsTheyCame()
    {
        const auto answer =
            answered({"model=mixtral-8x7b", "data_parallel=2", "expert_parallel=2"}); // four on each rank
        const Graph& graph = *answer.simulation.graph;
        const Plan& plan = answer.setup.step.plan;
        const Device device = h200();
        const ReachedTiming timing(device, plan, 1e9);
        const auto times = operatorTimes(graph, plan, device, timing.options()).value();
        int seen = 0;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            const Operator& op = graph.operators[i];
            if (op.kind != OperatorKind::Index || graph.modules[op.module].type != "Expert")
                continue;
            ++seen;
            QVERIFY(times[i].backward > 0 && times[i].backward <= times[i].forward);
        }
        QCOMPARE(seen, 32 * 4);
    }

    /// Tensor parallelism divides attention, and each rank has whole experts and sends its own part of the sequence.
    void wholeExpertsAreSharedByAllRanks()
    {
        const std::vector<std::string> divided{"model=mixtral-8x7b", "data_parallel=4", "tensor_parallel=2",
                                               "sequence_parallel=true", "expert_parallel=4"};
        auto whole = divided;
        whole.back() = "expert_parallel=8";
        whole.emplace_back("whole_experts=true");
        const auto ours = answered(whole), other = answered(divided);
        QCOMPARE(ours.simulation.kept.weights, other.simulation.kept.weights); // half of two experts, or one
        const double tokens = 1024.0 / 2 * 2;                                  // of a rank, to two experts each
        QCOMPARE(sent(ours, "tokens to and from experts"), 32.0 * 4 * (7.0 / 8) * tokens * 4096 * 2);
        QCOMPARE(sent(other, "tokens to and from experts"), 32.0 * 4 * (3.0 / 4) * 2 * tokens * 4096 * 2);
        QVERIFY(sent(ours, "activations") < sent(other, "activations")); // nothing is gathered for experts
    }

    /// Megatron numbers ranks tp-cp-dp-pp, and for experts etp-ep-edp-pp, over the same ranks.
    void groupsOfExpertsAreThoseOfMegatron()
    {
        struct Layout
        {
            int tensor, context, data, experts;
            bool whole;
        };
        for (const Layout& one : {Layout{2, 1, 4, 8, true}, Layout{2, 1, 4, 4, true}, Layout{4, 2, 2, 8, true},
                                  Layout{2, 1, 4, 2, false}, Layout{1, 2, 4, 4, false}}) {
            std::vector<std::string> plan{"model=mixtral-8x7b",
                                          "zero=1",
                                          "sharding_implementation=ideal",
                                          fmt::format("tensor_parallel={}", one.tensor),
                                          fmt::format("context_parallel={}", one.context),
                                          fmt::format("data_parallel={}", one.data),
                                          fmt::format("expert_parallel={}", one.experts),
                                          fmt::format("sequence_parallel={}", one.tensor > 1),
                                          fmt::format("whole_experts={}", one.whole)};
            const auto answer = answered(plan);
            const int parts = one.whole ? 1 : one.tensor, world = one.tensor * one.context * one.data;
            const std::vector<int> sizes{parts, one.experts, world / parts / one.experts};
            const auto isAlong = [&](const Collective& collective, std::size_t along) {
                const auto group = groupsAlong(sizes, along).front();
                return collective.degree == int(group.size())
                    && (group.size() == 1 || collective.stride == group[1] - group[0]);
            };
            bool hasTokens = false, hasCopies = sizes[2] == 1;
            for (const Collective& collective : answer.collectives) {
                if (collective.kind == CollectiveKind::AllToAll) {
                    QVERIFY(isAlong(collective, 1));
                    hasTokens = true;
                }
                hasCopies |= collective.what == "gradients" && isAlong(collective, 2);
            }
            QVERIFY(hasTokens && hasCopies);
        }
    }

    void hybridShardingShardsWithinAGroup()
    {
        const std::vector<std::string> eight{"model=llama-2-7b", "data_parallel=8", "zero=3"};
        auto hybrid = eight, four = eight;
        hybrid.push_back("data_parallel_replicate=2");
        four[1] = "data_parallel=4";
        const auto ours = answered(hybrid), groupOfFour = answered(four);
        QCOMPARE(ours.simulation.allocatedBytes(), groupOfFour.simulation.allocatedBytes());
        QCOMPARE(sent(ours, "gradients"), sent(groupOfFour, "gradients"));
        // The pieces of a group are then summed over two groups: 2 (r − 1) / r of a fourth.
        QCOMPARE(sent(ours, "gradients over the groups"),
                 double(trainedCount(ours.simulation.parameters())) * 4 / 4 * 2 * 1 / 2);
    }

    void contextRanksShardToo()
    {
        const auto shared = answered({"model=llama-2-7b", "data_parallel=2", "context_parallel=4", "zero=1"});
        const auto eight = answered({"model=llama-2-7b", "data_parallel=8", "zero=1"});
        QCOMPARE(shared.simulation.kept.state, eight.simulation.kept.state);
    }

    void allAtOnce()
    {
        const auto answer = answered({"model=mixtral-8x7b", "data_parallel=4", "expert_parallel=4",
                                      "context_parallel=2", "tensor_parallel=2", "sequence_parallel=true",
                                      "pipeline_parallel=4", "pipeline_schedule=interleaved", "virtual_stages=2",
                                      "accumulation=8", "zero=1", "checkpointing=block"});
        QCOMPARE(answer.ranks.size(), std::size_t(4));
        QVERIFY(!answer.timeMissing);
        QVERIFY(answer.time.total > 0);
        for (const char* what : {"activations", "tokens to and from experts", "keys and values",
                                 "activations to the next stage", "gradients", "updated weights"})
            QVERIFY2(sent(answer, what) > 0, what);
    }

    /// Tensor parallelism stays in a machine, replicas do not. Two machines are slower than one, eight ranks in one are
    /// not.
    void machinesAreAsFarApartAsTheirNetwork()
    {
        const auto step = [](const char* replicas, std::vector<std::string> network) {
            network.insert(network.end(), {"model=llama-2-7b", "tensor_parallel=4", replicas, "zero=3"});
            return answered(network).time;
        };
        QCOMPARE(step("data_parallel=2", {"network_bandwidth=1GB/s"}).total, step("data_parallel=2", {}).total);
        const auto near = step("data_parallel=4", {}), far = step("data_parallel=4", {"network_bandwidth=1GB/s"});
        QVERIFY(far.exposed > near.exposed);
        QCOMPARE(far.inPasses, near.inPasses); // of tensor parallelism
        QCOMPARE(step("data_parallel=4", {"network_bandwidth=1GB/s", "machine_gpus=16"}).total, near.total);
    }

    void wrongPlansAreRefused_data()
    {
        QTest::addColumn<QString>("plan");
        QTest::addColumn<QString>("place");
        QTest::addColumn<QString>("hint");
        const auto row = [](const char* plan, const char* place, const char* hint) {
            QTest::addRow("%s", plan) << plan << place << hint;
        };
        row("model=gpt2 pipeline_parallel=16", "pipeline_parallel", "fewer");
        row("model=t5-small pipeline_parallel=2", "pipeline_parallel", "pipeline_parallel=1");
        row("model=gpt2 pipeline_parallel=4 pipeline_schedule=interleaved virtual_stages=3 accumulation=2",
            "accumulation", "accumulation=4");
        row("model=gpt2 pipeline_parallel=4 pipeline_schedule=interleaved accumulation=4", "virtual_stages", "1f1b");
        row("model=gpt2 pipeline_parallel=2 pipeline_schedule=gpipe accumulation=65535", "accumulation", "1f1b");
        row("model=gpt2 virtual_stages=2", "virtual_stages", "virtual_stages=1");
        row("model=gpt2 pipeline_parallel=2 phase=inference", "pipeline_parallel", "phase=training");
        row("model=gpt2 pipeline_parallel=2 offload=optimizer", "offload", "offload=none");
        row("model=gpt2 pipeline_parallel=2 data_parallel=2 zero=2", "zero", "stage 1");
        row("model=llama-2-7b context_parallel=3", "context_parallel", "multiple of 6");
        row("model=llama-2-7b context_parallel=2 attention=eager", "context_parallel", "attention=flash");
        row("model=gpt2 context_parallel=2 attention=flash", "", "");
        row("model=bert-base-uncased context_parallel=2 attention=flash", "context_parallel", "context_parallel=1");
        row("model=llama-2-7b expert_parallel=2 data_parallel=2", "expert_parallel", "expert_parallel=1");
        row("model=mixtral-8x7b expert_parallel=3 data_parallel=3", "expert_parallel", "divides 8");
        row("model=mixtral-8x7b expert_parallel=8 data_parallel=2", "expert_parallel", "data_parallel 8");
        row("model=mixtral-8x7b expert_parallel=2 data_parallel=2 zero=3", "zero", "stage 0 or 1");
        row("model=mixtral-8x7b tensor_parallel=2 data_parallel=4 expert_parallel=8 whole_experts=true",
            "whole_experts", "sequence_parallel=true");
        row("model=mixtral-8x7b tensor_parallel=2 sequence_parallel=true whole_experts=true", "whole_experts",
            "expert_parallel above 1");
        row("model=mixtral-8x7b tensor_parallel=2 sequence_parallel=true data_parallel=2 expert_parallel=8 "
            "whole_experts=true",
            "expert_parallel", "data_parallel 4");
        row("model=gpt2 data_parallel=6 data_parallel_replicate=4 zero=3", "data_parallel_replicate", "divides");
    }
    void wrongPlansAreRefused()
    {
        QFETCH(QString, plan);
        QFETCH(QString, place);
        QFETCH(QString, hint);
        std::vector<std::string> assignments{"sequence=1024", "batch=1", "advice=none"};
        for (const QString& one : plan.split(' '))
            assignments.push_back(one.toStdString());
        const auto parameters = resolve(training().schema(), assignments);
        QVERIFY2(parameters, parameters ? "" : parameters.error().text().c_str());
        const auto answer = answerTraining(h200(), *parameters);
        if (place.isEmpty()) {
            QVERIFY2(answer, answer ? "" : answer.error().text().c_str());
            return;
        }
        QVERIFY(!answer);
        QCOMPARE(QString::fromStdString(answer.error().place), place);
        QVERIFY2(QString::fromStdString(answer.error().hint).contains(hint), answer.error().hint.c_str());
    }
};

QTEST_APPLESS_MAIN(TestParallelRanks)
#include "tst_parallel_ranks.moc"
