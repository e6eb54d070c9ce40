// SPDX-License-Identifier: Apache-2.0
// What whole networks keep for backward, to the byte, against a real PyTorch 1.13 on a CPU: every
// model of tests/data/pytorch/saved_bytes.json.
//
// Artefacts of that PyTorch, the only differences that are allowed:
//   * mode cpu_autocast follows the CPU's operator lists, which are not CUDA's: not compared;
//   * use_reentrant=False keeps the inputs of checkpointed blocks through a Python closure, which
//     the measurement could not see: they are counted here and subtracted in the comparison;
//   * factors of products with numbers are 0-dimensional host tensors: `scalars` are not compared.
#include "tests/support/measured_networks.h"
#include "tests/support/saved_bytes.h"

using namespace memscape;

namespace {

std::int64_t integer(const QJsonObject& object, const char* key)
{
    return object[key].toInteger();
}

} // namespace

class TestSavedNetworks : public QObject
{
    Q_OBJECT

private slots:
    void packWhatPyTorchPacks_data()
    {
        QTest::addColumn<QJsonObject>("measured");
        for (const QJsonValue& value : measuredSavedBytes()) {
            const QString name = value["name"].toString();
            if (!name.startsWith("op:") && value["mode"] != "cpu_autocast")
                QTest::addRow("%s %s %s", qPrintable(name), qPrintable(value["mode"].toString()),
                              QJsonDocument(value["config"].toObject()).toJson(QJsonDocument::Compact).constData())
                    << value.toObject();
        }
    }

    void packWhatPyTorchPacks()
    {
        QFETCH(QJsonObject, measured);
        const QJsonObject config = measured["config"].toObject();
        const QString name = measured["name"].toString();
        const auto graph = measuredNetwork(name, config, measuredOptions(name, measured["mode"].toString(), config));
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        QCOMPARE(graph->parameterCount(), measured["params"].toInteger());
        QCOMPARE(graph->parameterBytes(), measured["param_bytes"].toInteger());

        const QString checkpoint = config["checkpoint"].toString();
        const SavedBytes saved = checkpoint.isEmpty() ? savedBytes(*graph) : savedBytesOfLayers(*graph);
        std::int64_t invisible = 0;
        if (checkpoint == "nonreentrant")
            invisible = integer(config, "L") * integer(config, "B") * integer(config, "S") * integer(config, "h") * 4;
        const QByteArray found = text(saved).toUtf8();
        QVERIFY2(saved.activations - invisible == measured["saved_activation_bytes"].toInteger(), found);
        QVERIFY2(saved.inputs == measured["saved_model_input_bytes"].toInteger(), found);
        QVERIFY2(saved.weightCasts == measured["saved_weight_cast_bytes"].toInteger(), found);
        QVERIFY2(saved.buffers == measured["saved_buffer_bytes"].toInteger(), found);
        QVERIFY2(saved.parameters == measured["saved_param_bytes"].toInteger(), found);
    }
};

QTEST_GUILESS_MAIN(TestSavedNetworks)
#include "tst_saved_networks.moc"
