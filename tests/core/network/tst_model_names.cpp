// SPDX-License-Identifier: Apache-2.0
// The text of a model parameter: names, recipes, files on disk and everything that a path can be
// instead of a file.
#include "core/network/inventory.h"
#include "core/network/model_names.h"

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

using namespace memscape;

namespace {

std::int64_t total(const std::string& text)
{
    const auto model = readModel(text);
    const auto list = model ? inventory(*model) : Result<Inventory>(tl::unexpected(model.error()));
    if (!list)
        qWarning("%s", list.error().text().c_str());
    return list ? list->total : -1;
}

std::string errorCode(const std::string& text)
{
    const auto model = readModel(text);
    return model ? "accepted" : model.error().code;
}

void write(const QString& path, const QByteArray& content)
{
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
}

const QByteArray config =
    R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 128, "vocab_size": 100})";

} // namespace

class TestModelNames : public QObject
{
    Q_OBJECT

private slots:
    void everyKnownModelIsRead()
    {
        std::vector<Error> problems;
        const auto models = knownModels(&problems);
        for (const Error& error : problems)
            qWarning("%s", error.text().c_str());
        QVERIFY(problems.empty());
        QVERIFY(models.size() > 100);
        std::set<std::string> names;
        for (const KnownModel& known : models) {
            QVERIFY2(names.insert(known.name).second, known.name.c_str());
            const auto model = readModel(known.name);
            QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
            QCOMPARE(model->name, known.name);
            QCOMPARE(model->title, known.title);
            QCOMPARE(readModel(known.title)->name, known.name); // as it is called on the page
            QVERIFY2(!model->source.empty() && !model->title.empty() && !model->storedDtype.empty(),
                     known.name.c_str());
            for (const std::string& sentence : model->assumptions) // a file of ours leaves nothing to assume
                QVERIFY2(sentence.find("is assumed") == std::string::npos, (known.name + ": " + sentence).c_str());
        }
    }

    void namesDoNotMindCaseAndHaveAliases()
    {
        QCOMPARE(total("GPT2-XL"), std::int64_t(1557611200));
        QCOMPARE(total(" gpt2 "), std::int64_t(124439808));
        QCOMPARE(total("bert-base"), std::int64_t(109482240));
        QCOMPARE(total("meta-llama/Llama-3.1-8B"), std::int64_t(8030261248));
    }

    void namesAsTheyStandOnTheWebAreFound_data()
    {
        QTest::addColumn<QString>("written");
        QTest::addColumn<QString>("model");
        QTest::newRow("publisher, variant") << "meta-llama/Llama-3.1-8B-Instruct"
                                            << "llama-3.1-8b";
        QTest::newRow("variant") << "llama-3.1-8B-Instruct"
                                 << "llama-3.1-8b";
        QTest::newRow("two variants") << "meta-llama/Llama-2-7b-chat-hf"
                                      << "llama-2-7b";
        QTest::newRow("in the middle") << "mistralai/Mistral-7B-Instruct-v0.3"
                                       << "mistral-7b-v0.3";
        QTest::newRow("another publisher") << "unsloth/Qwen2.5-7B-Instruct"
                                           << "qwen2.5-7b";
        QTest::newRow("it") << "google/gemma-2-9b-it"
                            << "gemma-2-9b";
    }
    void namesAsTheyStandOnTheWebAreFound()
    {
        QFETCH(QString, written);
        QFETCH(QString, model);
        const auto found = readModel(written.toStdString());
        QVERIFY2(found.has_value(), found ? "" : found.error().text().c_str());
        QCOMPARE(found->name, model.toStdString());
        QVERIFY(found->assumptions.front().find(written.toStdString()) != std::string::npos);
    }

    void whatIsNearComesFirst_data()
    {
        QTest::addColumn<QString>("written");
        QTest::addColumn<QString>("hint");
        QTest::newRow("letters missing") << "lama2-7"
                                         << "did you mean llama-2-7b";
        QTest::newRow("no size") << "llama3"
                                 << "did you mean llama-3-8b";
        QTest::newRow("a publisher before it") << "meta-llama/Llama-4-8B"
                                               << "llama-3-8b";
        QTest::newRow("a quantized form, other bytes") << "TheBloke/Llama-2-7B-AWQ"
                                                       << "did you mean llama-2-7b";
    }
    void whatIsNearComesFirst()
    {
        QFETCH(QString, written);
        QFETCH(QString, hint);
        const auto model = readModel(written.toStdString());
        QVERIFY(!model);
        QCOMPARE(model.error().code, std::string("model.unknown"));
        QVERIFY2(model.error().hint.find(hint.toStdString()) != std::string::npos, model.error().hint.c_str());
    }

