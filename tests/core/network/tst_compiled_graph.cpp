// SPDX-License-Identifier: Apache-2.0
// What a compiled network keeps from forward to backward against PyTorch's own partitioner
// (tests/data/pytorch/compiled_graphs.py): value by value where both agree, and how far apart they are where they do
// not.
#include "core/network/compile/compiled_graph.h"
#include "core/network/compile/minimum_cut.h"
#include "core/network/families/gpt2.h"
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/training/step.h"
#include "tests/support/real_steps.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr std::int64_t randomState = 24; // of FlashAttention on a GPU, which the recorded kernel does not keep

BuildOptions optionsOf(const QJsonObject& measured)
{
    BuildOptions options;
    options.batch = measured["batch"].toInteger();
    options.sequence = std::max<qint64>(1, measured["sequence"].toInteger());
    options.attention = measured["attention"] == "flash" ? AttentionKernel::Flash : AttentionKernel::Eager;
    if (measured["precision"] == "bf16")
        options.weights = DType::BFloat16;
    options.keepsLogits = true;
    options.logitsInFloat = measured["model"] == "llama";
    return options;
}

Result<Graph> recordedNetwork(const QJsonObject& measured, const BuildOptions& options)
{
    const auto size = [&](const char* key) { return measured[key].toInteger(); };
    if (measured["model"] == "gpt2") {
        Gpt2Shape shape;
        shape.hidden = size("hidden");
        shape.layers = size("layers");
        shape.heads = size("heads");
        shape.vocabulary = size("vocab");
        shape.positions = size("sequence");
        shape.isTied = true;
        return gpt2(shape, options);
    }
    if (measured["model"] == "mlp")
        return buildNetwork(readModel("mlp:64,128,96,10", UnknownArchitecture::Refused).value(), options);
    Json config = llamaConfig(measured);
    if (measured["model"] == "resnet")
        config = {{"model_type", "resnet"}, {"embedding_size", 64},       {"hidden_sizes", {32, 64}},
                  {"depths", {1, 2}},       {"layer_type", "bottleneck"}, {"num_channels", 3},
                  {"num_labels", 10},       {"image_size", 32},           {"hidden_act", "relu"}};
    return buildNetwork(modelFromConfig(JsonReader(config), "recorded").value(), options);
}

/// B of each storage that is kept and exists in no other way.
std::vector<std::int64_t> keptBytes(const Graph& graph)
{
    std::set<StorageId> seen;
    std::vector<std::int64_t> bytes;
    for (const Operator& op : graph.operators)
        for (const TensorId tensor : graph.saved(op)) {
            const Storage& storage = graph.storageOf(tensor);
            if (storage.role == Role::Activation && storage.bytes > randomState
                && seen.insert(graph.tensors[tensor].storage).second)
                bytes.push_back(storage.bytes);
        }
    std::sort(bytes.begin(), bytes.end());
    return bytes;
}

std::vector<std::int64_t> measuredBytes(const QJsonObject& measured)
{
    std::vector<std::int64_t> bytes;
    for (const QJsonValue& one : measured["kept"].toArray())
        if (one[1].toInteger() > randomState)
            bytes.push_back(one[1].toInteger());
    std::sort(bytes.begin(), bytes.end());
    return bytes;
}

std::int64_t sumOf(const std::vector<std::int64_t>& bytes)
{
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t(0));
}

} // namespace

class TestCompiledGraph : public QObject
{
    Q_OBJECT

private slots:
    void keepsWhatPyTorchKeeps_data();
    void keepsWhatPyTorchKeeps();
    void everyBlockOfACompiledStepIsFreed();
    void copiesOfLayersKeepWhatRecordedOnesKeep();
    void theCutNearestToTheSinkIsTaken();
};

void TestCompiledGraph::keepsWhatPyTorchKeeps_data()
{
    QTest::addColumn<QJsonObject>("measured");
    for (const QJsonValue& value : recordedSteps("compiled_graphs.json"))
        QTest::addRow("%s %s %s", qPrintable(value["model"].toString()), qPrintable(value["attention"].toString()),
                      qPrintable(value["precision"].toString()))
            << value.toObject();
}

void TestCompiledGraph::keepsWhatPyTorchKeeps()
{
    QFETCH(QJsonObject, measured);
    const auto graph = recordedNetwork(measured, optionsOf(measured));
    QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
    const auto compiled = compiledGraph(*graph);
    QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
    const auto kept = keptBytes(*compiled), wanted = measuredBytes(measured);
    if (measured["model"] == "llama") {
        // PyTorch keeps two tensors of (batch, sequence, width) more in five layers; why is not known yet.
        const double share = double(sumOf(kept)) / double(sumOf(wanted));
        QVERIFY2(share > 0.96 && share <= 1, qPrintable(QString::number(share)));
        return;
    }
    // The recorder lists each part of q, k, v for itself; here they lie in one result.
    QCOMPARE(sumOf(kept), sumOf(wanted));
    if (measured["attention"] != "flash")
        QCOMPARE(kept, wanted);
}

void TestCompiledGraph::everyBlockOfACompiledStepIsFreed()
{
    for (const QJsonValue& value : recordedSteps("compiled_graphs.json")) {
        const QJsonObject measured = value.toObject();
        const auto graph = recordedNetwork(measured, optionsOf(measured));
        QVERIFY(graph);
        const auto compiled = compiledGraph(*graph);
        QVERIFY(compiled);
        StepSettings settings;
        settings.plan.accumulation = 2;
        const auto left = [&](const Graph& network) {
            const auto trace = simulateStep(network, settings);
            std::int64_t bytes = 0;
            for (const Event& event : trace.value().events())
                bytes += event.change();
            return bytes;
        };
        QCOMPARE(left(*compiled), left(*graph)); // weights, optimizer, loss and logits
    }
}

void TestCompiledGraph::copiesOfLayersKeepWhatRecordedOnesKeep()
{
    for (const QJsonValue& value : recordedSteps("compiled_graphs.json")) {
        const QJsonObject measured = value.toObject();
        if (measured["model"] != "gpt2")
            continue;
        BuildOptions every = optionsOf(measured);
        every.recordsEveryIteration = true;
        const auto copied = compiledGraph(recordedNetwork(measured, optionsOf(measured)).value());
        const auto recorded = compiledGraph(recordedNetwork(measured, every).value());
        QCOMPARE(keptBytes(*copied), keptBytes(*recorded));
    }
}

void TestCompiledGraph::theCutNearestToTheSinkIsTaken()
{
    MinimumCut cut(4); // 0 → 1 → 2 → 3, each may be cut for 5; beside it 0 → 2 for 3
    for (const MinimumCut::Node node : {0u, 1u, 2u})
        cut.addEdge(node, node + 1, 5);
    cut.addEdge(0, 2, 3);
    const auto behind = cut.sinkSide(0, 3);
    QCOMPARE(cut.flow(), 5);
    QCOMPARE(behind, (std::vector<std::uint8_t>{0, 0, 0, 1}));
}

QTEST_APPLESS_MAIN(TestCompiledGraph)
#include "tst_compiled_graph.moc"
