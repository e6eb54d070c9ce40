// SPDX-License-Identifier: Apache-2.0
// Networks built from descriptions: their parameters are those of the inventory, by name and shape;
// what they keep for backward is what Hugging Face's modules keep in a real PyTorch, to the byte
// (tests/data/models/saved_bytes.json, made by make_saved_bytes.py beside it).
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/network/inventory.h"
#include "core/network/model_config.h"
#include "core/network/model_names.h"
#include "core/network/network.h"

#include <QtTest>

#include <algorithm>
#include <map>

using namespace memscape;

namespace {

Json measured(const char* what = "results", const char* file = "saved_bytes")
{
    const auto text = readFile(std::string(TEST_DATA "/models/") + file + ".json");
    const auto json = text ? parseJson(*text) : Result<Json>(tl::unexpected(text.error()));
    return json ? (*json)[what] : Json::array();
}

BuildOptions optionsOf(const Json& each)
{
    BuildOptions options;
    options.batch = each["batch"].get<std::int64_t>();
    options.sequence = each["sequence"].get<std::int64_t>();
    options.weights = *dtypeFromText(each["dtype"].get<std::string>());
    options.loss = false;
    // What a CPU does otherwise: statistics of LayerNorm in the input's own type.
    options.rules.normStatisticsInFloat = false;
    return options;
}

} // namespace

class TestFamilies : public QObject
{
    Q_OBJECT

private slots:
    /// Megatron-LM, fused_kernels/scaled_upper_triang_masked_softmax.h: one kernel scales, masks and normalizes scores.
    /// legacy/model/fused_softmax.py, is_kernel_available(): where `input_in_float16`, that is in fp16 and bf16.
    void fusedScoresAreScaledAndMaskedWithinTheirSoftmaxInHalves()
    {
        for (const auto& [hasKernels, dtype] : {std::pair(false, DType::BFloat16), std::pair(true, DType::BFloat16),
                                                std::pair(true, DType::Float16), std::pair(true, DType::Float32)}) {
            const bool isFused = hasKernels && dtype != DType::Float32;
            BuildOptions options;
            options.sequence = 64;
            options.weights = dtype;
            options.attention = AttentionKernel::Eager;
            options.isAllFused = hasKernels;
            const Graph graph = buildNetwork(*readModel("gpt2"), options).value();
            const auto count = [&](OperatorKind kind) {
                return std::count_if(graph.operators.begin(), graph.operators.end(), [&](const Operator& op) {
                    return op.kind == kind && graph.layoutOf(graph.outputs(op)[0]).elements() == 12 * 64 * 64;
                });
            };
            QCOMPARE(count(OperatorKind::Softmax), 12);
            QCOMPARE(count(OperatorKind::Scale), isFused ? 0 : 12);
            QCOMPARE(count(OperatorKind::MaskedFill), isFused ? 0 : 12);
        }
    }

    void keepWhatPyTorchKeeps_data()
    {
        QTest::addColumn<int>("index");
        const Json all = measured();
        for (std::size_t i = 0; i < all.size(); ++i)
            QTest::addRow("%s %s", all[i]["model_type"].get<std::string>().c_str(),
                          all[i]["dtype"].get<std::string>().c_str())
                << int(i);
    }
    void keepWhatPyTorchKeeps()
    {
        QFETCH(int, index);
        const Json each = measured()[std::size_t(index)];
        Json config = each["config"];
        const bool isUnet = each["model_type"] == "unet"; // diffusers names the class
        config[isUnet ? "_class_name" : "model_type"] = isUnet ? Json("UNet2DConditionModel") : each["model_type"];
        const auto model = modelFromConfig(JsonReader(config), "measured");
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        const auto graph = buildNetwork(*model, optionsOf(each));
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        QCOMPARE(graph->parameterCount(), each["parameter_count"].get<std::int64_t>());
        const SavedBytes saved = savedBytes(*graph);
        QCOMPARE(saved.activations, each["activations"].get<std::int64_t>());
        QCOMPARE(saved.inputs, each["inputs"].get<std::int64_t>());
    }

