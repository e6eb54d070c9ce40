// SPDX-License-Identifier: Apache-2.0
// Parameters of published models against PyTorch's own count (tests/data/models, made with Hugging
// Face transformers), tensor shapes and names, active parameters, and multiply-adds against the
// figures that torchvision publishes.
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/network/inventory.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/timing/operator_cost.h"

#include <QtTest>

#include <map>

#include <fmt/format.h>

using namespace memscape;

namespace {

Json counted()
{
    const auto text = readFile(TEST_DATA "/models/parameter_counts.json");
    const auto json = text ? parseJson(*text) : Result<Json>(tl::unexpected(text.error()));
    return json ? *json : Json();
}

std::string shapeText(const std::vector<std::int64_t>& shape)
{
    std::string text;
    for (const std::int64_t size : shape)
        text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
}

ModelDescription named(const char* name)
{
    const auto model = readModel(name);
    if (!model)
        qFatal("%s", model.error().text().c_str());
    return *model;
}

/// Multiply-adds of the recorded network's products and convolutions.
double forwardMacs(const ModelDescription& model, std::int64_t batch = 1, std::int64_t sequence = 1)
{
    BuildOptions options;
    options.batch = batch;
    options.sequence = sequence;
    options.gradient = options.loss = false;
    const auto graph = buildNetwork(model, options);
    if (!graph)
        qFatal("%s", graph.error().text().c_str());
    double flops = 0;
    for (const Operator& op : graph->operators) {
        const OperatorCost cost = forwardCost(*graph, op);
        flops += cost.isProduct ? cost.flops : 0;
    }
    return flops / 2;
}

} // namespace

class TestInventory : public QObject
{
    Q_OBJECT

private slots:
    void countsAreThoseOfPyTorch_data()
    {
        QTest::addColumn<QString>("name");
        for (const KnownModel& model : knownModels())
            QTest::newRow(model.name.c_str()) << QString::fromStdString(model.name);
    }
    void countsAreThoseOfPyTorch()
    {
        QFETCH(QString, name);
        static const Json all = counted();
        const Json& expected = all["models"][name.toStdString()];
        QVERIFY2(expected.is_object(), "make the fixture again: tests/data/models/make_parameter_counts.py");
        const auto list = inventory(named(name.toUtf8()));
        QVERIFY2(list.has_value(), list ? "" : list.error().text().c_str());
        QCOMPARE(list->total, expected["parameters"].get<std::int64_t>());
        QCOMPARE(list->active, expected["active"].get<std::int64_t>());
        if (!expected.contains("shapes"))
            return;
        std::map<std::string, std::int64_t> shapes, wanted;
        for (const ModelTensor& tensor : list->tensors)
            ++shapes[shapeText(tensor.shape)];
        for (const auto& [shape, count] : expected["shapes"].items())
            wanted[shape] = count.get<std::int64_t>();
        QCOMPARE(shapes, wanted);
    }

    void publishedCounts_data()
    {
        // As their authors or the checkpoints state them, typed in here.
        QTest::addColumn<qint64>("parameters");
        QTest::newRow("gpt2") << qint64(124439808);
        QTest::newRow("gpt2-xl") << qint64(1557611200);
        QTest::newRow("bert-base-uncased") << qint64(109482240);
        QTest::newRow("bert-large-uncased") << qint64(335141888);
        QTest::newRow("t5-11b") << qint64(11307321344);
        QTest::newRow("t5-v1.1-xxl") << qint64(11135332352);
        QTest::newRow("opt-350m") << qint64(331196416);
        QTest::newRow("pythia-12b") << qint64(11846072320);
        QTest::newRow("llama-2-70b") << qint64(68976648192);
        QTest::newRow("llama-3.1-405b") << qint64(405853388800);
        QTest::newRow("llama-3.2-1b") << qint64(1235814400);
        QTest::newRow("mistral-7b-v0.1") << qint64(7241732096);
        QTest::newRow("mixtral-8x7b") << qint64(46702792704);
        QTest::newRow("qwen2.5-7b") << qint64(7615616512);
        QTest::newRow("gemma-2-9b") << qint64(9241705984);
        QTest::newRow("phi-2") << qint64(2779683840);
        QTest::newRow("deepseek-v2") << qint64(235741434880);
        QTest::newRow("vit-b-16") << qint64(86567656);
        QTest::newRow("alexnet") << qint64(61100840);
        QTest::newRow("vgg16") << qint64(138357544);
        QTest::newRow("resnet50") << qint64(25557032);
        QTest::newRow("mobilenet-v1") << qint64(4231976);
        QTest::newRow("mobilenet-v2") << qint64(3504872);
        QTest::newRow("efficientnet-b0") << qint64(5288548);
        QTest::newRow("efficientnet-b7") << qint64(66347960);
        QTest::newRow("densenet121") << qint64(7978856);
        QTest::newRow("densenet201") << qint64(20013928);
        QTest::newRow("swin-t") << qint64(28288354);
        QTest::newRow("swin-b") << qint64(87768224);
        QTest::newRow("llava-1.5-7b") << qint64(7063427072);
        QTest::newRow("qwen2-vl-7b") << qint64(8291375616);
        QTest::newRow("qwen2.5-vl-7b") << qint64(8292166656);
        QTest::newRow("sd-1.5-unet") << qint64(859520964);
    }
    void publishedCounts()
    {
        QFETCH(qint64, parameters);
        QCOMPARE(qint64(inventory(named(QTest::currentDataTag()))->total), parameters);
    }

