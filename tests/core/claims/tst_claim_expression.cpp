// SPDX-License-Identifier: Apache-2.0
// The arithmetic of claims against the compiler's own, its units, its refusals; sentences with numbers in them.
#include "core/claims/claim_template.h"

#include <QtTest>

#include <cmath>

using namespace memscape;

namespace {

Result<ClaimValue> valueNamed(const std::string& name)
{
    if (name == "bytes")
        return ClaimValue{2e9, Unit::Byte};
    if (name == "rate")
        return ClaimValue{1e9, Unit::BytePerSecond};
    if (name == "one.count")
        return ClaimValue{12};
    if (name == "bound")
        return ClaimValue{memscape::nan, Unit::One, "compute-bound", true};
    if (name == "unknown")
        return ClaimValue{};
    return fail("claims.figure", "no figure \"" + name + "\"");
}

Result<ClaimValue> calculatedFrom(const char* text)
{
    const auto parsed = ClaimExpression::parse(text);
    if (!parsed)
        return fail(parsed.error());
    return parsed->evaluate(valueNamed);
}

} // namespace

class TestClaimExpression : public QObject
{
    Q_OBJECT

private slots:
    void arithmetic_data();
    void arithmetic();
    void unitsFollow();
    void namesAreListedOnce();
    void refusals_data();
    void refusals();
    void sentences_data();
    void sentences();
    void sentencesAreRefused_data();
    void sentencesAreRefused();
};

void TestClaimExpression::arithmetic_data()
{
    QTest::addColumn<double>("expected");
    const auto row = [](const char* text, double expected) { QTest::newRow(text) << expected; };
    row("1 + 2 * 3", 1 + 2 * 3);
    row("(1 + 2) * 3", 9);
    row("7 - 2 - 1", 4);
    row("8 / 4 / 2", 1);
    row("-2 * 3", -6);
    row("2 ^ 10", 1024);
    row("1.5e-3 * 2e3", 3);
    row("one.count + 1", 13);
    row("bytes / rate", 2);
    row("sqrt(16) + log2(8) + abs(-2) + ceil(1.2) + floor(1.8)", 4 + 3 + 2 + 2 + 1);
    row("min(2, 3) + max(2, 3)", 5);
    row("near(105, 100, 0.06)", 1);
    row("near(105, 100, 0.04)", 0);
    row("within(2, 2, 3) and not within(1, 2, 3)", 1);
    row("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 2 = 2", 1);
    row("1 > 2 or 2 > 1", 1);
    row("bound = 'compute-bound'", 1);
    row("bound = 'memory-bound'", 0);
    row("unknown > 1 or unknown < 1", 0);
    row("9 * 256 * 256 / (9 * 256 + 256 * 256)", 9.0 * 256 * 256 / (9.0 * 256 + 256.0 * 256));
}

void TestClaimExpression::arithmetic()
{
    QFETCH(double, expected);
    const auto value = calculatedFrom(QTest::currentDataTag());
    QVERIFY2(value, value ? "" : value.error().text().c_str());
    QCOMPARE(value->number, expected);
}

void TestClaimExpression::unitsFollow()
{
    QCOMPARE(calculatedFrom("bytes - bytes / 2")->unit, Unit::Byte);
    QCOMPARE(calculatedFrom("bytes / bytes")->unit, Unit::One);
    QCOMPARE(calculatedFrom("2 * rate")->unit, Unit::BytePerSecond);
    QCOMPARE(calculatedFrom("bytes + rate")->unit, Unit::One);
    QCOMPARE(calculatedFrom("bytes > 1")->unit, Unit::One);
}

void TestClaimExpression::namesAreListedOnce()
{
    QCOMPARE(ClaimExpression::parse("bytes / (bytes + one.count)")->names(),
             (std::vector<std::string>{"bytes", "one.count"}));
}

void TestClaimExpression::refusals_data()
{
    QTest::addColumn<QByteArray>("word");
    const auto row = [](const char* text, const char* word) { QTest::newRow(text) << QByteArray(word); };
    row("", "lacks a number or a name");
    row("1 +", "lacks a number or a name");
    row("(1", "misses a )");
    row("1 2", "does not belong there");
    row("exp(1)", "no function");
    row("near(1, 2)", "takes 3");
    row("'word", "misses a '");
    row("bound + 1", "the word \"compute-bound\"");
    row("missing", "no figure");
    row("1e999", "1e999");
}

void TestClaimExpression::refusals()
{
    QFETCH(QByteArray, word);
    const auto value = calculatedFrom(QTest::currentDataTag());
    QVERIFY(!value);
    QVERIFY2(value.error().text().find(word.constData()) != std::string::npos, value.error().text().c_str());
    QVERIFY(!ClaimExpression::parse(std::string(2000, '1')));
    QVERIFY(!ClaimExpression::parse(std::string(100, '(') + "1" + std::string(100, ')')));
    QVERIFY(!ClaimExpression::parse(std::string(900, '-') + "1"));
}

void TestClaimExpression::sentences_data()
{
    QTest::addColumn<QByteArray>("expected");
    const auto row = [](const char* text, const char* expected) { QTest::newRow(text) << QByteArray(expected); };
    row("nothing", "nothing");
    row("{bytes} of {4 * bytes}, {bytes / rate:s}", "2 GB of 8 GB, 2 s");
    row("{bytes:KiB} at {rate}", "1.86 GiB at 1 GB/s");
    row("{1 / 3:%} and {1 / 3:×}", "33.3 % and 0.333×");
    row("{one.count} times, {bound}", "12 times, compute-bound");
    row("{6738415616:n}", "6\u202f738\u202f415\u202f616");
}

void TestClaimExpression::sentences()
{
    QFETCH(QByteArray, expected);
    const auto parsed = ClaimTemplate::parse(QTest::currentDataTag());
    QVERIFY2(parsed, parsed ? "" : parsed.error().text().c_str());
    QCOMPARE(QByteArray::fromStdString(*parsed->filled(valueNamed)), expected);
}

void TestClaimExpression::sentencesAreRefused_data()
{
    QTest::addColumn<QByteArray>("word");
    QTest::newRow("{bytes") << QByteArray("misses a }");
    QTest::newRow("bytes}") << QByteArray("without a {");
    QTest::newRow("{bytes:parsec}") << QByteArray("\"parsec\"");
    QTest::newRow("{}") << QByteArray("lacks a number");
}

void TestClaimExpression::sentencesAreRefused()
{
    QFETCH(QByteArray, word);
    const auto parsed = ClaimTemplate::parse(QTest::currentDataTag());
    QVERIFY(!parsed);
    QVERIFY2(parsed.error().text().find(word.constData()) != std::string::npos, parsed.error().text().c_str());
}

QTEST_APPLESS_MAIN(TestClaimExpression)
#include "tst_claim_expression.moc"
