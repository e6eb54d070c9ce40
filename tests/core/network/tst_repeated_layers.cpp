// SPDX-License-Identifier: Apache-2.0
// Loops over layers and experts are recorded for three iterations and copied: the network is the one that the long way
// records, index by index, and twice the layers record no operator more.
#include "core/network/model_names.h"
#include "core/network/network.h"

#include <QtTest>

#include <functional>

using namespace memscape;

namespace {

using Change = std::function<void(ModelDescription&, BuildOptions&)>;

/// A named model made small: so many layers, its experts fewer.
ModelDescription small(const char* name, std::int64_t layers)
{
    ModelDescription model = readModel(name).value_or(ModelDescription());
    model.layers = layers;
    if (model.experts.count > 0)
        model.experts.count = 11;
    for (auto* const kinds : {&model.slidingLayers, &model.sparseLayers}) {
        if (!kinds->empty())
            kinds->resize(std::size_t(layers), kinds->back());
    }
    return model;
}

BuildOptions options()
{
    BuildOptions options;
    options.batch = 2;
    options.sequence = 16;
    return options;
}

template <typename List, typename Same> bool alike(const List& a, const List& b, Same same)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool isSame(const NamedTensor& a, const NamedTensor& b)
{
    return a.name == b.name && a.tensor == b.tensor && a.module == b.module && a.isTrained == b.isTrained;
}

/// What differs, empty: nothing.
QString difference(const Graph& a, const Graph& b)
{
    const auto operators = [](const Operator& x, const Operator& y) {
        return x.kind == y.kind && x.inputs == y.inputs && x.outputs == y.outputs && x.saved == y.saved
            && x.hasGradient == y.hasGradient && x.inPlace == y.inPlace && x.module == y.module && x.first == y.first
            && x.attribute == y.attribute;
    };
    const auto tensors = [](const Tensor& x, const Tensor& y) {
        return x.layout == y.layout && x.storage == y.storage && x.dtype == y.dtype
            && x.needsGradient == y.needsGradient;
    };
    const auto storages = [](const Storage& x, const Storage& y) {
        return x.bytes == y.bytes && x.module == y.module && x.source == y.source && x.role == y.role;
    };
    const auto modules = [](const ModuleCall& x, const ModuleCall& y) {
        return x.name == y.name && x.type == y.type && x.parent == y.parent;
    };
    const auto blocks = [](const Block& x, const Block& y) {
        return x.kind == y.kind && x.first == y.first && x.last == y.last && x.firstTensor == y.firstTensor
            && x.lastTensor == y.lastTensor && x.output == y.output;
    };
    if (!alike(a.operators, b.operators, operators))
        return "operators";
    if (a.operands != b.operands)
        return "operands";
    if (!alike(a.tensors, b.tensors, tensors) || !alike(a.layouts, b.layouts, std::equal_to<>()))
        return "tensors";
    if (!alike(a.storages, b.storages, storages))
        return "storages";
    if (!alike(a.modules, b.modules, modules))
        return "modules";
    if (!alike(a.parameters, b.parameters, isSame) || !alike(a.buffers, b.buffers, isSame))
        return "parameters";
    if (!alike(a.blocks, b.blocks, blocks))
        return "blocks";
    return a.loss == b.loss && a.output == b.output ? QString() : QString("results");
}

std::size_t copied(const Graph& graph)
{
    std::size_t count = 0;
    for (const CopiedOperators& copies : graph.copies)
        count += copies.last - copies.first;
    return count;
}

} // namespace

