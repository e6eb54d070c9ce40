// SPDX-License-Identifier: Apache-2.0
// Headers of safetensors files: a file written by the safetensors library itself, an index of two,
// and every way in which a header can lie.
#include "core/base/json.h"
#include "core/network/inventory.h"
#include "core/network/model_names.h"
#include "core/network/safetensors.h"

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

using namespace memscape;

namespace {

QByteArray lengthBytes(quint64 length)
{
    QByteArray bytes;
    for (int i = 0; i < 8; ++i)
        bytes.append(char(length >> (8 * i)));
    return bytes;
}

/// A file with this header and `data` bytes after it.
std::string made(QTemporaryDir& folder, const QByteArray& header, int data, const char* name = "x.safetensors")
{
    QFile file(folder.filePath(name));
    if (!file.open(QIODevice::WriteOnly))
        return {};
    file.write(lengthBytes(quint64(header.size())) + header + QByteArray(data, '\0'));
    return folder.filePath(name).toStdString();
}

void writeFile(const QString& path, const QByteArray& content)
{
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
}

} // namespace

class TestSafetensors : public QObject
{
    Q_OBJECT

private slots:
    void readsWhatTheLibraryWrote()
    {
        // Made with safetensors.torch.save_file; see tests/data/models/make_safetensors.py.
        const auto model = readSafetensors(TEST_DATA "/models/tiny.safetensors");
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        QCOMPARE(model->tensors.size(), std::size_t(4));
        QCOMPARE(model->elements, std::int64_t(6 + 8 + 1 + 0));
        QCOMPARE(model->bytes, std::int64_t(6 * 4 + 8 * 2 + 1 * 8));
        QCOMPARE(model->bytesByDtype.at("BF16"), std::int64_t(16));
        QCOMPARE(model->bytesByDtype.at("I64"), std::int64_t(8));
    }

    void aModelWithItsConfiguration()
    {
        // A LLaMA of transformers, saved in two parts: the counts must agree, so nothing is
        // remarked.
        const auto model = readModel(TEST_DATA "/models/tiny-llama/model.safetensors.index.json");
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        QVERIFY(model->stored.has_value());
        QCOMPARE(model->stored->elements, inventory(*model)->total);
        QCOMPARE(model->stored->bytes, 2 * model->stored->elements);
        QCOMPARE(model->storedDtype, std::string("BF16"));
        for (const std::string& sentence : model->assumptions)
            QVERIFY2(sentence.find("the weights hold") == std::string::npos, sentence.c_str());
        const auto stored = readSafetensorsIndex(TEST_DATA "/models/tiny-llama/model.safetensors.index.json");
        QVERIFY(stored->files > 1);
        // Every stored tensor is in the inventory under its own name and shape.
        const auto list = inventory(*model);
        QCOMPARE(list->tensors.size(), stored->tensors.size());
        for (const StoredTensor& tensor : stored->tensors) {
            const auto known = std::find_if(list->tensors.begin(), list->tensors.end(),
                                            [&](const ModelTensor& each) { return each.name == tensor.name; });
            QVERIFY2(known != list->tensors.end(), tensor.name.c_str());
            QCOMPARE(known->shape, tensor.shape);
        }
    }

    void weightsWithoutConfigurationSayWhatTheyHold()
    {
        const auto model = readModel(TEST_DATA "/models/tiny.safetensors");
        QCOMPARE(model.error().code, std::string("config.missing"));
        QVERIFY(model.error().message.find("15 parameters in 4 tensors") != std::string::npos);
        QVERIFY(model.error().hint.find("params:15") != std::string::npos);
    }

