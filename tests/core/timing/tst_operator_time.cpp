// SPDX-License-Identifier: Apache-2.0
// FLOPs of recorded networks against the closed formula of Korthikanti et al., costs of single
// operators against sums by hand, and the step's time on devices of the catalogue.
#include "core/device/catalogue.h"
#include "core/network/families/gpt2.h"
#include "core/timing/operator_time.h"
#include "core/training/textbook.h"

#include <QtTest>

#include <cmath>
#include <map>

using namespace memscape;

namespace {

constexpr Gpt2Shape small{256, 4, 3, 0, 1000, 128};

Graph smallGpt2(AttentionKernel attention = AttentionKernel::Eager)
{
    BuildOptions options;
    options.batch = 2;
    options.sequence = 128;
    options.attention = attention;
    return gpt2(small, options).value();
}

/// Over a network's program: FLOPs of products, which is what utilisation is counted in, and all bytes.
OperatorCost sumOf(const Graph& graph, OperatorCost (*costOf)(const Graph&, const Operator&))
{
    OperatorCost sum;
    for (const Operator& op : graph.operators) {
        const OperatorCost cost = costOf(graph, op);
        sum.flops += cost.isProduct ? cost.flops : 0;
        sum.bytes += cost.bytes;
    }
    return sum;
}

/// The first operator of a kind.
const Operator& first(const Graph& graph, OperatorKind kind)
{
    return *std::find_if(graph.operators.begin(), graph.operators.end(),
                         [kind](const Operator& op) { return op.kind == kind; });
}

/// y = x W^T + b, x (rows, in), then a ReLU and a sum.
Graph oneLayer(std::int64_t rows, std::int64_t in, std::int64_t out, DType dtype)
{
    BuildOptions options;
    options.weights = dtype;
    NetworkBuilder b(options);
    Variable x = b.input("x", {rows, in}, dtype);
    Variable y = b.relu(b.linear("fc", std::move(x), out));
    Variable loss = b.sumAll(y);
    return b.finish(std::move(y), std::move(loss)).value();
}

Plan adamPlan()
{
    Plan plan;
    plan.update = UpdateStyle::Fused;
    return plan;
}

} // namespace

class TestOperatorTime : public QObject
{
    Q_OBJECT

    Device m_a100, m_h100;

private slots:
    void initTestCase()
    {
        m_a100 = findDevice("nvidia-a100-80gb").value();
        m_h100 = findDevice("nvidia-h100-sxm").value();
    }

    void flopsAreThoseOfTheClosedFormula()
    {
        const textbook::Transformer model{3, 256, 4, 128, 1000, 2, 1};
        const Graph graph = smallGpt2();
        const double forward = sumOf(graph, forwardCost).flops, backward = sumOf(graph, backwardCost).flops;
        QCOMPARE(forward + backward, textbook::stepFlops(model));
        QCOMPARE(backward, 2 * forward);
    }

    void flashAttentionDoesTheSameForwardWithFewerBytes()
    {
        const Graph eager = smallGpt2(), flash = smallGpt2(AttentionKernel::Flash);
        const OperatorCost eagerly = sumOf(eager, forwardCost), inTiles = sumOf(flash, forwardCost);
        QCOMPARE(inTiles.flops, eagerly.flops);
        QVERIFY(inTiles.bytes < eagerly.bytes);
        // The backward pass computes the scores again.
        QVERIFY(sumOf(flash, backwardCost).flops > sumOf(eager, backwardCost).flops);
    }

    void costOfALinearLayer()
    {
        const Graph graph = oneLayer(100, 30, 20, DType::BFloat16);
        const Operator& addmm = first(graph, OperatorKind::Addmm);
        const OperatorCost forward = forwardCost(graph, addmm);
        QCOMPARE(forward.flops, 2.0 * 100 * 30 * 20);
        QCOMPARE(forward.bytes, 2.0 * (100 * 30 + 20 * 30 + 20 + 100 * 20));
        const OperatorCost backward = backwardCost(graph, addmm); // the input wants no gradient
        QCOMPARE(backward.flops, forward.flops);
        QCOMPARE(backward.kernels, 2.0); // of the weight and of the bias
        QCOMPARE(backward.bytes, 2.0 * (100 * 20 + 100 * 30 + 20 * 30) + 2.0 * 100 * 20);
        const OperatorCost relu = backwardCost(graph, first(graph, OperatorKind::Relu));
        QCOMPARE(relu.bytes, 2.0 * 3 * 100 * 20); // gradient and output read, gradient written
    }