    void unknownNamesSayWhatIsNear()
    {
        const auto model = readModel("lama-2-7b");
        QCOMPARE(model.error().code, std::string("model.unknown"));
        QVERIFY2(model.error().hint.find("llama-2-7b") != std::string::npos, model.error().hint.c_str());
        QCOMPARE(errorCode(""), std::string("model.unknown"));
        QCOMPARE(errorCode("paramsx:3"), std::string("model.unknown"));
    }

    void onlyTheSizeIsKnown_data()
    {
        QTest::addColumn<double>("parameters");
        for (const double size : {1e5, 5e5, 1e6, 123'457., 1e7, 1.24e8, 1e9, 1.3e9, 7e9, 7.5e9, 1.3e10, 7e10, 1.75e11,
                                  1e12, 999'999'999'999'999., 1e15})
            QTest::newRow(qPrintable(QString::number(size, 'g', 17))) << size;
    }
    void onlyTheSizeIsKnown()
    {
        QFETCH(double, parameters);
        const std::string text = "params:" + QString::number(parameters, 'g', 17).toStdString();
        const auto model = readModel(text);
        QVERIFY2(model.has_value(), model ? "" : model.error().text().c_str());
        const auto list = inventory(*model);
        QCOMPARE(list->total, std::int64_t(parameters));
        QVERIFY(model->remainder < 8 * 3 * model->layers * model->hidden);
        const double ratio = double(model->ffn) / double(model->hidden);
        if (parameters >= 1e7) // smaller ones are mostly vocabulary
            QVERIFY2(ratio > 1.5 && ratio < 4.5, std::to_string(ratio).c_str());
        QVERIFY(model->assumptions.back().find("only the size is known") != std::string::npos);
    }

    void theDecoderFromScratch()
    {
        // The real run of the issue: hidden 2560, 32 layers, ffn 10240, vocabulary 10000, untied,
        // no biases.
        const auto model = readModel("from-scratch:hidden=2560,layers=32,heads=32,ffn=10240,vocab=10000");
        QCOMPARE(inventory(*model)->total,
                 std::int64_t(32) * (4 * 2560 * 2560 + 3 * 2560 * 10240 + 2 * 2560) + 2 * 25600000 + 2560);
        QVERIFY(model->assumptions.empty());
        const auto standard = readModel("from-scratch");
        QCOMPARE(standard->hidden, std::int64_t(512));
        QCOMPARE(standard->ffn, std::int64_t(1344));
        QCOMPARE(standard->assumptions.size(), std::size_t(5));
        QCOMPARE(readModel("from-scratch:hidden=1024")->heads, std::int64_t(16));
        QCOMPARE(readModel("from-scratch: hidden = 128 , layers = 2")->layers, std::int64_t(2));
    }

    void aChainOfLinearLayers()
    {
        QCOMPARE(total("mlp:784,512,10"), std::int64_t(784 * 512 + 512 + 512 * 10 + 10));
        QCOMPARE(readModel("mlp")->mlpSizes.size(), std::size_t(4));
    }

