// SPDX-License-Identifier: Apache-2.0
// What checkpointing drops, keeps and computes again, counted by hand for a small decoder: each of its three blocks has
// seven products without bias (query, key, value, output, gate, up, down) and one attention.
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/operator_time.h"
#include "core/training/segments.h"

#include <QtTest>

using namespace memscape;

namespace {

Graph decoder(std::optional<AdapterOptions> adapters = {})
{
    BuildOptions options;
    options.batch = 2;
    options.sequence = 32;
    options.weights = DType::BFloat16;
    options.attention = AttentionKernel::Flash;
    options.adapters = std::move(adapters);
    ModelDescription model = *readModel("smollm2-135m");
    model.layers = 3;
    return buildNetwork(model, options).value();
}

std::ptrdiff_t countOf(const Graph& graph, const std::vector<std::uint32_t>& operators, OperatorKind kind)
{
    return std::count_if(operators.begin(), operators.end(),
                         [&](std::uint32_t op) { return graph.operators[op].kind == kind; });
}

} // namespace

class TestSegments : public QObject
{
    Q_OBJECT

    Graph m_graph = decoder();

private slots:
    void everySecondBlockIsDropped()
    {
        QCOMPARE(segments(m_graph, {Checkpointing::Layers, 1, false}).size(), std::size_t(3));
        const std::vector<Segment> dropped = segments(m_graph, {Checkpointing::SecondLayers, 1, false});
        QCOMPARE(dropped.size(), std::size_t(1)); // of three, the second
        QCOMPARE(dropped[0].first, segments(m_graph, {Checkpointing::Layers, 1, false})[1].first);
        QVERIFY(dropped[0].kept.empty());
    }

    // A frozen weight is a saved tensor of the last product, but an attribute of bitsandbytes' (ctx.tensors): there the
    // last that the hooks see are the two factors of the gated feed-forward.
    void theReplayOfFourBitsEndsBeforeTheLastProduct()
    {
        const auto last = [](BaseForm base) {
            const Graph graph = decoder(AdapterOptions{4, {"q_proj"}, base});
            return graph.operators[segments(graph, {Checkpointing::Layers, 1, false})[0].trigger].kind;
        };
        QVERIFY(last(BaseForm::AsWeights) == OperatorKind::Mm);
        QVERIFY(last(BaseForm::NormalFloat4) == OperatorKind::Multiply);
    }

    void attentionAndEverySecondProductAreKept()
    {
        const std::vector<Segment> blocks = segments(m_graph, {Checkpointing::Operators, 1, false});
        QCOMPARE(blocks.size(), std::size_t(3));
        for (const Segment& block : blocks) {
            QCOMPARE(countOf(m_graph, block.kept, OperatorKind::Mm), std::ptrdiff_t(4)); // query, value, gate, down
            QCOMPARE(block.kept.size(), std::size_t(5));
            QVERIFY(std::is_sorted(block.kept.begin(), block.kept.end()));
            QVERIFY(block.results >= 5); // attention has its log-sum-exp besides
        }
    }

    /// Key, output and up are computed again; the last product makes nothing that backward needs.
    void whatIsKeptIsNotComputedAgain()
    {
        StepSettings step;
        step.checkpointing = {Checkpointing::Operators, 1, false};
        std::size_t end = 0;
        std::vector<std::uint32_t> again;
        for (const RecomputedRange& range : recomputedRanges(m_graph, step)) {
            QVERIFY(range.first >= end && range.last >= range.first);
            end = range.last;
            for (std::size_t i = range.first; i < range.last; ++i)
                again.push_back(std::uint32_t(i));
        }
        QCOMPARE(countOf(m_graph, again, OperatorKind::Mm), std::ptrdiff_t(3 * 3));
        QVERIFY(std::none_of(again.begin(), again.end(),
                             [&](std::uint32_t op) { return isAttentionKernel(m_graph.operators[op].kind); }));
    }
};

QTEST_GUILESS_MAIN(TestSegments)
#include "tst_segments.moc"
