// SPDX-License-Identifier: Apache-2.0
// Chain documents: what is read, what is written, and where a fault is said to be.
#include "core/checkpoint/chain.h"
#include "tests/support/checkpoint_refs.h"

#include <QtTest>

using namespace memscape;

namespace {

const QByteArray small =
    R"({"format": "memscape-chain", "version": 1, "forward": [1, 2], "backward": [2, 4, 0.5],
    "values": [3, 4, 5], "saved": [3, 9, 10], "forward_overhead": [1, 0], "backward_overhead": [0, 2, 7], "teacher": "A"})";

QByteArray with(const char* before, const QByteArray& after)
{
    Q_ASSERT(small.contains(before));
    return QByteArray(small).replace(before, after);
}

Result<Chain> read(const QByteArray& text)
{
    MEMSCAPE_TRY(json, parseJson(text.toStdString()));
    return chainFromJson(JsonReader(json));
}

} // namespace

class TestChainJson : public QObject
{
    Q_OBJECT

private slots:
    void readsEveryReference()
    {
        // The data's names are its own; renamed, its arrays are the document's.
        const QJsonArray entries = test::checkpointReferences()["C_heterogeneous_chain"].toArray();
        QVERIFY(entries.size() > 5);
        for (const QJsonValue& value : entries) {
            const QJsonObject entry = value.toObject();
            const QJsonObject document{{"format", "memscape-chain"},
                                       {"version", 1},
                                       {"forward", entry["fw"]},
                                       {"backward", entry["bw"]},
                                       {"values", entry["cw"]},
                                       {"saved", entry["cbw"]},
                                       {"forward_overhead", entry["ftmp"]},
                                       {"backward_overhead", entry["btmp"]}};
            const auto chain = read(QJsonDocument(document).toJson());
            QVERIFY2(chain.has_value(), chain ? "" : chain.error().text().c_str());
            const Chain expected = test::referenceChain(entry);
            QCOMPARE(jsonText(chainToJson(*chain)), jsonText(chainToJson(expected)));
        }
    }

    void writesWhatItReads()
    {
        const auto chain = read(small);
        QVERIFY(chain.has_value());
        QCOMPARE(chain->length(), 2);
        QCOMPARE(chain->stages[1].options[0].saved, std::int64_t(10));
        QCOMPARE(chain->stages[0].forwardOverhead, std::int64_t(1));
        QCOMPARE(chain->lossTime, 0.5);
        QCOMPARE(chain->lossOverhead, std::int64_t(7));
        const Json written = chainToJson(*chain);
        const auto again = chainFromJson(JsonReader(written));
        QVERIFY(again.has_value());
        QCOMPARE(jsonText(chainToJson(*again)), jsonText(written));
        Chain other = *chain;
        other.stages[0].forward = 0.75; // less than a forward that saves
        other.stages[0].options.push_back({"half", 1, 3, 6, 0, 2});
        other.stages[1].name = "head";
        const Json document = chainToJson(other);
        const auto back = chainFromJson(JsonReader(document));
        QVERIFY2(back.has_value(), back ? "" : back.error().text().c_str());
        QCOMPARE(back->stages[0].forward, 0.75);
        QCOMPARE(back->stages[0].options[0].forward, 1.0);
        QCOMPARE(back->stages[0].options[1].saved, std::int64_t(6));
        QCOMPARE(back->stages[1].name, std::string("head"));
        QCOMPARE(jsonText(chainToJson(*back)), jsonText(document));
    }

    void unitsSayWhatNumbersAre_data()
    {
        QTest::addColumn<QByteArray>("units");
        QTest::addColumn<bool>("isBytes");
        QTest::addColumn<bool>("isSeconds");
        QTest::newRow("B") << QByteArray("\"B\"") << true << true;
        QTest::newRow("bytes") << QByteArray("\"bytes\"") << true << true;
        QTest::newRow("abstract") << QByteArray("\"slots\"") << false << false;
        QTest::newRow("both") << QByteArray(R"({"memory": "B", "time": "s"})") << true << true;
        QTest::newRow("bytes, abstract time") << QByteArray(R"({"memory": "B", "time": "FLOP"})") << true << false;
        QTest::newRow("nothing said") << QByteArray("{}") << false << false;
    }
    void unitsSayWhatNumbersAre()
    {
        QFETCH(QByteArray, units);
        const auto chain = read(with("\"version\": 1", "\"version\": 1, \"units\": " + units));
        QVERIFY(chain.has_value());
        QTEST(chain->units.isBytes, "isBytes");
        QTEST(chain->units.isSeconds, "isSeconds");
    }

    void aChainMayEndWithoutALoss()
    {
        const auto chain = read(with("[2, 4, 0.5]", "[2, 4]"));
        QVERIFY(chain.has_value());
        QCOMPARE(chain->lossTime, 0.0);
        QCOMPARE(chain->stages[1].options[0].backward, 4.0);
    }

