// SPDX-License-Identifier: Apache-2.0
// Reading a config.json: the traps of real files (nested text_config, explicit head_dim, one
// key/value head, sliding windows, vendors' names for experts), what is assumed and said, and what
// is refused with the field's name.
#include "core/network/inventory.h"
#include "core/network/model_config.h"

#include <QtTest>

#include <fmt/format.h>

using namespace memscape;

namespace {

Result<ModelDescription> read(const std::string& text, UnknownArchitecture unknown = UnknownArchitecture::Refused)
{
    const auto json = parseJson(text);
    if (!json)
        return tl::unexpected(json.error());
    return modelFromConfig(JsonReader(*json), "test", unknown);
}

/// A LLaMA configuration with `extra` put in: `"head_dim": 7`.
std::string llama(const std::string& extra = {})
{
    Json json = Json::parse(R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 4,
        "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1000,
        "max_position_embeddings": 128, "tie_word_embeddings": false})");
    if (!extra.empty())
        json.update(Json::parse("{" + extra + "}"));
    return json.dump();
}

bool says(const ModelDescription& model, const char* part)
{
    for (const std::string& sentence : model.assumptions) {
        if (sentence.find(part) != std::string::npos)
            return true;
    }
    return false;
}

std::int64_t total(const ModelDescription& model)
{
    return inventory(model)->total;
}

} // namespace

class TestModelConfig : public QObject
{
    Q_OBJECT

private slots:
    void readsPlainSizes()
    {
        const auto model = read(llama());
        QVERIFY(model.has_value());
        QCOMPARE(model->headDim, std::int64_t(32));
        QCOMPARE(model->kvHeads, std::int64_t(2));
        QVERIFY(model->assumptions.empty());
        // 4 layers: q, o 256×256; k, v 64×256; three 512×256; two norms; then embedding, norm,
        // head.
        QCOMPARE(total(*model), std::int64_t(4 * (2 * 65536 + 2 * 16384 + 3 * 131072 + 512) + 2 * 256000 + 256));
    }

    void takesAnExplicitHeadDim()
    {
        QCOMPARE(read(llama(R"("head_dim": 128)"))->headDim, std::int64_t(128));
        QCOMPARE(read(llama(R"("head_dim": null)"))->headDim, std::int64_t(32));
        // 100 is no multiple of 8, but with its own head_dim that is no contradiction.
        QVERIFY(read(llama(R"("hidden_size": 100, "head_dim": 16)")).has_value());
    }

    /// Qwen's configurations count both of the feed-forward layer's matrices, and have no key/value heads. Totals:
    /// Hugging Face, Qwen-1_8B, Qwen-7B and Qwen-72B.
    void qwenOf2023()
    {
        const auto qwen = [](std::string sizes) {
            return read(R"({"model_type": "qwen", "kv_channels": 128, "no_bias": true, "tie_word_embeddings": false, )"
                        + std::move(sizes) + "}");
        };
        const auto small = qwen(R"("hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 24,
            "num_attention_heads": 16, "vocab_size": 151936)");
        QVERIFY2(small.has_value(), small ? "" : small.error().text().c_str());
        QCOMPARE(small->ffn, std::int64_t(5504));
        QCOMPARE(total(*small), std::int64_t(1836828672));
        QCOMPARE(total(*qwen(R"("hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
            "num_attention_heads": 32, "vocab_size": 151936)")),
                 std::int64_t(7721324544));
        const auto large = qwen(R"("hidden_size": 8192, "intermediate_size": 49152, "num_hidden_layers": 80,
            "num_attention_heads": 64, "vocab_size": 152064)");
        QCOMPARE(large->kvHeads, std::int64_t(64));
        QCOMPARE(total(*large), std::int64_t(72287920128));
    }

    void findsTheLanguageModelInsideAnother()
    {
        const auto model = read(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
            "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024},
            "vision_config": {"hidden_size": 1152}, "torch_dtype": "bfloat16"})");
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        QCOMPARE(total(*model), std::int64_t(3880263168)); // gemma-3-4b's language model
        QCOMPARE(model->storedDtype, std::string("bfloat16"));
        QVERIFY(says(*model, "vision_config is not counted"));
        QVERIFY(says(*model, "num_attention_heads is not given: 8"));
        QVERIFY(model->isSliding(0));
        QVERIFY(!model->isSliding(5));
        QVERIFY(!model->isSliding(11));
    }

