// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include "core/base/json_builder.h"
#include "core/base/json_shape.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

class TestJson : public QObject
{
    Q_OBJECT

private slots:
    void namesThePlaceOfAWrongType();
    void onlyAMissingKeyTakesTheFallback();
    void namesLineAndColumn();
    void saysWhenTheTextWasCutOff();
    void refusesHostileShapes();
    void aNumberTooLargeHasAPlace();
    void anObjectHasSoManyKeys();
    void aRepeatedKeyTakesTheLastValue();
    void keysCostNearlyLinearEffort();
    void curvesAreOneLine();
    void theTextIsWhatTheLibraryWrites();
    void whatCannotBeReadIsNotWritten();
    void keepsKeyOrder();
    void writesNotFiniteAsNull();
    void survivesAnyTruncation();
};

void TestJson::namesThePlaceOfAWrongType()
{
    const auto json = parseJson(R"({"predicted": {"figures": {"peak": {"value": "12 GB"}}}})");
    const auto peak = JsonReader(*json).at("predicted").value().at("figures").value().at("peak").value();
    const auto value = peak.number("value");
    QVERIFY(!value.has_value());
    QCOMPARE(value.error().text(), std::string("predicted.figures.peak.value: expected a number, found \"12 GB\""));
    QCOMPARE(peak.number("unit").error().text(), std::string("predicted.figures.peak.unit: is missing"));
}

void TestJson::onlyAMissingKeyTakesTheFallback()
{
    const auto json = parseJson(R"({"no": false, "one": 1, "nothing": null})");
    const JsonReader reader(*json);
    QCOMPARE(reader.boolean("missing", true).value(), true);
    QCOMPARE(reader.boolean("no", true).value(), false);
    QCOMPARE(reader.boolean("one", true).error().text(), std::string("one: expected true or false, found 1"));
    QCOMPARE(reader.boolean("nothing", true).error().code, std::string("json.type"));
}

void TestJson::namesLineAndColumn()
{
    const auto json = parseJson("{\n  \"a\": 1,\n  \"b\": ?\n}");
    QVERIFY(!json.has_value());
    QCOMPARE(json.error().place, std::string("line 3, column 8"));
}

void TestJson::saysWhenTheTextWasCutOff()
{
    QVERIFY(parseJson("{\"a\": [1, 2").error().hint.find("cut off") != std::string::npos);
    QVERIFY(!parseJson("").has_value());
}

