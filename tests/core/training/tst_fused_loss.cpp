// SPDX-License-Identifier: Apache-2.0
// Losses that take the last hidden states and the head's matrix: what Liger Kernel's allocates against its own Python
// on fake tensors (tests/data/pytorch/fused_loss.py), event by event, and what becomes of the gradients that it makes.
#include "core/training/fused_loss.h"

#include "core/network/builder.h"
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/training/simulation.h"
#include "tests/support/pytorch_data.h"

#include <QJsonArray>
#include <QJsonObject>
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace memscape;

namespace {

DType dtypeOf(const QString& text)
{
    return text == "bfloat16" ? DType::BFloat16 : DType::Float32;
}

/// Rows that a product of ones made, so that autograd wants their gradient, through a head to Liger's loss.
Result<Graph> lossAlone(const QJsonObject& measured)
{
    BuildOptions options;
    options.weights = dtypeOf(measured["weight_dtype"].toString());
    if (measured["autocast"] != "")
        options.autocast = dtypeOf(measured["autocast"].toString());
    NetworkBuilder b(options);
    const std::int64_t rows = measured["rows"].toInteger(), hidden = measured["hidden"].toInteger();
    Variable x = b.input("rows", {rows, hidden}, dtypeOf(measured["rows_dtype"].toString()), true);
    const Variable weight =
        b.parameter("weight", {measured["vocab"].toInteger(), hidden}, measured["trains_head"].toBool());
    const Variable targets = b.target("targets", {rows}, DType::Int64);
    return b.finish(std::vector<Variable>(), b.ligerLoss(std::move(x), weight, targets));
}

/// Signed bytes; neighbouring frees in the order of their size, as a recorder between operators sees them.
std::vector<std::int64_t> eventsOf(const Trace& trace, Phase phase)
{
    std::vector<std::int64_t> events;
    for (const Event& event : trace.events())
        if (event.phase == phase)
            events.push_back(event.change());
    return events;
}

void sortFrees(std::vector<std::int64_t>& events)
{
    for (auto first = events.begin(); first != events.end();) {
        const auto last = std::find_if(first, events.end(), [](std::int64_t change) { return change > 0; });
        std::sort(first, last);
        first = last == events.end() ? last : last + 1;
    }
}

Result<Trace> stepOf(const Graph& graph, int accumulation = 1)
{
    StepSettings settings;
    settings.plan.precision = Precision::Bf16;
    settings.plan.accumulation = accumulation;
    return simulateStep(graph, settings);
}

Result<Graph> llama(LossForm form, bool isTied, bool isAllFused = false)
{
    const Json config{{"model_type", "llama"},        {"hidden_size", 64},
                      {"num_hidden_layers", 2},       {"num_attention_heads", 4},
                      {"num_key_value_heads", 4},     {"intermediate_size", 128},
                      {"vocab_size", 2000},           {"max_position_embeddings", 64},
                      {"tie_word_embeddings", isTied}};
    const auto model = modelFromConfig(JsonReader(config), "test");
    if (!model)
        return tl::unexpected(model.error());
    BuildOptions options;
    options.batch = 2;
    options.sequence = 64;
    options.weights = DType::BFloat16;
    options.attention = AttentionKernel::Flash;
    options.lossForm = form;
    options.isAllFused = isAllFused;
    return buildNetwork(*model, options);
}

} // namespace

