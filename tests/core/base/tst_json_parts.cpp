// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_parts.h"

#include <QtTest>

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

} // namespace

class TestJsonParts : public QObject
{
    Q_OBJECT

private slots:
    void theDocumentIsThatOfOneParse_data();
    void theDocumentIsThatOfOneParse();
    void whatCannotBeDividedIsLeft_data();
    void whatCannotBeDividedIsLeft();
    void anErrorInAPartHasItsPlaceInTheText();
};

void TestJsonParts::theDocumentIsThatOfOneParse_data()
{
    QTest::addColumn<QByteArray>("text");
    const auto add = [](const char* name, const Json& json) {
        QTest::newRow(name) << QByteArray::fromStdString(json.dump());
        QTest::addRow("%s, indented", name) << QByteArray::fromStdString(json.dump(3));
    };
    add("records and others", {{"format", "x"}, {"records", manyOf(600)}, {"view", {{"records", {1, 2}}}}});
    add("two arrays", {{"first", manyOf(400)}, {"none", Json::array()}, {"second", manyOf(200)}});
    Json mixed = manyOf(600);
    mixed[0] = nullptr;
    mixed[5] = 7;
    mixed[7] = {1, 2, 3};
    mixed[8] = Json::object();
    mixed[599] = "[{";
    add("elements that are no objects", {{"a", nullptr}, {"records", mixed}});
    add("objects that are no elements", {{"a", {{"b", manyOf(600)}}}, {"records", manyOf(3)}});
}

void TestJsonParts::theDocumentIsThatOfOneParse()
{
    QFETCH(const QByteArray, text);
    const auto parts = parseInParts(text.toStdString(), 3);
    QVERIFY(parts.has_value());
    QCOMPARE(parts->dump(), Json::parse(text.toStdString()).dump()); // the library's own
}

void TestJsonParts::whatCannotBeDividedIsLeft_data()
{
    QTest::addColumn<QByteArray>("text");
    const auto text = [](const Json& json) { return QByteArray::fromStdString(json.dump()); };
    const QByteArray records = text({{"records", manyOf(600)}});
    QTest::newRow("small") << text({{"records", manyOf(3)}});
    QTest::newRow("an array outermost") << text(manyOf(600));
    QTest::newRow("one object") << text({{"records", {{{"text", std::string(1 << 21, 'x')}}}}});
    QTest::newRow("a key twice") << QByteArray(records).replace("{\"records\":[",
                                                                "{\"a\":1,\"records\":[],\"a\":[],\"records\":[");
    QTest::newRow("cut off") << records.chopped(5000);
    QTest::newRow("a bracket too many") << records + '}';
    QTest::newRow("a part that is not JSON") << QByteArray(records).replace("\"number\":599", "\"number\":5x9");
    QTest::newRow("a separator between parts") << QByteArray(records).replace(",{\"number\":9,", ",,{\"number\":9,");
    QTest::newRow("no brackets match") << QByteArray(records).replace("}]", "]}");
}

void TestJsonParts::whatCannotBeDividedIsLeft()
{
    QFETCH(const QByteArray, text);
    QVERIFY(!parseInParts(text.toStdString(), 3));
    QVERIFY(!parseInParts(QByteArray("{\"records\":[]}").toStdString(), 3));
}

void TestJsonParts::anErrorInAPartHasItsPlaceInTheText()
{
    std::string text = Json{{"records", manyOf(600)}}.dump(1);
    const std::string wrong = "\"number\": 599";
    const std::size_t at = text.find(wrong);
    text.replace(at, wrong.size(), "\"number\": 5?9");
    const auto json = parseJson(text);
    QVERIFY(!json.has_value());
    const auto line = std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n') + 1;
    QVERIFY2(json.error().place.starts_with("line " + std::to_string(line) + ","), json.error().place.c_str());
}

QTEST_GUILESS_MAIN(TestJsonParts)
#include "tst_json_parts.moc"
