// SPDX-License-Identifier: Apache-2.0
// Casts to FP8 beside their products: which products have them, their bytes against torchao's roofline and
// Transformer Engine's kernels, and what they add to a step.
#include "core/device/catalogue.h"
#include "core/network/families/gpt2.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/fp8_casts.h"
#include "core/timing/reached_step.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace memscape;

namespace {

constexpr std::int64_t tokens = 4 * 1024, hidden = 1024;

Graph decoder(bool isInFp8)
{
    BuildOptions options;
    options.weights = DType::BFloat16;
    options.batch = 4;
    options.sequence = 1024;
    options.attention = AttentionKernel::Flash;
    options.isProductInFp8 = isInFp8;
    return gpt2({hidden, 16, 2, 0, 50304, 1024}, options).value();
}

Plan fp8Plan(Fp8Scaling scaling, int accumulation = 1)
{
    Plan plan;
    plan.precision = Precision::Fp8;
    plan.fp8Scaling = scaling;
    plan.accumulation = accumulation;
    return plan;
}

/// The first product in FP8 with so many columns, of those from `first` on.
std::size_t productOf(const Graph& graph, std::int64_t columns, std::size_t first = 0)
{
    for (std::size_t i = first; i < graph.operators.size(); ++i)
        if (isInFp8(graph, i, fp8Plan(Fp8Scaling::Delayed))
            && graph.layoutOf(graph.outputs(graph.operators[i])[0]).shape.last() == columns)
            return i;
    qFatal("no such product");
}

double castsOf(const Graph& graph, std::size_t product, const Plan& plan)
{
    return fp8CastsForward(graph, product, plan).bytes + fp8CastsBackward(graph, product, plan).bytes;
}

StepTime timeOf(const Graph& graph, const Plan& plan)
{
    Trace trace;
    return reachedStepTime(graph, parameterTensors(graph, trace), plan, findDevice("nvidia-h100-sxm").value(), 0)
        .value();
}

} // namespace

class TestFp8Casts : public QObject
{
    Q_OBJECT

private slots:
    /// Four linear layers in each of two layers; neither the head nor a network that records no casts.
    void layersMultiplyInFp8()
    {
        const auto count = [](const Graph& graph, const Plan& plan) {
            int found = 0;
            for (std::size_t i = 0; i < graph.operators.size(); ++i)
                found += isInFp8(graph, i, plan);
            return found;
        };
        const Plan plan = fp8Plan(Fp8Scaling::Delayed);
        QCOMPARE(count(decoder(true), plan), 8);
        QCOMPARE(count(decoder(false), plan), 0);
        QCOMPARE(count(decoder(true), Plan{}), 0);
    }

    /// torchao, roofline_utils.py: of an input and a gradient 2 + (2 + 2) B, of a weight 2 + (2 + 1) + (2 + 1) B an
    /// element; here of attention's projection.
    void tensorwiseCastsAreTorchaos()
    {
        const Graph graph = decoder(true);
        const double input = tokens * hidden, weight = hidden * hidden, gradient = input;
        QCOMPARE(castsOf(graph, productOf(graph, hidden), fp8Plan(Fp8Scaling::Tensorwise)),
                 6 * input + 8 * weight + 6 * gradient);
    }

    /// cast_transpose reads 2 and writes 1 + 1 B; weights are cast for the first micro-batch alone. A norm writes 1 B
    /// instead of 2, which is read and written in the other order.
    void delayedCastsReadOnce()
    {
        const Graph graph = decoder(true);
        const Plan plan = fp8Plan(Fp8Scaling::Delayed, 8);
        const double input = tokens * hidden, weight = hidden * hidden;
        QCOMPARE(castsOf(graph, productOf(graph, hidden), plan), 4 * input + 4 * weight / 8 + 4 * input);
        QCOMPARE(castsOf(graph, productOf(graph, 4 * hidden), plan), input + 4 * 4 * weight / 8 + 4 * 4 * input);
    }