class TestFusedLoss : public QObject
{
    Q_OBJECT

private slots:
    void ligerAllocatesWhatItsCodeAllocates_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        for (const QJsonValue& value : pytorchData("fused_loss.json")["cases"].toArray())
            QTest::addRow("%lld x %lld, %lld words, %s, head %s%s%s", value["rows"].toInteger(),
                          value["hidden"].toInteger(), value["vocab"].toInteger(),
                          qPrintable(value["rows_dtype"].toString()), qPrintable(value["weight_dtype"].toString()),
                          value["autocast"] != "" ? ", autocast" : "", value["trains_head"].toBool() ? "" : ", frozen")
                << value.toObject();
    }

    void ligerAllocatesWhatItsCodeAllocates()
    {
        QFETCH(QJsonObject, measured);
        const auto graph = lossAlone(measured);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const auto trace = stepOf(*graph);
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
        std::vector<std::int64_t> simulated = eventsOf(*trace, Phase::Forward), recorded;
        for (const QJsonValue& change : measured["events"].toArray())
            recorded.push_back(change.toInteger());
        sortFrees(simulated);
        sortFrees(recorded);
        QCOMPARE(simulated, recorded);
    }

    void chunksAreAPowerOfTwoOfRows()
    {
        const LigerChunks example = ligerChunks(16384, 4096, 32000); // of the comment in Liger's source
        QCOMPARE(example.rows, 2048);
        QCOMPARE(example.count, 8);
        QCOMPARE(ligerChunks(33, 64, 64).rows, 33);
        QCOMPARE(ligerChunks(0, 64, 64).count, 0);
    }

    void theGradientOfTheHeadIsTheOneThatForwardMade()
    {
        const auto graph = llama(LossForm::Liger, false);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        for (const int accumulation : {1, 3}) {
            const auto trace = stepOf(*graph, accumulation);
            QVERIFY(trace);
            int made = 0;
            for (const Event& event : trace->events()) {
                const bool isHead = event.isAllocation() && event.category == Category::Gradients
                    && trace->modules()[event.module] == "lm_head";
                if (isHead)
                    QCOMPARE(event.phase, Phase::Forward);
                made += isHead;
            }
            QCOMPARE(made, 1); // those of later micro-batches are added into it
        }
    }

    void everyFormHasTheSameGradients_data()
    {
        QTest::addColumn<int>("form");
        for (const LossForm form : {LossForm::Chunked, LossForm::Liger, LossForm::Cut})
            QTest::addRow("form %d", int(form)) << int(form);
    }

    void everyFormHasTheSameGradients()
    {
        QFETCH(int, form);
        for (const bool isTied : {false, true}) {
            const auto library = llama(LossForm::Library, isTied), other = llama(LossForm(form), isTied);
            QVERIFY(library && other);
            const auto expected = stepOf(*library), trace = stepOf(*other);
            QVERIFY(expected && trace);
            const auto bytes = [](const Trace& step) {
                CategoryBytes live{};
                CategoryBytes atBackward{};
                for (const Event& event : step.events()) {
                    live[std::size_t(event.category)] += event.change();
                    if (event.phase == Phase::Backward)
                        atBackward = live;
                }
                return std::pair(atBackward[std::size_t(Category::Gradients)],
                                 atBackward[std::size_t(Category::Weights)]);
            };
            QCOMPARE(bytes(*trace), bytes(*expected));
        }
    }

    void noFormHoldsAllLogits()
    {
        const auto library = llama(LossForm::Library, false);
        QVERIFY(library);
        const auto whole = stepOf(*library);
        QVERIFY(whole);
        const std::int64_t logits = 2 * 64 * 2000 * 2;
        for (const LossForm form : {LossForm::Liger, LossForm::Cut}) {
            const auto graph = llama(form, false);
            QVERIFY(graph);
            const auto trace = stepOf(*graph);
            QVERIFY(trace);
            const auto largest = [](const Trace& step) {
                std::int64_t bytes = 0;
                for (const Event& event : step.events())
                    if (event.phase == Phase::Forward || event.phase == Phase::Backward)
                        bytes = std::max(bytes, event.change());
                return bytes;
            };
            QVERIFY(largest(*whole) >= logits);
            QVERIFY(largest(*trace) < logits);
        }
    }

    // Its backward writes over the logits: nothing as large as these is allocated in backward.
    void aLossInPlaceMakesNoGradientOfTheLogits()
    {
        const auto madeInBackward = [](LossForm form) {
            const auto graph = llama(form, false);
            const std::int64_t logits = graph->layoutOf(graph->output).elements() * 2;
            const auto step = stepOf(*graph);
            const auto& events = step->events();
            return std::count_if(events.begin(), events.end(), [&](const Event& event) {
                return event.phase == Phase::Backward && event.change() >= logits;
            });
        };
        QVERIFY(madeInBackward(LossForm::Library) > 0);
        QCOMPARE(madeInBackward(LossForm::InPlace), 0);
    }

    // Its gradient is one number, expanded; cuBLAS takes no such matrix, and each of the head's two products copies it
    // (prepare_matrix_for_cublas in PyTorch's aten/src/ATen/native/cuda/Blas.cpp).
    void aSumOfLogitsIsCopiedForEachProduct()
    {
        const auto graph = llama(LossForm::Sum, false);
        QVERIFY(graph);
        const auto step = stepOf(*graph);
        QVERIFY(step);
        const std::vector<std::int64_t> backward = eventsOf(*step, Phase::Backward);
        const std::int64_t logits = 2 * 64 * 2000 * 2;
        QCOMPARE(std::count(backward.begin(), backward.end(), logits), 2);
        QCOMPARE(std::count(backward.begin(), backward.end(), -logits),
                 2); // a sum keeps none: those of forward are gone
    }

    /// What PyTorch 2.15 allocated and freed in backward of loss_parallel() on one of four ranks (a fake process group
    /// on a CPU, the profiler's memory events), in tensors of that rank's log-probabilities: bf16 logits (64, 4 ×
    /// 1024), cast to fp32.
    void aDividedVocabularyTakesWhatLossParallelTakes()
    {
        const std::vector<double> recorded{1, 1, 1, -1, 1, -1, -1, -1, 0.5, -1};
        BuildOptions options;
        options.weights = DType::BFloat16;
        options.tensorParallel = 4;
        NetworkBuilder b(options);
        Variable logits = b.cast(b.input("logits", {64, 1024}, DType::BFloat16, true), DType::Float32);
        const Variable targets = b.target("targets", {64}, DType::Int64);
        const auto graph = b.finish(std::vector<Variable>(), b.crossEntropy(std::move(logits), targets));
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        const auto trace = stepOf(*graph);
        QVERIFY2(trace, trace ? "" : trace.error().text().c_str());
        const double whole = 64 * 1024 * 4;
        std::vector<double> simulated;
        for (const std::int64_t change : eventsOf(*trace, Phase::Backward))
            if (std::abs(double(change)) >= whole / 2)
                simulated.push_back(double(change) / whole);
        QCOMPARE(simulated, recorded);
    }

    void aModelWithoutALanguageHeadIsRefused()
    {
        const auto model = readModel("resnet18");
        QVERIFY(model);
        BuildOptions options;
        options.lossForm = LossForm::Liger;
        const auto graph = buildNetwork(*model, options);
        QVERIFY(!graph);
        QCOMPARE(graph.error().code, "network.loss");
        QCOMPARE(graph.error().place, "loss");
    }

    // Liger Kernel 0.8.5 keeps of a SwiGLU its two inputs, of an RMSNorm its input, the weight and a number a row
    // (ops/swiglu.py, ops/rms_norm.py).
    void fusedOperatorsKeepWhatTheyAreGiven()
    {
        const auto library = llama(LossForm::Library, false), fused = llama(LossForm::Library, false, true);
        QVERIFY(library && fused);
        int gates = 0, norms = 0;
        for (const Operator& op : fused->operators) {
            const std::vector<TensorId> saved(fused->saved(op).begin(), fused->saved(op).end());
            const auto inputs = fused->inputs(op);
            if (op.kind == OperatorKind::GatedActivation) {
                QCOMPARE(saved, (std::vector<TensorId>{inputs[0], inputs[1]}));
                ++gates;
            }
            if (op.kind == OperatorKind::RmsNorm) {
                QCOMPARE(saved, (std::vector<TensorId>{inputs[0], fused->outputs(op)[1], inputs[1]}));
                ++norms;
            }
            QVERIFY(op.kind != OperatorKind::Silu && op.kind != OperatorKind::ReciprocalRoot);
        }
        QCOMPARE(gates, 2);
        QCOMPARE(norms, 5);
        // Of each layer: silu's result; two norms' float copy and normed half copy, each with a number a row, in place
        // of an input that the residual keeps anyway. And the last norm.
        const std::int64_t tokens = 2 * 64, silu = tokens * 128 * 2, norm = tokens * 64 * (4 + 2);
        const std::int64_t less = savedBytes(*library).activations - savedBytes(*fused).activations;
        QVERIFY2(less > 2 * silu + 5 * norm / 2 && less <= 2 * silu + 5 * norm, std::to_string(less).c_str());
        // The same gradients.
        const auto expected = stepOf(*library), step = stepOf(*fused);
        QVERIFY(expected && step);
        QCOMPARE(step->peakBytes(Phase::Optimizer) > 0, true);
        QVERIFY(step->peakBytes() < expected->peakBytes());
    }
};

QTEST_GUILESS_MAIN(TestFusedLoss)
#include "tst_fused_loss.moc"