void TestJson::refusesHostileShapes()
{
    QCOMPARE(parseJson(std::string(100'000, '[')).error().code, std::string("json.limit"));
    QCOMPARE(parseJson("\"x\"", {2, 64, 10}).error().code, std::string("json.limit"));
    QCOMPARE(parseJson("[1,2,3,4,5]", {100, 64, 3}).error().code, std::string("json.limit"));
    QCOMPARE(parseJson("[1e400]").error().code, std::string("json.syntax"));
    QVERIFY(!parseJson("{\"a\": NaN}").has_value());
}

void TestJson::aNumberTooLargeHasAPlace()
{
    const auto json = parseJson("{\"x\":\n  [1, -1e309]}");
    QCOMPARE(json.error().code, std::string("json.syntax"));
    QCOMPARE(json.error().place, std::string("line 2, column 7"));
    QCOMPARE(json.error().message, std::string("-1e309 is larger than any number that is read"));
    // The 65th bracket is the first that is too deep, the third comma makes the fourth element.
    QCOMPARE(parseJson("{\"a\":\n" + std::string(100, '[')).error().place, std::string("line 2, column 64"));
    QCOMPARE(parseJson("[1,2,\n3,4]", {.elements = 3}).error().place, std::string("line 2, column 2"));
}

void TestJson::anObjectHasSoManyKeys()
{
    const JsonLimits limits{.keys = 3};
    // Only keys of one and the same object are counted together: not those of its members, of its neighbours, or in
    // texts.
    QVERIFY(parseJson(R"({"a": {"a": 1, "b": 2}, "b": [{"a": 1}, {"a": 1, "b": 2, "c": 3}], "c": "x:y:z:"})", limits));
    const auto json = parseJson("{\"a\": {\"a\": 1, \"b\": {}, \"c\": 3,\n \"d\": 4}}", limits);
    QCOMPARE(json.error().code, std::string("json.limit"));
    QCOMPARE(json.error().place, std::string("line 2, column 5"));
    QCOMPARE(json.error().message, std::string("an object with more than 3 keys"));
    QVERIFY(!json.error().hint.empty());
    QCOMPARE(checkReadable(R"({"a":1,"b":2,"c":3,"d":4})", limits).error().code, std::string("document.limit"));
    // What is no JSON at all reaches the parser, which says so.
    QCOMPARE(parseJson("}}:::::{\"a\":1}", limits).error().code, std::string("json.syntax"));
}

void TestJson::aRepeatedKeyTakesTheLastValue()
{
    const std::string text = R"({"a": 1, "b": [2], "a": 3, "c": {"d": 4, "d": 5}, "a": 6})";
    QCOMPARE(jsonLine(*parseJson(text)), jsonLine(Json::parse(text)));
    QCOMPARE(jsonLine(*parseJson(text)), std::string(R"({"a":6,"b":[2],"c":{"d":5}})"));
}

void TestJson::keysCostNearlyLinearEffort()
{
    const auto effort = [](int count) {
        std::string text = "{";
        for (int i = 0; i < count; ++i)
            text += "\"key" + std::to_string(i % (count / 2)) + "\": [" + std::to_string(i) + "],";
        text.back() = '}';
        JsonBuilder builder;
        const bool read = Json::sax_parse(text, &builder);
        return read && builder.take().size() == std::size_t(count) / 2 ? double(builder.comparisons()) : NAN;
    };
    // Four times as many keys: a little more than four times the comparisons, far from sixteen.
    const double once = effort(4000), twice = effort(8000), fourTimes = effort(16000);
    QVERIFY(twice < 2.6 * once);
    QVERIFY(fourTimes < 6 * once);
}

void TestJson::curvesAreOneLine()
{
    const Json json =
        *parseJson(R"({"y": [1, 2.5, null, true], "words": ["a", "b]"], "none": [], "inner": [[1], {}]})");
    QCOMPARE(jsonText(json),
             std::string("{\n  \"y\": [1,2.5,null,true],\n  \"words\": [\n    \"a\",\n    \"b]\"\n  ],\n"
                         "  \"none\": [],\n  \"inner\": [\n    [1],\n    {}\n  ]\n}\n"));
}

void TestJson::theTextIsWhatTheLibraryWrites()
{
    // Strings with everything that means something outside them.
    const Json json = {{"a\"]\\", {{"b:,", "{[\\\"\n"}, {"c", {"\\", "\"", Json::object(), Json::array()}}}},
                       {"d", -0.5}};
    QCOMPARE(jsonLine(*parseJson(jsonText(json))), jsonLine(json));
    QCOMPARE(jsonText(json), json.dump(2) + "\n");
}

void TestJson::whatCannotBeReadIsNotWritten()
{
    JsonLimits limits;
    limits.bytes = 100;
    limits.elements = 5;
    const std::vector<std::string> texts{"[" + std::string(100, ' ') + "]", "[1,2,3,4,5,6]", std::string(70, '[')};
    for (const std::string& text : texts) {
        QVERIFY(!parseJson(text, limits).has_value());
        QCOMPARE(checkReadable(text, limits).error().code, std::string("document.limit"));
    }
    QVERIFY(checkReadable("[1,2,3]", limits).has_value());
}

void TestJson::keepsKeyOrder()
{
    const auto json = parseJson(R"({"z": 1, "a": 2, "m": 3})");
    QCOMPARE(jsonLine(*json), std::string(R"({"z":1,"a":2,"m":3})"));
}

void TestJson::writesNotFiniteAsNull()
{
    QVERIFY(jsonNumber(NAN).is_null());
    QVERIFY(jsonNumber(INFINITY).is_null());
    QCOMPARE(jsonLine(jsonNumber(4096)), std::string("4096"));
    QCOMPARE(jsonLine(jsonNumber(0.1)), std::string("0.1"));
    QVERIFY(jsonText(Json("\xff broken")).size() > 3); // invalid UTF-8 is replaced, not thrown
}

void TestJson::survivesAnyTruncation()
{
    const std::string whole = R"({"format": "memscape-record", "x": [1, 2.5e-3, null, "ä", {"b": true}]})";
    for (std::size_t size = 0; size < whole.size(); ++size)
        QVERIFY(!parseJson(whole.substr(0, size)).has_value());
    QVERIFY(parseJson(whole).has_value());
}

QTEST_GUILESS_MAIN(TestJson)
#include "tst_json.moc"
