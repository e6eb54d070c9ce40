// SPDX-License-Identifier: Apache-2.0
// What an operator's shape reaches on a GPU, against waves counted by hand and against attention's own model; and a
// step that waits for the host.
#include "core/device/catalogue.h"
#include "core/network/families/gpt2.h"
#include "core/timing/attention_time.h"
#include "core/timing/gemm_time.h"
#include "core/timing/reached_step.h"

#include <nlohmann/json.hpp>

#include <QtTest>

using namespace memscape;

namespace {

Graph gpt2Of(std::int64_t hidden, std::int64_t layers, std::int64_t batch, std::int64_t sequence)
{
    BuildOptions options;
    options.batch = batch;
    options.sequence = sequence;
    options.attention = AttentionKernel::Flash;
    return gpt2({hidden, hidden / 64, layers, 0, 1000, sequence}, options).value();
}

StepTime timeOf(const Graph& graph, const Device& device, const Plan& plan = {})
{
    Trace trace;
    return reachedStepTime(graph, parameterTensors(graph, trace), plan, device, 0).value();
}

} // namespace

class TestDeviceKernels : public QObject
{
    Q_OBJECT

    Device m_a100 = findDevice("nvidia-a100-80gb").value();

private slots:
    /// 8192³ is what the reached rate was measured with; one tile keeps one of 108 multiprocessors busy.
    void wavesOfTiles()
    {
        const auto seconds = [this](double m, double n, double k, double count) {
            return tiledTime(Multipliers::TensorCores, m_a100.units, 262e12, m, n, k, count).seconds;
        };
        const double flops = 2.0 * 8192 * 8192 * 8192;
        QCOMPARE(seconds(8192, 8192, 8192, 1), flops / 262e12);
        const double wave = flops / 262e12 / 19; // 2048 tiles of 128 × 256 in 19 waves
        const double multiplying = wave - 2.2e-6;
        // Eight tiles of 64 × 64, which read each operand 4 and 2 times as often as one of 128 × 256.
        QCOMPARE(seconds(128, 256, 8192, 1), multiplying / 8 * 2.25 + 2.2e-6);
        QCOMPARE(seconds(128, 256, 8192, 108), wave);                          // a batch fills the wave
        QCOMPARE(seconds(64, 256, 8192, 108), multiplying / 2 * 1.5 + 2.2e-6); // few rows
        QCOMPARE(seconds(128, 256, 1024, 108), multiplying / 8 + 2.2e-6);
    }

    /// Two layers of a small network in FP32: nothing but a launch and a wave's fill.
    void aSmallProductIsHeldByItsLaunch()
    {
        const DeviceRates rates = deviceRates(m_a100).value();
        OperatorCost cost{2.0 * 32 * 256 * 256, 4 * (2.0 * 32 * 256 + 256 * 256), 1, true};
        cost.products[0] = {HostOperation::Forward, {32, 256, 256}, 1};
        const TimeParts parts = DeviceKernels(m_a100, 1).parts(rates, cost);
        QCOMPARE(parts.total(), parts.calls);
        // A tile of 32 × 32 takes 32 × 32 × 256 multiply-adds of a multiprocessor, which has 64 lanes.
        const double lanes = 32 * 32 * 256 / (64 * 1.41e9);
        QVERIFY(parts.total() > rates.launch + waveFillSeconds + lanes);
        QVERIFY(parts.total() < rates.launch + waveFillSeconds + 2 * lanes);
        cost.products[0].shape = {8192, 8192, 8192};
        cost.flops = 2.0 * 8192 * 8192 * 8192;
        QCOMPARE(DeviceKernels(m_a100, 1).parts(rates, cost).calls, 0.0);
    }

    /// A weight's gradient: 36 tiles for 108 multiprocessors, and a sum over 32,768 tokens that is cut in three.
    void aLongSumIsSplit()
    {
        const DeviceRates rates = deviceRates(m_a100).value();
        OperatorCost cost{2.0 * 768 * 768 * 32768, 0, 1, true, false, DType::BFloat16};
        cost.products[0] = {HostOperation::WeightGradient, {768, 768, 32768}, 1};
        const DeviceKernels kernels(m_a100, 1);
        const double whole = cost.flops / rates.bfloat16;
        QVERIFY(kernels.parts(rates, cost).arithmetic < 1.4 * whole + 1e-5);
        cost.products[0].shape.k = 1024;
        cost.flops /= 32;
        QVERIFY(kernels.parts(rates, cost).arithmetic > 2 * whole / 32); // not worth a split
    }

