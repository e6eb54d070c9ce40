// SPDX-License-Identifier: Apache-2.0
// Ranks of a pipeline: the order of their passes against torch.distributed.pipelining
// (tests/data/pytorch/pipeline_schedules.py) and what its ranks kept (pipeline_memory.py), what is in flight and kept
// against Narayanan et al. 2021 and Korthikanti et al. 2022, and that the parts of a network are the whole.
#include "core/network/network.h"
#include "core/network/pipeline_part.h"
#include "core/training/pipeline_schedule.h"
#include "core/training/simulation.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

#include <set>

using namespace memscape;

namespace {

ModelDescription decoderOf(std::int64_t layers, bool isTied = false)
{
    ModelDescription model;
    model.name = "small";
    model.architecture = "llama";
    model.layers = layers;
    model.hidden = 64;
    model.heads = model.kvHeads = 4;
    model.headDim = 16;
    model.ffn = 192;
    model.vocab = 1000;
    model.maxPositions = 64;
    model.tied = isTied;
    return model;
}

Plan planOf(const char* schedule, int ranks, int chunks, int microBatches)
{
    Plan plan;
    plan.pipelineSchedule = *pipelineScheduleFromText(schedule);
    plan.pipelineParallel = ranks;
    plan.virtualStages = chunks;
    plan.accumulation = microBatches;
    return plan;
}

TrainingSetup setupOf(const Plan& plan, int rank)
{
    TrainingSetup setup;
    setup.build.batch = 2;
    setup.build.sequence = 64;
    setup.build.attention = AttentionKernel::Flash;
    setup.build.pipeline = {plan.pipelineParallel, plan.virtualStages, rank};
    setup.step.plan = plan;
    setup.step.pipelineRank = rank;
    return setup;
}

Simulation ranAs(const ModelDescription& model, const TrainingSetup& setup)
{
    auto made = simulate(model, setup);
    if (!made)
        qFatal("%s", made.error().text().c_str());
    return std::move(*made);
}

std::int64_t activations(const ModelDescription& model, const Plan& plan, int rank)
{
    return highestBytes(ranAs(model, setupOf(plan, rank)).trace, Category::Activations);
}

Graph partOf(const ModelDescription& model, PipelinePart part)
{
    BuildOptions build = setupOf(Plan(), 0).build;
    build.pipeline = part;
    auto graph = buildNetwork(model, build);
    if (!graph)
        qFatal("%s", graph.error().text().c_str());
    return std::move(*graph);
}

/// The most bytes of activations that are alive behind a pass of a micro-batch.
std::int64_t keptBehindForwards(const Trace& trace)
{
    std::int64_t held = 0, most = 0;
    const Event* before = nullptr;
    for (const Event& event : trace.events()) {
        if (before && (event.phase != before->phase || event.microBatch != before->microBatch))
            most = std::max(most, held);
        held += event.category == Category::Activations ? event.change() : 0;
        before = &event;
    }
    return most;
}

std::int64_t mostInFlight(const std::vector<PipelineAction>& actions)
{
    std::int64_t held = 0, most = 0;
    for (const PipelineAction& action : actions)
        most = std::max(most, held += action.isForward ? 1 : -1);
    return most;
}

} // namespace

class TestPipelineRanks : public QObject
{
    Q_OBJECT

private slots:
    void passesAreInPytorchsOrder_data()
    {
        QTest::addColumn<QJsonObject>("made");
        for (const QJsonValue value : pytorchData("pipeline_schedules.json")["cases"].toArray()) {
            const QJsonObject made = value.toObject();
            QTest::addRow("%s, %d ranks, %d chunks, %d micro-batches", qPrintable(made["schedule"].toString()),
                          made["ranks"].toInt(), made["chunks"].toInt(), made["micro_batches"].toInt())
                << made;
        }
    }

    void passesAreInPytorchsOrder()
    {
        QFETCH(QJsonObject, made);
        const int microBatches = made["micro_batches"].toInt(), ranks = made["ranks"].toInt();
        const Plan plan = planOf(made["schedule"].toString().toUtf8(), ranks, made["chunks"].toInt(), microBatches);
        for (int rank = 0; rank < ranks; ++rank) {
            QStringList order;
            for (const PipelineAction& action : pipelineActions(plan, rank, microBatches))
                order << QString("%1%2.%3").arg(action.isForward ? 'F' : 'B').arg(action.chunk).arg(action.microBatch);
            QCOMPARE(order.join(' '), made["orders"][rank].toString());
        }
    }

    void ranksKeepWhatPytorchKept_data()
    {
        QTest::addColumn<QJsonObject>("made");
        for (const QJsonValue value : pytorchData("pipeline_memory.json")["cases"].toArray()) {
            const QJsonObject made = value.toObject();
            QTest::addRow("%s, %d ranks, %d chunks", qPrintable(made["schedule"].toString()), made["ranks"].toInt(),
                          made["chunks"].toInt())
                << made;
        }
    }

