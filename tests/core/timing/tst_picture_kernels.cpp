// SPDX-License-Identifier: Apache-2.0
// What convolutions and norms of pictures take on a GPU, in NCHW and NHWC.
#include "core/device/catalogue.h"
#include "core/network/compile/compiled_graph.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/gemm_time.h"
#include "core/timing/reached_step.h"

#include <nlohmann/json.hpp>

#include <QtTest>

using namespace memscape;

namespace {

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

} // namespace

class TestPictureKernels : public QObject
{
    Q_OBJECT

    Device m_a100 = findDevice("nvidia-a100-80gb").value();

private slots:
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
};

QTEST_APPLESS_MAIN(TestPictureKernels)
#include "tst_picture_kernels.moc"