    void anOperatorIsHeldByTheSlowestOfItsParts()
    {
        DeviceRates rates;
        rates.bandwidth = 1e12, rates.launch = 1e-6, rates.float32 = 1e13, rates.bfloat16 = 1e14;
        OperatorCost product{.flops = 1e9, .bytes = 1e6, .kernels = 1, .isProduct = true, .dtype = DType::BFloat16};
        QCOMPARE(operatorSeconds(rates, product), 1e-5 + 1e-6);
        QCOMPARE(operatorSeconds(rates, product, 0.5), 2e-5 + 1e-6);
        QCOMPARE(operatorSeconds(rates, {.flops = 1e3, .bytes = 1e9, .kernels = 1}), 1e-3 + 1e-6);
        product.bytes = product.kernels = 0;
        product.dtype = DType::Float16;
        QCOMPARE(operatorSeconds(rates, product), 1e-4); // no fp16 rate
        rates.tensorFloat32 = 1e14;
        product.dtype = DType::Float32;
        QCOMPARE(operatorSeconds(rates, product), 1e-4);
        product.mayUseTf32 = true;
        QCOMPARE(operatorSeconds(rates, product), 1e-5);
    }

    void theStepIsTheSumOfItsParts()
    {
        const Graph graph = smallGpt2();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        const auto time = stepTime(graph, parameters, adamPlan(), m_a100);
        QVERIFY(time);
        QVERIFY(time->forward > 0 && time->backward > time->forward && time->optimizer > 0);
        QCOMPARE(time->exposed, 0.0);
        QCOMPARE(time->total, time->forward + time->backward + time->optimizer);
        QCOMPARE(time->modelFlops, sumOf(graph, forwardCost).flops + sumOf(graph, backwardCost).flops);
        QVERIFY(time->total > time->modelFlops / 19.5e12);  // no faster than the fp32 rate allows
        QVERIFY(time->launchBound > time->arithmeticBound); // tiny operators
    }

    void aFasterDeviceIsFasterAndALargeLayerIsHeldByArithmetic()
    {
        const Graph graph = oneLayer(8192, 8192, 8192, DType::BFloat16);
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        Plan plan = adamPlan();
        plan.precision = Precision::Bf16;
        const auto a100 = stepTime(graph, parameters, plan, m_a100);
        const auto h100 = stepTime(graph, parameters, plan, m_h100);
        QVERIFY(a100 && h100);
        QVERIFY(h100->total < a100->total);
        QVERIFY(a100->arithmeticBound > a100->memoryBound);
        plan.precision = Precision::Fp8; // which only layers that cast their input multiply in (tst_fp8_casts)
        QCOMPARE(stepTime(graph, parameters, plan, m_h100)->forward, h100->forward);
    }

    void accumulationRepeatsThePassesButNotTheUpdate()
    {
        const Graph graph = smallGpt2();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        Plan plan = adamPlan();
        const StepTime once = stepTime(graph, parameters, plan, m_a100).value();
        plan.accumulation = 4;
        const StepTime four = stepTime(graph, parameters, plan, m_a100).value();
        QCOMPARE(four.forward, 4 * once.forward);
        QVERIFY(four.backward > 4 * once.backward); // gradients are added up
        QCOMPARE(four.optimizer, once.optimizer);
        plan.phase = StepPhase::Forward;
        const StepTime forward = stepTime(graph, parameters, plan, m_a100).value();
        QCOMPARE(forward.total, once.forward);
    }

    void recomputingEveryLayerCostsAForwardPass()
    {
        const Graph graph = smallGpt2();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        std::vector<RecomputedRange> layers;
        for (const Block& block : graph.blocks)
            if (block.kind == Block::Kind::Layer)
                layers.push_back({block.first, block.last});
        QCOMPARE(layers.size(), std::size_t(3));
        StepTimeOptions options;
        options.recomputed = layers;
        const StepTime time = stepTime(graph, parameters, adamPlan(), m_a100, options).value();
        QVERIFY(time.recomputation > 0.7 * time.forward && time.recomputation < time.forward);
        // Of the layers' FLOPs, without the output head: a third more.
        const double head = 2.0 * 256 * 256 * 1000; // rows (2 x 128), hidden, words
        QCOMPARE(time.executedFlops - time.modelFlops, time.modelFlops / 3 - head);
    }