    // A mask where the text is as long as the window or longer, which each such layer keeps, and heads that are copied.
    void windowsKeepAMaskInEachLayer_data()
    {
        QTest::addColumn<int>("index");
        const Json all = measured("windows");
        QVERIFY(all.size() == 10);
        for (std::size_t i = 0; i < all.size(); ++i)
            QTest::addRow("%s, %d tokens, %s", all[i]["model_type"].get<std::string>().c_str(),
                          all[i]["config"]["sliding_window"].get<int>(), all[i]["dtype"].get<std::string>().c_str())
                << int(i);
    }
    void windowsKeepAMaskInEachLayer()
    {
        QFETCH(int, index);
        const Json each = measured("windows")[std::size_t(index)];
        Json config = each["config"];
        config["model_type"] = each["model_type"];
        const auto model = modelFromConfig(JsonReader(config), "measured");
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        BuildOptions options = optionsOf(each);
        options.attention = AttentionKernel::Efficient;
        options.rules.efficientSharesHeads = true;
        const auto graph = buildNetwork(*model, options);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        QCOMPARE(savedBytes(*graph).activations, each["activations"].get<std::int64_t>());
    }

    // GPT-OSS' experts as a loop (transformers 4.55) and at once (5.24); BERT's head of masked tokens alone
    // (tests/data/models/saved_training.json, made by make_saved_training.py beside it).
    void keepInTrainingWhatPyTorchKeeps_data()
    {
        QTest::addColumn<int>("index");
        const Json all = measured("results", "saved_training");
        QCOMPARE(all.size(), std::size_t(8));
        for (std::size_t i = 0; i < all.size(); ++i)
            QTest::addRow("%s, transformers %s, %s, %g", all[i]["model_type"].get<std::string>().c_str(),
                          all[i]["transformers"].get<std::string>().c_str(), all[i]["dtype"].get<std::string>().c_str(),
                          all[i].value("masked_share", 0.0))
                << int(i);
    }
    void keepInTrainingWhatPyTorchKeeps()
    {
        QFETCH(int, index);
        const Json each = measured("results", "saved_training")[std::size_t(index)];
        const bool isLoop = each["transformers"] == "4.55.4", isMasked = each.contains("masked_share");
        Json config = each["config"];
        config["model_type"] = each["model_type"];
        const auto model = modelFromConfig(JsonReader(config), "measured");
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        BuildOptions options = optionsOf(each);
        options.transformers = isLoop ? Transformers::Before524 : Transformers::From524;
        options.loss = options.logitsInFloat = isMasked;
        options.maskedShare = each.value("masked_share", 0.0);
        const auto graph = buildNetwork(*model, options);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        const SavedBytes saved = savedBytes(*graph);
        QCOMPARE(saved.activations, each["activations"].get<std::int64_t>());
        QCOMPARE(saved.inputs, each["inputs"].get<std::int64_t>());
    }

    void aDecoderFromScratchLeavesWhatARealOneLeft()
    {
        // A written-out decoder on a GPU after its forward pass with the graph kept: its memory
        // snapshot shows 18595 MiB of live blocks. Of these, 32 MiB are cuBLAS's workspace, and 128
        // matrices of 25 MiB lie in blocks of 26 that the caching allocator does not split. That
        // program also keeps a Bool of every score where it masks (74 MiB), which one mask for all
        // heads does not need, and looks up a rotary table for each sequence of the batch (8 MiB).
        const double real = 18595 - 32 - 128;
        const auto model = readModel("from-scratch:hidden=2560,layers=32,heads=32,ffn=10240,vocab=10000");
        BuildOptions options;
        options.batch = 4;
        options.sequence = 128;
        options.loss = false;
        options.writtenOut = WrittenOut::all();
        const auto graph = buildNetwork(*model, options);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        const SavedBytes saved = savedBytes(*graph);
        const std::int64_t logits = 4 * 4 * 128 * 10000;
        const double live = double(graph->parameterBytes() + saved.activations + logits) / 1048576;
        QVERIFY2(std::abs(live / real - 1) < 0.006, std::to_string(live).c_str());
        QVERIFY2(std::abs((live + 74 + 8) / real - 1) < 0.0005, std::to_string(live).c_str());
    }

