// SPDX-License-Identifier: Apache-2.0
// A rank's step under FSDP 2 and FSDP 1 against PyTorch's own (tests/data/pytorch/sharded_steps.py): what is allocated
// in order in forward, each phase's highest moment and what it leaves, to the byte. And what DeepSpeed's sizes mean,
// against its documentation (https://www.deepspeed.ai/docs/config-json/).
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/training/fsdp_units.h"
#include "core/training/sharding.h"
#include "core/training/simulation.h"
#include "tests/support/real_steps.h"

#include <map>
#include <numeric>

using namespace memscape;
using namespace memscape::test;

namespace {

TrainingSetup recordedSetup(const QJsonObject& measured)
{
    TrainingSetup setup;
    const QString precision = measured["precision"].toString();
    const bool isHalf = precision != "fp32";
    setup.build.batch = measured["batch"].toInteger();
    setup.build.sequence = measured["sequence"].toInteger();
    setup.build.weights = isHalf ? DType::BFloat16 : DType::Float32;
    setup.build.attention = measured["attention"] == "flash" ? AttentionKernel::Flash : AttentionKernel::Efficient;
    setup.build.keepsLogits = setup.build.logitsInFloat = true;
    setup.build.rules.normStatisticsInFloat = !isHalf; // as on a CPU, where it was recorded
    setup.build.rules.efficientSharesHeads = false;    // as before PyTorch 2.14: heads are copied
    setup.step.rules = setup.build.rules;
    setup.step.rules.accumulatesInPlace = false; // as the recorder saw it
    if (measured["checkpointed"].toBool())
        setup.step.checkpointing = {Checkpointing::Layers, 1, false};
    Plan& plan = setup.step.plan;
    plan.precision = !isHalf ? Precision::Fp32 : precision == "bf16" ? Precision::Bf16 : Precision::Bf16Mixed;
    plan.shardedBy = measured["fsdp"].toInt() == 2 ? ShardedBy::Fsdp2 : ShardedBy::Fsdp1;
    if (measured["wrap"] != "block")
        plan.fsdpWrap = measured["wrap"] == "whole" ? FsdpWrap::Whole : FsdpWrap::Size;
    plan.fsdpMinParams = measured["wrap"].toInteger();
    plan.zeroStage = measured["reshard"].toBool() ? 3 : 2;
    plan.dataParallel = measured["ranks"].toInt();
    plan.fp32Gradients = measured["reduce"] == "fp32";
    plan.accumulation = measured["accumulation"].toInt();
    plan.reducesLastOnly = measured["no_sync"].toBool();
    return setup;
}

/// transformers registers a layer's norms last, so that its parameters are copied out in another order: sorts those.
void sortCopiedOut(std::vector<Change>& simulated, std::vector<Change>& recorded)
{
    const auto isCopied = [](const Change& one) { return one.bytes > 0 && one.source.endsWith("gathered weights"); };
    const auto isLess = [](const Change& a, const Change& b) { return a.bytes < b.bytes; };
    for (auto first = simulated.begin(); first != simulated.end();) {
        first = std::find_if(first, simulated.end(), isCopied);
        const auto last = std::find_if_not(first, simulated.end(), isCopied);
        if (last - simulated.begin() > std::ptrdiff_t(recorded.size()))
            return;
        std::sort(recorded.begin() + (first - simulated.begin()), recorded.begin() + (last - simulated.begin()),
                  isLess);
        std::sort(first, last, isLess);
        first = last;
    }
}

struct Bytes
{
    std::int64_t highest = 0, left = 0; ///< above what is there before the step
};

Bytes bytesAfter(const std::vector<Change>& changes, std::int64_t& live)
{
    Bytes bytes{live, 0};
    for (const Change& change : changes) {
        live += change.bytes;
        bytes.highest = std::max(bytes.highest, live);
    }
    bytes.left = live;
    return bytes;
}

ModelDescription decoder(std::int64_t hidden, int layers)
{
    ModelDescription model;
    model.name = "decoder";
    model.architecture = "llama";
    model.layers = layers;
    model.hidden = hidden;
    model.heads = model.kvHeads = 4;
    model.headDim = hidden / 4;
    model.ffn = 4 * hidden;
    model.vocab = 1000;
    model.maxPositions = 64;
    return model;
}

TrainingSetup overEight(ShardedBy implementation, int stage, Precision precision)
{
    TrainingSetup setup;
    setup.build.batch = 1;
    setup.build.sequence = 16;
    setup.build.weights = DType::BFloat16;
    Plan& plan = setup.step.plan;
    plan.precision = precision;
    plan.shardedBy = implementation;
    plan.zeroStage = stage;
    plan.dataParallel = 8;
    return setup;
}

/// Segments of more than 20 MiB that a step takes in the stream of FSDP's gathers.
std::vector<std::int64_t> gatheredSegments(ShardedBy implementation)
{
    const auto made = simulate(decoder(2048, 6), overEight(implementation, 3, Precision::Bf16));
    CachingAllocator allocator;
    std::vector<BlockIndex> served(made->trace.blockCount() + 1);
    for (const Event& event : made->trace.events()) {
        BlockIndex& block = served[event.block];
        allocator.passBehind(event.waiting);
        if (event.isAllocation())
            block = allocator.allocate(event.bytes, event.stream);
        else if (event.isBehind)
            allocator.freeBehind(block);
        else
            allocator.free(block);
    }
    std::vector<std::int64_t> sizes;
    for (const AllocatorSegment& segment : allocator.segments())
        if (segment.stream == FsdpStreams::gather && segment.size > (20 << 20))
            sizes.push_back(segment.size);
    return sizes;
}

Simulation deepSpeed(int stage, std::int64_t hidden, int layers)
{
    TrainingSetup setup = overEight(ShardedBy::DeepSpeed, stage, Precision::Bf16Mixed);
    setup.step.plan.update = UpdateStyle::Fused;
    auto made = simulate(decoder(hidden, layers), setup);
    if (!made)
        qFatal("%s", made.error().text().c_str());
    return std::move(*made);
}

std::int64_t highestOf(const Trace& trace, const char* name)
{
    std::int64_t held = 0, highest = 0;
    for (const Event& event : trace.events()) {
        if (trace.names()[event.name] == name)
            highest = std::max(highest, held += event.change());
    }
    return highest;
}

} // namespace