    /// Tensor parallelism adds up each layer's two results forward and the gradients of its two inputs backward; a
    /// layer that is checkpointed adds up its first result again, and the second is not needed.
    void aReplayRunsItsCollectivesAgain()
    {
        BuildOptions options;
        options.batch = 2;
        options.sequence = 128;
        options.tensorParallel = 2;
        const Graph graph = gpt2(small, options).value();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        StepSettings step;
        step.plan.tensorParallel = 2;
        const auto reduced = [&] {
            double count = 0;
            for (const Collective& one : stepCollectives(graph, parameters, step.plan, recomputedRanges(graph, step)))
                count += one.what == "activations" ? one.count : 0;
            return count;
        };
        const double without = reduced();
        step.checkpointing = {Checkpointing::Layers, 1, false};
        QCOMPARE(reduced() - without, 3.0);    // layers
        step.checkpointing.isReentrant = true; // to the end
        QCOMPARE(reduced() - without, 2 * 3.0);
        StepTimeOptions replayed;
        const auto ranges = recomputedRanges(graph, step);
        replayed.recomputed = ranges;
        QVERIFY(stepTime(graph, parameters, step.plan, m_a100, replayed)->inPasses
                > 1.2 * stepTime(graph, parameters, step.plan, m_a100)->inPasses);
    }

    /// A DGX-1: `nvidia-smi topo -m` shows one of a GPU's six NVLinks to its first neighbour, four within a group of
    /// four. N ranks send 2 (N − 1) / N of what they reduce.
    void aPairOfACubeMeshSharesOneLink()
    {
        const Device v100 = findDevice("nvidia-v100-sxm2").value();
        const std::map<int, double> links{{2, 1}, {4, 4}, {8, 6}};
        for (const auto& entry : links) {
            const int ranks = entry.first;
            BuildOptions options;
            options.batch = 2;
            options.sequence = 128;
            options.tensorParallel = ranks;
            const Graph graph = gpt2({512, 8, 2, 0, 1000, 128}, options).value();
            Trace trace;
            Plan plan;
            plan.tensorParallel = ranks;
            const auto parameters = parameterTensors(graph, trace);
            double sent = 0;
            for (const Collective& one : stepCollectives(graph, parameters, plan))
                sent += one.sentBytes();
            QVERIFY(sent > 0);
            QCOMPARE(stepTime(graph, parameters, plan, v100)->inPasses, sent / (entry.second * 25e9));
        }
    }

    /// DDP's buckets hold 25 MiB (torch/nn/parallel/distributed.py); FSDP gathers and reduces each layer, and its root.
    void gradientsGoInBucketsAndUnits()
    {
        BuildOptions options;
        options.batch = 2;
        options.sequence = 128;
        const Graph graph = gpt2({2048, 8, 2, 0, 1000, 128}, options).value();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        Plan plan;
        plan.dataParallel = 8;
        const auto sent = [&] { return stepCollectives(graph, parameters, plan); };
        QCOMPARE(sent().size(), std::size_t(1));
        QCOMPARE(sent().front().calls, std::ceil(4.0 * double(trainedCount(parameters)) / (25 * 1024 * 1024)));
        plan.zeroStage = 3;
        plan.shardedBy = ShardedBy::Fsdp2;
        for (const Collective& one : sent())
            QCOMPARE(one.calls, 2 + 1.0);
    }

    /// The last product of GPT-2's MLP makes nothing that backward needs: early stop (torch/utils/checkpoint.py).
    void aReplayStopsAtTheLastTensorThatIsNeeded()
    {
        const Graph graph = smallGpt2();
        StepSettings step;
        step.checkpointing = {Checkpointing::Layers, 1, false};
        const auto flops = [&] {
            double sum = 0;
            for (const RecomputedRange& range : recomputedRanges(graph, step))
                for (std::size_t i = range.first; i < range.last; ++i) {
                    const OperatorCost cost = forwardCost(graph, graph.operators[i]);
                    sum += cost.isProduct ? cost.flops : 0;
                }
            return sum;
        };
        const double cut = flops();
        step.checkpointing.isReentrant = true;
        const double rows = 2 * 128, last = 2 * rows * 4 * 256 * 256;
        QCOMPARE(flops() - cut, 3 * last);
    }

    void aCompilerThatPadsAlignsAllProducts()
    {
        const auto aligned = [&](const Graph& made) {
            return std::all_of(made.operators.begin(), made.operators.end(),
                               [&](const Operator& op) { return forwardCost(made, op).products[0].isAligned; });
        };
        BuildOptions options;
        options.batch = 2;
        options.sequence = 128;
        options.weights = DType::BFloat16;
        Graph odd = gpt2({256, 4, 3, 0, 1001, 128}, options).value();
        QVERIFY(!aligned(odd));
        odd.padsProducts = true;
        QVERIFY(aligned(odd));
    }

