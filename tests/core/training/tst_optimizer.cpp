// SPDX-License-Identifier: Apache-2.0
// Optimizers against real ones: state and every temporary of a step as PyTorch 2.x made them
// (tests/data/pytorch/optimizer_steps.json, and the script that recorded it), and the optimizer
// phase of real training steps of PyTorch 1.13 (training_traces.json). Frees between two operators
// have no order in the recordings, so runs of frees are compared as sets.
#include "core/training/optimizer_step.h"
#include "tests/support/pytorch_data.h"

#include <QtTest>

#include <algorithm>
#include <numeric>

using namespace memscape;

namespace {

ParameterTensor parameter(const std::string& name, const std::vector<std::int64_t>& shape)
{
    ParameterTensor made{name, {}, 1, true, false, 0};
    for (const std::int64_t size : shape) {
        made.shape.push_back(size);
        made.elements *= size;
    }
    return made;
}

/// Signed bytes of the events from `first` on, runs of frees sorted; `without` is left out.
QList<qint64> changes(const Trace& trace, std::size_t first, std::string_view without = "-")
{
    QList<qint64> bytes;
    for (std::size_t i = first; i < trace.events().size(); ++i)
        if (trace.names()[trace.events()[i].name] != without)
            bytes << trace.events()[i].change();
    return bytes;
}

QList<qint64> withSortedFrees(QList<qint64> bytes)
{
    for (auto begin = bytes.begin(); begin != bytes.end();) {
        const bool isFree = *begin < 0;
        const auto end = std::find_if(begin, bytes.end(), [=](qint64 b) { return (b < 0) != isFree; });
        if (isFree)
            std::sort(begin, end);
        begin = end;
    }
    return bytes;
}

Plan planNamed(const QString& name, const QString& dtype)
{
    Plan plan;
    const QStringList words = name.split(' ');
    plan.optimizer = optimizerFromText(words[0].toStdString()).value();
    plan.update = updateStyleFromText(words[1].toStdString()).value();
    plan.precision = dtype == "float32" ? Precision::Fp32 : Precision::Bf16;
    plan.clipsGradients = true;
    plan.optimizerRank = 8;
    return plan;
}

std::vector<ParameterTensor> parametersOf(const QJsonObject& step)
{
    std::vector<ParameterTensor> parameters;
    for (const QJsonValue& shape : step["shapes"].toArray()) {
        std::vector<std::int64_t> sizes;
        for (const QJsonValue& size : shape.toArray())
            sizes.push_back(size.toInteger());
        parameters.push_back(parameter("p" + std::to_string(parameters.size()), sizes));
    }
    return parameters;
}

} // namespace

class TestOptimizer : public QObject
{
    Q_OBJECT

