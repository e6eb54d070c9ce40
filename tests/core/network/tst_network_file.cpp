// SPDX-License-Identifier: Apache-2.0
// Network files: what is wrong in one is said with its place; what they hold scales and is not run blindly. That the
// networks allocate what PyTorch does: tests/core/training/tst_exported_networks.cpp.
#include "core/base/json.h"
#include "core/network/inventory.h"
#include "core/network/model_names.h"
#include "core/network/network.h"
#include "core/network/network_file.h"

#include <QtTest>

#include <QFile>

using namespace memscape;

namespace {

QByteArray exported(const char* name)
{
    QFile file(QString(TEST_DATA) + "/pytorch/networks/" + name + ".json");
    if (!file.open(QIODevice::ReadOnly))
        qFatal("no %s", qPrintable(file.fileName()));
    return file.readAll();
}

Result<NetworkFile> read(const QByteArray& text)
{
    MEMSCAPE_TRY(json, parseJson(text.toStdString()));
    return networkFileFromJson(JsonReader(json));
}

/// A linear layer, its input and loss; `from` replaced by `to`.
QByteArray small(const char* from = "", const char* to = "")
{
    QByteArray text = R"({"format": "memscape-network", "version": 1, "name": "Small", "torch": "2.6", "batch": 2,
        "sequence": 0, "scales": {"batch": true, "sequence": false}, "modules": [{"path": "", "type": "Small"}],
        "parameters": [{"id": 0, "name": "weight", "shape": [5, 4], "dtype": "float32", "trained": true}], "buffers": [],
        "inputs": [{"id": 1, "name": "x", "role": "input", "shape": [[0, 1, 0, 0], 4], "dtype": "weights"}],
        "program": [{"enter": ""},
            {"op": "linear", "in": [1, 0], "out": [{"id": 2, "shape": [[0, 1, 0, 0], 5], "dtype": "weights"}]},
            {"op": "sum", "in": [2], "out": [{"id": 3, "shape": [], "dtype": "weights"}], "dims": [], "keep": false},
            {"leave": 2}], "output": 2, "loss": 3, "returns_loss": true, "assumptions": []})";
    if (*from) {
        if (text.count(from) != 1)
            qFatal("%s is there %d times", from, int(text.count(from)));
        text.replace(from, to);
    }
    return text;
}

BuildOptions batchOf(std::int64_t batch)
{
    BuildOptions options;
    options.batch = batch;
    return options;
}

} // namespace

class TestNetworkFile : public QObject
{
    Q_OBJECT

private slots:
    void aFileIsAModelLikeAnyOther()
    {
        const auto model = readModel(std::string(TEST_DATA) + "/pytorch/networks/gpt2.json");
        QVERIFY2(model, model ? "" : model.error().text().c_str());
        QCOMPARE(model->title, std::string("GPT2LMHeadModel"));
        QVERIFY(!model->assumptions.empty());
        const auto list = inventory(*model);
        QVERIFY(list);
        QCOMPARE(list->total, 211 * 48 + 64 * 48 + 2 * (12 * 48 * 48 + 13 * 48) + 2 * 48); // the head is the table
        const auto graph = buildNetwork(*model, {.batch = 2, .sequence = 16});
        QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
        QCOMPARE(graph->parameterCount(), list->total);
        QCOMPARE(graph->blocks.size(), 2);
        const auto paths = graph->paths();
        QVERIFY(std::find(paths.begin(), paths.end(), "transformer.h.1.attn.c_attn") != paths.end());
    }