    void onlyWhatBackwardDoesNotHideIsExposed()
    {
        const Graph graph = smallGpt2();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        Plan plan = adamPlan();
        plan.dataParallel = 8;
        Device slow = m_a100;
        const StepTime fast = stepTime(graph, parameters, plan, slow).value();
        QVERIFY(fast.communication > 0);
        QCOMPARE(fast.exposed, 0.0);
        for (Link& link : slow.links)
            link.bandwidth.value = 1e8;
        const StepTime held = stepTime(graph, parameters, plan, slow).value();
        QCOMPARE(held.exposed, held.communication - held.backward);
        QVERIFY(held.copied > 0 && held.copied < held.backward);
        QCOMPARE(held.communication, 2 * 7.0 / 8 * 4 * double(elementCount(parameters)) / 1e8);
        slow.links.clear();
        const auto unknown = stepTime(graph, parameters, plan, slow);
        QVERIFY(!unknown);
        QCOMPARE(unknown.error().code, std::string("predict.device"));
    }

    void reductionsThatAreWaitedForAreExposed()
    {
        const Graph graph = smallGpt2();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        Plan plan = adamPlan();
        plan.dataParallel = 8;
        plan.zeroStage = 1;
        const auto exposed = [&](ShardedBy implementation, std::optional<bool> overlaps) {
            plan.shardedBy = implementation;
            plan.overlapsReductions = overlaps;
            const StepTime time = stepTime(graph, parameters, plan, m_a100).value();
            return time.exposed / time.communication;
        };
        QCOMPARE(exposed(ShardedBy::Paper, {}), 0.0);
        QCOMPARE(exposed(ShardedBy::Paper, false), 1.0);
        QCOMPARE(exposed(ShardedBy::DeepSpeed, {}), 1.0); // overlap_comm is false for stages 1 and 2
        QCOMPARE(exposed(ShardedBy::DeepSpeed, true), 0.0);
    }

    void anUnknownDeviceIsAnAnswer()
    {
        Device device;
        device.name = "something";
        const auto rates = deviceRates(device);
        QVERIFY(!rates);
        QCOMPARE(rates.error().code, std::string("predict.device"));
    }

    void updatesMoveWhatTheirRulesSay()
    {
        const std::vector<ParameterTensor> parameters{{"p", {1000}, 1000, true, false, 0}};
        const auto bytes = [&](OptimizerKind optimizer, UpdateStyle style) {
            Plan plan;
            plan.optimizer = optimizer;
            plan.update = style;
            return updateCost(parameters, plan).bytes / 4000;
        };
        QCOMPARE(bytes(OptimizerKind::Sgd, UpdateStyle::Loop), 3.0);
        QCOMPARE(bytes(OptimizerKind::Momentum, UpdateStyle::Fused), 5.0);
        QCOMPARE(bytes(OptimizerKind::AdamW, UpdateStyle::Fused), 7.0);
        QCOMPARE(bytes(OptimizerKind::AdamW, UpdateStyle::Foreach), 20.0);
        QVERIFY(bytes(OptimizerKind::AdamW, UpdateStyle::WrittenOut) > 30);
        QVERIFY(bytes(OptimizerKind::Adam8bit, UpdateStyle::Fused) < 5);
    }

    /// A loss scale divides each gradient in fp32 where it lies: unscale_() of torch/amp/grad_scaler.py, Megatron's
    /// _unscale_main_grads_and_check_for_nan (megatron/core/optimizer/optimizer.py), unscale_and_clip_grads of
    /// DeepSpeed (runtime/fp16/fused_optimizer.py). bf16 has none.
    void aLossScaleTakesAPassOverTheGradients()
    {
        const std::vector<ParameterTensor> parameters{{"p", {1000}, 1000, true, false, 0}};
        const auto bytes = [&](Precision precision) {
            Plan plan;
            plan.precision = precision;
            return updateCost(parameters, plan).bytes;
        };
        QCOMPARE(bytes(Precision::Fp16Autocast), bytes(Precision::Bf16Autocast) + 2 * 4 * 1000);
        QCOMPARE(bytes(Precision::Fp16Mixed), bytes(Precision::Bf16Mixed) + 2 * 4 * 1000);
    }

    void embeddingsAndOutputHeadsAreRecognised()
    {
        const Graph graph = smallGpt2();
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        std::int64_t inEmbeddings = 0;
        for (const ParameterTensor& parameter : parameters)
            inEmbeddings += parameter.isEmbedding ? parameter.elements : 0;
        QCOMPARE(inEmbeddings, 1000 * 256 + 128 * 256); // words (tied to the head) and positions
        QCOMPARE(elementCount(parameters), graph.parameterCount());
        QVERIFY(trace.modules().size() > 10);
    }
};

QTEST_APPLESS_MAIN(TestOperatorTime)
#include "tst_operator_time.moc"
