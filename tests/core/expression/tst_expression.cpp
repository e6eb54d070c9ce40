// SPDX-License-Identifier: Apache-2.0
// The arithmetic of expressions against the compiler's own, their units, and their refusals.
#include "core/expression/expression.h"

#include <QtTest>

#include <array>

using namespace memscape;

namespace {

constexpr std::array<std::string_view, 1> testedSources{"at"};

Result<ExpressionValue> valueNamed(const std::string& name)
{
    if (name == "bytes")
        return numberValue(2e9, Unit::Byte);
    if (name == "rate")
        return numberValue(1e9, Unit::BytePerSecond);
    if (name == "latency")
        return numberValue(1e-8, Unit::Second);
    if (name == "one.count" || name == "detail.phases.0.count")
        return numberValue(12);
    if (name == "bound")
        return wordValue("compute-bound");
    if (name == "unknown")
        return numberValue(memscape::nan);
    return fail("test.name", "no figure \"" + name + "\"");
}

Result<ExpressionValue> calculatedFrom(const std::string& text, bool anyMachine = false)
{
    const ExpressionRules rules{testedSources, anyMachine};
    const auto parsed = Expression::parse(text, rules);
    if (!parsed)
        return fail(parsed.error());
    return parsed->evaluate({valueNamed, [](const std::string&, const std::vector<ExpressionValue>& arguments) {
                                 return Result<ExpressionValue>(arguments.back());
                             }});
}

} // namespace

class TestExpression : public QObject
{
    Q_OBJECT

private slots:
    void arithmetic_data()
    {
        QTest::addColumn<double>("expected");
        const auto row = [](const char* text, double expected) { QTest::newRow(text) << expected; };
        row("1 + 2 * 3", 1 + 2 * 3);
        row("(1 + 2) * 3", 9);
        row("7 - 2 - 1", 4);
        row("8 / 4 / 2", 1);
        row("-2 * 3", -6);
        row("2 ^ 10", 1024);
        row("2 ^ 3 ^ 2", 512);
        row("-2 ^ 2", -4);
        row("2 ^ -1", 0.5);
        row("--3", 3);
        row("1.5e-3 * 2e3 + 1e+2", 103);
        row("25% * 8", 2);
        row("16KiB / 4KiB", 4);
        row("one.count + 1", 13);
        row("detail.phases.0.count", 12);
        row("bytes / rate", 2);
        row("sqrt(16) + log2(8) + abs(-2) + ceil(1.2) + floor(1.8) + round(2.6)", 4 + 3 + 2 + 2 + 1 + 3);
        row("min(2, 3) + max(2, 3)", 5);
        row("count(4KiB)", 4096);
        row("if(1 < 2, 3, 4)", 3);
        row("near(105, 100, 0.06)", 1);
        row("near(105, 100, 0.04)", 0);
        row("within(2, 2, 3) and not within(1, 2, 3)", 1);
        row("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 2 == 2 and 2 != 3", 1);
        row("1 > 2 or 2 > 1", 1);
        row("not 1 == 2", 1);
        row("not (1 == 1) or 0", 0);
        row("bound == \"compute-bound\"", 1);
        row("bound != \"compute-bound\"", 0);
        row("unknown > 1 or unknown < 1", 0);
        row("at(run, \"latency\", 7) + 1", 8);
        row("9 * 256 * 256 / (9 * 256 + 256 * 256)", 9.0 * 256 * 256 / (9.0 * 256 + 256.0 * 256));
    }
    void arithmetic()
    {
        QFETCH(double, expected);
        const auto value = calculatedFrom(QTest::currentDataTag());
        QVERIFY2(value, value ? "" : value.error().text().c_str());
        QCOMPARE(value->number(), expected);
    }

    void unitsFollow()
    {
        const auto unit = [](const char* text) { return calculatedFrom(text)->unit(); };
        QCOMPARE(unit("bytes - bytes / 2"), Unit::Byte);
        QCOMPARE(unit("bytes / bytes"), Unit::One);
        QCOMPARE(unit("2 * rate"), Unit::BytePerSecond);
        QCOMPARE(unit("bytes / rate"), Unit::Second);
        QCOMPARE(unit("bytes / latency"), Unit::BytePerSecond);
        QCOMPARE(unit("sqrt(bytes * bytes)"), Unit::Byte);
        QCOMPARE(unit("bytes > 1"), Unit::One);
        QCOMPARE(unit("min(bytes, 1KiB)"), Unit::Byte);
        QCOMPARE(unit("3us"), Unit::Second);
        QCOMPARE(calculatedFrom("1024 + bytes - bytes")->text(), std::string("1 KiB")); // beside bytes, 1024 is bytes
    }