    void furtherWaysToSave()
    {
        const auto chain = read(with(
            "\"version\": 1", R"("version": 1, "options": [[], [{"name": "selective", "saved": 7, "backward": 5}]])"));
        QVERIFY2(chain.has_value(), chain ? "" : chain.error().text().c_str());
        QCOMPARE(chain->stages[0].options.size(), std::size_t(1));
        const SaveOption& option = chain->stages[1].options[1];
        QCOMPARE(option.name, std::string("selective"));
        QCOMPARE(option.saved, std::int64_t(7));
        QCOMPARE(option.backward, 5.0);
        QCOMPARE(option.forward, 2.0); // as in the first way
    }

    void namesTheFault_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("place");
        QTest::newRow("not an object") << QByteArray("[1]") << QByteArray("");
        QTest::newRow("another document") << with("memscape-chain", "memscape-record") << QByteArray("format");
        QTest::newRow("newer") << with("\"version\": 1", "\"version\": 2") << QByteArray("version");
        QTest::newRow("no stages") << with("[1, 2]", "[]") << QByteArray("forward");
        QTest::newRow("no forward") << with("\"forward\":", "\"forwards\":") << QByteArray("forward");
        QTest::newRow("a word for an array") << with("[1, 2]", "\"many\"") << QByteArray("forward");
        QTest::newRow("short values") << with("[3, 4, 5]", "[3, 4]") << QByteArray("values");
        QTest::newRow("long saved") << with("[3, 9, 10]", "[3, 9, 10, 11]") << QByteArray("saved");
        QTest::newRow("short overhead") << with("[1, 0]", "[1]") << QByteArray("forward_overhead");
        QTest::newRow("short backward") << with("[2, 4, 0.5]", "[2]") << QByteArray("backward");
        QTest::newRow("null time") << with("[1, 2]", "[1, null]") << QByteArray("forward[1]");
        QTest::newRow("NaN as text") << with("[1, 2]", "[1, \"NaN\"]") << QByteArray("forward[1]");
        QTest::newRow("negative time") << with("[2, 4, 0.5]", "[2, 4, -1]") << QByteArray("backward[2]");
        QTest::newRow("infinite time") << with("[1, 2]", "[1, 1e308]") << QByteArray("forward[1]");
        QTest::newRow("negative size") << with("[3, 4, 5]", "[3, -4, 5]") << QByteArray("values[1]");
        QTest::newRow("half a byte") << with("[3, 9, 10]", "[3, 9.5, 10]") << QByteArray("saved[1]");
        QTest::newRow("null size") << with("[3, 9, 10]", "[3, null, 10]") << QByteArray("saved[1]");
        QTest::newRow("larger than any memory") << with("[3, 4, 5]", "[3, 4, 1e15]") << QByteArray("values[2]");
        QTest::newRow("saves less than its result") << with("[3, 9, 10]", "[3, 2, 10]") << QByteArray("saved[1]");
        QTest::newRow("units of a number")
            << with("\"version\": 1", "\"version\": 1, \"units\": 7") << QByteArray("units");
        QTest::newRow("too few names") << with("\"version\": 1", "\"version\": 1, \"names\": [\"a\"]")
                                       << QByteArray("names");
        QTest::newRow("options of one stage")
            << with("\"version\": 1", "\"version\": 1, \"options\": [[]]") << QByteArray("options");
        QTest::newRow("option without size")
            << with("\"version\": 1", "\"version\": 1, \"options\": [[{}], []]") << QByteArray("options[0][0].saved");
        const QByteArray hundred = "[" + QByteArray("{\"saved\": 9},").repeated(99) + "{\"saved\": 9}]";
        QTest::newRow("a hundred ways") << with("\"version\": 1", "\"version\": 1, \"options\": [" + hundred + ", []]")
                                        << QByteArray("options[0]");
    }
    void namesTheFault()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, place);
        const auto chain = read(text);
        QVERIFY(!chain);
        QCOMPARE(QByteArray::fromStdString(chain.error().place), place);
        QVERIFY(!chain.error().message.empty());
    }

    void longChainsAreRead()
    {
        const auto document = [](int length) {
            const auto ones = [](int count) { return QByteArray("[" + QByteArray("1,").repeated(count - 1) + "1]"); };
            return QByteArray("{\"format\": \"memscape-chain\", \"forward\": " + ones(length)
                              + ", \"backward\": " + ones(length + 1) + ", \"values\": " + ones(length + 1)
                              + ", \"saved\": " + ones(length + 1) + "}");
        };
        const auto longest = read(document(chainLengthLimit));
        QVERIFY(longest.has_value());
        QCOMPARE(longest->length(), chainLengthLimit);
        const auto longer = read(document(chainLengthLimit + 1));
        QVERIFY(!longer);
        QCOMPARE(longer.error().place, std::string("forward"));
        QVERIFY(read(document(1)).has_value());
    }
};

QTEST_APPLESS_MAIN(TestChainJson)
#include "tst_chain_json.moc"