    // A real run on the processes of one CPU: bytes that autograd keeps behind a forward. There the first rank packs
    // slices of the whole batch, whose storage is not counted here; the last keeps results for its caller.
    void ranksKeepWhatPytorchKept()
    {
        QFETCH(QJsonObject, made);
        const QJsonObject all = pytorchData("pipeline_memory.json");
        const int ranks = made["ranks"].toInt(), microBatches = made["micro_batches"].toInt();
        ModelDescription model;
        model.name = model.architecture = "mlp";
        model.family = Family::Mlp;
        model.layers = all["layers"].toInteger();
        model.activation = ActivationKind::Relu;
        model.biases.feedForward = true;
        model.mlpSizes.assign(std::size_t(all["layers"].toInt()) + 1, all["width"].toInt());
        for (int rank = 0; rank + 1 < ranks; ++rank) {
            TrainingSetup setup = setupOf(
                planOf(made["schedule"].toString().toUtf8(), ranks, made["chunks"].toInt(), microBatches), rank);
            setup.build.batch = all["batch"].toInteger();
            const std::int64_t batch = rank == 0 ? microBatches * setup.build.batch * all["width"].toInteger() * 4 : 0;
            QCOMPARE(keptBehindForwards(ranAs(model, setup).trace), made["kept"][rank].toInteger() - batch);
        }
    }

    void asManyAreInFlightAsThePapersSay()
    {
        for (const int microBatches : {4, 8, 16}) {
            for (int rank = 0; rank < 4; ++rank) {
                const Plan plain = planOf("1f1b", 4, 1, microBatches),
                           chunks = planOf("interleaved", 4, 2, microBatches);
                QCOMPARE(passesInFlight(plain, rank), std::min(4 - rank, microBatches));
                QCOMPARE(passesInFlight(chunks, rank), std::min(2 * (3 - rank) + 4 + 1, 2 * microBatches));
                QCOMPARE(passesInFlight(planOf("gpipe", 4, 1, microBatches), rank), microBatches);
                for (const Plan& plan : {plain, chunks})
                    QCOMPARE(mostInFlight(pipelineActions(plan, rank, microBatches)), passesInFlight(plan, rank));
            }
        }
    }

    // Twice the layers keep twice as much of them: the difference is that of the layers alone. Korthikanti et al. 2022,
    // section 4.2.3: the first rank of p keeps p micro-batches of L / p layers.
    void theFirstRankKeepsAWholeModelsActivations()
    {
        const auto layers = [](const Plan& plan, int rank) {
            return activations(decoderOf(16), plan, rank) - activations(decoderOf(8), plan, rank);
        };
        const std::int64_t whole = layers(Plan(), 0);
        const Plan plan = planOf("1f1b", 4, 1, 8);
        QCOMPARE(layers(plan, 0), whole);
        QCOMPARE(layers(plan, 1), whole * 3 / 4);
        QCOMPARE(layers(plan, 3), whole / 4);
    }

    void interleavedChunksKeepMore()
    {
        const auto layers = [](const Plan& plan) {
            return activations(decoderOf(16), plan, 0) - activations(decoderOf(8), plan, 0);
        };
        const double share = double(layers(planOf("interleaved", 4, 2, 8))) / double(layers(Plan()));
        QCOMPARE(share, 1 + 3.0 / (4 * 2)); // 1 + (p − 1) / (p v)
    }

    void gpipeKeepsEveryMicroBatch()
    {
        const auto layers = [](const Plan& plan) {
            return activations(decoderOf(8), plan, 1) - activations(decoderOf(4), plan, 1);
        };
        QCOMPARE(layers(planOf("gpipe", 2, 1, 6)), 6 * layers(planOf("1f1b", 2, 1, 6))); // where 1F1B keeps p − r = 1
    }

    void checkpointingKeepsTheInputsOfWhatIsInFlight()
    {
        const auto kept = [](std::int64_t layers) {
            TrainingSetup setup = setupOf(planOf("1f1b", 4, 1, 8), 0);
            setup.step.checkpointing.kind = Checkpointing::Layers;
            return highestBytes(ranAs(decoderOf(layers), setup).trace, Category::Activations);
        };
        const std::int64_t input = 2 * 64 * 64 * 4;  // s b h in fp32
        QCOMPARE(kept(16) - kept(8), 4 * 2 * input); // of four micro-batches, two layers more
    }

    void laterMicroBatchesNeedNoMore()
    {
        for (const auto& [schedule, chunks] : {std::pair("1f1b", 1), std::pair("interleaved", 2)}) {
            const auto some = ranAs(decoderOf(8), setupOf(planOf(schedule, 4, chunks, 16), 0));
            const auto many = ranAs(decoderOf(8), setupOf(planOf(schedule, 4, chunks, 4096), 0));
            QCOMPARE(many.trace.peakBytes(), some.trace.peakBytes());
            QCOMPARE(many.trace.events().size(), some.trace.events().size());
        }
    }

