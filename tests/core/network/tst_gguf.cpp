// SPDX-License-Identifier: Apache-2.0
// Headers of GGUF files: one that the gguf library wrote, every length of it cut off, every byte of it changed, and
// headers that lie.
#include "core/network/gguf.h"

#include "core/network/model_names.h"
#include "core/training/serving.h"

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include <limits>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace memscape;

namespace {

/// A header as ggml's gguf.md describes it, number by number.
class GgufBytes
{
public:
    template <typename Number> GgufBytes& number(Number value)
    {
        m_bytes.append(reinterpret_cast<const char*>(&value), int(sizeof(value)));
        return *this;
    }
    GgufBytes& text(const QByteArray& words)
    {
        number(quint64(words.size()));
        m_bytes += words;
        return *this;
    }
    GgufBytes& begin(quint64 tensors, quint64 pairs, quint32 version = 3)
    {
        m_bytes += "GGUF";
        return number(version).number(tensors).number(pairs);
    }
    GgufBytes& tensor(const QByteArray& name, const QList<quint64>& sizes, quint32 type, quint64 offset)
    {
        text(name).number(quint32(sizes.size()));
        for (const quint64 size : sizes)
            number(size);
        return number(type).number(offset);
    }
    /// The file, with `data` bytes behind the padded header.
    QByteArray file(int data) const
    {
        QByteArray all = m_bytes;
        all.append(QByteArray((32 - all.size() % 32) % 32 + data, '\0'));
        return all;
    }
    const QByteArray& bytes() const { return m_bytes; }

private:
    QByteArray m_bytes;
};

/// From a file without a name: thousands are read.
Result<StoredModel> readGgufBytes(const QByteArray& content)
{
    static const int file = ::memfd_create("gguf", MFD_CLOEXEC);
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, content.data(), std::size_t(content.size()), 0) != content.size())
        return fail("test", "the file cannot be written");
    return readGguf("/proc/self/fd/" + std::to_string(file));
}

std::string ggufCode(const QByteArray& content)
{
    const auto model = readGgufBytes(content);
    return model ? std::string() : model.error().code;
}

} // namespace

class TestGguf : public QObject
{
    Q_OBJECT

private slots:
    /// See tests/data/models/make_gguf.py.
    void readsWhatTheLibraryWrote()
    {
        const std::filesystem::path path = TEST_DATA "/models/tiny.gguf";
        QVERIFY(saysGguf(path));
        QVERIFY(!saysGguf(TEST_DATA "/models/tiny.safetensors"));
        const auto model = readGguf(path);
        QVERIFY2(model, model ? "" : model.error().text().c_str());
        QCOMPARE(model->tensors.size(), std::size_t(3));
        QCOMPARE(model->elements, std::int64_t(6 + 8 + 64));
        QCOMPARE(model->bytes, std::int64_t(6 * 4 + 8 * 2 + 2 * 34));
        QCOMPARE(model->bytesByDtype.at("Q8_0"), std::int64_t(68));
        QCOMPARE(model->tensors[0].name, std::string("weight"));
        QCOMPARE(model->tensors[0].shape, (std::vector<std::int64_t>{3, 2})); // ggml counts from the inside
    }