    void namesAreListedOnce()
    {
        QCOMPARE(Expression::parse("bytes / (bytes + one.count)")->names(),
                 (std::vector<std::string>{"bytes", "one.count"}));
        QCOMPARE(Expression::parse("at(run, \"latency\", far)", {testedSources, true})->names(),
                 (std::vector<std::string>{"run.", "far"}));
        QVERIFY(Expression::parse("notes_fragmentation > order and andrew")); // words that begin as operators do
    }

    void refusals_data()
    {
        QTest::addColumn<QByteArray>("code");
        QTest::addColumn<QByteArray>("says"); // message, place or hint
        const auto row = [](const char* text, const char* code, const char* says) {
            QTest::newRow(text) << QByteArray(code) << QByteArray(says);
        };
        const char *syntax = "expression.syntax", *unit = "expression.unit";
        row("", syntax, "a value");
        row("1 +", syntax, "column 4");
        row("(1", syntax, "expected \")\"");
        row("1 2", syntax, "an operator or the end");
        row("1 < 2 < 3", syntax, "an operator or the end");
        row("a = 2", syntax, "compare with ==");
        row("bound == 'memory'", syntax, "\"double quotes\"");
        row("\"word", syntax, "a closing quote");
        row("exp(1)", syntax, "there is no function exp");
        row("sqr(1)", syntax, "did you mean sqrt");
        row("near(1, 2)", syntax, "near takes 3 values, not 2");
        row("sqrt(1, 2)", syntax, "sqrt takes 1 value, not 2");
        row("at(4, 1)", syntax, "the name of a source");
        row("at(run)", syntax, "\",\"");
        row("1e999", syntax, "1e999");
        row("1.2.3", syntax, "\"1.2.3\" is not a number");
        row("3parsec", syntax, "a unit known here");
        row("#", syntax, "a value");
        row("missing", "test.name", "no figure");
        row("bound + 1", unit, "the word \"compute-bound\"");
        row("bound < \"z\"", unit, "use == or !=");
        row("bound == 1", unit, "a word with a number");
        row("bytes + latency", unit, "mixes units: 1.86 GiB and 10 ns");
        row("near(bytes, rate, 1)", unit, "mixes units");
        row("within(bytes, 1, rate)", unit, "mixes units");
        row("2 ^ bytes", unit, "exponent");
        row("log2(bytes)", unit, "logarithm");
    }
    void refusals()
    {
        QFETCH(QByteArray, code);
        QFETCH(QByteArray, says);
        const auto value = calculatedFrom(QTest::currentDataTag());
        QVERIFY(!value);
        QCOMPARE(QByteArray::fromStdString(value.error().code), code);
        QVERIFY2(value.error().text().find(says.constData()) != std::string::npos, value.error().text().c_str());
    }

    void lengthAndDepthAreLimited()
    {
        const std::string deep[] = {std::string(61, '(') + "1" + std::string(61, ')'), std::string(900, '-') + "1",
                                    std::string(1001, '1'),
                                    [] {
                                        std::string text = "2";
                                        for (int i = 0; i < 400; ++i)
                                            text += "^2";
                                        return text;
                                    }(),
                                    [] {
                                        std::string text;
                                        for (int i = 0; i < 200; ++i)
                                            text += "not ";
                                        return text + "1";
                                    }()};
        for (const std::string& text : deep) {
            const auto value = calculatedFrom(text);
            QVERIFY(!value);
            QCOMPARE(value.error().code, std::string("expression.syntax"));
        }
        QVERIFY(calculatedFrom(std::string(60, '(') + "1" + std::string(60, ')')));
        std::string wide = "1"; // wide is not deep
        for (int i = 0; i < 400; ++i)
            wide += "+1";
        QCOMPARE(calculatedFrom(wide)->number(), 401.0);
    }

    void anyMachineHasNoAbsoluteTimes_data()
    {
        QTest::addColumn<QByteArray>("code"); // empty: it is allowed
        const auto row = [](const char* text, const char* code) { QTest::newRow(text) << QByteArray(code); };
        row("latency < 10ns", "expression.absolute");
        row("3GHz", "expression.absolute");
        row("count(latency)", "expression.absolute");
        row("100GB/s", "test.name"); // 100 GB, divided by an s that nothing is
        row("1KiB < 5", "expression.unit");
        row("latency + 1", "expression.unit");
        row("latency / latency < 5", "");
        row("bytes < 16KiB", "");
        row("count(bytes)", "");
    }
    void anyMachineHasNoAbsoluteTimes()
    {
        QFETCH(QByteArray, code);
        const auto value = calculatedFrom(QTest::currentDataTag(), true);
        QCOMPARE(value ? QByteArray() : QByteArray::fromStdString(value.error().code), code);
    }
};

QTEST_APPLESS_MAIN(TestExpression)
#include "tst_expression.moc"
