// SPDX-License-Identifier: Apache-2.0
#include "core/base/json.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

class TestJson : public QObject
{
    Q_OBJECT

private slots:
    void namesThePlaceOfAWrongType();
    void namesLineAndColumn();
    void saysWhenTheTextWasCutOff();
    void refusesHostileShapes();
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
    QCOMPARE(value.error().text(),
             std::string("predicted.figures.peak.value: expected a number, found \"12 GB\""));
    QCOMPARE(peak.number("unit").error().text(), std::string("predicted.figures.peak.unit: is missing"));
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