    void weightsThatDifferFromTheConfigurationAreSaid()
    {
        QTemporaryDir folder;
        made(folder, R"({"a": {"dtype": "F16", "shape": [3], "data_offsets": [0, 6]}})", 6, "model.safetensors");
        writeFile(folder.filePath("config.json"),
                  R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 10})");
        const auto model = readModel(folder.path().toStdString());
        QVERIFY(model.has_value());
        QCOMPARE(model->stored->bytes, std::int64_t(6));
        QVERIFY(model->assumptions.back().starts_with("the weights hold 3 elements"));
    }

    void smallTypes()
    {
        QTemporaryDir folder;
        const auto path = made(folder, R"({"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]},
            "b": {"dtype": "F8_E8M0", "shape": [2, 2], "data_offsets": [2, 6]}, "__metadata__": {"format": "pt"}})",
                               6);
        const auto model = readSafetensors(path);
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        QCOMPARE(model->elements, std::int64_t(7));
        QCOMPARE(model->bytes, std::int64_t(6));
    }

    void headersThatLie_data()
    {
        QTest::addColumn<QByteArray>("header");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("mentions");
        const auto row = [](const char* name, const char* tensors, const char* code, const char* mentions) {
            QTest::newRow(name) << QByteArray(tensors) << code << mentions;
        };
        row("not JSON", "{]", "json.syntax", "JSON");
        row("not an object", "[1]", "safetensors.header", "JSON");
        row("not UTF-8", "{\"\xff\": 1}", "safetensors.header", "JSON");
        row("a number for a tensor", R"({"a": 3})", "json.type", "a");
        row("no dtype", R"({"a": {"shape": [1], "data_offsets": [0, 4]}})", "json.missing", "dtype");
        row("no shape", R"({"a": {"dtype": "F32", "data_offsets": [0, 4]}})", "json.missing", "shape");
        row("no offsets", R"({"a": {"dtype": "F32", "shape": [1]}})", "json.missing", "data_offsets");
        row("a dtype of its own", R"({"a": {"dtype": "F3", "shape": [1], "data_offsets": [0, 4]}})",
            "safetensors.tensor", "F3");
        row("one offset", R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0]}})", "safetensors.tensor", "two");
        row("a negative size", R"({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})",
            "safetensors.tensor", "negative");
        row("a fraction", R"({"a": {"dtype": "F32", "shape": [1.5], "data_offsets": [0, 4]}})", "json.type", "shape");
        row("overflow",
            R"({"a": {"dtype": "F32", "shape": [9007199254740992, 9007199254740992], "data_offsets": [0, 4]}})",
            "safetensors.tensor", "more elements");
        row("overflow to zero", R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0]}})",
            "safetensors.tensor", "more elements");
        row("bits overflow", R"({"a": {"dtype": "F64", "shape": [1073741824, 1073741824], "data_offsets": [0, 0]}})",
            "safetensors.tensor", "more elements");
        row("too many dimensions",
            R"({"a": {"dtype": "F32", "shape": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], "data_offsets": [0, 4]}})",
            "safetensors.tensor", "dimensions");
        row("backwards", R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})", "safetensors.tensor",
            "outside");
        row("negative offset", R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}})",
            "safetensors.tensor", "outside");
        row("beyond the file", R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})",
            "safetensors.tensor", "outside");
        row("bytes and shape differ", R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}})",
            "safetensors.tensor", "need 4");
        row("one over another", R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
            "b": {"dtype": "F32", "shape": [1], "data_offsets": [2, 6]}})",
            "safetensors.tensor", "over");
        row("nested deep", "{\"a\": [[[[[[[[[[[[1]]]]]]]]]]]]}", "json.limit", "deep");
    }
    void headersThatLie()
    {
        QFETCH(QByteArray, header);
        QFETCH(QString, code);
        QFETCH(QString, mentions);
        QTemporaryDir folder;
        const std::string path = made(folder, header, 8);
        const auto model = readSafetensors(path);
        QVERIFY(!model.has_value());
        QCOMPARE(QString::fromStdString(model.error().code), code);
        QVERIFY2(QString::fromStdString(model.error().text()).contains(mentions), model.error().text().c_str());
        QVERIFY2(model.error().place.starts_with(path), model.error().place.c_str());
    }

    void lengthsThatLie()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("x.safetensors");
        for (const QByteArray& content :
             {QByteArray(), QByteArray("abc"), lengthBytes(0), lengthBytes(100) + "{}", lengthBytes(3) + "{}",
              lengthBytes(~quint64(0)) + "{}", lengthBytes(quint64(1) << 63), lengthBytes(99'999'999) + "{}"}) {
            writeFile(path, content);
            const auto model = readSafetensors(path.toStdString());
            QVERIFY(!model.has_value());
            QCOMPARE(model.error().code, std::string("safetensors.header"));
        }
        writeFile(path, lengthBytes(2) + "{}");
        QCOMPARE(readSafetensors(path.toStdString())->tensors.size(), std::size_t(0));
    }

    void indexesThatLie_data()
    {
        QTest::addColumn<QByteArray>("index");
        QTest::addColumn<QString>("code");
        QTest::newRow("no map") << QByteArray("{}") << "safetensors.index";
        QTest::newRow("a list") << QByteArray(R"({"weight_map": []})") << "json.type";
        QTest::newRow("a number") << QByteArray(R"({"weight_map": {"a": 1}})") << "json.type";
        QTest::newRow("another folder") << QByteArray(R"({"weight_map": {"a": "../x.safetensors"}})")
                                        << "safetensors.index";
        QTest::newRow("the root") << QByteArray(R"({"weight_map": {"a": "/etc/passwd"}})") << "safetensors.index";
        QTest::newRow("itself upwards") << QByteArray(R"({"weight_map": {"a": ".."}})") << "safetensors.index";
        QTest::newRow("a missing part") << QByteArray(R"({"weight_map": {"a": "y.safetensors"}})") << "file.missing";
        QTest::newRow("a tensor that is nowhere")
            << QByteArray(R"({"weight_map": {"b": "x.safetensors"}})") << "safetensors.index";
    }
    void indexesThatLie()
    {
        QFETCH(QByteArray, index);
        QFETCH(QString, code);
        QTemporaryDir folder;
        made(folder, R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 4);
        writeFile(folder.filePath("model.safetensors.index.json"), index);
        const auto model = readSafetensorsIndex(folder.filePath("model.safetensors.index.json").toStdString());
        QVERIFY(!model.has_value());
        QCOMPARE(QString::fromStdString(model.error().code), code);
    }
};

QTEST_GUILESS_MAIN(TestSafetensors)
#include "tst_safetensors.moc"
