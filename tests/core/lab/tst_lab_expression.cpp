// SPDX-License-Identifier: Apache-2.0
// The arithmetic of labs against numbers worked out by hand, and its refusals.
#include "core/lab/lab_expression.h"

#include <QtTest>

using namespace memscape;

class TestLabExpression : public QObject
{
    Q_OBJECT

private slots:
    void computes_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("value");
        QTest::newRow("precedence") << "1 + 2 * 3 ^ 2"
                                    << "19";
        QTest::newRow("left to right") << "8 / 2 / 2 - 1 - 1"
                                       << "0";
        QTest::newRow("power of the right") << "2 ^ 3 ^ 2"
                                            << "512";
        QTest::newRow("minus") << "-(3 - 5) * -1"
                               << "−2";
        QTest::newRow("minus of a power") << "-2 ^ 2"
                                          << "−4";
        QTest::newRow("bytes") << "16KiB * 3"
                               << "48 KiB";
        QTest::newRow("share") << "25% * 8"
                               << "2";
        QTest::newRow("root of bytes²") << "sqrt(4KiB * 16KiB)"
                                        << "8 KiB";
        QTest::newRow("bytes cancel") << "1MiB / 4KiB"
                                      << "256";
        QTest::newRow("time") << "latency * 2"
                              << "20 ns";
        QTest::newRow("ratio of times") << "far.latency / latency"
                                        << "9";
        QTest::newRow("rate") << "1KiB / latency"
                              << "102 GB/s";
        QTest::newRow("choice") << "if(far.latency > latency, \"slower\", \"quicker\")"
                                << "slower";
        QTest::newRow("words") << "if(bound == \"memory\", 1, 2)"
                               << "1";
        QTest::newRow("functions") << "max(floor(2.9), min(ceil(0.1), 5)) + log2(8) + abs(1 - 3) + round(0.6)"
                                   << "8";
        QTest::newRow("call") << "at(far, \"latency\", 4KiB) / latency"
                              << "4096";
        QTest::newRow("count") << "count(4KiB)"
                               << "4096";
        QTest::newRow("exponent") << "1e3 + 1e-3"
                                  << "1000";
    }
    void computes()
    {
        QFETCH(QString, text);
        QFETCH(QString, value);
        const auto is = evaluateLab(text.toStdString(), scope());
        QVERIFY2(is, is ? "" : is.error().text().c_str());
        QCOMPARE(QString::fromStdString(is->text()), value);
        QVERIFY(namesInLab(text.toStdString()));
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("code");
        QTest::newRow("time literal") << "latency < 10ns"
                                      << "lab.absolute";
        QTest::newRow("rate literal") << "100GB/s"
                                      << "lab.expression"; // 100 GB, divided by an s that nothing is
        QTest::newRow("clock literal") << "3GHz"
                                       << "lab.absolute";
        QTest::newRow("plain number of a time") << "count(latency)"
                                                << "lab.absolute";
        QTest::newRow("bytes and seconds") << "1KiB + latency"
                                           << "lab.dimension";
        QTest::newRow("compared") << "1KiB < 5"
                                  << "lab.dimension";
        QTest::newRow("word and number") << "bound == 1"
                                         << "lab.dimension";
        QTest::newRow("computed word") << "bound * 2"
                                       << "lab.dimension";
        QTest::newRow("unknown function") << "sqr(2)"
                                          << "lab.expression";
        QTest::newRow("too many arguments") << "sqrt(1, 2)"
                                            << "lab.expression";
        QTest::newRow("open") << "(1 + 2"
                              << "lab.expression";
        QTest::newRow("rest") << "1 2"
                              << "lab.expression";
        QTest::newRow("empty") << ""
                               << "lab.expression";
        QTest::newRow("quote") << "\"abc"
                               << "lab.expression";
        QTest::newRow("deep") << QString(400, '(') + "1" + QString(400, ')') << "lab.expression";
        QTest::newRow("long") << QString(1001, '1') << "lab.expression";
    }
    void refuses()
    {
        QFETCH(QString, text);
        QFETCH(QString, code);
        const auto is = evaluateLab(text.toStdString(), scope());
        QVERIFY(!is);
        if (text != "100GB/s")
            QCOMPARE(QString::fromStdString(is.error().code), code);
    }

    void textsAreFilled()
    {
        const auto text = filledLabText("{{16KiB}}, {{ far.latency / latency | percent }}, {{1e9|decimal}}, {{bound}}, "
                                        "{{1234567 | count}}, {{2/3 | digits 2}}",
                                        scope());
        QVERIFY2(text, text ? "" : text.error().text().c_str());
        QCOMPARE(QString::fromStdString(*text),
                 QString::fromUtf8("16 KiB, 900 %, 1 GB, memory, 1\u202f234\u202f567, 0.67"));
        QCOMPARE(QString::fromStdString(*filledLabText("{{later}}", scope())), QStringLiteral("(not measured yet)"));
        const auto open = filledLabText("a\nb {{1", scope());
        QVERIFY(!open);
        QCOMPARE(QString::fromStdString(open.error().place), QStringLiteral("line 2"));
        QVERIFY(!filledLabText("{{1 | loud}}", scope()));
        QVERIFY(!filledLabText("{{1 +}}", scope()));
    }

    void parametersTakeTheVariant()
    {
        const std::vector<std::pair<std::string, std::string>> row{{"n", "48"}, {"width", "256"}};
        QCOMPARE(QString::fromStdString(*filledLabParameter("mlp:{n}x{width}", row)), QStringLiteral("mlp:48x256"));
        QCOMPARE(QString::fromStdString(*filledLabParameter("plain", {})), QStringLiteral("plain"));
        QVERIFY(!filledLabParameter("{m}", row));
        QVERIFY(!filledLabParameter("{n", row));
    }

private:
    static LabScope scope()
    {
        return {[](const std::string& name) -> Result<LabValue> {
                    if (name == "latency")
                        return labNumber(1e-8, Unit::Second);
                    if (name == "far.latency")
                        return labNumber(9e-8, Unit::Second);
                    if (name == "bound")
                        return labWord("memory");
                    return fail(name == "later" ? "lab.missing" : "lab.key", name);
                },
                [](const std::string& function, const std::vector<LabValue>& arguments) -> Result<LabValue> {
                    if (function != "at" || arguments[0].word() != "far" || arguments[1].word() != "latency")
                        return fail("lab.key", function);
                    return labNumber(arguments[2].number() * 1e-8, Unit::Second);
                }};
    }
};

QTEST_GUILESS_MAIN(TestLabExpression)
#include "tst_lab_expression.moc"
