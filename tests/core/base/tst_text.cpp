// SPDX-License-Identifier: Apache-2.0
#include "core/base/result.h"
#include "core/base/text.h"

#include <QtTest>

using namespace memscape;

class TestText : public QObject
{
    Q_OBJECT

private slots:
    void suggestsNearNames();
    void quotesForeignTextSafely();
    void splitsAndJoins();
    void errorsNamePlaceAndRemedy();
    void errorsMapToExitCodes();
};

void TestText::suggestsNearNames()
{
    const std::vector<std::string> known{"stride", "element", "operation", "bytes"};
    QCOMPARE(nearest("strde", known), std::vector<std::string>{"stride"});
    QCOMPARE(nearest("STRIDE", known), std::vector<std::string>{"stride"});
    QVERIFY(nearest("zzzzzzzz", known).empty());
    QCOMPARE(didYouMean("elem", known), std::string("did you mean element?"));
    QVERIFY(didYouMean("qqqqqqqqq", known).starts_with("known: stride"));
    QVERIFY(nearest(std::string(1'000'000, 'x'), known).empty()); // quick, whatever its length
}

void TestText::quotesForeignTextSafely()
{
    QCOMPARE(quotedForMessage("a\nb\x1b[31m"), std::string("a b [31m"));
    const std::string euros = "€€€€€€€€€€"; // three bytes each
    for (std::size_t limit = 1; limit < 20; ++limit)
        QVERIFY(QString::fromStdString(quotedForMessage(euros, limit)).contains(QChar::ReplacementCharacter) == false);
}

void TestText::splitsAndJoins()
{
    QCOMPARE(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
    QCOMPARE(join({"a", "b"}, " or "), std::string("a or b"));
    QCOMPARE(std::string(trimmed(" \t x y\r\n")), std::string("x y"));
    QCOMPARE(editDistance("kitten", "sitting"), 3);
}

void TestText::errorsNamePlaceAndRemedy()
{
    const Error error{"parameter.range", "is out of range", "stride", "allowed: 0 to 64"};
    QCOMPARE(error.text(), std::string("stride: is out of range (allowed: 0 to 64)"));
}

void TestText::errorsMapToExitCodes()
{
    QCOMPARE(int(exitCodeFor({"parameter.range", ""})), 2);
    QCOMPARE(int(exitCodeFor({"device.unknown", ""})), 3);
    QCOMPARE(int(exitCodeFor({"run.skipped", ""})), 3);
    QCOMPARE(int(exitCodeFor({"run.memory", ""})), 1);
    QCOMPARE(int(exitCodeFor({"run.cancelled", ""})), 130);
}

QTEST_GUILESS_MAIN(TestText)
#include "tst_text.moc"
