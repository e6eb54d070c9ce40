// SPDX-License-Identifier: Apache-2.0
// What attention takes on a GPU, against its own model and what xFormers measured.
#include "core/device/catalogue.h"
#include "core/timing/attention_time.h"
#include "core/timing/gemm_time.h"
#include "core/timing/reached_step.h"

#include <nlohmann/json.hpp>

#include <QtTest>

using namespace memscape;

namespace {

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

class TestAttentionKernels : public QObject
{
    Q_OBJECT

    Device m_a100 = findDevice("nvidia-a100-80gb").value();

private slots:
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
};

QTEST_APPLESS_MAIN(TestAttentionKernels)
#include "tst_attention_kernels.moc"