    void tiesFromTheOuterObject()
    {
        const auto model = read(R"({"model_type": "llava", "tie_word_embeddings": true, "text_config": )" + [] {
            Json inner = Json::parse(llama());
            inner.erase("tie_word_embeddings");
            return inner.dump();
        }() + "}");
        QVERIFY(model->tied);
    }

    void oneKeyValueHead()
    {
        QCOMPARE(read(llama(R"("num_key_value_heads": 1)"))->kvHeads, std::int64_t(1));
        QCOMPARE(read(llama(R"("num_key_value_heads": null)"))->kvHeads, std::int64_t(8));
        QCOMPARE(read(llama(R"("num_key_value_heads": null, "multi_query": true)"))->kvHeads, std::int64_t(1));
    }

    void slidingWindows()
    {
        const auto layers = [](const char* extra) {
            const auto model = read(llama(extra));
            std::string text;
            for (std::int64_t i = 0; i < model->layers; ++i)
                text += model->isSliding(i) ? 's' : 'f';
            return text;
        };
        QCOMPARE(layers(R"("model_type": "mistral", "sliding_window": 64)"), std::string("ssss"));
        QCOMPARE(layers(R"("model_type": "mistral", "sliding_window": null)"), std::string("ffff"));
        QCOMPARE(layers(R"("model_type": "mistral")"), std::string("ssss"));
        QCOMPARE(layers(R"("model_type": "gemma2", "sliding_window": 64)"), std::string("sfsf"));
        QCOMPARE(layers(R"("model_type": "gemma3_text", "sliding_window": 64, "sliding_window_pattern": 3)"),
                 std::string("ssfs"));
        QCOMPARE(layers(R"("model_type": "qwen2", "sliding_window": 64)"), std::string("ffff"));
        QCOMPARE(
            layers(
                R"("model_type": "qwen2", "sliding_window": 64, "use_sliding_window": true, "max_window_layers": 1)"),
            std::string("fsss"));
        QCOMPARE(layers(R"("sliding_window": 64, "layer_types":
            ["full_attention", "sliding_attention", "full_attention", "full_attention"])"),
                 std::string("fsff"));
        const auto linear = read(llama(R"("sliding_window": 64, "layer_types":
            ["linear_attention", "linear_attention", "linear_attention", "full_attention"])"));
        QVERIFY(says(*linear, "3 layers are neither full nor sliding"));
        QVERIFY(!linear->isSliding(0));
    }

    void expertsUnderEveryVendorsNames_data()
    {
        QTest::addColumn<QString>("extra");
        QTest::newRow("mixtral") << R"("model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2)";
        QTest::newRow("qwen")
            << R"("model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 512)";
        QTest::newRow("deepseek") << R"("model_type": "deepseek_v2", "n_routed_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 512, "kv_lora_rank": 32, "q_lora_rank": null, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8)";
        QTest::newRow("not known") << R"("model_type": "unlisted", "num_experts": 4, "moe_topk": 2)";
    }
    void expertsUnderEveryVendorsNames()
    {
        QFETCH(QString, extra);
        const auto model = read(llama(extra.toStdString()), UnknownArchitecture::LikeLlama);
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        QCOMPARE(model->experts.count, std::int64_t(4));
        QCOMPARE(model->experts.active, std::int64_t(2));
        QCOMPARE(model->experts.ffn, std::int64_t(512));
        const auto list = inventory(*model);
        QCOMPARE(list->total - list->active,
                 std::int64_t(4 * 3 * 2 * 512 * 256)); // 4 layers, 2 idle experts
    }

    void denseLayersAmongExperts()
    {
        const auto sparse = [](const char* extra) {
            const auto model = read(llama(extra));
            std::string text;
            for (std::int64_t i = 0; i < model->layers; ++i)
                text += model->isSparse(i) ? 'e' : 'd';
            return text;
        };
        const std::string deepseek =
            R"("model_type": "deepseek_v3", "n_routed_experts": 4, "num_experts_per_tok": 2, )";
        QCOMPARE(sparse((deepseek + R"("first_k_dense_replace": 1)").c_str()), std::string("deee"));
        QCOMPARE(sparse((deepseek + R"("first_k_dense_replace": 3, "moe_layer_freq": 1)").c_str()),
                 std::string("ddde"));
        const std::string qwen =
            R"("model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, )";
        QCOMPARE(sparse((qwen + R"("decoder_sparse_step": 2)").c_str()), std::string("dede"));
        QCOMPARE(sparse((qwen + R"("mlp_only_layers": [0, 3])").c_str()), std::string("deed"));
    }

    void anUnknownArchitectureIsRefused()
    {
        const auto model = read(llama(R"("model_type": "lama")"));
        QVERIFY(!model);
        QCOMPARE(model.error().code, std::string("model.architecture"));
        QCOMPARE(model.error().place, std::string("model_type"));
        const QString hint = QString::fromStdString(model.error().hint);
        QVERIFY2(hint.contains(QStringLiteral("llama")) && hint.contains(QStringLiteral("assume=llama")),
                 model.error().hint.c_str());
        QVERIFY(!read(R"({"hidden_size": 64})")); // no model_type at all
    }

    void anAssumedArchitectureIsSaid()
    {
        const auto model = read(llama(R"("model_type": "frobnicator9")"), UnknownArchitecture::LikeLlama);
        QVERIFY(model.has_value());
        QVERIFY(QString::fromStdString(model->caution).contains(QStringLiteral("\"frobnicator9\" is not known")));
        QVERIFY(QString::fromStdString(model->caution).contains(QStringLiteral("like LLaMA")));
        QVERIFY(read(llama(R"("model_type": "llama")"))->caution.empty());
    }

    void quantizedWeightsAreSaid()
    {
        QVERIFY(says(*read(llama(R"("quantization_config": {"quant_method": "gptq", "bits": 4})")), "gptq"));
        QVERIFY(says(*read(llama(R"("quantization_config": {})")), "quantized"));
    }

    void headsFollowTheClass()
    {
        const std::string bert =
            R"({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, )";
        QCOMPARE(total(*read(bert + R"("architectures": ["BertModel"]})")), std::int64_t(109482240));
        QCOMPARE(total(*read(bert + R"("architectures": ["BertForMaskedLM"]})")), std::int64_t(109514298));
        QCOMPARE(total(*read(bert + R"("architectures": ["BertForSequenceClassification"], "num_labels": 2})")),
                 std::int64_t(109483778));
        QCOMPARE(total(*read(llama(R"("architectures": ["LlamaModel"])"))), total(*read(llama())) - 256000);
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        const auto row = [](const char* name, const std::string& text, const char* code, const char* place) {
            QTest::newRow(name) << QString::fromStdString(text) << code << place;
        };
        row("nothing", "{}", "config.missing", "model_type");
        row("an array", "[]", "json.type", "");
        row("a record", R"({"format": "memscape-record"})", "config.missing", "model_type");
        row("no hidden size", R"({"model_type": "llama"})", "config.missing", "hidden_size");
        row("no layers", R"({"model_type": "llama", "hidden_size": 64})", "config.missing", "num_hidden_layers");
        row("nothing to assume", R"({"model_type": "frob", "hidden_size": 64, "num_hidden_layers": 2})",
            "config.missing", "vocab_size");
        row("nested", R"({"text_config": {"model_type": "llama", "hidden_size": 0}})", "model.range",
            "text_config.hidden_size");
        row("heads", llama(R"("num_attention_heads": 7, "num_key_value_heads": 7)"), "model.contradiction",
            "num_attention_heads");
        row("key/value heads", llama(R"("num_key_value_heads": 3)"), "model.contradiction", "num_key_value_heads");
        row("more key/value heads", llama(R"("num_key_value_heads": 16)"), "model.contradiction",
            "num_key_value_heads");
        row("a trillion layers", llama(R"("num_hidden_layers": 1000000000000)"), "model.range", "num_hidden_layers");
        row("beyond integers", llama(R"("num_hidden_layers": 1e300)"), "model.range", "num_hidden_layers");
        row("ten million layers", llama(R"("num_hidden_layers": 10000000)"), "model.range", "num_hidden_layers");
        row("ten million layers under another name",
            R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 10000000, "n_head": 4})", "model.range", "n_layer");
        row("many heads inside another object",
            R"({"text_config": {"model_type": "llama", "hidden_size": 131072, "num_hidden_layers": 1,
            "num_attention_heads": 131072, "intermediate_size": 8, "vocab_size": 8}})",
            "model.range", "text_config.num_attention_heads");
        row("wide experts", llama(R"("model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 2147483648)"),
            "model.range", "moe_intermediate_size");
        row("negative", llama(R"("vocab_size": -5)"), "model.range", "vocab_size");
        row("zero", llama(R"("intermediate_size": 0)"), "model.range", "intermediate_size");
        row("zero heads", llama(R"("num_attention_heads": 0)"), "model.range", "num_attention_heads");
        row("a fraction", llama(R"("hidden_size": 256.5)"), "json.type", "hidden_size");
        row("a text", llama(R"("hidden_size": "256")"), "json.type", "hidden_size");
        row("a list", llama(R"("hidden_size": [256])"), "json.type", "hidden_size");
        row("a flag as a word", llama(R"("tie_word_embeddings": "yes")"), "json.type", "tie_word_embeddings");
        row("wide", llama(R"("hidden_size": 2147483648)"), "model.range", "hidden_size");
        row("rotating more than a head", llama(R"("partial_rotary_factor": 1e300)"), "model.range",
            "partial_rotary_factor");
        row("layer types", llama(R"("sliding_window": 8, "layer_types": ["full_attention"])"), "model.contradiction",
            "layer_types");
        row("layer types of numbers", llama(R"("sliding_window": 8, "layer_types": [1, 2, 3, 4])"), "json.type",
            "layer_types[0]");
        row("more active experts than there are", llama(R"("model_type": "mixtral", "num_experts_per_tok": 9)"),
            "model.contradiction", "num_experts_per_tok");
        row("a picture smaller than a patch",
            R"({"model_type": "vit", "hidden_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "image_size": 8})",
            "model.range", "patch_size");
        row("patches that do not tile",
            R"({"model_type": "vit", "hidden_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "image_size": 100})",
            "model.contradiction", "patch_size");
        row("no depths", R"({"model_type": "resnet"})", "config.missing", "depths");
        row("depths without widths", R"({"model_type": "resnet", "depths": [1, 2], "hidden_sizes": [64]})",
            "model.contradiction", "depths");
        row("a decoder of other heads", R"({"model_type": "whisper", "d_model": 64, "encoder_layers": 2,
            "encoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_attention_heads": 8})",
            "model.contradiction", "decoder_attention_heads");
        const auto swin = [](const char* more) {
            return fmt::format(R"({{"model_type": "swin", "embed_dim": 96, "patch_size": 4, {}}})", more);
        };
        row("stages without depths", swin(R"("image_size": 224, "num_heads": [3])"), "config.missing", "depths");
        row("windows that do not tile", swin(R"("image_size": 100, "depths": [2, 2], "num_heads": [3, 6])"),
            "model.contradiction", "image_size");
        row("heads that do not divide a stage", swin(R"("image_size": 224, "depths": [2, 2], "num_heads": [3, 7])"),
            "model.contradiction", "num_heads");
        row("a ratio beyond numbers", swin(R"("image_size": 224, "depths": [2], "num_heads": [3], "mlp_ratio": 1e300)"),
            "model.contradiction", "mlp_ratio");
        row("a window beyond numbers", swin(R"("image_size": 65536, "window_size": 16384, "depths": [2],
            "num_heads": [3])"),
            "model.range", "window_size");
        row("a wide EfficientNet", R"({"model_type": "efficientnet", "width_coefficient": 1e9})", "model.range",
            "width_coefficient");
        row("no depth", R"({"model_type": "efficientnet", "depth_coefficient": 0})", "model.range",
            "depth_coefficient");
        row("no dense blocks", R"({"model_type": "densenet"})", "config.missing", "block_config");
        row("a Mamba of many channels", R"({"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 1,
            "vocab_size": 8, "expand": 2000000000})",
            "model.range", "expand");
        const auto llava = [](const char* tower) {
            return fmt::format(R"({{"model_type": "llava", "text_config": {{"model_type": "llama", "vocab_size": 8}},
                "vision_config": {}}})",
                               tower);
        };
        row("another vision tower", llava(R"({"model_type": "siglip_vision_model"})"), "model.contradiction",
            "vision_config.model_type");
        row("a vision tower without sizes", llava("{}"), "config.missing", "vision_config.hidden_size");
        row("a vision tower that is no object", llava("3"), "json.type", "vision_config");
        const auto qwen = [](const char* tower) {
            return fmt::format(R"({{"model_type": "qwen2_5_vl", "vocab_size": 8, "hidden_size": 64,
                "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4,
                "intermediate_size": 64, "vision_config": {{"depth": 1, "hidden_size": 32, "num_heads": 4, "intermediate_size": 48,
                "patch_size": 14, {}}}}})",
                               tower);
        };
        row("pictures that windows do not divide", qwen(R"("image_size": 140)"), "model.contradiction",
            "vision_config.image_size");
        row("windows that tokens do not divide", qwen(R"("window_size": 100, "image_size": 700)"),
            "model.contradiction", "vision_config.window_size");
        row("a tower of another width", qwen(R"("out_hidden_size": 32)"), "model.contradiction",
            "vision_config.out_hidden_size");
        row("a picture of one patch", qwen(R"("image_size": 14)"), "model.contradiction", "vision_config.image_size");
        row("tokens of no patch", qwen(R"("spatial_merge_size": 0)"), "model.range",
            "vision_config.spatial_merge_size");
        const auto unet = [](const char* more) {
            return fmt::format(R"({{"_class_name": "UNet2DConditionModel", "block_out_channels": [32, 64],
                "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"], {}}})",
                               more);
        };
        const char* mirrored = R"("up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"])";
        const auto mirroredUnet = [&](const char* more) { return unet(fmt::format("{}, {}", mirrored, more).c_str()); };
        row("a UNet that goes up otherwise", unet(R"("up_block_types": ["CrossAttnUpBlock2D", "UpBlock2D"])"),
            "model.contradiction", "up_block_types");
        row("SDXL's UNet", mirroredUnet(R"("addition_embed_type": "text_time")"), "model.contradiction",
            "addition_embed_type");
        row("groups that do not divide a level", mirroredUnet(R"("norm_num_groups": 24)"), "model.contradiction",
            "norm_num_groups");
        row("latents that cannot be halved", mirroredUnet(R"("sample_size": 63)"), "model.contradiction",
            "sample_size");
        row("a level too many", mirroredUnet(R"("attention_head_dim": [8, 8, 8])"), "model.contradiction",
            "block_out_channels");
        row("blocks of another kind", R"({"_class_name": "UNet2DConditionModel",
            "down_block_types": ["AttnDownBlock2D"]})",
            "model.contradiction", "down_block_types");
        row("a DiT without a width", R"({"model_type": "dit", "depth": 2, "num_heads": 2})", "config.missing",
            "hidden_size");
        row("heads that do not divide a DiT", R"({"model_type": "dit", "hidden_size": 64, "depth": 2, "num_heads": 3})",
            "model.contradiction", "num_heads");
        row("a tiny picture", R"({"model_type": "alexnet", "image_size": 20})", "model.contradiction", "image size");
    }
    void refuses()
    {
        QFETCH(QString, text);
        QFETCH(QString, code);
        QFETCH(QString, place);
        const auto model = read(text.toStdString(), UnknownArchitecture::LikeLlama);
        const auto list = model ? inventory(*model) : Result<Inventory>(tl::unexpected(model.error()));
        QVERIFY2(!list.has_value(), "accepted");
        QCOMPARE(QString::fromStdString(list.error().code), code);
        QCOMPARE(QString::fromStdString(list.error().place), place);
        QVERIFY(!list.error().message.empty());
    }

    void nanAndBrokenTextAreNotJson()
    {
        for (const char* text : {R"({"model_type": "llama", "hidden_size": NaN})", R"({"hidden_size": 1e999})",
                                 "{\"model_type\": \"\xff\"}", "{", "", "hidden_size: 64"})
            QCOMPARE(read(text).error().code, std::string("json.syntax"));
    }

    /// Any value at any key is an answer or an error with a place: nothing crashes, nothing is
    /// silently zero.
    void everyKeyTakesAnyValue()
    {
        const char* values[] = {"null",       "true", "-1",    "0",  "1",     "3",  "1e15",
                                "2147483648", "0.5",  "\"x\"", "[]", "[1,2]", "{}", "[\"sliding_attention\"]"};
        const Json full = Json::parse(R"({"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 64, "vocab_size": 100,
            "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1,
            "first_k_dense_replace": 1, "moe_layer_freq": 1, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8, "v_head_dim": 8, "sliding_window": 16, "layer_types": null, "mlp_only_layers": [],
            "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false,
            "architectures": ["A"], "torch_dtype": "float32", "quantization_config": null, "text_config": null,
            "partial_rotary_factor": 1, "max_position_embeddings": 10, "decoder_sparse_step": 1, "id2label": null})");
        for (const char* type : {"deepseek_v3", "llama", "bert", "t5", "vit", "gemma2", "qwen2_moe", "resnet", "opt"}) {
            for (const auto& [key, ignored] : full.items()) {
                for (const char* value : values) {
                    Json json = full;
                    json["model_type"] = type;
                    json[key] = Json::parse(value);
                    const auto model = modelFromConfig(JsonReader(json), "test");
                    const auto list = model ? inventory(*model) : Result<Inventory>(tl::unexpected(model.error()));
                    QVERIFY2(list ? list->total > 0 && list->active > 0 && list->active <= list->total
                                  : !list.error().message.empty(),
                             (std::string(type) + ": " + key + ": " + value).c_str());
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestModelConfig)
#include "tst_model_config.moc"