    void thePartsHaveTheLayersOfTheWhole_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("chunks");
        QTest::addRow("two ranks") << 2 << 1;
        QTest::addRow("a layer on each") << 8 << 1;
        QTest::addRow("two chunks") << 4 << 2;
        QTest::addRow("four chunks") << 2 << 4;
    }

    void thePartsHaveTheLayersOfTheWhole()
    {
        QFETCH(int, ranks);
        QFETCH(int, chunks);
        const ModelDescription model = decoderOf(8);
        const Graph whole = partOf(model, {});
        std::set<std::string> names;
        std::int64_t parameters = 0, multiplications = 0, ofWhole = 0;
        for (const Operator& op : whole.operators)
            ofWhole += isMatrixProduct(op.kind);
        for (int rank = 0; rank < ranks; ++rank) {
            const Graph part = partOf(model, {ranks, chunks, rank});
            QCOMPARE(part.chunks.size(), std::size_t(chunks));
            QCOMPARE(part.chunks.front().received == noTensor, rank == 0);
            QCOMPARE(part.chunks.back().sent == noTensor, rank + 1 == ranks);
            QCOMPARE(part.loss == noTensor, rank + 1 != ranks);
            parameters += part.parameterCount();
            for (const NamedTensor& one : part.parameters)
                QVERIFY(names.insert(part.path(one.module) + "." + one.name).second);
            for (const Operator& op : part.operators)
                multiplications += isMatrixProduct(op.kind);
        }
        QCOMPARE(parameters, whole.parameterCount());
        QCOMPARE(multiplications, ofWhole);
    }

    void aTiedEmbeddingIsOnBothEnds()
    {
        const ModelDescription model = decoderOf(4, true);
        const std::int64_t table = 1000 * 64;
        const Graph first = partOf(model, {2, 1, 0}), last = partOf(model, {2, 1, 1});
        QCOMPARE(first.parameterCount() + last.parameterCount(), partOf(model, {}).parameterCount() + table);
        for (const Graph* part : {&first, &last})
            QCOMPARE(part->layoutOf(part->sharedParameter).elements(), table);
        QCOMPARE(partOf(decoderOf(4), {2, 1, 1}).sharedParameter, noTensor);
    }

    void everythingIsGivenBack()
    {
        for (int rank = 0; rank < 2; ++rank) {
            for (const auto& [schedule, chunks] :
                 {std::pair("gpipe", 1), std::pair("1f1b", 1), std::pair("interleaved", 2)}) {
                const Simulation made = ranAs(decoderOf(8), setupOf(planOf(schedule, 2, chunks, 4), rank));
                std::int64_t activations = 0, temporary = 0;
                for (const Event& event : made.trace.events()) {
                    activations += event.category == Category::Activations ? event.change() : 0;
                    temporary += event.category == Category::Temporary ? event.change() : 0;
                }
                QCOMPARE(activations, 0);
                QCOMPARE(temporary, 0);
            }
        }
    }

    /// torchtitan's generate_llm_fqn_per_model_part: of 8 layers, embedding and head, 3 stages have 4, 3 and 3; 6 have
    /// 2, 2, 2, 2, 1 and 1.
    void whereStagesDoNotDivideTheEndsCount_data()
    {
        QTest::addColumn<QList<int>>("layers");
        QTest::addRow("three") << QList<int>{3, 3, 2};
        QTest::addRow("six") << QList<int>{1, 2, 2, 2, 1, 0};
    }

    void whereStagesDoNotDivideTheEndsCount()
    {
        QFETCH(QList<int>, layers);
        for (int rank = 0; rank < layers.size(); ++rank) {
            BuildOptions build = setupOf(Plan(), 0).build;
            build.pipeline = {int(layers.size()), 1, rank};
            const auto part = buildNetwork(decoderOf(8), build);
            QVERIFY2(part, part ? "" : part.error().text().c_str());
            QCOMPARE(std::count_if(part->blocks.begin(), part->blocks.end(),
                                   [](const Block& block) { return block.kind == Block::Kind::Layer; }),
                     layers[rank]);
        }
    }

    void tooManyPartsAreRefused_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("chunks");
        QTest::addColumn<QString>("said");
        QTest::addRow("more ranks than layers") << 16 << 1 << "16 stages share the layers of a network that has 8";
        QTest::addRow("more chunks than layers") << 4 << 3 << "12 stages share the layers of a network that has 8";
    }

    void tooManyPartsAreRefused()
    {
        QFETCH(int, ranks);
        QFETCH(int, chunks);
        QFETCH(QString, said);
        BuildOptions build = setupOf(Plan(), 0).build;
        build.pipeline = {ranks, chunks, 0};
        const auto refused = buildNetwork(decoderOf(8), build);
        QVERIFY(!refused);
        QCOMPARE(QString::fromStdString(refused.error().message), said);
        QCOMPARE(refused.error().place, std::string("pipeline_parallel"));
        QVERIFY(!refused.error().hint.empty());
    }
};

QTEST_APPLESS_MAIN(TestPipelineRanks)
#include "tst_pipeline_ranks.moc"