    void recipesThatAreRefused_data()
    {
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("place");
        QTest::newRow("params:") << "model.recipe"
                                 << "params";
        QTest::newRow("params:many") << "model.recipe"
                                     << "params";
        QTest::newRow("params:-1") << "model.range"
                                   << "params";
        QTest::newRow("params:0") << "model.range"
                                  << "params";
        QTest::newRow("params:nan") << "model.recipe"
                                    << "params";
        QTest::newRow("params:1e30") << "model.range"
                                     << "params";
        QTest::newRow("from-scratch:hiden=3") << "model.recipe"
                                              << "from-scratch";
        QTest::newRow("from-scratch:hidden") << "model.recipe"
                                             << "from-scratch";
        QTest::newRow("from-scratch:hidden=") << "model.recipe"
                                              << "hidden";
        QTest::newRow("from-scratch:hidden=1.5") << "model.recipe"
                                                 << "hidden";
        QTest::newRow("from-scratch:hidden=0") << "model.range"
                                               << "hidden";
        QTest::newRow("from-scratch:hidden=-64") << "model.range"
                                                 << "hidden";
        QTest::newRow("from-scratch:hidden=64,hidden=64") << "model.recipe"
                                                          << "hidden";
        QTest::newRow("from-scratch:hidden=100,heads=3") << "model.contradiction"
                                                         << "heads";
        QTest::newRow("from-scratch:layers=1000000000000") << "model.range"
                                                           << "layers";
        QTest::newRow("from-scratch:layers=1000000") << "model.range"
                                                     << "layers";
        QTest::newRow("mlp:10") << "model.range"
                                << "sizes";
        QTest::newRow("mlp:10,,10") << "model.recipe"
                                    << "mlp";
        QTest::newRow("mlp:10,0") << "model.range"
                                  << "mlp";
    }
    void recipesThatAreRefused()
    {
        QFETCH(QString, code);
        QFETCH(QString, place);
        const auto model = readModel(QTest::currentDataTag());
        QVERIFY(!model.has_value());
        QCOMPARE(QString::fromStdString(model.error().code), code);
        QCOMPARE(QString::fromStdString(model.error().place), place);
    }

    void aFileAndItsFolder()
    {
        QTemporaryDir folder;
        write(folder.filePath("config.json"), config);
        const std::int64_t expected = 2 * (4 * 4096 + 3 * 8192 + 128) + 2 * 6400 + 64;
        QCOMPARE(total(folder.filePath("config.json").toStdString()), expected);
        QCOMPARE(total(folder.path().toStdString()), expected);
        QCOMPARE(readModel(folder.path().toStdString())->source, folder.filePath("config.json").toStdString());
    }

    void errorsNameTheFileAndTheField()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("config.json");
        write(path, R"({"model_type": "llama", "hidden_size": "wide"})");
        QCOMPARE(readModel(path.toStdString()).error().place, path.toStdString() + ", hidden_size");
    }

    void whatIsNotAConfiguration()
    {
        QTemporaryDir folder;
        const auto file = [&](const char* name, const QByteArray& content) {
            write(folder.filePath(name), content);
            return folder.filePath(name).toStdString();
        };
        QCOMPARE(errorCode(folder.filePath("none.json").toStdString()), std::string("file.missing"));
        QCOMPARE(errorCode(folder.path().toStdString()), std::string("file.missing"));
        QCOMPARE(errorCode(file("empty.json", "")), std::string("json.syntax"));
        QCOMPARE(errorCode(file("text.json", "hidden_size = 64")), std::string("json.syntax"));
        QCOMPARE(errorCode(file("latin1.json", "{\"model_type\": \"caf\xe9\"}")), std::string("json.encoding"));
        QCOMPARE(errorCode(file("deep.json", QByteArray(5000, '['))), std::string("json.limit"));
        QCOMPARE(errorCode("/dev/zero"), std::string("file.kind"));
    }

    void aPipeDoesNotBlock()
    {
        QTemporaryDir folder;
        for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"}) {
            const std::string path = folder.filePath(name).toStdString();
            QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
            QCOMPARE(errorCode(path), std::string("file.kind"));
        }
    }

    void aGigabyteIsRefusedUnread()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("config.json").toStdString();
        write(folder.filePath("config.json"), "{");
        QCOMPARE(::truncate(path.c_str(), off_t(1) << 30), 0);
        const auto model = readModel(path);
        QCOMPARE(model.error().code, std::string("file.limit"));
        QVERIFY(model.error().message.find("1024 MiB") != std::string::npos);
    }

    void noPermission()
    {
        if (::geteuid() == 0)
            QSKIP("root may read everything");
        QTemporaryDir folder;
        write(folder.filePath("config.json"), config);
        QVERIFY(QFile::setPermissions(folder.filePath("config.json"), {}));
        QCOMPARE(errorCode(folder.filePath("config.json").toStdString()), std::string("file.permission"));
    }
};

QTEST_GUILESS_MAIN(TestModelNames)
#include "tst_model_names.moc"