    void sizesThatNoMachineHasAreRefused()
    {
        BuildOptions options;
        options.batch = std::int64_t(1) << 50;
        options.sequence = std::int64_t(1) << 30;
        for (const char* name :
             {"llama-3-8b",   "gpt2",    "bert-base",    "t5-small",         "from-scratch", "resnet50",
              "vit-b-16",     "mlp",     "mixtral-8x7b", "deepseek-v2-lite", "whisper-tiny", "efficientnet-b0",
              "densenet121",  "swin-t",  "mamba-130m",   "llava-1.5-7b",     "qwen2-vl-2b",  "qwen2.5-vl-3b",
              "dinov2-small", "dit-b-2", "sd-1.5-unet"}) {
            const auto graph = buildNetwork(*readModel(name), options);
            QVERIFY2(!graph.has_value(), name);
            QVERIFY2(graph.error().code.starts_with("network."), graph.error().text().c_str());
            QVERIFY(!graph.error().message.empty());
        }
        options = {};
        options.sequence = 4096; // beyond the positions that the model learned
        for (const char* name : {"gpt2", "bert-base", "opt-125m", "whisper-tiny"}) {
            const Error error = buildNetwork(*readModel(name), options).error();
            QCOMPARE(error.code, std::string("network.shape"));
            QVERIFY2(error.remedy && error.remedy->parameter == "sequence", name);
            BuildOptions remedied = options;
            remedied.sequence = std::stoll(error.remedy->value);
            QVERIFY2(buildNetwork(*readModel(name), remedied).has_value(), name);
        }
    }

    void aPictureNeedsItsTokens_data()
    {
        QTest::addColumn<int>("tokens");
        QTest::newRow("llava-1.5-7b") << 576; // (336 / 14)²
        QTest::newRow("qwen2-vl-2b") << 256;  // (448 / 28)²
        QTest::newRow("qwen2.5-vl-3b") << 256;
    }
    void aPictureNeedsItsTokens()
    {
        QFETCH(int, tokens);
        const auto model = readModel(QTest::currentDataTag());
        QCOMPARE(model->vision.tokens(), std::int64_t(tokens));
        BuildOptions options;
        options.sequence = tokens - 1;
        const Error error = buildNetwork(*model, options).error();
        QCOMPARE(error.code, std::string("network.shape"));
        QVERIFY(error.remedy && error.remedy->value == std::to_string(tokens));
        options.sequence = tokens;
        QVERIFY(buildNetwork(*model, options).has_value());
        options.sequence = 1; // a token after the prompt
        options.gradient = options.loss = false;
        QVERIFY(buildNetwork(*model, options).has_value());
    }

    void aDenseBlockKeepsTheSquareOfItsLayers()
    {
        // Layer i keeps its joined input and the activation of it: 2 (inputs + i growth) channels beside what is of
        // one size. Twice the layers are four times the second sum.
        const auto kept = [](std::int64_t layers) {
            ModelDescription model = *readModel("densenet121");
            model.cnn.depths = {layers};
            return savedBytes(*buildNetwork(model, {})).activations;
        };
        const std::int64_t plane = 56 * 56 * 4;
        const auto joined = [](std::int64_t n) { return 64 * n + 32 * n * (n - 1) / 2; };
        const std::int64_t each = (kept(2) - kept(1)) - 2 * plane * (joined(2) - joined(1)); // that every layer adds
        QVERIFY(std::abs(double(kept(40) - kept(20)) / double(20 * each + 2 * plane * (joined(40) - joined(20))) - 1)
                < 0.001);
    }

