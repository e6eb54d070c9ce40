// SPDX-License-Identifier: Apache-2.0
// What a compiled network keeps from forward to backward against PyTorch's own partitioner
// (tests/data/pytorch/compiled_graphs.py), value by value: a whole network, and layers that are compiled alone, also
// with checkpoints and adapters.
#include "core/network/compile/compiled_graph.h"
#include "core/network/compile/minimum_cut.h"
#include "core/network/model_names.h"
#include "core/training/segments.h"
#include "core/training/step.h"
#include "tests/support/recorded_networks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace memscape;
using namespace memscape::test;

namespace {

constexpr std::int64_t randomState = 24; // of FlashAttention on a GPU, which the recorded kernel does not keep

Result<Graph> networkOf(const QJsonObject& measured, const BuildOptions& options)
{
    if (measured["model"] == "mlp")
        return buildNetwork(readModel("mlp:64,128,96,10", UnknownArchitecture::Refused).value(), options);
    if (measured["model"] != "resnet")
        return recordedNetwork(measured, options);
    const Json config = {{"model_type", "resnet"}, {"embedding_size", 64},       {"hidden_sizes", {32, 64}},
                         {"depths", {1, 2}},       {"layer_type", "bottleneck"}, {"num_channels", 3},
                         {"num_labels", 10},       {"image_size", 32},           {"hidden_act", "relu"}};
    return buildNetwork(modelFromConfig(JsonReader(config), "recorded").value(), options);
}

Result<Graph> networkOf(const QJsonObject& measured)
{
    return networkOf(measured, recordedOptions(measured));
}

CompileScope scopeOf(const QJsonObject& measured)
{
    return measured.contains("regions") ? CompileScope::Layers : CompileScope::Network;
}

/// B of each storage among these that exists in no other way.
std::vector<std::int64_t> storageBytes(const Graph& graph, const std::vector<TensorId>& tensors)
{
    std::set<StorageId> seen;
    std::vector<std::int64_t> bytes;
    for (const TensorId tensor : tensors) {
        const Storage& storage = graph.storageOf(tensor);
        if (storage.role == Role::Activation && storage.bytes > randomState
            && seen.insert(graph.tensors[tensor].storage).second)
            bytes.push_back(storage.bytes);
    }
    std::sort(bytes.begin(), bytes.end());
    return bytes;
}

/// What one compiled function keeps.
std::vector<std::int64_t> keptBytes(const Graph& graph, const CompiledRegion& region)
{
    std::vector<TensorId> tensors;
    for (std::uint32_t i = region.first; i < region.last; ++i)
        tensors.insert(tensors.end(), graph.saved(graph.operators[i]).begin(), graph.saved(graph.operators[i]).end());
    return storageBytes(graph, tensors);
}

std::vector<std::int64_t> measuredBytes(const QJsonArray& kept)
{
    std::vector<std::int64_t> bytes;
    for (const QJsonValue& one : kept)
        if (one[1].toInteger() > randomState)
            bytes.push_back(one[1].toInteger());
    std::sort(bytes.begin(), bytes.end());
    return bytes;
}

std::int64_t sumOf(const std::vector<std::int64_t>& bytes)
{
    return std::accumulate(bytes.begin(), bytes.end(), std::int64_t(0));
}

/// B that a step leaves allocated.
std::int64_t leftBy(const Graph& network, const StepSettings& settings)
{
    const auto trace = simulateStep(network, settings);
    std::int64_t bytes = 0;
    for (const Event& event : trace.value().events())
        bytes += event.change();
    return bytes;
}

} // namespace

