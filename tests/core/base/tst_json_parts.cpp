// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_parts.h"

#include <QtTest>

#include <optional>

using namespace memscape;

namespace {

/// An object of more than a kilobyte that says which one it is.
Json large(int number)
{
    return {
        {"number", number}, {"text", "a, ] \" } \\ " + std::string(2000, 'x')}, {"deeper", {{{"a", {1, 2}}}, Json()}}};
}

/// Large enough to be parsed in parts.
Json manyOf(int count)
{
    Json all = Json::array();
    for (int i = 0; i < count; ++i)
        all.push_back(large(i));
    return all;
}

/// The document with the parts in their places.
std::optional<Json> putTogether(const std::string& text, const char* key)
{
    auto divided = divideJson(text, key);
    if (!divided)
        return std::nullopt;
    for (const JsonPart& part : divided->parts) {
        auto value = parsePart(text, part);
        if (!value || !divided->rest[key][part.element].is_null())
            return std::nullopt;
        divided->rest[key][part.element] = std::move(*value);
    }
    return std::move(divided->rest);
}

} // namespace

class TestJsonParts : public QObject
{
    Q_OBJECT

private slots:
    void theDocumentIsThatOfOneParse_data()
    {
        QTest::addColumn<QByteArray>("text");
        const auto add = [](const char* name, const Json& json) {
            QTest::newRow(name) << QByteArray::fromStdString(json.dump());
            QTest::addRow("%s, indented", name) << QByteArray::fromStdString(json.dump(3));
        };
        add("records and others", {{"format", "records"}, {"records", manyOf(600)}, {"view", {{"records", {1, 2}}}}});
        add("two arrays", {{"first", manyOf(400)}, {"none", Json::array()}, {"records", manyOf(600)}});
        Json mixed = manyOf(600);
        mixed[0] = nullptr;
        mixed[5] = 7;
        mixed[7] = {1, 2, 3};
        mixed[8] = Json::object();
        mixed[599] = "[{";
        add("elements that are no objects", {{"a", nullptr}, {"records", mixed}});
        add("objects that are no elements", {{"a", {{"records", manyOf(600)}}}, {"records", manyOf(3)}});
    }
    void theDocumentIsThatOfOneParse()
    {
        QFETCH(const QByteArray, text);
        const auto whole = putTogether(text.toStdString(), "records");
        QVERIFY(whole.has_value());
        QCOMPARE(whole->dump(), Json::parse(text.toStdString()).dump()); // the library's own
    }

    void whatCannotBeDividedIsLeft_data()
    {
        QTest::addColumn<QByteArray>("text");
        const auto text = [](const Json& json) { return QByteArray::fromStdString(json.dump()); };
        const QByteArray records = text({{"records", manyOf(600)}});
        QTest::newRow("small") << text({{"records", manyOf(3)}});
        QTest::newRow("an array outermost") << text(manyOf(600));
        QTest::newRow("another array") << text({{"others", manyOf(600)}, {"records", Json::array()}});
        QTest::newRow("an object with that key") << text({{"records", {{"a", manyOf(600)}}}});
        QTest::newRow("one object") << text({{"records", {{{"text", std::string(1 << 21, 'x')}}}}});
        QTest::newRow("a key twice") << QByteArray(records).replace("{\"records\":[",
                                                                    "{\"a\":1,\"records\":[],\"a\":[],\"records\":[");
        QTest::newRow("the same key, escaped")
            << QByteArray(records).replace("{\"records\":[", "{\"rec\\u006frds\":[],\"records\":[");
        QTest::newRow("cut off") << records.chopped(5000);
        QTest::newRow("a bracket too many") << records + '}';
        QTest::newRow("a separator between parts")
            << QByteArray(records).replace(",{\"number\":9,", ",,{\"number\":9,");
        QTest::newRow("no brackets match") << QByteArray(records).replace("}]", "]}");
    }
    void whatCannotBeDividedIsLeft()
    {
        QFETCH(const QByteArray, text);
        QVERIFY(!divideJson(text.toStdString(), "records"));
    }

    void aPartThatIsNotJsonIsNothing()
    {
        const std::string text = R"([{"number": 5x9}])";
        QVERIFY(!parsePart(text, {0, 1, text.size() - 1}));
    }
};

QTEST_GUILESS_MAIN(TestJsonParts)
#include "tst_json_parts.moc"
