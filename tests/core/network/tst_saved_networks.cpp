// SPDX-License-Identifier: Apache-2.0
// What whole networks keep for backward, to the byte, against a real PyTorch 1.13 on a CPU: every
// model of tests/data/pytorch/saved_bytes.json.
//
// Artefacts of that PyTorch, the only differences that are allowed:
//   * mode cpu_autocast follows the CPU's operator lists, which are not CUDA's: not compared;
//   * use_reentrant=False keeps the inputs of checkpointed blocks through a Python closure, which
//     the measurement could not see: they are counted here and subtracted in the comparison;
//   * factors of products with numbers are 0-dimensional host tensors: `scalars` are not compared.
#include "core/network/families/gpt2.h"
#include "core/network/families/llama.h"
#include "tests/support/saved_bytes.h"

using namespace memscape;

namespace {

std::int64_t integer(const QJsonObject& object, const char* key, std::int64_t fallback = 0)
{
    return object.contains(key) ? object[key].toInteger() : fallback;
}

BuildOptions optionsFor(const QJsonObject& measured)
{
    const QJsonObject config = measured["config"].toObject();
    BuildOptions options;
    options.rules = EagerRules::torch113OnCpu();
    options.rules.meanSavesInput = config["mean"].toString() == "1.13";
    options.rules.dropoutSavesNoise = config["dropout_kind"].toString() == "cpu";
    options.batch = integer(config, "B");
    options.sequence = integer(config, "S");
    options.dropout = config["dropout"].toDouble();
    options.logitsInFloat = config["loss"].toString().contains("logits.float()");
    if (config.contains("attn"))
        options.attention = AttentionKernel::Flash;
    if (measured["mode"] == "bf16_pure")
        options.weights = DType::BFloat16;
    if (measured["mode"] == "cuda_amp_emu")
        options.autocast = DType::BFloat16;
    return options;
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
    shape.repeatsHeads = config["attn"].toString() != "flash_gqa";
    return shape;
}

Result<Graph> recorded(const QString& name, const QJsonObject& config, const BuildOptions& options)
{
    if (name.startsWith("gpt2_block")) {
        NetworkBuilder b(options);
        const Gpt2Shape shape = gpt2Shape(config);
        const Variable x = b.input("x", {options.batch, options.sequence, shape.hidden},
                                   options.weights, true);
        return b.finish(gpt2Block(b, shape, x));
    }
    if (name.startsWith("gpt2"))
        return gpt2(gpt2Shape(config), options);
    if (name.startsWith("llama"))
        return llama(llamaShape(config), options);
    return fail("test.family", "no family records " + name.toStdString());
}

} // namespace

class TestSavedNetworks : public QObject
{
    Q_OBJECT

private slots:
    void packWhatPyTorchPacks_data();
    void packWhatPyTorchPacks();
};

void TestSavedNetworks::packWhatPyTorchPacks_data()
{
    QTest::addColumn<QJsonObject>("measured");
    for (const QJsonValue& value : measuredSavedBytes()) {
        const QString name = value["name"].toString();
        if ((name.startsWith("gpt2") || name.startsWith("llama")) && value["mode"] != "cpu_autocast")
            QTest::addRow("%s %s %s", qPrintable(name), qPrintable(value["mode"].toString()),
                          QJsonDocument(value["config"].toObject()).toJson(QJsonDocument::Compact)
                              .constData())
                << value.toObject();
    }
}

void TestSavedNetworks::packWhatPyTorchPacks()
{
    QFETCH(QJsonObject, measured);
    const QJsonObject config = measured["config"].toObject();
    const auto graph = recorded(measured["name"].toString(), config, optionsFor(measured));
    QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
    QCOMPARE(graph->parameterCount(), measured["params"].toInteger());
    QCOMPARE(graph->parameterBytes(), measured["param_bytes"].toInteger());

    const QString checkpoint = config["checkpoint"].toString();
    const SavedBytes saved = checkpoint.isEmpty() ? savedBytes(*graph) : savedBytesOfLayers(*graph);
    std::int64_t invisible = 0;
    if (checkpoint == "nonreentrant")
        invisible = integer(config, "L") * integer(config, "B") * integer(config, "S")
            * integer(config, "h") * 4;
    const QByteArray found = text(saved).toUtf8();
    QVERIFY2(saved.activations - invisible == measured["saved_activation_bytes"].toInteger(), found);
    QVERIFY2(saved.inputs == measured["saved_model_input_bytes"].toInteger(), found);
    QVERIFY2(saved.weightCasts == measured["saved_weight_cast_bytes"].toInteger(), found);
    QVERIFY2(saved.buffers == measured["saved_buffer_bytes"].toInteger(), found);
    QVERIFY2(saved.parameters == measured["saved_param_bytes"].toInteger(), found);
}

QTEST_GUILESS_MAIN(TestSavedNetworks)
#include "tst_saved_networks.moc"
