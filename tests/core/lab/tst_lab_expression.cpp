// SPDX-License-Identifier: Apache-2.0
// What labs add to expressions: sources, no absolute times, texts before a measurement, parameters of a variant.
#include "core/lab/lab_expression.h"

#include <QtTest>

using namespace memscape;

class TestLabExpression : public QObject
{
    Q_OBJECT

private slots:
    void sourcesAreAsked()
    {
        QCOMPARE(evaluateLab("at(far, \"latency\", 4KiB) / latency", scope())->text(), std::string("4096"));
        QCOMPARE(evaluateLab("if(far.latency > latency, \"slower\", \"quicker\")", scope())->word(),
                 std::string("slower"));
        QCOMPARE(*namesInLab("at(far, \"latency\", x) + bound"), (std::vector<std::string>{"far.", "x", "bound"}));
        QVERIFY(!namesInLab("measured(far, \"latency\", x)"));
    }

    void timesAreNeverAbsolute()
    {
        for (const char* text : {"latency < 10ns", "3GHz", "count(latency)"})
            QCOMPARE(evaluateLab(text, scope()).error().code, std::string("expression.absolute"));
        for (const char* text : {"1KiB + latency", "1KiB < 5", "latency < 1"})
            QCOMPARE(evaluateLab(text, scope()).error().code, std::string("expression.unit"));
        QVERIFY(evaluateLab("far.latency / latency < 10", scope())->isTrue());
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
