// SPDX-License-Identifier: Apache-2.0
// Sentences with numbers in them: how a number is written, what stands where there is none, and broken places.
#include "core/expression/expression_template.h"

#include <QtTest>

using namespace memscape;

namespace {

ExpressionScope templateScope()
{
    return {[](const std::string& name) -> Result<ExpressionValue> {
        if (name == "bytes")
            return numberValue(2e9, Unit::Byte);
        if (name == "rate")
            return numberValue(1e9, Unit::BytePerSecond);
        if (name == "bound")
            return wordValue("compute-bound");
        return fail(name == "later" ? "test.later" : "test.name", "no " + name);
    }};
}

} // namespace

class TestExpressionTemplate : public QObject
{
    Q_OBJECT

private slots:
    void sentences_data()
    {
        QTest::addColumn<QByteArray>("expected");
        const auto row = [](const char* text, const char* expected) { QTest::newRow(text) << QByteArray(expected); };
        row("", "");
        row("nothing {at} all", "nothing {at} all");
        row("{{bytes}} of {{4 * bytes}}, {{bytes / rate}}", "2 GB of 8 GB, 2 s");
        row("{{bytes | binary}} at {{rate}}", "1.86 GiB at 1 GB/s");
        row("{{1 / 3 | percent 3}}, {{1/3|percent}} and {{1 / 3 | times}}", "33.3 %, 33 % and 0.333×");
        row("{{2 / 3 | digits 2}} {{3e9 | B}} {{2e-6 | s}}", "0.67 3 GB 2 µs");
        row("{{bound}} and {{bound | count}}", "compute-bound and compute-bound");
        row("{{6738415616 | count}} {{6738415616}}", "6\u202f738\u202f415\u202f616 6\u202f738\u202f415\u202f616");
        row("{{4096}} {{0.5}} {{0 / 0}} {{-1 / 0}}", "4096 0.5 – −∞");
        row("{{5e9 | decimal}}", "5 GB");
    }
    void sentences()
    {
        QFETCH(QByteArray, expected);
        const auto parsed = ExpressionTemplate::parse(QTest::currentDataTag());
        QVERIFY2(parsed, parsed ? "" : parsed.error().text().c_str());
        const auto text = parsed->filled(templateScope(), {ByteStyle::Decimal});
        QVERIFY2(text, text ? "" : text.error().text().c_str());
        QCOMPARE(QByteArray::fromStdString(*text), expected);
    }

    void bytesAreBinaryUnlessAsked()
    {
        QCOMPARE(*ExpressionTemplate::parse("{{bytes}}")->filled(templateScope()), std::string("1.86 GiB"));
        QCOMPARE(*ExpressionTemplate::parse("{{bytes | decimal}}")->filled(templateScope()), std::string("2 GB"));
    }

    void whatIsMissingMayBeReplaced()
    {
        const auto parsed = ExpressionTemplate::parse("a\n{{later}}, {{bound}}");
        FillStyle style;
        style.otherwise = [](const Error& error) {
            return error.code == "test.later" ? std::optional<std::string>("(later)") : std::nullopt;
        };
        QCOMPARE(*parsed->filled(templateScope(), style), std::string("a\n(later), compute-bound"));
        const auto refused = parsed->filled(templateScope());
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, std::string("test.later"));
        QCOMPARE(refused.error().place, std::string("line 2"));
        QCOMPARE(parsed->names(), (std::vector<std::string>{"later", "bound"}));
    }

    void brokenPlaces_data()
    {
        QTest::addColumn<QByteArray>("place");
        QTest::addColumn<QByteArray>("says");
        const auto row = [](const char* text, const char* place, const char* says) {
            QTest::newRow(text) << QByteArray(place) << QByteArray(says);
        };
        row("a\nb {{1", "line 2", "has no }}");
        row("{{bytes | parsec}}", "line 1", "\"parsec\"");
        row("{{bytes | digits 0}}", "line 1", "\"digits 0\"");
        row("\n\n{{1 +}}", "line 3, column 4", "expected a value");
        row("{{}}", "line 1, column 1", "expected a value");
    }
    void brokenPlaces()
    {
        QFETCH(QByteArray, place);
        QFETCH(QByteArray, says);
        const auto parsed = ExpressionTemplate::parse(QTest::currentDataTag());
        QVERIFY(!parsed);
        QCOMPARE(QByteArray::fromStdString(parsed.error().place), place);
        QVERIFY2(parsed.error().text().find(says.constData()) != std::string::npos, parsed.error().text().c_str());
    }
};

QTEST_APPLESS_MAIN(TestExpressionTemplate)
#include "tst_expression_template.moc"