    void whatIsWrongIsSaid_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const QByteArray& text, const char* code, const char* place,
                            const char* says) { QTest::newRow(name) << text << code << place << says; };
        row("version", small("\"version\": 1", "\"version\": 2"), "network_file.version", "", "version 2");
        row("operator", small("\"linear\"", "\"lineer\""), "network_file.operator", "program[1]", "\"lineer\"");
        row("unknown tensor", small("\"in\": [1, 0]", "\"in\": [1, 7]"), "network_file.tensor", "program[1].in[1]",
            "tensor 7");
        row("negative id", small("\"in\": [1, 0]", "\"in\": [-1, 0]"), "network_file.tensor", "program[1].in[0]",
            "tensor -1");
        row("huge id", small("\"id\": 3", "\"id\": 9000000000"), "network_file.tensor", "program[2].out[0].id",
            "9000000000");
        row("made twice", small("\"id\": 3", "\"id\": 2"), "network_file.tensor", "program[2].out[0].id", "twice");
        row("freed and used", small("{\"op\": \"sum\"", "{\"free\": [2]}, {\"op\": \"sum\""), "network_file.tensor",
            "program[3].in[0]", "tensor 2");
        row("negative size", small("[5, 4]", "[5, -4]"), "network_file.size", "parameters[0].shape[1]", "-4");
        row("huge size", small("[5, 4]", "[5, 4000000000000]"), "network_file.size", "parameters[0].shape[1]", "2^40");
        row("parts", small("[[0, 1, 0, 0], 4]", "[[0, 1], 4]"), "network_file.size", "inputs[0].shape[0]",
            "four parts");
        row("dimensions", small("[5, 4]", "[1, 1, 1, 1, 1, 5, 4]"), "network_file.size", "parameters[0].shape", "7");
        row("type", small("\"shape\": [5, 4], \"dtype\": \"float32\"", "\"shape\": [5, 4], \"dtype\": \"quaternion\""),
            "network_file.tensor", "parameters[0]", "quaternion");
        row("never left", small(",\n            {\"leave\": 2}", ""), "network_file.modules", "", "ends within");
        row("left twice", small("{\"leave\": 2}", "{\"leave\": 2}, {\"leave\": 2}"), "network_file.modules",
            "program[4]", "none was entered");
        row("foreign module", small("{\"enter\": \"\"}", "{\"enter\": \"h\"}"), "network_file.modules", "program[0]",
            "\"h\"");
        row("step", small("{\"leave\": 2}", "{\"go\": 2}"), "network_file.operator", "program[3]", "none of");
        row("dimension", small("\"dims\": []", "\"dims\": [9]"), "network_file.size", "program[2].dims[0]", "9");
        row("nothing to keep", small("\"op\": \"sum\"", "\"op\": \"other\""), "network_file.operator", "program[2]",
            "keeps");
        row("no result", small("\"output\": 2, \"loss\": 3", "\"output\": null, \"loss\": null"), "network_file.tensor",
            "", "neither");
        row("no program", small("\"program\"", "\"programme\""), "json.missing", "program", "program");
        row("text for a number", small("\"batch\": 2,", "\"batch\": \"two\","), "json.type", "batch", "\"two\"");
    }

    void whatIsWrongIsSaid()
    {
        QFETCH(QByteArray, text);
        QFETCH(QString, code);
        QFETCH(QString, place);
        QFETCH(QString, says);
        const auto file = read(text);
        QVERIFY(!file);
        QCOMPARE(QString::fromStdString(file.error().code), code);
        QCOMPARE(QString::fromStdString(file.error().place), place);
        QVERIFY2(QString::fromStdString(file.error().text()).contains(says), file.error().text().c_str());
    }

    void whatDoesNotFitIsSaid_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("says");
        QTest::newRow("sizes of a product") << small("[5, 4]", "[5, 3]") << "a linear layer for 3 inputs was given 4";
        QTest::newRow("another result") << small("[[0, 1, 0, 0], 5]", "[[0, 1, 0, 0], 6]")
                                        << "makes (2, 5), the file says (2, 6)";
        QTest::newRow("an input less") << small("\"in\": [1, 0]", "\"in\": [1]") << "\"linear\" has 1 inputs";
        QTest::newRow("dimension") << small("\"dims\": []", "\"dims\": [4]") << "dimension 4 of a tensor of 2";
        QTest::newRow("negative") << small("[[0, 1, 0, 0], 5]", "[[-9, 1, 0, 0], 5]") << "\"linear\" makes is negative";
    }

    void whatDoesNotFitIsSaid()
    {
        QFETCH(QByteArray, text);
        QFETCH(QString, says);
        const auto file = read(text);
        QVERIFY2(file, file ? "" : file.error().text().c_str());
        ModelDescription model;
        model.family = Family::Traced;
        model.program = std::make_shared<const NetworkFile>(*file);
        const auto graph = buildNetwork(model, batchOf(2));
        QVERIFY(!graph);
        QVERIFY2(QString::fromStdString(graph.error().text()).contains(says), graph.error().text().c_str());
    }

    void aCutFileIsAnError()
    {
        const QByteArray whole = exported("odd");
        QVERIFY(read(whole));
        for (qsizetype size = 0; size < whole.size() - 2; size += 173)
            QVERIFY(!read(whole.left(size)));
    }

    void sizesFollowTheBatchAndTheSequence()
    {
        const auto model = readModel(std::string(TEST_DATA) + "/pytorch/networks/gpt2.json");
        for (const auto& [batch, sequence] : {std::pair{1, 1}, {7, 16}, {2, 64}}) {
            const auto graph = buildNetwork(*model, {.batch = batch, .sequence = sequence});
            QVERIFY2(graph, graph ? "" : graph.error().text().c_str());
            QCOMPARE(graph->layoutOf(graph->output).shape, (Shape{batch, sequence, 211}));
        }
    }

    void anotherBatchIsRefusedWhereItWasNotTraced()
    {
        ModelDescription model;
        model.family = Family::Traced;
        model.program = std::make_shared<const NetworkFile>(*read(small("{\"batch\": true", "{\"batch\": false")));
        QVERIFY(buildNetwork(model, batchOf(2)));
        const auto graph = buildNetwork(model, batchOf(3));
        QVERIFY(!graph);
        QCOMPARE(graph.error().code, std::string("network_file.scale"));
        QCOMPARE(graph.error().remedy->value, std::string("2"));
    }

    void withoutALossItsOperatorsDoNotRun()
    {
        ModelDescription model;
        model.family = Family::Traced;
        model.program = std::make_shared<const NetworkFile>(*read(small()));
        const auto has = [](const Graph& graph, OperatorKind kind) {
            return std::any_of(graph.operators.begin(), graph.operators.end(),
                               [kind](const Operator& op) { return op.kind == kind; });
        };
        BuildOptions options = batchOf(2);
        QVERIFY(has(*buildNetwork(model, options), OperatorKind::Sum));
        options.loss = false;
        const auto forward = buildNetwork(model, options);
        QVERIFY(has(*forward, OperatorKind::Mm) && !has(*forward, OperatorKind::Sum));
    }
};

QTEST_GUILESS_MAIN(TestNetworkFile)
#include "tst_network_file.moc"