class TestRepeatedLayers : public QObject
{
    Q_OBJECT

private slots:
    void isWhatTheLongWayRecords_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<Change>("change");
        const auto row = [](const char* name, const char* model, Change change) {
            QTest::newRow(name) << QString(model) << std::move(change);
        };
        const auto autocast = [](ModelDescription&, BuildOptions& b) { b.autocast = DType::BFloat16; };
        for (const char* model : {"gpt2", "bert-base-uncased", "vit-b-16", "llama-2-7b", "gemma-2-2b", "gemma-3-1b",
                                  "opt-350m", "pythia-70m", "phi-3-mini", "mixtral-8x7b", "deepseek-v2-lite",
                                  "gpt-oss-20b", "qwen1.5-moe-a2.7b", "t5-small", "from-scratch:hidden=64,layers=3"}) {
            QTest::addRow("%s", model) << QString(model) << Change([](ModelDescription&, BuildOptions&) {});
            QTest::addRow("%s, autocast", model) << QString(model) << Change(autocast);
        }
        row("no gradient", "mixtral-8x7b", [](auto&, auto& b) { b.gradient = false, b.loss = false; });
        row("adapters", "llama-2-7b", [](auto&, auto& b) { b.adapters = AdapterOptions{}; });
        row("adapters beside four bits", "llama-2-7b", [](auto&, auto& b) {
            b.adapters = AdapterOptions{8, {}, BaseForm::NormalFloat4Double};
        });
        row("two devices", "llama-2-7b", [](auto&, auto& b) { b.tensorParallel = 2; });
        row("two devices along the sequence", "llama-2-7b",
            [](auto&, auto& b) { b.tensorParallel = 2, b.sequenceParallel = true, b.autocast = DType::BFloat16; });
        row("FP8", "llama-2-7b", [](auto&, auto& b) { b.weights = DType::BFloat16, b.isProductInFp8 = true; });
        row("dropout", "gpt2", [](auto&, auto& b) { b.dropout = 0.1; });
        row("flash", "gpt2", [](auto&, auto& b) { b.weights = DType::BFloat16, b.attention = AttentionKernel::Flash; });
        row("Whisper", "whisper-tiny", [](auto& m, auto& b) { m.audio.positions = 12, b.sequence = 8; });
        row("Mamba", "mamba-130m", [](auto&, auto&) {});
        row("Mamba's kernels", "mamba-130m", [](auto&, auto& b) { b.isAllFused = true; });
        row("LLaVA", "llava-1.5-7b", [](auto& m, auto& b) {
            m.vision.picture.size = 28;
            b.sequence = 8;
        });
        row("Qwen2-VL", "qwen2-vl-2b", [](auto& m, auto& b) {
            m.vision.picture.size = 56;
            b.sequence = 8;
        });
        row("Qwen2.5-VL", "qwen2.5-vl-3b", [](auto& m, auto& b) {
            m.vision.picture.size = 112;
            b.sequence = 16;
        });
        row("one expert kind in few layers", "deepseek-v2-lite",
            [](auto& m, auto&) { m.experts.count = 3, m.experts.active = 2; });
    }
    void isWhatTheLongWayRecords()
    {
        QFETCH(QString, model);
        QFETCH(Change, change);
        for (const std::int64_t layers : {1, 3, 4, 9}) {
            ModelDescription description = small(model.toUtf8().constData(), layers);
            BuildOptions asked = options();
            change(description, asked);
            const auto graph = buildNetwork(description, asked);
            QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
            asked.recordsEveryIteration = true;
            const auto longWay = buildNetwork(description, asked);
            QVERIFY(longWay && longWay->copies.empty());
            QCOMPARE(difference(*graph, *longWay), QString());
        }
    }

    /// Counted, not timed: what is recorded operator by operator does not grow with layers and experts.
    void recordsNoMoreOfMoreLayers()
    {
        for (const char* name :
             {"gpt2", "llama-2-7b", "bert-base-uncased", "deepseek-v2-lite", "from-scratch:hidden=64,layers=3"}) {
            std::vector<std::size_t> recorded, all;
            for (const std::int64_t layers : {16, 32, 64}) {
                ModelDescription model = small(name, layers);
                model.experts.count *= layers / 8;
                const auto graph = buildNetwork(model, options());
                QVERIFY2(graph, name);
                all.push_back(graph->operators.size());
                recorded.push_back(all.back() - copied(*graph));
            }
            QVERIFY2(all[2] > 3 * all[0], name);
            QCOMPARE(recorded[1], recorded[0]);
            QCOMPARE(recorded[2], recorded[0]);
        }
    }

    void refusesMoreTensorsThanCanBeCounted()
    {
        ModelDescription model = small("deepseek-v2-lite", 5000);
        model.experts.count = 2000;
        const auto graph = buildNetwork(model, options());
        QVERIFY(!graph);
        QCOMPARE(graph.error().code, std::string("network.size"));
    }
};

QTEST_GUILESS_MAIN(TestRepeatedLayers)
#include "tst_repeated_layers.moc"
