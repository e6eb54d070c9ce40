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

#include <map>

using namespace memscape;

namespace {

Json measured()
{
    const auto text = readFile(TEST_DATA "/models/saved_bytes.json");
    const auto json = text ? parseJson(*text) : Result<Json>(tl::unexpected(text.error()));
    return json ? (*json)["results"] : Json::array();
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
        config["model_type"] = each["model_type"];
        const auto model = modelFromConfig(JsonReader(config), "measured");
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        const auto graph = buildNetwork(*model, optionsOf(each));
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        QCOMPARE(graph->parameterCount(), each["parameter_count"].get<std::int64_t>());
        const SavedBytes saved = savedBytes(*graph);
        std::int64_t expected = each["activations"].get<std::int64_t>();
        // A CPU keeps batch statistics in bfloat16, CUDA in float: as many bytes more as the
        // running ones have.
        if (each["model_type"] == "resnet" && each["dtype"] == "bfloat16")
            expected += each["buffers"].get<std::int64_t>();
        QCOMPARE(saved.activations, expected);
        QCOMPARE(saved.inputs, each["inputs"].get<std::int64_t>());
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
        options.sequence = 8;
        const auto graph = buildNetwork(*description, options);
        QVERIFY2(graph.has_value(), graph ? "" : graph.error().text().c_str());
        const auto list = inventory(*description);
        QCOMPARE(graph->parameterCount(), list->total);
        QVERIFY(graph->loss != noTensor);
    }
};

QTEST_GUILESS_MAIN(TestFamilies)
#include "tst_families.moc"