class TestShardingImplementations : public QObject
{
    Q_OBJECT

private slots:
    void fsdpAllocatesWhatPyTorchsDoes_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        int row = 0;
        for (const QJsonValue& value : recordedSteps("sharded_steps.json"))
            QTest::addRow(
                "%d FSDP %d, by %s, %s%s%s%s%s", row++, value["fsdp"].toInt(),
                qPrintable(value["wrap"].toVariant().toString()), qPrintable(value["precision"].toString()),
                value["reshard"].toBool() ? "" : ", kept whole", value["reduce"] == "fp32" ? ", fp32 reduction" : "",
                value["checkpointed"].toBool() ? ", checkpointed" : "", value["no_sync"].toBool() ? ", no_sync" : "")
                << value.toObject();
    }
    void fsdpAllocatesWhatPyTorchsDoes()
    {
        QFETCH(QJsonObject, measured);
        const auto model = modelFromConfig(JsonReader(llamaConfig(measured)), "recorded");
        QVERIFY(model);
        const auto made = simulate(*model, recordedSetup(measured));
        QVERIFY2(made, made ? "" : made.error().text().c_str());
        QCOMPARE(made->kept.weights, measured["shards"].toInteger());
        const QJsonObject events = measured["events"].toObject();
        std::int64_t here = 0, there = 0;
        const auto compare = [&](Phase phase, int batch, const QString& name) {
            auto simulated = ordered(simulatedChanges(made->trace, phase, batch));
            auto recorded = ordered(measuredChanges(events[name].toArray()));
            sortCopiedOut(simulated, recorded);
            if (phase == Phase::Forward)
                compareChanges(simulated, recorded);
            const Bytes ours = bytesAfter(simulated, here), theirs = bytesAfter(recorded, there);
            QVERIFY2(ours.highest == theirs.highest && ours.left == theirs.left,
                     qPrintable(QString("%1: highest %2, PyTorch %3; left %4, PyTorch %5")
                                    .arg(name)
                                    .arg(ours.highest)
                                    .arg(theirs.highest)
                                    .arg(ours.left)
                                    .arg(theirs.left)));
        };
        for (int i = 0; i < measured["accumulation"].toInt(); ++i) {
            compare(Phase::Forward, i, QString("forward %1").arg(i));
            compare(Phase::Backward, i, QString("backward %1").arg(i));
        }
        compare(Phase::Optimizer, 0, "optimizer");
        compare(Phase::ZeroGrad, 0, "zero");
    }

    // FSDP 1: a unit in use and the next one, and what the last one used is given back when the stream asks again
    // (torch/distributed/fsdp/_limiter_utils.py). FSDP 2: the buffer of the unit before, and the next one's.
    void gathersHaveAStreamOfTheirOwn()
    {
        const std::int64_t layer = 2 * (16 * 2048 * 2048 + 2 * 2048),
                           segment = (layer + 0x1fffff) / 0x200000 * 0x200000;
        QCOMPARE(gatheredSegments(ShardedBy::Fsdp1), std::vector<std::int64_t>(3, segment));
        QCOMPARE(gatheredSegments(ShardedBy::Fsdp2), std::vector<std::int64_t>(2, segment));
    }

    // What was joined to flat parameters leaves free blocks in the stream of the computation.
    void wrappingShapesWhatIsReserved()
    {
        TrainingSetup setup;
        setup.build.batch = 1;
        setup.build.sequence = 16;
        setup.step.plan.zeroStage = 3;
        setup.step.plan.dataParallel = 8;
        setup.step.plan.shardedBy = ShardedBy::Fsdp1;
        const auto made = simulate(decoder(2048, 6), setup);
        const std::vector<std::int64_t>& passing = made->trace.passing().bytes;
        // Nine tensors of a layer and its flat parameter, embedding, head and norm with theirs.
        const std::int64_t layer = 4 * (16 * 2048 * 2048 + 2 * 2048), root = 4 * (2 * 1000 * 2048 + 2048);
        QCOMPARE(passing.size(), std::size_t(9 + 1 + 3 + 1));
        QCOMPARE(std::accumulate(passing.begin(), passing.end(), std::int64_t(0)), 2 * (layer + root));
        QVERIFY(made->allocator.peak.reserved >= made->kept.weights + 2 * (layer + root));
        const auto totals = stepTotals(*made->graph, *made->network, setup.step, {});
        QVERIFY(totals);
        QCOMPARE(totals->allocator.peak.reserved, made->allocator.peak.reserved);
    }

    // The bucket is as large as it was asked for, and stages 1 and 2 need it in backward alone.
    void deepSpeedReducesThroughABucket()
    {
        for (const int stage : {1, 2, 3}) {
            const Simulation made = deepSpeed(stage, 64, 2);
            QCOMPARE(highestOf(made.trace, "reduce bucket"), 2 * 500'000'000LL);
            for (const Event& event : made.trace.events())
                if (made.trace.names()[event.name] == "reduce bucket")
                    QCOMPARE(event.phase, stage == 3 ? Phase::Setup : Phase::Backward);
        }
    }

    // stage3_param_persistence_threshold: "Do not partition parameters smaller than this threshold".
    void deepSpeedKeepsSmallParametersWhole()
    {
        const Simulation small = deepSpeed(3, 64, 2);
        std::int64_t elements = 0, shares = 0;
        for (const ParameterTensor& parameter : small.parameters()) {
            QVERIFY(parameter.elements <= 100'000);
            elements += parameter.elements;
            shares += piece(parameter.elements, 8);
        }
        QCOMPARE(small.kept.weights, 2 * (elements + shares));
        QCOMPARE(highestOf(small.trace, "gathered weights"), 0);
    }

    // stage3_prefetch_bucket_size lets small modules run ahead up to stage3_max_live_parameters: here all of 2.7e8
    // weights are whole at once, of 1.3e10 at most about a billion.
    void deepSpeedGathersAheadUpToABillionParameters()
    {
        const Simulation medium = deepSpeed(3, 1024, 16), large = deepSpeed(3, 8192, 12);
        const auto gathered = [](const Simulation& one) {
            std::int64_t bytes = 0;
            for (const ParameterTensor& parameter : one.parameters())
                if (parameter.elements > 100'000)
                    bytes += 2 * parameter.elements;
            return bytes;
        };
        QVERIFY(gathered(medium) < 2 * 1'000'000'000LL);
        QCOMPARE(highestOf(medium.trace, "gathered weights"), gathered(medium));
        const std::int64_t highest = highestOf(large.trace, "gathered weights");
        QVERIFY(gathered(large) > 4 * 2 * 1'000'000'000LL);
        const std::int64_t largest = 2 * 8192LL * 4 * 8192; // the last one that is begun
        QVERIFY2(highest > 2 * 1'000'000'000LL - largest && highest <= 2 * 1'000'000'000LL + largest,
                 qPrintable(QString::number(highest)));
    }

    // What torch/distributed/fsdp/wrap.py makes of Llama 3.1 8B with 10^8 parameters (counted by hand): embedding and
    // head, each MLP, and the model around its layers for attention and norms.
    void unitsBySizeEncloseEachOther()
    {
        const auto model = readModel("llama-3.1-8b");
        QVERIFY(model);
        BuildOptions options;
        options.sequence = 16;
        options.weights = DType::BFloat16;
        const auto graph = buildNetwork(*model, options);
        QVERIFY(graph);
        const std::vector<ModuleId> modules(graph->modules.size(), 0);
        const FsdpWrapping wrapping(*graph, modules, FsdpWrap::Size, 100'000'000);
        std::map<std::int64_t, int> unitsOfElements;
        std::vector<std::int64_t> elements(wrapping.units.size(), 0);
        for (std::size_t i = 0; i < graph->parameters.size(); ++i)
            elements[wrapping.ownerOf[i]] += graph->layoutOf(graph->parameters[i].tensor).elements();
        for (const std::int64_t one : elements)
            ++unitsOfElements[one];
        const std::int64_t attention = 2 * 4096 * 4096 + 2 * 4096 * 1024;
        const std::map<std::int64_t, int> expected{
            {0, 1}, {3 * 4096 * 14336, 32}, {128256 * 4096, 2}, {32 * (attention + 2 * 4096) + 4096, 1}};
        QVERIFY(unitsOfElements == expected);
        int enclosed = 0;
        for (std::size_t i = 1; i < elements.size(); ++i)
            enclosed += elements[wrapping.units[i].parent] == 32 * (attention + 2 * 4096) + 4096;
        QCOMPARE(enclosed, 33); // embedding and MLPs
    }

    // FSDP 1 deletes what it has copied to the host when all of backward has ended (_flat_param.py,
    // prepare_gradient_for_optim), FSDP 2 each piece behind its copy.
    void piecesWaitForTheEndOfBackwardUnderFsdp1()
    {
        const auto pieces = [](ShardedBy implementation) {
            TrainingSetup setup = overEight(implementation, 3, Precision::Bf16);
            setup.step.plan.offload = Offload::Parameters;
            const auto made = simulate(decoder(2048, 6), setup);
            return made ? highestOf(made->trace, "reduce-scatter output") : 0;
        };
        const std::int64_t layer = 16 * 2048 * 2048 + 2 * 2048, root = 2 * 1000 * 2048 + 2048;
        QCOMPARE(pieces(ShardedBy::Fsdp1), 2 * (6 * layer + root) / 8);
        QCOMPARE(pieces(ShardedBy::Fsdp2), 2 * layer / 8);
    }

    void whatAnImplementationHasNotIsRefused()
    {
        Plan plan;
        plan.dataParallel = 4;
        plan.zeroStage = 1;
        plan.shardedBy = ShardedBy::Fsdp2;
        QCOMPARE(checkPlan(plan).error().code, std::string("plan.combination"));
        plan.zeroStage = 3;
        QVERIFY(checkPlan(plan));
        plan.offload = Offload::Gradients;
        QVERIFY(checkPlan(plan).error().hint.find("DeepSpeed") != std::string::npos);
        plan.shardedBy = ShardedBy::DeepSpeed;
        QVERIFY(checkPlan(plan));
        plan.offload = Offload::None;
        plan.fsdpWrap = FsdpWrap::Size;
        plan.shardedBy = ShardedBy::Fsdp2;
        QCOMPARE(checkPlan(plan).error().place, std::string("fsdp_wrap"));
        plan.shardedBy = ShardedBy::Fsdp1;
        QVERIFY(checkPlan(plan));
    }
};

QTEST_APPLESS_MAIN(TestShardingImplementations)
#include "tst_sharding_implementations.moc"