    void causalAttentionIsThatOfItsOwnModel()
    {
        const Graph graph = gpt2Of(1024, 1, 4, 2048);
        const auto op = std::find_if(graph.operators.begin(), graph.operators.end(),
                                     [](const Operator& one) { return one.kind == OperatorKind::FlashAttention; });
        const OperatorCost cost = forwardCost(graph, *op);
        QVERIFY(cost.attention && cost.attention->shape.causal);
        QCOMPARE(cost.attention->shape, (AttentionShape{4, 16, 16, 2048, 2048, 64, true}));
        OperatorCost half = cost;
        half.dtype = half.attention->dtype = DType::BFloat16;
        const DeviceRates rates = deviceRates(m_a100).value();
        const double expected =
            attentionCost(m_a100, attentionVersions(AttentionKind::Flash, true).back(), *half.attention)->seconds;
        const TimeParts parts = DeviceKernels(m_a100, 0.84).parts(rates, half);
        QCOMPARE(parts.total(), expected + rates.launch);
        half.attention->shape.causal = false;
        QVERIFY(DeviceKernels(m_a100, 0.84).parts(rates, half).total() > 1.6 * parts.total());
    }

    void aSmallStepWaitsForTheHostAndALargeOneDoesNot()
    {
        const StepTime small = timeOf(gpt2Of(64, 12, 1, 16), m_a100);
        QVERIFY(small.dispatch > 0.3 * (small.forward + small.backward));
        QCOMPARE(small.total, small.forward + small.backward + small.optimizer + small.dispatch);
        const StepTime large = timeOf(gpt2Of(2048, 2, 16, 2048), m_a100);
        QVERIFY(large.forward > 0);
        QVERIFY(large.dispatch < 0.02 * large.total);
    }

    /// A residual joins two gradients: more than the floor, which counts none.
    void gradientsThatMeetAreAdded()
    {
        const Graph graph = gpt2Of(1024, 2, 8, 1024);
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        const StepTime floor = stepTime(graph, parameters, {}, m_a100).value();
        DeviceKernels kernels(m_a100, 1);
        StepTimeOptions options;
        options.kernels = &kernels;
        const StepTime time = stepTime(graph, parameters, {}, m_a100, options).value();
        const double residual = 8 * 1024 * 1024 * 4.0; // fp32
        QVERIFY(time.memoryBound - floor.memoryBound > 4 * 3 * residual / deviceRates(m_a100)->bandwidth);
    }

    /// FlashAttention-2's paper: the kernels before it take about twice as long.
    void earlierAttentionTakesTwiceAsLong()
    {
        OperatorCost cost;
        cost.isProduct = true;
        cost.dtype = DType::BFloat16;
        cost.attention.emplace();
        cost.attention->shape = {4, 16, 16, 2048, 2048, 64, true};
        cost.attention->dtype = DType::BFloat16;
        cost.attention->pass = AttentionPass::Forward;
        const DeviceRates rates = deviceRates(m_a100).value();
        const DeviceKernels kernels(m_a100, 0.84);
        const double second = kernels.parts(rates, cost).arithmetic;
        cost.attentionShare = 0.5;
        QCOMPARE(kernels.parts(rates, cost).arithmetic, 2 * second);
    }

    /// What hides behind the passes keeps 24 of 108 multiprocessors from them; what waits takes 23 µs more each time.
    void collectivesSlowThePasses()
    {
        const Graph graph = gpt2Of(1024, 2, 8, 1024);
        Plan plan;
        plan.dataParallel = 8;
        plan.zeroStage = 3;
        const StepTime time = timeOf(graph, m_a100, plan);
        QCOMPARE(time.exposed, 0.0);
        QVERIFY(time.communication > 0);
        QCOMPARE(time.slowed, 24.0 / 108 * time.communication);
        QCOMPARE(time.total, time.forward + time.backward + time.optimizer + time.slowed + time.dispatch);
    }

    void aLongRunSustainsLess()
    {
        const Device b200 = findDevice("nvidia-b200").value();
        QVERIFY(sustainedShare(b200, Format::Bf16) < 0.7 * reachedShare(b200, Format::Bf16)); // power
        QCOMPARE(sustainedShare(m_a100, Format::Bf16), reachedShare(m_a100, Format::Bf16));   // none published
        Device calibrated = b200;
        calibrated.basis = "calibrated";
        calibrated.calibration.emplace();
        calibrated.calibration->raw = {{"product_rates", {{"bf16", 1.5e15}}}};
        QCOMPARE(sustainedShare(calibrated, Format::Bf16), 1.5 / 2.25); // what was measured here
    }

    void aGivenLinkIsTakenAsItIs()
    {
        const Graph graph = gpt2Of(256, 2, 1, 64);
        Plan plan;
        plan.dataParallel = 8;
        const double sheet = timeOf(graph, m_a100, plan).communication;
        Device given = m_a100;
        for (Link& link : given.links)
            link.bandwidth.source = "given (link_bandwidth)";
        QCOMPARE(timeOf(graph, given, plan).communication, 0.68 * sheet);
    }
};

QTEST_APPLESS_MAIN(TestDeviceKernels)
#include "tst_device_kernels.moc"
