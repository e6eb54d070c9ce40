// SPDX-License-Identifier: Apache-2.0
#include "tests/support/measured_networks.h"

#include "core/network/families/gpt2.h"
#include "tests/support/networks/bert.h"
#include "tests/support/networks/classifier.h"
#include "tests/support/networks/encoder_layer.h"
#include "tests/support/networks/llama.h"
#include "tests/support/networks/mobilenet.h"
#include "tests/support/networks/resnet.h"
#include "tests/support/networks/vgg.h"

#include <QJsonArray>

namespace memscape {

namespace {

std::int64_t integer(const QJsonObject& object, const char* key, std::int64_t fallback = 0)
{
    return object.contains(key) ? object[key].toInteger() : fallback;
}

Gpt2Shape gpt2Shape(const QJsonObject& config)
{
    Gpt2Shape shape;
    shape.hidden = integer(config, "h");
    shape.heads = integer(config, "heads");
    shape.layers = integer(config, "L");
    shape.vocabulary = integer(config, "V");
    shape.positions = integer(config, "smax", integer(config, "S"));
    const QString activation = config["act"].toString();
    if (activation == "relu")
        shape.activation = OperatorKind::Relu;
    shape.isActivationComposite = activation == "gelu_new_py";
    return shape;
}

LlamaShape llamaShape(const QJsonObject& config)
{
    LlamaShape shape;
    shape.hidden = integer(config, "h");
    shape.heads = integer(config, "heads");
    shape.keyValueHeads = integer(config, "kv_heads");
    shape.feedForward = integer(config, "ffn");
    shape.layers = integer(config, "L");
    shape.vocabulary = integer(config, "V");
    shape.positions = integer(config, "S");
    shape.isAttentionInline = true;
    shape.repeatsHeads = config["attn"].toString() != "flash_gqa";
    return shape;
}

BertShape bertShape(const QString& name, const QJsonObject& config)
{
    BertShape shape;
    shape.hidden = integer(config, "h");
    shape.heads = integer(config, "heads");
    shape.layers = integer(config, "L");
    shape.vocabulary = integer(config, "V");
    shape.positions = integer(config, "smax");
    shape.hasPooler = name != "bert_layer_stack";
    return shape;
}

ClassifierShape classifierShape(const QJsonObject& config)
{
    ClassifierShape shape;
    shape.sizes.clear();
    for (const QJsonValue& size : config["sizes"].toArray())
        shape.sizes.push_back(size.toInteger());
    const QString activation = config["act"].toString("relu");
    shape.hasActivation = activation != "none";
    shape.isInPlace = activation == "relu_";
    if (activation == "gelu")
        shape.activation = OperatorKind::Gelu;
    if (activation == "silu")
        shape.activation = OperatorKind::Silu;
    if (activation == "tanh")
        shape.activation = OperatorKind::Tanh;
    shape.hasBias = config["bias"].toBool(true);
    return shape;
}

VggShape vggShape(const QString& name, const QJsonObject& config)
{
    VggShape shape;
    shape.image = integer(config, "image");
    if (name == "vgg_small") {
        shape.features = {32, 0, 64, 0, 128, 128, 0};
        shape.hidden = 256;
        shape.classes = 10;
    }
    return shape;
}

EncoderStackShape encoderShape(const QJsonObject& config)
{
    return {integer(config, "h"), integer(config, "heads"), integer(config, "ffn"), integer(config, "L"),
            config["norm_first"].toBool()};
}

} // namespace

BuildOptions measuredOptions(const QString& name, const QString& mode, const QJsonObject& config)
{
    BuildOptions options;
    options.rules = EagerRules::torch113OnCpu();
    options.rules.meanSavesInput = config["mean"].toString() == "1.13";
    options.rules.meanIsSumAndQuotient = !options.rules.meanSavesInput;
    options.rules.dropoutSavesNoise = config["dropout_kind"].toString() == "cpu";
    options.batch = integer(config, "B");
    options.sequence = integer(config, "S");
    options.dropout = config["dropout"].toDouble(name == "vgg_small" ? 0.5 : 0);
    options.logitsInFloat = config["loss"].toString().contains("logits.float()");
    if (config.contains("attn"))
        options.attention = AttentionKernel::Flash;
    if (mode == "bf16_pure")
        options.weights = DType::BFloat16;
    if (mode == "cuda_amp_emu")
        options.autocast = DType::BFloat16;
    return options;
}

Result<Graph> measuredNetwork(const QString& name, const QJsonObject& config, const BuildOptions& options)
{
    if (name.startsWith("gpt2_block")) {
        NetworkBuilder b(options);
        const Gpt2Shape shape = gpt2Shape(config);
        const Variable x = b.input("x", {options.batch, options.sequence, shape.hidden}, options.weights, true);
        return b.finish(gpt2Block(b, shape, x));
    }
    if (name.startsWith("gpt2"))
        return gpt2(gpt2Shape(config), options);
    if (name.startsWith("llama"))
        return llama(llamaShape(config), options);
    if (name.startsWith("bert"))
        return bert(bertShape(name, config), options);
    if (name.startsWith("mlp"))
        return classifier(classifierShape(config), options);
    if (name == "resnet50")
        return resNet({{3, 4, 6, 3}, 64, integer(config, "image"), 1000}, options);
    if (name.startsWith("vgg"))
        return vgg(vggShape(name, config), options);
    if (name == "mobilenet_v1")
        return mobileNetV1({integer(config, "image"), 1000}, options);
    if (name == "mobilenet_v2")
        return mobileNetV2({integer(config, "image"), 1000}, options);
    if (name == "nn.TransformerEncoderLayer")
        return encoderStack(encoderShape(config), options, true);
    return fail("test.family", "no family records " + name.toStdString());
}

} // namespace memscape