    static void recordedSteps()
    {
        QTest::addColumn<QJsonObject>("step");
        const QJsonArray steps = pytorchData("optimizer_steps.json")["steps"].toArray();
        QVERIFY(steps.size() >= 32);
        for (const QJsonValue& step : steps)
            QTest::addRow("%s %s", qPrintable(step["name"].toString()), qPrintable(step["dtypes"][0].toString()))
                << step.toObject();
    }

private slots:
    void stateIsWhatPyTorchKeeps_data() { recordedSteps(); }
    void stateIsWhatPyTorchKeeps()
    {
        QFETCH(QJsonObject, step);
        const Plan plan = planNamed(step["name"].toString(), step["dtypes"][0].toString());
        const std::int64_t bytes = precisionRule(plan.precision).updated();
        const auto parameters = parametersOf(step);
        std::int64_t total = 0;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            QList<qint64> ours, real;
            for (const StateTensor& part : stateTensors(parameters[i], bytes, plan))
                ours << part.bytes;
            for (const QJsonValue& value : step["state"][qsizetype(i)].toObject())
                real << value.toInteger();
            total += std::accumulate(real.begin(), real.end(), qint64(0));
            std::sort(ours.begin(), ours.end());
            std::sort(real.begin(), real.end());
            QCOMPARE(ours, real);
        }
        QCOMPARE(keptBytes(parameters, plan).state, total);
        Trace trace;
        allocateOptimizer(trace, parameters, plan);
        QCOMPARE(trace.liveBytes(), total);
    }

    void updatesAllocateWhatPyTorchAllocates_data() { recordedSteps(); }
    void updatesAllocateWhatPyTorchAllocates()
    {
        QFETCH(QJsonObject, step);
        const Plan plan = planNamed(step["name"].toString(), step["dtypes"][0].toString());
        Trace trace;
        OptimizerBlocks blocks = allocateOptimizer(trace, parametersOf(step), plan);
        const std::size_t setup = trace.events().size();
        const std::int64_t before = trace.liveBytes();
        trace.enter(Phase::Optimizer);
        updateParameters(trace, plan, blocks);
        QCOMPARE(trace.liveBytes(), before);
        QList<qint64> real;
        for (const QJsonValue& bytes : step["events"].toArray())
            real << bytes.toInteger();
        if (plan.optimizer == OptimizerKind::Apollo) // the limiter's numbers
            real.removeIf([](qint64 bytes) { return std::abs(bytes) <= 4; });
        QCOMPARE(withSortedFrees(changes(trace, setup)), withSortedFrees(real));
    }

    void clippingAllocatesWhatPyTorchAllocates_data() { recordedSteps(); }
    void clippingAllocatesWhatPyTorchAllocates()
    {
        QFETCH(QJsonObject, step);
        const Plan plan = planNamed(step["name"].toString(), step["dtypes"][0].toString());
        Trace trace;
        trace.enter(Phase::Optimizer);
        clipGradients(trace, parametersOf(step), plan);
        QList<qint64> real;
        for (const QJsonValue& bytes : step["clip_events"].toArray())
            real << bytes.toInteger();
        // The partial norms are inside CUDA's kernel, where the recorder doesn't see them.
        QCOMPARE(withSortedFrees(changes(trace, 0, "norm chunks")), withSortedFrees(real));
        QCOMPARE(trace.liveBytes(), 0);
    }

    void partialNormsAreCountedByTheLargestTensor()
    {
        Plan plan;
        plan.clipsGradients = true;
        Trace trace;
        trace.enter(Phase::Optimizer);
        clipGradients(trace, {parameter("a", {65536, 3}), parameter("b", {1})}, plan);
        QCOMPARE(trace.events()[0].bytes, 2 * 3 * 4);
        plan.clipsGradients = false;
        Trace quiet;
        clipGradients(quiet, {parameter("a", {10})}, plan);
        QVERIFY(quiet.events().empty());
    }

    /// PyTorch 1.13, one tensor after the other. Host artefacts of the recording are left out:
    /// scalars of 4 and 8 B and the profiler's own 288 B.
    void realTrainingSteps_data()
    {
        QTest::addColumn<QJsonObject>("step");
        const QJsonArray traces = pytorchData("training_traces.json")["traces"].toArray();
        QCOMPARE(traces.size(), 8);
        for (const QJsonValue& trace : traces)
            QTest::addRow("%s %s", qPrintable(trace["name"].toString()), qPrintable(trace["optimizer"].toString()))
                << trace.toObject();
    }
    void realTrainingSteps()
    {
        QFETCH(QJsonObject, step);
        Plan plan;
        plan.update = UpdateStyle::Loop;
        const QString name = step["optimizer"].toString();
        plan.optimizer = optimizerFromText(name == "sgdm" ? "momentum" : name.toStdString()).value();
        QList<qint64> real;
        std::vector<ParameterTensor> parameters; // as large as the square roots
        for (const QJsonValue& event : step["events"].toArray()) {
            const qint64 bytes = event[2].toInteger();
            if (event[4].toString() != "optimizer" || bytes <= 8 || bytes == 288)
                continue;
            real << (event[0].toString() == "a" ? bytes : -bytes);
            if (event[3].toString() == "aten::sqrt")
                parameters.push_back(parameter("p", {bytes / 4}));
        }
        Trace trace;
        OptimizerBlocks blocks = allocateOptimizer(trace, parameters, plan);
        const std::size_t setup = trace.events().size();
        trace.enter(Phase::Optimizer);
        updateParameters(trace, plan, blocks);
        QCOMPARE(withSortedFrees(changes(trace, setup)), withSortedFrees(real));
        QVERIFY(name.startsWith("sgd") || !real.isEmpty());
    }

    void eightBitAdamKeepsSmallTensorsIn32Bits()
    {
        const auto bytes = [](std::int64_t elements) {
            Plan plan;
            plan.optimizer = OptimizerKind::Adam8bit;
            return keptBytes({parameter("p", {elements})}, plan).state;
        };
        QCOMPARE(bytes(4095), 8 * 4095);
        QCOMPARE(bytes(4096), 2 * 4096 + 2 * 4 * 16 + 2 * 1024); // and two code tables
        QCOMPARE(bytes(4097), 2 * 4097 + 2 * 4 * 17 + 2 * 1024);
        Plan before;
        before.optimizer = OptimizerKind::Adam8bit;
        before.eightBitBlock = 2048; // bitsandbytes before 0.44
        QCOMPARE(keptBytes({parameter("p", {4097})}, before).state, 2 * 4097 + 2 * 4 * 3 + 2 * 1024);
    }

    // bitsandbytes, `Optimizer8bit.get_state_buffer`: below 100,000 elements state is a tensor like any other, from
    // there on it is managed memory, which PyTorch does not count; the scales of 8 bits stay tensors.
    void pagedStateIsNotOnTheDevice()
    {
        const auto kept = [](OptimizerKind optimizer, std::int64_t elements, bool isOnCpu = false) {
            Plan plan;
            plan.optimizer = optimizer;
            plan.precision = Precision::Bf16;
            plan.isOnCpu = isOnCpu;
            return keptBytes({parameter("p", {elements})}, plan);
        };
        QCOMPARE(kept(OptimizerKind::PagedAdamW, 99'999).state, 8 * 99'999);
        QCOMPARE(kept(OptimizerKind::PagedAdamW, 99'999).host, 0);
        QCOMPARE(kept(OptimizerKind::PagedAdamW, 100'000).state, 0);
        QCOMPARE(kept(OptimizerKind::PagedAdamW, 100'000).host, 8 * 100'000); // in fp32, whatever the weights are
        QCOMPARE(kept(OptimizerKind::PagedAdam8bit, 102'400).state, 2 * 4 * 400 + 2 * 1024);
        QCOMPARE(kept(OptimizerKind::PagedAdam8bit, 102'400).host, 2 * 102'400);
        QCOMPARE(kept(OptimizerKind::PagedAdam8bit, 4096).state, kept(OptimizerKind::Adam8bit, 4096).state);
        QCOMPARE(kept(OptimizerKind::PagedAdamW, 100'000, true).host, 0); // a processor has no pages to leave
    }

    // torchao, `OptimState4bit.zeros` and `OptimStateFp8.zeros`: codes, scales and, in 4 bits, a table each; moments of
    // the weight's type for what is small or no whole number of blocks.
    void torchaoQuantizesWholeBlocks()
    {
        const auto bytes = [](OptimizerKind optimizer, std::int64_t elements, Precision precision = Precision::Fp32) {
            Plan plan;
            plan.optimizer = optimizer;
            plan.precision = precision;
            return keptBytes({parameter("p", {elements})}, plan).state;
        };
        QCOMPARE(bytes(OptimizerKind::Adam4bit, 4096), 2 * (2048 + 4 * 32 + 64));
        QCOMPARE(bytes(OptimizerKind::Adam4bit, 4224), 2 * (2112 + 4 * 33 + 64));
        QCOMPARE(bytes(OptimizerKind::Adam4bit, 4097), 2 * 4 * 4097);
        QCOMPARE(bytes(OptimizerKind::Adam4bit, 3968), 2 * 4 * 3968);
        QCOMPARE(bytes(OptimizerKind::AdamFp8, 4352), 2 * (4352 + 4 * 17));
        QCOMPARE(bytes(OptimizerKind::AdamFp8, 4224), 2 * 4 * 4224);
        QCOMPARE(bytes(OptimizerKind::AdamFp8, 4224, Precision::Bf16), 2 * 2 * 4224);
    }

    void masterWeightsAndTheirGradients()
    {
        Plan plan;
        plan.precision = Precision::Bf16Mixed;
        plan.optimizer = OptimizerKind::Adam;
        plan.update = UpdateStyle::Fused;
        const std::vector<ParameterTensor> parameters{parameter("a", {1000}), parameter("b", {24})};
        const KeptBytes kept = keptBytes(parameters, plan);
        QCOMPARE(kept.weights, 2 * 1024);
        QCOMPARE(kept.gradients, 2 * 1024);
        QCOMPARE(kept.master, 4 * 1024);
        QCOMPARE(kept.state, 8 * 1024 + 2 * 4); // and two step counts
        Trace trace;
        OptimizerBlocks blocks = allocateOptimizer(trace, parameters, plan);
        QCOMPARE(trace.liveBytes(), kept.master + kept.state);
        trace.enter(Phase::Optimizer);
        updateParameters(trace, plan, blocks);
        QCOMPARE(trace.peakBytes() - trace.liveBytes(), 4 * 1024); // half gradients as fp32
        plan.fp32Gradients = true;
        Trace summed;
        OptimizerBlocks again = allocateOptimizer(summed, parameters, plan);
        updateParameters(summed, plan, again);
        QCOMPARE(summed.peakBytes(), summed.liveBytes());
        QCOMPARE(keptBytes(parameters, plan).gradients, 4 * 1024);
    }

    void offloadedStateIsOnTheHost()
    {
        Plan plan;
        plan.offload = Offload::Optimizer;
        const KeptBytes kept = keptBytes({parameter("a", {1000})}, plan);
        QCOMPARE(kept.device(), 8000);
        QCOMPARE(kept.host, 8000);
        Trace trace;
        OptimizerBlocks blocks = allocateOptimizer(trace, {parameter("a", {1000})}, plan);
        updateParameters(trace, plan, blocks);
        QVERIFY(trace.events().empty());
    }

    void zeroGradFreesOnlyWhenItSetsToNone()
    {
        Trace trace;
        std::vector<BlockId> gradients{trace.allocate(100, Category::Gradients),
                                       trace.allocate(200, Category::Gradients)};
        Plan plan;
        plan.setsGradientsToNone = false;
        zeroGradients(trace, plan, gradients);
        QCOMPARE(trace.liveBytes(), 300);
        plan.setsGradientsToNone = true;
        zeroGradients(trace, plan, gradients);
        QCOMPARE(trace.liveBytes(), 0);
        QCOMPARE(gradients, (std::vector<BlockId>{noBlock, noBlock}));
        QCOMPARE(trace.events().back().phase, Phase::ZeroGrad);
    }

    void muonLeavesEmbeddingsAndVectorsToAdamW()
    {
        Plan plan;
        plan.optimizer = OptimizerKind::Muon;
        auto embedding = parameter("wte", {100, 10});
        embedding.isEmbedding = true;
        QCOMPARE(keptBytes({embedding}, plan).state, 8 * 1000);
        QCOMPARE(keptBytes({parameter("fc", {100, 10})}, plan).state, 4 * 1000);
        QCOMPARE(keptBytes({parameter("bias", {10})}, plan).state, 8 * 10);
    }

    // Zhao et al. 2024, table 1: m n weights, m r + 2 n r of state for m <= n; in half, as the projection is a view of
    // all singular vectors in fp32.
    void projectionsKeepTheShorterSide()
    {
        Plan plan;
        plan.precision = Precision::Bf16;
        plan.optimizer = OptimizerKind::GaLore;
        plan.optimizerRank = 16;
        const auto state = [&](std::vector<std::int64_t> shape) {
            return keptBytes({parameter("p", shape)}, plan).state;
        };
        QCOMPARE(state({64, 1000}), 2 * (64 * 16 + 2 * 1000 * 16));
        QCOMPARE(state({1000, 64}), state({64, 1000}));
        QCOMPARE(state({1000}), 2 * 2 * 1000);
        const std::int64_t codes = 2 * 256 * 4;     // of both moments, for all tensors
        plan.optimizer = OptimizerKind::GaLore8bit; // bitsandbytes: a byte each, a scale for 256; small tensors in fp32
        QCOMPARE(state({64, 1000}), 2 * (16 * 1000 + 4 * 63) + 2 * 64 * 16 + codes);
        QCOMPARE(state({1000}), 2 * 4 * 1000);
        plan.optimizer = OptimizerKind::AdaLomo; // lomo_optim/adalomo.py: rows and columns in fp32
        QCOMPARE(state({64, 1000}), 4 * 1064);
        plan.optimizer = OptimizerKind::Lomo;
        QCOMPARE(state({64, 1000}), 0);
        QCOMPARE(keptBytes({parameter("p", {64, 1000})}, plan).gradients, 0);
    }

    // torch/optim/adam.py of PyTorch 2.0: denom = torch._foreach_add(exp_avg_sq_sqrt, eps), in place since 2.1.
    void olderAdamMakesAListOfDenominators()
    {
        const auto temporaries = [](bool inPlace) {
            Plan plan;
            plan.addsEpsilonInPlace = inPlace;
            Trace trace;
            OptimizerBlocks blocks = allocateOptimizer(trace, {parameter("p", {100}), parameter("q", {300})}, plan);
            const std::int64_t before = trace.liveBytes();
            updateParameters(trace, plan, blocks);
            return trace.peakBytes() - before;
        };
        QCOMPARE(temporaries(true), 4 * 400);
        QCOMPARE(temporaries(false), 2 * 4 * 400);
    }

    // galore_torch/adamw8bit.py, 1.0: saved_data, project_back()'s product and its multiple of the matrix's size, the
    // projected gradient and its clone.
    void galoreIn8BitsPutsTheWeightAside()
    {
        Plan plan;
        plan.precision = Precision::Bf16;
        plan.optimizer = OptimizerKind::GaLore8bit;
        plan.update = UpdateStyle::Loop;
        plan.optimizerRank = 16;
        Trace trace;
        OptimizerBlocks blocks = allocateOptimizer(trace, {parameter("p", {64, 1000})}, plan);
        const std::int64_t before = trace.liveBytes();
        updateParameters(trace, plan, blocks);
        QCOMPARE(trace.peakBytes() - before, 2 * (3 * 64 * 1000 + 2 * 16 * 1000));
    }

    // lomo_optim/lomo.py: grad_fp32 and p_fp32 of half weights, nothing of fp32 ones, whose .to() is themselves.
    void lomoUpdatesWithCopiesInFp32()
    {
        const auto temporaries = [](const Plan& plan) {
            Trace trace;
            OptimizerBlocks blocks = allocateOptimizer(trace, {parameter("p", {100})}, plan);
            const std::int64_t before = trace.liveBytes();
            updateParameter(trace, plan, blocks, 0);
            return trace.peakBytes() - before;
        };
        Plan plan;
        plan.optimizer = OptimizerKind::Lomo;
        QCOMPARE(temporaries(plan), 0);
        plan.precision = Precision::Bf16;
        QCOMPARE(temporaries(plan), 8 * 100);
        plan.optimizer = OptimizerKind::AdaLomo;
        QCOMPARE(temporaries(plan), 12 * 100);
    }

    void frozenParametersKeepOnlyTheirWeights()
    {
        auto frozen = parameter("fc", {100, 10});
        frozen.isTrained = false;
        const KeptBytes kept = keptBytes({frozen}, Plan());
        QCOMPARE(kept.device(), kept.weights);
        QCOMPARE(kept.weights, 4000);
    }
};

QTEST_APPLESS_MAIN(TestOptimizer)
#include "tst_optimizer.moc"