    void gptNeoxOnceTurnedItsQueriesInFloat()
    {
        // What one layer more of Pythia 410M's size keeps of a token in fp16, 2 × 256 tokens on a CPU with transformers
        // 4.43, without the tables that each of its layers gathers (2 × 16 KiB).
        const auto perToken = [](AttentionKernel attention) {
            const auto kept = [&](std::int64_t layers) {
                ModelDescription model = *readModel("pythia-410m");
                model.layers = layers;
                BuildOptions options;
                options.batch = 2;
                options.sequence = 256;
                options.weights = DType::Float16;
                options.attention = attention;
                options.transformers = Transformers::Before445;
                options.rules.normStatisticsInFloat = false;
                return savedBytes(*buildNetwork(model, options)).activations;
            };
            return double(kept(2) - kept(1)) / 512;
        };
        QCOMPARE(perToken(AttentionKernel::Eager), 59464. - 64);
        // CUDA's kernel writes heads side by side, so that its result is what the next layer takes: 2 KiB less.
        const double flash = perToken(AttentionKernel::Flash), found = 37000. - 64 - 2048;
        QVERIFY2(std::abs(flash - found) < 0.1, std::to_string(flash).c_str()); // beside the state of its dropout
    }

    void mambaWithoutItsKernelsKeepsEveryState()
    {
        const auto model = readModel("mamba-130m");
        const auto kept = [&](bool isFused) {
            BuildOptions options;
            options.sequence = 64;
            options.isAllFused = isFused;
            return savedBytes(*buildNetwork(*model, options)).activations;
        };
        BuildOptions longer;
        longer.sequence = 600; // more tokens than an operator has operands
        const auto graph = buildNetwork(*model, longer);
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        longer.sequence = 300;
        const double half = double(savedBytes(*buildNetwork(*model, longer)).activations);
        QVERIFY(std::abs(double(savedBytes(*graph).activations) / (2 * half) - 1) < 0.01);
        // Of each token and layer: decay, entry and state (1536 × 16 numbers each), which the kernel does not keep.
        QVERIFY(kept(false) - kept(true) > 24 * 64 * 3 * 1536 * 16 * 4);
    }

    void writtenOutKeepsMoreThanFused()
    {
        const auto model = readModel("from-scratch");
        const auto kept = [&](const WrittenOut& written) {
            BuildOptions options;
            options.batch = 2;
            options.sequence = 64;
            options.writtenOut = written;
            return savedBytes(*buildNetwork(*model, options)).activations;
        };
        const std::int64_t tokens = 2 * 64, e = 4, fused = kept({});
        // 4 layers: sigmoid beside its input's product (1 ffn); normed values beside the input (1
        // hidden) in 9 norms; softmax keeps exponentials, sums (1) and indices of the maximum (8
        // bytes a row).
        const std::int64_t rows = 2 * 8 * 64;
        WrittenOut one;
        one.activation = true;
        QCOMPARE(kept(one) - fused, 4 * tokens * 1344 * e);
        one = {};
        one.norm = true;
        QCOMPARE(kept(one) - fused, 9 * tokens * 512 * e);
        one = {};
        one.softmax = true;
        QCOMPARE(kept(one) - fused, 4 * (rows * 64 * e + rows * e + rows * 8));
    }

    void parametersAreThoseOfTheInventory_data()
    {
        QTest::addColumn<QString>("model");
        for (const KnownModel& model : knownModels())
            QTest::newRow(model.name.c_str()) << QString::fromStdString(model.name);
        for (const char* model : {"from-scratch", "mlp", "params:1e8"})
            QTest::newRow(model) << model;
    }
    void parametersAreThoseOfTheInventory()
    {
        QFETCH(QString, model);
        const auto description = readModel(model.toStdString());
        BuildOptions options;
        options.sequence = std::max<std::int64_t>(8, description->vision.tokens());
        const auto graph = buildNetwork(*description, options);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        const auto list = inventory(*description);
        QCOMPARE(graph->parameterCount(), list->total);
        QVERIFY(graph->loss != noTensor);
    }
};

QTEST_GUILESS_MAIN(TestFamilies)
#include "tst_families.moc"
