// SPDX-License-Identifier: Apache-2.0
// A step as it is to be expected on a GPU: what it waits for the host that dispatches its kernels and its update, and
// what collectives take from the passes that they hide behind.
#include "core/device/catalogue.h"
#include "core/network/families/gpt2.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/reached_step.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

Graph gpt2Of(std::int64_t hidden, std::int64_t layers, std::int64_t batch, std::int64_t sequence,
             DType weights = DType::Float32)
{
    BuildOptions options;
    options.weights = weights;
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

/// Eight ranks that share all weights.
Plan sharded()
{
    Plan plan;
    plan.dataParallel = 8;
    plan.zeroStage = 3;
    return plan;
}

} // namespace

class TestReachedStep : public QObject
{
    Q_OBJECT

    Device m_a100 = findDevice("nvidia-a100-80gb").value();

private slots:
    /// Published times that the host decides, none of which made its numbers: transformers' ResNet-50, one picture in
    /// FP32 with PyTorch 2.0 (perf_torch_compile.md), its ViT (vit.md: 7 and 6 ms, in whole milliseconds) and its BERT
    /// with SDPA, one text of 128 tokens (pull request 28802: 5.3 ms). None has more kernels than a token of LLaMA.
    void oneInputWaitsForTheHost_data()
    {
        QTest::addColumn<QByteArray>("model");
        QTest::addColumn<QByteArray>("device");
        QTest::addColumn<bool>("isFused");
        QTest::addColumn<double>("published"); // ms
        QTest::newRow("ResNet-50, T4") << QByteArray("resnet50") << QByteArray("nvidia-t4") << false << 6.03;
        QTest::newRow("ResNet-50, V100") << QByteArray("resnet50") << QByteArray("nvidia-v100-sxm2") << false << 6.48;
        QTest::newRow("ViT, A100, eager") << QByteArray("vit-b-16") << QByteArray("nvidia-a100-80gb") << false << 7.0;
        QTest::newRow("ViT, A100, SDPA") << QByteArray("vit-b-16") << QByteArray("nvidia-a100-80gb") << true << 6.0;
        QTest::newRow("BERT, A100, SDPA")
            << QByteArray("bert-base-uncased") << QByteArray("nvidia-a100-80gb") << true << 5.32;
    }
    void oneInputWaitsForTheHost()
    {
        QFETCH(QByteArray, model);
        QFETCH(QByteArray, device);
        QFETCH(bool, isFused);
        QFETCH(double, published);
        BuildOptions options;
        options.gradient = false;
        options.sequence = 128;
        options.attention = isFused ? AttentionKernel::Flash : AttentionKernel::Eager;
        const Graph graph = buildNetwork(*readModel(model.constData()), options).value();
        const Device gpu = findDevice(device.constData()).value();
        Plan plan;
        plan.phase = StepPhase::Inference;
        const StepTime time = timeOf(graph, gpu, plan);
        QVERIFY2(std::fabs(1e3 * time.total / published - 1) < 0.15, qPrintable(QString::number(1e3 * time.total)));
        QVERIFY(time.dispatch > 0.2 * time.total);
        plan.phase = StepPhase::Forward; // autograd keeps its graph
        QVERIFY(timeOf(graph, gpu, plan).dispatch > time.dispatch);
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

    /// PyTorch's profiler counts one add_ for each of 11 parameters more where their gradients are there already, and
    /// one zero_() for each in zero_grad(set_to_none=False) (2.15; three convolutions with batch norm, and a linear
    /// layer). On a GPU each is a kernel, which the host dispatches; PyTorch 2 fills them all with one.
    void gradientsThatStayAreAddedToOneByOne()
    {
        BuildOptions options;
        options.batch = 1;
        const Graph graph = buildNetwork(*readModel("resnet18"), options).value();
        const double parameters = 62;
        Plan plan;
        plan.optimizer = OptimizerKind::None;
        const double freed = timeOf(graph, m_a100, plan).total;
        plan.setsGradientsToNone = false;
        const double added = timeOf(graph, m_a100, plan).total - freed;
        plan.isBefore2 = true;
        const double filled = timeOf(graph, m_a100, plan).total - freed - added;
        QVERIFY2(added > 9e-6 * parameters && added < 29e-6 * parameters, qPrintable(QString::number(added)));
        QVERIFY2(std::fabs(filled / added - 1) < 0.05, qPrintable(QString::number(filled)));

        Plan twice;
        twice.optimizer = OptimizerKind::None;
        twice.accumulation = 2;
        const double second = timeOf(graph, m_a100, twice).total - 2 * freed;
        QVERIFY2(std::fabs(second / added - 1) < 0.05, qPrintable(QString::number(second)));
    }

    /// A loop over tensors is 8 kernels of AdamW each, which the host dispatches before the device needs them, unless
    /// it has to read first whether a loss scale has overflown (torch.amp.GradScaler).
    void aLoopedUpdateWaitsBehindALossScale()
    {
        const Graph graph = gpt2Of(1024, 4, 8, 512);
        Plan plan;
        plan.optimizer = OptimizerKind::AdamW;
        plan.update = UpdateStyle::Loop;
        const StepTime ahead = timeOf(graph, m_a100, plan);
        QCOMPARE(ahead.dispatch, 0.0);
        plan.precision = Precision::Fp16Autocast;
        const StepTime scaled = timeOf(graph, m_a100, plan);
        Trace trace;
        const double kernels = updateCost(parameterTensors(graph, trace), plan).kernels;
        QCOMPARE(kernels, 8.0 * double(parameterTensors(graph, trace).size()));
        const double perKernel = (scaled.dispatch + scaled.optimizer) / kernels;
        QVERIFY2(perKernel > 15e-6 && perKernel < 29e-6, qPrintable(QString::number(perKernel)));
        plan.update = UpdateStyle::Fused;
        QVERIFY(timeOf(graph, m_a100, plan).dispatch < 0.1 * scaled.dispatch);
    }

    /// bitsandbytes' own tokens: 24.4 ms of an H100, 14.8 ms at most of an RTX 4090, for 1,228 kernels.
    void laterHostsAreQuicker()
    {
        const auto tokenOf = [](const char* device) { return 1228 * decodeDispatchOfGpu(findDevice(device).value()); };
        QVERIFY(std::abs(tokenOf("nvidia-h100-sxm") / 24.4e-3 - 1) < 0.05);
        QVERIFY(tokenOf("nvidia-rtx-4090") <= 14.8e-3);
        QVERIFY(tokenOf("nvidia-a100-80gb") > tokenOf("nvidia-h100-sxm"));
    }

    /// BERT large accumulates so long that its reductions cost nothing. On a DGX A100 each of eight GPUs ran 1.1, 1.1,
    /// 1.4 and 2.3 % longer than one alone (NVIDIA's DeepLearningExamples, BERT, NGC 21.11: 580 and 4,591, 317 and
    /// 2,505, 210 and 1,657, 110 and 860 texts a second).
    void aStepWaitsForTheSlowestOfItsRanks()
    {
        const Graph graph = gpt2Of(1024, 4, 32, 512, DType::Float16);
        Plan plan;
        plan.precision = Precision::Fp16Mixed;
        plan.accumulation = 256;
        const double one = timeOf(graph, m_a100, plan).total;
        plan.dataParallel = 8;
        const double eight = timeOf(graph, m_a100, plan).total;
        QVERIFY2(eight > 1.005 * one && eight < 1.025 * one, qPrintable(QString::number(eight / one)));
        plan.dataParallel = 64;
        QVERIFY(timeOf(graph, m_a100, plan).total > 1.003 * eight);
    }

    /// Eight ranks update an eighth each, in one memory: as long as one rank updates all.
    void ranksOfAMachineShareTheMemoryOfTheirHost()
    {
        const Graph graph = gpt2Of(1024, 4, 8, 512, DType::Float16);
        Plan plan;
        plan.precision = Precision::Fp16Mixed;
        plan.offload = Offload::Optimizer;
        const double one = timeOf(graph, m_a100, plan).optimizer;
        plan.zeroStage = 2;
        plan.dataParallel = 8;
        const double eight = timeOf(graph, m_a100, plan).optimizer;
        QVERIFY2(std::abs(eight / one - 1) < 1e-3, qPrintable(QString::number(eight / one)));
        plan.machineRanks = 4;
        plan.network = 25e9;
        QVERIFY(std::abs(timeOf(graph, m_a100, plan).optimizer / one - 0.5) < 1e-3);
    }

    /// DeepSpeed 0.19.8 gathers and gives back module by module, in Python: three times what a layer's own calls take
    /// (tests/data has its steps; the seconds are in operator_time.cpp). Long steps have it ready in time.
    void deepSpeedsHooksKeepSmallStepsWaiting()
    {
        Plan plan = sharded(), hooked = plan;
        hooked.shardedBy = ShardedBy::DeepSpeed;
        const Graph small = gpt2Of(256, 12, 1, 64);
        const double more = timeOf(small, m_a100, hooked).dispatch / timeOf(small, m_a100, plan).dispatch;
        QVERIFY2(more > 2 && more < 5, qPrintable(QString::number(more)));
        const Graph large = gpt2Of(1024, 4, 32, 1024);
        QCOMPARE(timeOf(large, m_a100, hooked).dispatch, timeOf(large, m_a100, plan).dispatch);
    }

    /// What hides behind the passes keeps 24 of 108 multiprocessors from them.
    void collectivesSlowThePasses()
    {
        const Graph graph = gpt2Of(1024, 2, 8, 1024);
        const StepTime time = timeOf(graph, m_a100, sharded());
        QCOMPARE(time.exposed, 0.0);
        QVERIFY(time.communication > 0);
        QCOMPARE(time.slowed, 24.0 / 108 * time.communication);
        QCOMPARE(time.total, time.forward + time.backward + time.optimizer + time.slowed + time.dispatch);
    }

    /// pytorch/pytorch, issue 143988: beside a collective, products of an H100 take twice as long.
    void productsOfAHopperTakeTwiceBesideACollective()
    {
        const Device h100 = findDevice("nvidia-h100-sxm").value();
        const StepTime time = timeOf(gpt2Of(2048, 2, 16, 2048, DType::BFloat16), h100, sharded());
        const double passes = time.forward + time.backward;
        const double products = (time.arithmeticBound - time.attention) / passes;
        QVERIFY(products > 0.3 && time.exposed == 0);
        // While one runs, products do half of their work and others lack 24 of 132 multiprocessors.
        const double lost = products / 2 + (1 - products) * 24 / 132;
        QVERIFY(std::fabs(time.slowed / (lost * time.communication) - 1) < 1e-9);
    }

    /// Passes that end before their collectives do are slowed for nothing.
    void longerCollectivesHideWhatTheySlow()
    {
        const Graph graph = gpt2Of(256, 2, 4, 64);
        Trace trace;
        const auto parameters = parameterTensors(graph, trace);
        StepTimeOptions options;
        options.collectiveUnits = options.productsBeside = 0.25;
        Device far = m_a100;
        for (Link& link : far.links)
            link.bandwidth.value *= link.id == "peer" ? 1e-3 : 1;
        const StepTime time = stepTime(graph, parameters, sharded(), far, options).value();
        QVERIFY(time.communication > 2 * (time.forward + time.backward));
        QCOMPARE(time.slowed, 0.0);
        QCOMPARE(time.exposed, time.communication - time.forward - time.backward);
    }

    /// A user gives what a data sheet has: an A800's NVLink of 200 GB/s.
    void aMeasuredLinkIsTakenAsItIs()
    {
        const Graph graph = gpt2Of(256, 2, 1, 64);
        Plan plan;
        plan.dataParallel = 8;
        const double sheet = timeOf(graph, m_a100, plan).communication;
        Device other = m_a100;
        for (Link& link : other.links)
            link.bandwidth.source = "given (link_bandwidth)";
        QCOMPARE(timeOf(graph, other, plan).communication, sheet);
        for (Link& link : other.links)
            link.bandwidth.evidence = Evidence::Measured;
        const double measured = timeOf(graph, other, plan).communication; // NCCL counts 20 of 25 GB/s
        QVERIFY(measured >= 0.8 * sheet && measured <= sheet);
    }
};

QTEST_APPLESS_MAIN(TestReachedStep)
#include "tst_reached_step.moc"