    void tensorsAreNamedAsInTheCheckpoint_data()
    {
        QTest::addColumn<QString>("tensor");
        QTest::addColumn<QString>("shape");
        const auto row = [](const char* model, const char* tensor, const char* shape) {
            QTest::newRow(model) << tensor << shape;
        };
        row("gpt2", "transformer.h.11.attn.c_attn.weight", "768x2304");
        row("bert-base-uncased", "encoder.layer.0.attention.self.query.weight", "768x768");
        row("t5-small", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "32x8");
        row("opt-125m", "model.decoder.embed_positions.weight", "2050x768");
        row("pythia-70m", "gpt_neox.layers.5.attention.query_key_value.bias", "1536");
        row("llama-2-70b", "model.layers.79.self_attn.k_proj.weight", "1024x8192");
        row("qwen3-8b", "model.layers.0.self_attn.q_norm.weight", "128");
        row("gemma-2-9b", "model.layers.0.pre_feedforward_layernorm.weight", "3584");
        row("mixtral-8x7b", "model.layers.0.block_sparse_moe.experts.*.w2.weight", "4096x14336");
        row("deepseek-v3", "model.layers.60.self_attn.kv_a_proj_with_mqa.weight", "576x7168");
        row("deepseek-v2-lite", "model.layers.0.mlp.down_proj.weight", "2048x10944");
        row("vit-b-16", "vit.embeddings.patch_embeddings.projection.weight", "768x3x16x16");
        row("resnet50", "layer2.0.downsample.0.weight", "512x256x1x1");
        row("mobilenet-v2", "features.2.conv.1.0.weight", "96x1x3x3");
        row("efficientnet-b0", "features.2.0.block.2.fc1.weight", "4x96x1x1");
        row("densenet121", "features.denseblock4.denselayer16.conv1.weight", "128x992x1x1");
        row("swin-t", "swin.encoder.layers.0.blocks.1.attention.self.relative_position_bias_table", "169x3");
        row("dinov2-giant", "dinov2.encoder.layer.39.mlp.gate_proj.weight", "4096x1536");
        row("whisper-large-v3", "model.encoder.conv1.weight", "1280x128x3");
        row("mamba-130m", "backbone.layers.23.mixer.x_proj.weight", "80x1536");
        row("dit-xl-2", "blocks.27.adaLN_modulation.1.weight", "6912x1152");
        row("sd-1.5-unet", "up_blocks.1.attentions.2.transformer_blocks.0.attn2.to_k.weight", "1280x768");
        row("sd-2.1-unet", "down_blocks.1.resnets.0.conv_shortcut.weight", "640x320x1x1");
        row("qwen2-vl-2b", "model.visual.patch_embed.proj.weight", "1280x3x2x14x14");
        row("qwen2.5-vl-3b", "model.visual.blocks.31.mlp.gate_proj.weight", "3420x1280");
        row("qwen2.5-vl-7b", "model.visual.merger.mlp.2.weight", "3584x5120");
        row("llava-1.5-7b", "model.vision_tower.embeddings.patch_embedding.weight", "1024x3x14x14");
    }
    void tensorsAreNamedAsInTheCheckpoint()
    {
        QFETCH(QString, tensor);
        QFETCH(QString, shape);
        const auto list = inventory(named(QTest::currentDataTag()));
        for (const ModelTensor& each : list->tensors) {
            if (each.name == tensor.toStdString()) {
                QCOMPARE(QString::fromStdString(shapeText(each.shape)), shape);
                return;
            }
        }
        QFAIL("no such tensor");
    }