class TestCompiledGraph : public QObject
{
    Q_OBJECT

private slots:
    void keepsWhatPyTorchKeeps_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        for (const QJsonValue& value : recordedSteps("compiled_graphs.json"))
            if (scopeOf(value.toObject()) == CompileScope::Network)
                QTest::addRow("%s %s %s", qPrintable(value["model"].toString()),
                              qPrintable(value["attention"].toString()), qPrintable(value["precision"].toString()))
                    << value.toObject();
    }

    void keepsWhatPyTorchKeeps()
    {
        QFETCH(QJsonObject, measured);
        const auto graph = networkOf(measured);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const auto compiled = compiledGraph(*graph, CompileScope::Network);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        QCOMPARE(compiled->regions.size(), 1u);
        const auto kept = keptBytes(*compiled, compiled->regions[0]),
                   wanted = measuredBytes(measured["kept"].toArray());
        // The recorder lists each part of GPT-2's q, k, v for itself; here they lie in one result.
        QCOMPARE(sumOf(kept), sumOf(wanted));
        if (measured["attention"] != "flash" || measured["model"] != "gpt2")
            QCOMPARE(kept, wanted);
    }

    void layersKeepWhatPyTorchKeeps_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        for (const QJsonValue& value : recordedSteps("compiled_graphs.json"))
            if (scopeOf(value.toObject()) == CompileScope::Layers)
                QTest::addRow("%s %s %s%s%s", qPrintable(value["model"].toString()),
                              qPrintable(value["attention"].toString()), qPrintable(value["precision"].toString()),
                              value["checkpointed"].toBool() ? ", checkpointed" : "",
                              value["adapters"].isObject() ? ", adapters" : "")
                    << value.toObject();
    }

    void layersKeepWhatPyTorchKeeps()
    {
        QFETCH(QJsonObject, measured);
        const auto graph = networkOf(measured);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const auto compiled = compiledGraph(*graph, CompileScope::Layers);
        QVERIFY2(compiled, compiled ? "" : compiled.error().text().c_str());
        const QJsonArray regions = measured["regions"].toArray();
        const bool isCheckpointed = measured["checkpointed"].toBool();
        const std::vector<Segment> dropped = segments(*compiled, {Checkpointing::Layers, 1, false});
        QVERIFY(regions.size() >= measured["layers"].toInt());
        for (qsizetype i = 0; i < regions.size(); ++i) {
            const bool isLayer = i < measured["layers"].toInt();
            const auto kept = isCheckpointed && isLayer ? storageBytes(*compiled, dropped[std::size_t(i)].inputs)
                                                        : keptBytes(*compiled, compiled->regions[std::size_t(i)]);
            const auto wanted = measuredBytes(regions[i].toArray());
            QCOMPARE(sumOf(kept), sumOf(wanted));
            if (measured["attention"] != "flash" || measured["model"] != "gpt2")
                QCOMPARE(kept, wanted);
        }
    }

    void everyBlockOfACompiledStepIsFreed()
    {
        for (const QJsonValue& value : recordedSteps("compiled_graphs.json")) {
            const QJsonObject measured = value.toObject();
            const auto graph = networkOf(measured);
            QVERIFY(graph);
            StepSettings settings;
            settings.plan.accumulation = 2;
            const std::int64_t left = leftBy(*graph, settings); // weights, optimizer, loss and logits
            const auto compiled = compiledGraph(*graph, scopeOf(measured));
            QVERIFY(compiled);
            QCOMPARE(leftBy(*compiled, settings), left);
            if (scopeOf(measured) != CompileScope::Layers)
                continue;
            for (const CheckpointPlan& plan : {CheckpointPlan{Checkpointing::Layers, 1, false},
                                               {Checkpointing::Layers, 2, false},
                                               {Checkpointing::Layers, 1, true}}) {
                settings.checkpointing = plan;
                QCOMPARE(leftBy(*compiled, settings), left);
            }
        }
    }

    /// What a layer keeps exists for one layer at a time, beside the inputs of all.
    void aCheckpointedLayerIsRunAgainToItsEnd()
    {
        for (const QJsonValue& value : recordedSteps("compiled_graphs.json")) {
            const QJsonObject measured = value.toObject();
            if (!measured["checkpointed"].toBool())
                continue;
            const auto compiled = compiledGraph(networkOf(measured).value(), CompileScope::Layers);
            StepSettings settings;
            const auto runs = [&](bool isCheckpointed) {
                settings.checkpointing.kind = isCheckpointed ? Checkpointing::Layers : Checkpointing::None;
                const auto trace = simulateStep(*compiled, settings);
                std::map<std::string, int> times; // of the results of each kind of operator
                for (const Event& event : trace->events())
                    if (event.isAllocation() && event.category == Category::Activations)
                        ++times[trace->names()[event.name]];
                return times;
            };
            auto once = runs(false), twice = runs(true);
            // Each layer has seven products, the head one; a layer's attention makes four results.
            const int layers = measured["layers"].toInt();
            QCOMPARE(once["mm"], 7 * layers + 1);
            QCOMPARE(twice["mm"], 14 * layers + 1);
            QCOMPARE(twice["flash_attention"], 2 * once["flash_attention"]);
            return;
        }
        QFAIL("no checkpointed case");
    }

    /// Eager backward adds a weight's second gradient to its first at once; that of a compiled layer returns all at its
    /// end, so that those of a whole layer exist twice.
    void gradientsOfALayerExistTogether()
    {
        const QJsonObject measured = recordedSteps("compiled_graphs.json").last().toObject();
        QJsonObject trained = measured;
        trained.remove("adapters");
        const Graph graph = networkOf(trained).value();
        const auto mostTemporary = [](const Graph& network) {
            StepSettings settings;
            settings.plan.accumulation = 2;
            const auto trace = simulateStep(network, settings);
            std::int64_t live = 0, most = 0;
            for (const Event& event : trace->events()) {
                const bool isSecond = event.category == Category::Temporary && event.phase == Phase::Backward;
                live += isSecond ? event.change() : 0;
                most = std::max(most, live);
            }
            return most;
        };
        const auto compiled = compiledGraph(graph, CompileScope::Layers);
        const std::int64_t hidden = measured["hidden"].toInteger(), ffn = measured["ffn"].toInteger();
        const std::int64_t layer = 4 * (3 * hidden * ffn + 3 * hidden * hidden); // B of its matrices
        QVERIFY(mostTemporary(*compiled) >= layer);
        QVERIFY(mostTemporary(graph) < layer);
    }

    /// CompiledFunction is given a gradient for all that it returns: PyTorch makes zeros as large as logits that are
    /// returned beside the loss and that nothing else uses.
    void returnedLogitsGetAGradientOfZeros()
    {
        QJsonObject language;
        for (const QJsonValue& value : recordedSteps("compiled_graphs.json"))
            if (value["model"] == "gpt2")
                language = value.toObject();
        const auto zeros = [&](bool keepsLogits, CompileScope scope) {
            BuildOptions options = recordedOptions(language);
            options.keepsLogits = keepsLogits;
            const auto trace = simulateStep(*compiledGraph(networkOf(language, options).value(), scope), {});
            std::int64_t bytes = 0;
            for (const Event& event : trace->events())
                if (event.isAllocation() && trace->names()[event.name] == "zeros for a gradient")
                    bytes += event.bytes;
            return bytes;
        };
        const auto size = [&](const char* key) { return language[key].toInteger(); };
        QCOMPARE(zeros(true, CompileScope::Network), size("batch") * size("sequence") * size("vocab") * 4);
        QCOMPARE(zeros(false, CompileScope::Network), 0);
        QCOMPARE(zeros(true, CompileScope::Layers), 0);
    }

    void copiesOfLayersKeepWhatRecordedOnesKeep()
    {
        for (const QJsonValue& value : recordedSteps("compiled_graphs.json")) {
            const QJsonObject measured = value.toObject();
            if (!measured.contains("layers"))
                continue;
            BuildOptions every = recordedOptions(measured);
            every.recordsEveryIteration = true;
            const auto copied = compiledGraph(networkOf(measured).value(), scopeOf(measured));
            const auto recorded = compiledGraph(networkOf(measured, every).value(), scopeOf(measured));
            QCOMPARE(copied->regions.size(), recorded->regions.size());
            for (std::size_t i = 0; i < copied->regions.size(); ++i)
                QCOMPARE(keptBytes(*copied, copied->regions[i]), keptBytes(*recorded, recorded->regions[i]));
        }
    }

    void theCutNearestToTheSinkIsTaken()
    {
        MinimumCut cut(4); // 0 → 1 → 2 → 3, each may be cut for 5; beside it 0 → 2 for 3
        for (const MinimumCut::Node node : {0u, 1u, 2u})
            cut.addEdge(node, node + 1, 5);
        cut.addEdge(0, 2, 3);
        const auto behind = cut.sinkSide(0, 3);
        QCOMPARE(cut.flow(), 5);
        QCOMPARE(behind, (std::vector<std::uint8_t>{0, 0, 0, 1}));
    }
};

QTEST_APPLESS_MAIN(TestCompiledGraph)
#include "tst_compiled_graph.moc"