    void whatIsCutOffIsAnError()
    {
        QFile file(QStringLiteral(TEST_DATA "/models/tiny.gguf"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray whole = file.readAll();
        QVERIFY(ggufCode(whole).empty());
        for (int length = 0; length < 548; ++length) { // behind that is padding
            const std::string code = ggufCode(whole.left(length));
            QVERIFY2(code == "gguf.header" || code == "gguf.tensor", qPrintable(QString::number(length)));
        }
    }

    void changedBytesNeverCrash()
    {
        QFile file(QStringLiteral(TEST_DATA "/models/tiny.gguf"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray whole = file.readAll();
        for (int at = 0; at < 416; ++at) {
            for (const char value : {'\0', '\x7f', '\xff'}) {
                QByteArray changed = whole;
                changed[at] = value;
                if (const auto model = readGgufBytes(changed); !model)
                    QVERIFY2(model.error().code.starts_with("gguf.") && !model.error().hint.empty(),
                             model.error().text().c_str());
                else
                    QVERIFY(model->bytes <= whole.size());
            }
        }
    }

    void headersThatLieAreRefused()
    {
        const quint64 huge = quint64(1) << 63;
        const auto one = [] { return GgufBytes().begin(1, 0); };
        QCOMPARE(ggufCode(one().tensor("a", {4}, 0, 0).file(16)), std::string());
        QCOMPARE(ggufCode(GgufBytes().begin(1, 0, 1).tensor("a", {4}, 0, 0).file(16)), std::string("gguf.header"));
        QCOMPARE(ggufCode(GgufBytes().begin(huge, 0).file(16)), std::string("gguf.header"));
        QCOMPARE(ggufCode(GgufBytes().begin(0, huge).file(16)), std::string("gguf.header"));
        QCOMPARE(ggufCode(GgufBytes().begin(0, 1).number(huge).file(16)), std::string("gguf.header")); // a key's length
        QCOMPARE(ggufCode(GgufBytes().begin(0, 1).text("k").number(quint32(8)).number(huge).file(16)),
                 std::string("gguf.header")); // a text's
        QCOMPARE(
            ggufCode(GgufBytes().begin(0, 1).text("k").number(quint32(9)).number(quint32(10)).number(huge).file(16)),
            std::string("gguf.header")); // an array's
        QCOMPARE(ggufCode(GgufBytes().begin(0, 1).text("k").number(quint32(77)).file(16)), std::string("gguf.header"));
        GgufBytes nested;
        nested.begin(0, 1).text("k").number(quint32(9));
        for (int depth = 0; depth < 1000; ++depth) // arrays of one array
            nested.number(quint32(9)).number(quint64(1));
        QCOMPARE(ggufCode(nested.file(16)), std::string("gguf.header"));
        QCOMPARE(
            ggufCode(GgufBytes().begin(0, 1).text("general.alignment").number(quint32(4)).number(quint32(3)).file(16)),
            std::string("gguf.header"));
        QCOMPARE(ggufCode(one().tensor("a", {huge}, 0, 0).file(16)), std::string("gguf.tensor"));
        QCOMPARE(ggufCode(one().tensor("a", {huge - 1, 4}, 0, 0).file(16)), std::string("gguf.tensor"));
        QCOMPARE(ggufCode(one().tensor("a", {huge - 1}, 0, 0).file(16)), std::string("gguf.tensor"));
        QCOMPARE(ggufCode(one().tensor("a", {5}, 0, 0).file(16)), std::string("gguf.tensor")); // behind the end
        QCOMPARE(ggufCode(one().tensor("a", {4}, 0, huge).file(16)), std::string("gguf.tensor"));
        QCOMPARE(ggufCode(one().tensor("a", {4}, 4, 0).file(16)),
                 std::string("gguf.tensor")); // a type that was removed
        QCOMPARE(ggufCode(one().tensor("a", {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 0).file(16)), std::string("gguf.tensor"));
        QCOMPARE(ggufCode(GgufBytes().begin(2, 0).tensor("a", {4}, 0, 0).tensor("a", {4}, 0, 32).file(64)),
                 std::string("gguf.tensor")); // twice
        QCOMPARE(ggufCode(GgufBytes().begin(2, 0).tensor("a", {4}, 0, 0).tensor("b", {4}, 0, 8).file(64)),
                 std::string("gguf.tensor")); // over each other
    }

    void blocksAreCountedWhole()
    {
        const auto model = readGgufBytes(GgufBytes().begin(1, 0).tensor("a", {256, 2}, 12, 0).file(288));
        QVERIFY(model);
        QCOMPARE(model->bytes, std::int64_t(2 * 144)); // Q4_K
        QCOMPARE(ggufCode(GgufBytes().begin(1, 0).tensor("a", {255}, 12, 0).file(288)), std::string("gguf.tensor"));
    }

    void noOtherKindOfFileBlocks()
    {
        QTemporaryDir folder;
        const std::string pipe = folder.filePath(QStringLiteral("pipe")).toStdString();
        QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
        QVERIFY(!saysGguf(pipe));
        QCOMPARE(readGguf(pipe).error().code, std::string("file.kind"));
        QCOMPARE(readGguf(folder.path().toStdString()).error().code, std::string("file.kind"));
    }

    void theFileIsAModel()
    {
        const std::filesystem::path path = TEST_DATA "/models/tiny-llama.gguf";
        const auto model = readModel(path.string());
        QVERIFY2(model, model ? "" : model.error().text().c_str());
        QCOMPARE(model->title, std::string("Tiny LLaMA"));
        QCOMPARE(model->architecture, std::string("llama"));
        QCOMPARE(model->layers, std::int64_t(2));
        QCOMPARE(model->kvHeads, std::int64_t(2));
        QCOMPARE(model->vocab, std::int64_t(96));
        QCOMPARE(model->maxPositions, std::int64_t(128));
        QVERIFY(!model->tied);
        QVERIFY(model->assumptions.empty()); // as many elements as the description counts
        QCOMPARE(inventory(*model)->total, model->stored->elements);
        // Matrices in blocks of 34 bytes for 32, five norms of 32 floats: what llama-quantize's rule gives, too.
        const std::int64_t matrices = 2 * 96 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32), norms = 5 * 32 * 4;
        QCOMPARE(model->stored->bytes, matrices / 32 * 34 + norms);
        QCOMPARE(*servedWeights(*model, StoredForm(), 2, 1), model->stored->bytes);
        QCOMPARE(*servedWeights(*model, StoredForm(GgufMixture::Q8_0), 2, 1), model->stored->bytes);
        QCOMPARE(*servedWeights(*model, StoredForm(), 2, 2), model->stored->bytes / 2);
        QVERIFY(weightsReadByStep(*model, StoredForm(), 2, 1, 1)->bytes()
                < double(model->stored->bytes)); // one row of the table
    }

    void whatIsNoWholeModelIsRefused()
    {
        QTemporaryDir folder;
        const auto code = [&](const QByteArray& content) {
            const QString path = folder.filePath(QStringLiteral("model.gguf"));
            QFile file(path);
            if (!file.open(QIODevice::WriteOnly) || file.write(content) < 0)
                return std::string("file");
            file.close();
            const auto model = readModel(path.toStdString());
            return model ? std::string() : model.error().code;
        };
        const auto header = [](quint64 pairs) { return GgufBytes().begin(1, pairs); };
        const auto named = [&](quint64 pairs, const QByteArray& architecture) {
            return header(pairs).text("general.architecture").number(quint32(8)).text(architecture);
        };
        const auto withLayers = [&](quint64 pairs, const QByteArray& architecture, float layers) {
            return named(pairs, architecture).text(architecture + ".block_count").number(quint32(6)).number(layers);
        };
        const auto whole = [](GgufBytes bytes) { return bytes.tensor("a", {4}, 0, 0).file(16); };
        QCOMPARE(code(whole(header(0))), std::string("gguf.model"));
        QCOMPARE(code(whole(named(1, "llama"))), std::string("gguf.model"));
        QCOMPARE(code(whole(withLayers(2, "llama", std::numeric_limits<float>::quiet_NaN()))),
                 std::string("config.missing"));
        QCOMPARE(code(whole(withLayers(2, "strange", 2))), std::string("model.architecture"));
        QVERIFY(!code(whole(withLayers(2, "llama", std::numeric_limits<float>::infinity()))).empty());
        QCOMPARE(code(whole(withLayers(3, "llama", 2).text("split.count").number(quint32(2)).number(quint16(3)))),
                 std::string("gguf.model"));
        QCOMPARE(readModel("no-such-file.gguf").error().code, std::string("file.missing"));
    }
};

QTEST_APPLESS_MAIN(TestGguf)
#include "tst_gguf.moc"
