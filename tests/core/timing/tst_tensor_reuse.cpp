// SPDX-License-Identifier: Apache-2.0
// Which bytes of a chain of layers have left a cache, counted by hand.
#include "core/network/families/gpt2.h"
#include "core/timing/tensor_reuse.h"

#include "core/network/model_names.h"
#include "core/network/network.h"

#include <QtTest>

using namespace memscape;

namespace {

/// 64 rows of 256, 256 and 256 floats: 64 KiB an activation, 256 KiB a weight.
Graph chain()
{
    BuildOptions options;
    options.batch = 64;
    return buildNetwork(*readModel("mlp:256,256,256"), options).value();
}

double sumOf(const std::vector<FarBytes>& all, double FarBytes::*part)
{
    double sum = 0;
    for (const FarBytes& one : all)
        sum += one.*part;
    return sum;
}

} // namespace

class TestTensorReuse : public QObject
{
    Q_OBJECT
private slots:
    void aStepWithinTheCacheHasNothingFar()
    {
        const auto far = farBytes(chain(), 1e6, {2e6}, true);
        QCOMPARE(sumOf(far, &FarBytes::forward), 0.0);
        QCOMPARE(sumOf(far, &FarBytes::backward), 0.0);
    }

    /// Forward: the weights, the biases and the input once, every result twice (read and written back), but no result
    /// when it is used.
    void whatWasJustWrittenIsNear()
    {
        const Graph graph = chain();
        const auto far = farBytes(graph, 1e9, {1 << 20}, true);
        const auto first = std::find_if(graph.operators.begin(), graph.operators.end(),
                                        [](const Operator& op) { return op.kind == OperatorKind::Addmm; });
        const double activation = 64 * 256 * 4, weight = 256 * 256 * 4, bias = 256 * 4;
        QCOMPARE(far[std::size_t(first - graph.operators.begin())].forward,
                 bias + activation + weight + 2 * activation);
        const auto relu = std::find_if(first, graph.operators.end(),
                                       [](const Operator& op) { return op.kind == OperatorKind::Relu; });
        QVERIFY(relu != graph.operators.end());
        QVERIFY(far[std::size_t(relu - graph.operators.begin())].forward <= 2 * activation);
    }

    void aSmallerCacheHoldsNoMore()
    {
        const Graph graph = chain();
        double last = 0;
        for (const double cache : {double(1 << 22), double(1 << 18), double(1 << 16), double(1 << 12)}) {
            const auto far = farBytes(graph, 1e9, {cache}, true);
            const double sum = sumOf(far, &FarBytes::forward) + sumOf(far, &FarBytes::backward);
            QVERIFY(sum >= last);
            last = sum;
        }
        QVERIFY(last > 0);
    }

    /// Layers that are copies of others take what those take, so that a walk may leave them out.
    void theFirstLayersAreTheSameWithoutTheirCopies()
    {
        BuildOptions options;
        options.batch = 2;
        options.sequence = 64;
        const Graph graph = gpt2({128, 4, 6, 0, 1000, 64}, options).value();
        QVERIFY(!graph.copies.empty());
        const ReuseCache cache{.bytes = 1 << 18, .perResult = 1};
        const auto walked = farBytes(graph, 1e9, cache, true);
        const auto skipped = farBytes(graph, 1e9, cache, true, Copies::Skipped);
        for (std::size_t i = 0; i < graph.copies.front().first; ++i) {
            QCOMPARE(skipped[i].forward, walked[i].forward);
            QVERIFY(skipped[i].forward <= skipped[i].forwardAll && skipped[i].backward <= skipped[i].backwardAll);
        }
        QCOMPARE(skipped[graph.copies.front().first].forwardAll, 0.0);
        QVERIFY(sumOf(walked, &FarBytes::forwardAll) > sumOf(skipped, &FarBytes::forwardAll));
    }

    /// Every operator takes 1 ms: what was used in the last one stays, what lies further back is lost, however large
    /// the cache.
    void aSharedCacheForgets()
    {
        const Graph graph = chain();
        const auto after = [&](double retention) {
            const auto far = farBytes(graph, 1e6, {2e6, retention, [](std::size_t, bool) { return 1e-3; }}, true);
            return sumOf(far, &FarBytes::forward) + sumOf(far, &FarBytes::backward);
        };
        const double second = after(1.0), few = after(2.5e-3), none = after(0.5e-3);
        QVERIFY(second > 0); // the weights of the last step
        QVERIFY(few > second);
        QVERIFY(none > few);
        QCOMPARE(after(std::numeric_limits<double>::infinity()), 0.0);
    }

    void inferenceHasNoBackwardPass()
    {
        QCOMPARE(sumOf(farBytes(chain(), 1e9, {1 << 16}, false), &FarBytes::backward), 0.0);
    }
};

QTEST_GUILESS_MAIN(TestTensorReuse)
#include "tst_tensor_reuse.moc"