    void expertsCountOnceEach()
    {
        const auto list = inventory(named("mixtral-8x7b"));
        std::int64_t experts = 0;
        for (const ModelTensor& tensor : list->tensors) {
            if (tensor.copies == 1)
                continue;
            QCOMPARE(tensor.copies, std::int64_t(8));
            QCOMPARE(tensor.activeCopies, std::int64_t(2));
            experts += tensor.copies;
        }
        QCOMPARE(experts, std::int64_t(32 * 3 * 8));
        // 32 layers: 4 matrices of attention, 2 norms, a router, 24 expert matrices; embedding,
        // norm, head.
        QCOMPARE(list->tensorCount(), std::int64_t(32 * 31 + 3));
    }

    void macsOfPictures_data()
    {
        QTest::addColumn<double>(
            "billions"); // torchvision's weights, to three digits there; torch 2.15 and diffusers 0.42
        QTest::newRow("alexnet") << 0.714;
        QTest::newRow("vgg13") << 11.308;
        QTest::newRow("vgg16") << 15.470;
        QTest::newRow("vgg19") << 19.632;
        QTest::newRow("resnet18") << 1.814;
        QTest::newRow("resnet34") << 3.664;
        QTest::newRow("resnet50") << 4.089;
        QTest::newRow("resnet101") << 7.801;
        QTest::newRow("resnet152") << 11.514;
        QTest::newRow("mobilenet-v1") << 0.569;
        QTest::newRow("mobilenet-v2") << 0.301;
        QTest::newRow("vit-b-32") << 4.409;
        QTest::newRow("vit-b-16") << 17.564;
        QTest::newRow("vit-l-32") << 15.378;
        QTest::newRow("efficientnet-b0") << 0.386;
        QTest::newRow("efficientnet-b7") << 37.746;
        QTest::newRow("densenet121") << 2.834;
        QTest::newRow("densenet201") << 4.291;
        QTest::newRow("swin-t") << 4.491;
        QTest::newRow("swin-b") << 15.431;
        QTest::newRow("dit-xl-2") << 118.667; // FlopCounterMode over DiTTransformer2DModel, halved
        QTest::newRow("dit-l-2") << 80.729;
        QTest::newRow("dit-b-2") << 23.015;
    }
    void macsOfPictures()
    {
        QFETCH(double, billions);
        const double macs = forwardMacs(named(QTest::currentDataTag()));
        QVERIFY2(std::abs(macs / (billions * 1e9) - 1) < 0.005, std::to_string(macs).c_str());
    }

    void separableConvolutionsCostLess()
    {
        // Howard et al. 2017, Table 4: 4866 million multiply-adds and 29.3 million parameters with
        // full convolutions, 569 and 4.2 with depthwise separable ones.
        const auto full = named("mobilenet-v1-standard"), separable = named("mobilenet-v1");
        QVERIFY(std::abs(forwardMacs(full) / 4866e6 - 1) < 0.005);
        QVERIFY(std::abs(double(inventory(full)->total) / 29.3e6 - 1) < 0.005);
        QVERIFY(std::abs(forwardMacs(separable) / 569e6 - 1) < 0.005);
    }

    void macsOfADecoder()
    {
        // GPT-3's forward pass on one sequence of 2048: 2 × (N − embedding + head) a token plus
        // attention.
        const auto model = named("gpt3-175b");
        const double tokens = 2048, layer = 12.0 * 12288 * 12288;
        const double expected = tokens * (96 * layer + 50257.0 * 12288) + 2 * 96 * tokens * tokens * 12288;
        QCOMPARE(forwardMacs(model, 1, 2048), expected);
        QCOMPARE(forwardMacs(model, 3, 2048), 3 * expected);
    }

    void hugeSizesAreAnErrorNotAnOverflow()
    {
        ModelDescription model = named("llama-2-7b");
        model.hidden = model.ffn = 1 << 24;
        model.heads = model.kvHeads = 1 << 16;
        model.headDim = 1 << 24;
        const auto list = inventory(model);
        QVERIFY(!list.has_value());
        QCOMPARE(list.error().code, std::string("model.size"));
    }
};

QTEST_GUILESS_MAIN(TestInventory)
#include "tst_inventory.moc"
