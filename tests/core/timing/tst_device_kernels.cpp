// SPDX-License-Identifier: Apache-2.0
// What a product's shape reaches on a GPU, against waves counted by hand.
#include "core/device/catalogue.h"
#include "core/network/families/gpt2.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
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
            return tiledTime({Multipliers::TensorCores, m_a100.units, 262e12}, m, n, k, count).seconds;
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

    /// An RTX 3090 multiplies a tenth of what an H100 does, and its L2 delivers a third.
    void slowerProductsAskL2ForLess()
    {
        const auto reads = [](const char* device, double reached, double bytes) {
            return tileReads(findDevice(device).value(), reached, bytes);
        };
        QCOMPARE(reads("nvidia-h100-sxm", 756e12, 2), 0.25);
        QVERIFY(std::fabs(reads("nvidia-h100-sxm", 48.5e12, 4) - 0.25 / 8) < 0.001); // lanes
        QVERIFY(std::fabs(reads("nvidia-rtx-3090", 75.8e12, 2) - 0.25 * (75.8 / 3.1188) / (756 / 9.7)) < 1e-5);
        QCOMPARE(tileReads(Device(), 1e14, 2), 0.25); // no L2 known
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
        OperatorCost cost{.flops = 2.0 * 768 * 768 * 32768, .kernels = 1, .isProduct = true, .dtype = DType::BFloat16};
        cost.products[0] = {HostOperation::WeightGradient, {768, 768, 32768}, 1};
        const DeviceKernels kernels(m_a100, 1);
        const double whole = cost.flops / rates.bfloat16;
        QVERIFY(kernels.parts(rates, cost).arithmetic < 1.4 * whole + 1e-5);
        cost.products[0].shape.k = 1024;
        cost.flops /= 32;
        QVERIFY(kernels.parts(rates, cost).arithmetic > 2 * whole / 32); // not worth a split
    }

    /// A head over a vocabulary of 50,257 or 50,304: loads of 2 bytes take three times as long.
    void rowsThatStartAnywhereTakeThreeTimesAsLong()
    {
        const DeviceRates rates = deviceRates(m_a100).value();
        const auto head = [&](std::int64_t vocabulary, DType dtype) {
            BuildOptions options;
            options.batch = 4;
            options.sequence = 1024;
            options.weights = dtype;
            const Graph graph = gpt2({768, 12, 1, 0, vocabulary, 1024}, options).value();
            OperatorCost cost;
            for (const Operator& op : graph.operators)
                if (isMatrixProduct(op.kind) && graph.layoutOf(graph.outputs(op)[0]).shape.last() == vocabulary)
                    cost = forwardCost(graph, op);
            return DeviceKernels(m_a100, 1).parts(rates, cost).arithmetic;
        };
        const double padded = head(50304, DType::BFloat16);
        QVERIFY(padded > 0);
        const double times = head(50257, DType::BFloat16) / padded;
        QVERIFY2(times > 2.5 && times < 3.1, qPrintable(QString::number(times)));
        QVERIFY(head(50257, DType::Float32) < 1.05 * head(50304, DType::Float32)); // no tensor cores
    }

    void whatL2HoldsDoesNotComeFromMemory()
    {
        const DeviceRates rates = deviceRates(m_a100).value();
        const DeviceKernels kernels(m_a100, 1);
        QCOMPARE(kernels.cache(), 20971520.0); // of a half, which every multiprocessor reaches
        OperatorCost pass{0, 1e9, 0};
        const double all = kernels.parts(rates, pass).memory;
        QCOMPARE(all, 1e9 / rates.bandwidth);
        pass.near = 0.5;
        QCOMPARE(kernels.parts(rates, pass).memory, all / 2);
        pass.near = 1;
        QCOMPARE(kernels.parts(rates, pass).memory, 1e9 / 5.4e12);
    }

    /// Heads are brought to the front before they are multiplied: their gradients go the same way back.
    void aCopyInAnotherOrderHasOneBackward()
    {
        BuildOptions options;
        options.batch = 2;
        options.sequence = 64;
        const Graph graph = gpt2({256, 4, 1, 0, 1000, 64}, options).value();
        double copies = 0;
        for (const Operator& op : graph.operators) {
            if (op.kind != OperatorKind::Clone || graph.layoutOf(graph.inputs(op)[0]).isContiguous())
                continue;
            QCOMPARE(backwardCost(graph, op).bytes, 2.0 * 2 * 64 * 256 * 4);
            ++copies;
        }
        QVERIFY(copies > 0);
    }

    /// Eight experts of a rank, whose 8 tiles each leave most multiprocessors idle one by one.
    void expertsOfARankShareWaves()
    {
        const DeviceRates rates = deviceRates(m_a100).value();
        OperatorCost cost{.flops = 2.0 * 256 * 512 * 4096, .kernels = 1, .isProduct = true, .dtype = DType::BFloat16};
        cost.products[0] = {HostOperation::Forward, {256, 512, 4096}, 1};
        const DeviceKernels kernels(m_a100, 1);
        const double alone = kernels.parts(rates, cost).total();
        cost.atOnce = 8;
        const double together = kernels.parts(rates, cost).total();
        QVERIFY2(together < 0.7 * alone, qPrintable(QString::number(together / alone)));
    }

    /// index_add_ of an expert's rows into all tokens costs those rows.
    void addedRowsCostThemselves()
    {
        BuildOptions options;
        options.sequence = 64;
        options.weights = DType::BFloat16;
        const Graph graph = buildNetwork(*readModel("mixtral-8x7b"), options).value();
        const auto op = std::find_if(graph.operators.begin(), graph.operators.end(), [&](const Operator& one) {
            return one.kind == OperatorKind::Add && one.inPlace
                && graph.layoutOf(graph.inputs(one)[0])[0] > graph.layoutOf(graph.inputs(one)[1])[0];
        });
        QVERIFY(op != graph.operators.end());
        const double rows = 64 * 2 / 8;
        QCOMPARE(forwardCost(graph, *op).bytes, 3 * rows * 4096 * 2);
        QCOMPARE(backwardCost(graph, *op).bytes, 2 * rows * 4096 * 2);
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

    /// NVIDIA, A100 data sheet: 156 TFLOP/s in TF32, 19.5 in FP32; an RTX 3090 has twice its lanes' rate at most.
    void matrixProductsRunInTf32WhereTheyMay()
    {
        Plan plan;
        const Graph graph = gpt2Of(1024, 2, 8, 1024);
        const auto secondsOf = [&](const Device& device, Tf32 tf32) {
            plan.tf32 = tf32;
            const DeviceKernels kernels(device, reachedShare(device, Format::Fp32));
            return stepTime(graph, {}, plan, device, {.efficiency = 0.9, .kernels = &kernels})->forward;
        };
        const double all = secondsOf(m_a100, Tf32::All), none = secondsOf(m_a100, Tf32::None);
        QVERIFY(none > 2.5 * all && none < 8 * all);
        QCOMPARE(secondsOf(m_a100, Tf32::Convolutions), none); // it has no convolution
        const Device v100 = findDevice("nvidia-v100-sxm2").value();
        QCOMPARE(secondsOf(v100, Tf32::All), secondsOf(v100, Tf32::None));
    }

    /// 70 W hold a T4's lanes at half of their rate (4.17 and 4.43 of 8.1 TFLOP/s:
    /// zzc0721/torch-performance-test-data), where an A100 and a V100 keep theirs (18.1 of 19.5, 14.2 of 15.7).
    void powerLowersTheClocksOfLanes()
    {
        QVERIFY(std::fabs(laneClocks(findDevice("nvidia-t4").value()) - 4.3 / 8.1 / 0.73) < 0.01);
        QCOMPARE(laneClocks(m_a100), 1.0);
        QCOMPARE(laneClocks(findDevice("nvidia-v100-sxm2").value()), 1.0);
        const Device a10 = findDevice("nvidia-a10").value();
        const double instructions = 1e12, lanes = a10.units * 128 * a10.clock.value;
        QVERIFY(issueSeconds(a10, instructions) > 1.4 * instructions / lanes); // 150 W
    }

    void aLongRunSustainsLess()
    {
        const Device b200 = findDevice("nvidia-b200").value();
        QVERIFY(sustainedShare(b200, Format::Bf16) < 0.7 * reachedShare(b200, Format::Bf16)); // power
        const Device geForce = findDevice("nvidia-rtx-3090").value();
        QCOMPARE(sustainedShare(geForce, Format::Bf16), reachedShare(geForce, Format::Bf16)); // none published
        QVERIFY(sustainedShare(m_a100, Format::Bf16) < reachedShare(m_a100, Format::Bf16));
        const Device t4 = findDevice("nvidia-t4").value();
        QVERIFY(sustainedShare(t4, Format::Fp16) < 0.5 * reachedShare(t4, Format::Fp16)); // 70 W
        // Fewer units at less power, of P ~ units × f³: an H800 PCIe of 350 W, measured.
        const Device at500 = findDevice("nvidia-h100-96gb").value(), pcie = findDevice("nvidia-h100-pcie").value();
        const double sustained = productRate(at500, Format::Bf16)->sustained.value;
        const double fewer = std::pow(114.0 / 132, 2.0 / 3) * std::cbrt(350.0 / 500);
        QVERIFY(std::fabs(productRate(pcie, Format::Bf16)->sustained.value / (sustained * fewer) - 1) < 0.05);
        Device calibrated = b200;
        calibrated.basis = "calibrated";
        calibrated.calibration.emplace();
        calibrated.calibration->raw = {{"product_rates", {{"bf16", 1.5e15}}}};
        QCOMPARE(sustainedShare(calibrated, Format::Bf16), 1.5 / 2.25); // what was measured here
    }
};

QTEST_APPLESS_MAIN(TestDeviceKernels)
#include "tst_device_kernels.moc"
