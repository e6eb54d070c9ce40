// SPDX-License-Identifier: Apache-2.0
// What an operator's shape reaches on a GPU, against waves counted by hand and against attention's own model.
#include "core/device/catalogue.h"
#include "core/network/compile/compiled_graph.h"
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

Graph resNet(std::int64_t batch, DType weights = DType::Float32)
{
    BuildOptions options;
    options.batch = batch;
    options.weights = weights;
    return buildNetwork(*readModel("resnet50"), options).value();
}

StepTime timeOf(const Graph& graph, const Device& device, const Plan& plan = {})
{
    Trace trace;
    return reachedStepTime(graph, parameterTensors(graph, trace), plan, device, 0).value();
}

/// 4 sequences of 2,048 tokens, 16 heads of 64.
OperatorCost attentionForward(DType dtype, bool isCausal)
{
    OperatorCost cost;
    cost.isProduct = true;
    cost.dtype = dtype;
    cost.attention.emplace();
    cost.attention->shape = {4, 16, 16, 2048, 2048, 64, isCausal};
    cost.attention->dtype = dtype;
    cost.attention->pass = AttentionPass::Forward;
    return cost;
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

    /// ResNet-50's layers of 64 channels by hand: 3 × 3 windows of 64 channels at 56 × 56 positions.
    void aConvolutionIsAProductOfItsWindows()
    {
        const Graph graph = resNet(4);
        const auto isWide = [&](const Operator& op) {
            return op.kind == OperatorKind::Convolution
                && graph.layoutOf(graph.inputs(op)[1]).shape == Shape{64, 64, 3, 3};
        };
        const auto op = std::find_if(graph.operators.begin(), graph.operators.end(), isWide);
        QVERIFY(op != graph.operators.end());
        const OperatorCost forward = forwardCost(graph, *op), backward = backwardCost(graph, *op);
        const auto isShape = [](const ProductPart& part, double m, double n, double k) {
            return part.count == 1 && part.shape.m == m && part.shape.n == n && part.shape.k == k;
        };
        const double positions = 4 * 56 * 56;
        QVERIFY(isShape(forward.products[0], positions, 64, 576));
        QVERIFY(isShape(backward.products[0], positions, 64, 576));
        QVERIFY(isShape(backward.products[1], 64, 576, positions));
        QCOMPARE(forward.flops, 2 * positions * 64 * 576);
        // The stem's three channels are padded to four of fp32.
        const auto stem = std::find_if(graph.operators.begin(), graph.operators.end(),
                                       [](const Operator& one) { return one.kind == OperatorKind::Convolution; });
        QVERIFY(isShape(forwardCost(graph, *stem).products[0], 4 * 112 * 112, 64, 4 * 49));
    }

    /// MobileNet-v2's first depthwise layer of stride 2 by hand: windows of 3 × 3 at 56 × 56 positions of 96 channels.
    void aDepthwiseConvolutionIssuesInstructions()
    {
        BuildOptions options;
        options.batch = 2;
        const Graph graph = buildNetwork(*readModel("mobilenet-v2"), options).value();
        const auto op = std::find_if(graph.operators.begin(), graph.operators.end(), [](const Operator& one) {
            return one.kind == OperatorKind::Convolution && one.attribute == 96;
        });
        QVERIFY(op != graph.operators.end());
        const OperatorCost forward = forwardCost(graph, *op), backward = backwardCost(graph, *op);
        const double macs = 2 * 96 * 56 * 56 * 9;
        QCOMPARE(forward.flops, 2 * macs);
        QCOMPARE(forward.instructions, 10 * macs);
        QCOMPARE(backward.instructions, (14 + 32) * macs);
        QCOMPARE(forward.turned + backward.turned, 0.0);
        OperatorCost issued = backward;
        issued.bytes = issued.kernels = 0;
        const double issueRate = 108 * 4 * 32 * 1.41e9; // A100: a warp a clock from each of four schedulers
        QCOMPARE(DeviceKernels(m_a100, 1).parts(deviceRates(m_a100).value(), issued).arithmetic,
                 issued.instructions / issueRate);
    }

    /// timm's benchmark, RTX 3090, AMP, NHWC, 512 pictures: 220.6 ms for MobileNet-v2; by bytes alone a quarter less.
    void aNetworkOfDepthwiseConvolutionsTakesWhatWasPublished()
    {
        BuildOptions options;
        options.batch = 512;
        options.weights = DType::Float16;
        const Graph graph = buildNetwork(*readModel("mobilenet-v2"), options).value();
        Plan plan;
        plan.precision = Precision::Fp16;
        plan.isChannelsLast = true;
        plan.optimizer = OptimizerKind::Momentum;
        const double seconds = timeOf(graph, findDevice("nvidia-rtx-3090").value(), plan).total;
        QVERIFY2(std::fabs(seconds / 220.6e-3 - 1) < 0.18, qPrintable(QString::number(seconds)));
    }

    /// Statistics are those of the training, so that nothing is read for them.
    void inferenceReadsAPictureOnceForItsBatchNorm()
    {
        const auto bytes = [](bool gradient, OperatorKind kind) {
            BuildOptions options;
            options.batch = 2;
            options.gradient = gradient;
            const Graph graph = buildNetwork(*readModel("resnet18"), options).value();
            const auto op = std::find_if(graph.operators.begin(), graph.operators.end(),
                                         [kind](const Operator& one) { return one.kind == kind; });
            return forwardCost(graph, *op).bytes;
        };
        const double picture = 2 * 64 * 112 * 112 * 4;
        QVERIFY(bytes(true, OperatorKind::BatchNorm) - bytes(false, OperatorKind::BatchNorm) >= picture);
        QVERIFY(bytes(false, OperatorKind::BatchNorm) < 2.01 * picture);
        QCOMPARE(bytes(true, OperatorKind::Relu), bytes(false, OperatorKind::Relu));
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

    /// Pictures of 64 channels at 56 × 56: 1 of them in FP32 is 0.8 MB, 64 of them 51 MB.
    void aSmallBatchStaysInL2()
    {
        Device without = m_a100;
        std::erase_if(without.levels, [](const MemoryLevel& level) { return level.id == "L2"; });
        const auto saved = [&](std::int64_t batch) {
            const Graph graph = resNet(batch);
            return 1 - timeOf(graph, m_a100).memoryBound / timeOf(graph, without).memoryBound;
        };
        const double few = saved(2), many = saved(128);
        QVERIFY2(few > 0.05 && many < few / 2, qPrintable(QStringLiteral("%1 %2").arg(few).arg(many)));
    }

    /// torchvision's ResNet-50 on a V100 in AMP: 152 ms in NCHW, 111 ms in NHWC. Without tensor cores nothing is
    /// turned.
    void picturesInNchwAreTurnedForTensorCores()
    {
        const Graph half = resNet(128, DType::Float16), whole = resNet(128);
        const Device v100 = findDevice("nvidia-v100-sxm2").value();
        Plan nchw, nhwc;
        nchw.precision = nhwc.precision = Precision::Fp16;
        nhwc.isChannelsLast = true;
        const double times = timeOf(half, v100, nchw).total / timeOf(half, v100, nhwc).total;
        QVERIFY2(std::fabs(times / (152.2 / 110.93) - 1) < 0.1, qPrintable(QString::number(times)));
        nchw.precision = nhwc.precision = Precision::Fp32;
        QCOMPARE(timeOf(whole, v100, nchw).turned, 0.0);
        QVERIFY(timeOf(whole, m_a100, nchw).total > timeOf(whole, m_a100, nhwc).total); // TF32
    }

    /// PyTorch's group norm has no kernels for NHWC: Stable Diffusion's UNet copies what its 61 take and what they
    /// give, where no compiler decomposes them.
    void groupNormsInNhwcCopyPictures()
    {
        BuildOptions options;
        options.batch = 2;
        options.weights = DType::Float16;
        options.gradient = false;
        const Graph eager = buildNetwork(*readModel("sd-1.5-unet"), options).value();
        Plan plan;
        plan.precision = Precision::Fp16;
        plan.phase = StepPhase::Inference;
        plan.isChannelsLast = true;
        double copied = 0, norms = 0;
        for (const Operator& op : eager.operators) {
            if (op.kind != OperatorKind::GroupNorm)
                continue;
            copied += 2 * 2 * 2 * double(eager.layoutOf(eager.inputs(op)[0]).elements()); // read and written, 2 B
            ++norms;
        }
        QCOMPARE(norms, 61.0);
        const double seconds = timeOf(eager, m_a100, plan).turned;
        const double least = copied / m_a100.level("L2")->bandwidth.value;
        const double most = copied / deviceRates(m_a100)->bandwidth + norms * m_a100.launch.value;
        QVERIFY2(seconds > least && seconds <= most, qPrintable(QString::number(seconds)));
        QCOMPARE(timeOf(compiledGraph(eager, CompileScope::Network).value(), m_a100, plan).turned, 0.0);
    }

    /// ResNet-50's convolutions of 1 × 1: 56 × 56 pixels are rows of 16 bytes' multiples in halves, 7 × 7 are none.
    void productsOfPixelsAreNotTurned()
    {
        const Graph graph = resNet(2, DType::Float16);
        const auto costOf = [&](const Shape& kernels, std::int64_t rows) {
            const auto op = std::find_if(graph.operators.begin(), graph.operators.end(), [&](const Operator& one) {
                return one.kind == OperatorKind::Convolution && graph.layoutOf(graph.inputs(one)[1]).shape == kernels
                    && graph.layoutOf(graph.outputs(one)[0])[2] == rows;
            });
            return forwardCost(graph, *op);
        };
        QCOMPARE(costOf({256, 64, 1, 1}, 56).turned, 0.0);
        QVERIFY(costOf({2048, 512, 1, 1}, 7).turned > 0);
        const OperatorCost window = costOf({64, 64, 3, 3}, 56);
        QCOMPARE(window.turned, 2 * window.bytes);
        QVERIFY(costOf({512, 256, 1, 1}, 28).turned > 0); // of every second pixel
    }

    /// A block for each of 64 channels does not fill an H100's memory, whose bandwidth is three times an RTX 4090's; a
    /// picture of few pixels is read once, inference has no statistics, and NHWC no blocks of channels.
    void batchNormsInNchwWaitByChannels()
    {
        const auto times = [](const char* name, bool isFirst, bool isTraining) {
            BuildOptions options;
            options.batch = 32;
            options.weights = DType::Float16;
            options.gradient = isTraining;
            const Graph graph = buildNetwork(*readModel("resnet18"), options).value();
            const auto isNorm = [](const Operator& one) { return one.kind == OperatorKind::BatchNorm; };
            const auto& all = graph.operators;
            const OperatorCost cost = forwardCost(graph,
                                                  isFirst ? *std::find_if(all.begin(), all.end(), isNorm)
                                                          : *std::find_if(all.rbegin(), all.rend(), isNorm));
            OperatorCost nhwc = cost;
            nhwc.roundTrips = 0;
            const Device device = findDevice(name).value();
            const DeviceRates rates = deviceRates(device).value();
            const DeviceKernels kernels(device, 1);
            return kernels.parts(rates, cost).total() / kernels.parts(rates, nhwc).total();
        };
        QVERIFY(times("nvidia-rtx-4090", true, true) > 1);
        QVERIFY(times("nvidia-h100-sxm", true, true) > 2 * times("nvidia-rtx-4090", true, true));
        QCOMPARE(times("nvidia-h100-sxm", false, true), 1.0);
        QCOMPARE(times("nvidia-h100-sxm", true, false), 1.0);
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

    /// 1.7 to 2.3 times as quick on a Hopper, and on no GPU before it (huggingface/transformers, pull request 48163).
    void cudnnsAttentionIsTwiceAsQuickOnHopper()
    {
        const Device h100 = findDevice("nvidia-h100-sxm").value();
        const auto quicker = [](const Device& device) {
            OperatorCost cost = attentionForward(DType::BFloat16, true);
            const DeviceKernels kernels(device, 0.7);
            const DeviceRates rates = deviceRates(device).value();
            const double flash = kernels.parts(rates, cost).total();
            cost.isCudnns = true;
            return flash / kernels.parts(rates, cost).total();
        };
        QVERIFY(quicker(h100) > 1.7 && quicker(h100) < 2.3);
        QCOMPARE(quicker(m_a100), 1.0);
    }

    /// FlashAttention-2's paper: the kernels before it take about twice as long.
    void earlierAttentionTakesTwiceAsLong()
    {
        OperatorCost cost = attentionForward(DType::BFloat16, true);
        const DeviceRates rates = deviceRates(m_a100).value();
        const DeviceKernels kernels(m_a100, 0.84);
        const double second = kernels.parts(rates, cost).arithmetic;
        cost.isFirstGeneration = true;
        const double first = kernels.parts(rates, cost).arithmetic; // but launches
        QVERIFY2(first > 1.98 * second && first <= 2 * second, qPrintable(QString::number(first / second)));
    }

    /// xformers' benchmarks of its kernels before FlashAttention-2, forward in FP16: pull requests 412 (A100) and 434
    /// (V100). Rows of a head's queries, heads, their width, and s.
    void earlierAttentionTakesWhatXformersMeasured()
    {
        const auto isWithin = [](const char* name, const AttentionShape& shape, double measured) {
            const Device device = findDevice(name).value();
            OperatorCost cost = attentionForward(DType::Float16, false);
            cost.attention->shape = shape;
            cost.isFirstGeneration = true;
            const double seconds = DeviceKernels(device, sustainedShare(device, Format::Fp16))
                                       .parts(deviceRates(device).value(), cost)
                                       .arithmetic;
            return std::fabs(seconds / measured - 1) < 0.09;
        };
        const AttentionShape long40{1, 16, 16, 16384, 16384, 40, false}, many128{1, 160, 160, 4096, 4096, 128, false};
        QVERIFY(isWithin("nvidia-a100-40gb", long40, 12.748e-3));
        QVERIFY(isWithin("nvidia-a100-40gb", many128, 12.898e-3));
        QVERIFY(isWithin("nvidia-v100-sxm2", long40, 33.589e-3));
        QVERIFY(isWithin("nvidia-v100-sxm2", many128, 38.2e-3));
    }

    /// PyTorch's FlashAttention-2 and cuDNN's attention of heads of 128 in FP16, which power slows as it slows
    /// products: on Meta's H100s, of 500 W (pytorch/pytorch, pull request 128888; meta-pytorch/tritonbench, issue 141),
    /// and on one that runs FlashAttention-3 at 632 TFLOP/s, as 700 W do (pytorch/pytorch, issue 142132). An A100 loses
    /// nothing.
    void powerLowersTheClocksOfAttention()
    {
        const auto isAsFast = [](const char* name, std::int64_t heads, std::int64_t length, AttentionPass pass,
                                 bool isCudnns, double teraflops) {
            const Device device = findDevice(name).value();
            OperatorCost cost = attentionForward(DType::Float16, false);
            cost.attention->shape = {1, heads, heads, length, length, 128, false};
            cost.attention->pass = pass;
            cost.isCudnns = isCudnns;
            const double flops = (pass == AttentionPass::Forward ? 4 : 10) * 128.0 * double(heads * length * length);
            const double seconds = DeviceKernels(device, 1).parts(deviceRates(device).value(), cost).arithmetic;
            return std::fabs(flops / seconds / (1e12 * teraflops) - 1) < 0.08;
        };
        QVERIFY(isAsFast("nvidia-h100-96gb", 16, 4096, AttentionPass::Forward, false, 300.7));
        QVERIFY(isAsFast("nvidia-h100-96gb", 16, 4096, AttentionPass::Backward, false, 245.6));
        QVERIFY(isAsFast("nvidia-h100-96gb", 8 * 16, 8192, AttentionPass::Forward, true, 581.9));
        QVERIFY(isAsFast("nvidia-h100-sxm", 24, 4608, AttentionPass::Forward, false, 329.5));
        QCOMPARE(sustainedClocks(m_a100, Format::Fp16), 1.0);
    }

    /// Stable Diffusion's heads are 40 wide: FlashAttention-2 computes 64, and 80 as 96; kernels before it 128.
    void attentionPadsHeads()
    {
        OperatorCost cost = attentionForward(DType::Float16, false);
        const DeviceRates rates = deviceRates(m_a100).value();
        const DeviceKernels kernels(m_a100, 0.84);
        const auto secondsOf = [&](std::int64_t width) {
            cost.attention->shape = {4, 8, 8, 4096, 4096, width, false};
            return kernels.parts(rates, cost).arithmetic;
        };
        QCOMPARE(secondsOf(40), secondsOf(64));
        QCOMPARE(secondsOf(80), secondsOf(96));
        cost.isFirstGeneration = true;
        QCOMPARE(secondsOf(80), secondsOf(128));
        QVERIFY(secondsOf(64) < secondsOf(80));
    }

    /// 36 multiplications of four results by 16, where no stride leaves results out. A V100 has lanes alone for fp32.
    void lanesTakeWinogradsKernels()
    {
        const Graph graph = resNet(4);
        const auto partOf = [&](std::int64_t rows) {
            const auto op = std::find_if(graph.operators.begin(), graph.operators.end(), [&](const Operator& one) {
                return one.kind == OperatorKind::Convolution
                    && graph.layoutOf(graph.inputs(one)[1]).shape == Shape{128, 128, 3, 3}
                && graph.layoutOf(graph.inputs(one)[0])[2] == rows;
            });
            return forwardCost(graph, *op).products[0];
        };
        QCOMPARE(partOf(28).saved, 2.25);
        QCOMPARE(partOf(56).saved, 1.0); // stride 2
        OperatorCost cost;
        cost.isProduct = cost.isConvolution = true;
        cost.products[0] = {HostOperation::Forward, {1 << 20, 256, 2304}, 1};
        cost.flops = 2.0 * (1 << 20) * 256 * 2304;
        const Device v100 = findDevice("nvidia-v100-sxm2").value();
        const auto secondsOf = [&](const Device& device, double saved) {
            cost.products[0].saved = saved;
            return DeviceKernels(device, 0.83).parts(deviceRates(device).value(), cost).arithmetic;
        };
        QVERIFY(secondsOf(v100, 2.25) < 0.5 * secondsOf(v100, 1));
        cost.mayUseTf32 = true;
        QVERIFY(secondsOf(v100, 2.25) < 0.5 * secondsOf(v100, 1)); // it has no TF32
        QCOMPARE(secondsOf(m_a100, 2.25), secondsOf(m_a100, 1));   // TF32's units
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