    /// "FP8 Current Scaling requires two tensor reads per quantization: one to compute amax, one to cast" (Transformer
    /// Engine, FP8 Delayed Scaling), but of a norm's result, whose kernel has found it (pull request 2013).
    void currentCastsReadTwice()
    {
        const Graph graph = decoder(true);
        const Plan plan = fp8Plan(Fp8Scaling::Current, 8);
        const double input = tokens * hidden, weight = hidden * hidden;
        QCOMPARE(castsOf(graph, productOf(graph, hidden), plan), 6 * input + 6 * weight / 8 + 6 * input);
        QCOMPARE(castsOf(graph, productOf(graph, 4 * hidden), plan), 4 * input + 6 * 4 * weight / 8 + 6 * 4 * input);
    }

    /// Queries, keys and values of a LLaMA read one norm's result.
    void anInputIsCastOnce()
    {
        BuildOptions options;
        options.weights = DType::BFloat16;
        options.sequence = 512;
        options.attention = AttentionKernel::Flash;
        options.isProductInFp8 = true;
        const Graph graph = buildNetwork(*readModel("smollm2-1.7b"), options).value();
        const Plan plan = fp8Plan(Fp8Scaling::Tensorwise);
        const std::size_t query = productOf(graph, 2048), key = productOf(graph, 2048, query + 1);
        const double input = 512 * 2048, weight = 2048 * 2048;
        QCOMPARE(fp8CastsForward(graph, query, plan).bytes, 6 * input + 5 * weight);
        QCOMPARE(fp8CastsForward(graph, key, plan).bytes, 5 * weight);
    }

    /// Four ranks cast a quarter of the tokens each, gather FP8, and turn it; what they scatter is bf16.
    void ranksGatherFp8()
    {
        BuildOptions options;
        options.weights = DType::BFloat16;
        options.batch = 4;
        options.sequence = 1024;
        options.attention = AttentionKernel::Flash;
        options.isProductInFp8 = true;
        options.tensorParallel = 4;
        options.sequenceParallel = true;
        const Graph graph = gpt2({hidden, 16, 2, 0, 50304, 1024}, options).value();
        Plan plan = fp8Plan(Fp8Scaling::Delayed);
        plan.tensorParallel = 4;
        plan.sequenceParallel = true;
        const std::size_t up = productOf(graph, 4 * hidden);
        const auto gather =
            std::size_t(std::find_if(graph.operators.begin(), graph.operators.end(),
                                     [](const Operator& op) { return op.kind == OperatorKind::AllGather; })
                        - graph.operators.begin());
        QCOMPARE(sharedAs(graph, gather, plan, false), 0.5);
        QCOMPARE(sharedAs(graph, gather, plan, true), 1.0);
        const double input = tokens * hidden, weight = 4 * hidden * hidden;
        QCOMPARE(fp8CastsForward(graph, up, plan).bytes, (3.0 / 4 + 2) * input + 4 * weight);
        plan.fp8Scaling = Fp8Scaling::Tensorwise;
        QCOMPARE(fp8CastsForward(graph, up, plan).bytes, (5.0 / 4 + 2) * input + 5 * weight);
    }

    void castsArePassesOfTheStep()
    {
        const Graph graph = decoder(true);
        const StepTime delayed = timeOf(graph, fp8Plan(Fp8Scaling::Delayed));
        const StepTime tensorwise = timeOf(graph, fp8Plan(Fp8Scaling::Tensorwise));
        QVERIFY(tensorwise.memoryBound > delayed.memoryBound);
        const double products = tensorwise.arithmeticBound - tensorwise.attention; // whose kernel is another
        QVERIFY(std::fabs(products / (delayed.arithmeticBound - delayed.attention) - 1) < 1e-9);
        Plan half = fp8Plan(Fp8Scaling::Delayed);
        half.precision = Precision::Bf16Mixed;
        const StepTime bf16 = timeOf(decoder(false), half);
        QVERIFY(delayed.arithmeticBound < bf16.arithmeticBound);
        QVERIFY(delayed.memoryBound > bf16.memoryBound);
    }
};

QTEST_APPLESS_MAIN(TestFp8Casts)
#include "tst_fp8_casts.moc"
