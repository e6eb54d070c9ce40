// SPDX-License-Identifier: Apache-2.0
#include "core/base/result.h"
#include "core/base/text.h"

#include <QtTest>

using namespace memscape;

class TestText : public QObject
{
    Q_OBJECT

private slots:
    void suggestsNearNames()
    {
        const std::vector<std::string> known{"stride", "element", "operation", "bytes"};
        QCOMPARE(nearest("strde", known), std::vector<std::string>{"stride"});
        QCOMPARE(nearest("STRIDE", known), std::vector<std::string>{"stride"});
        QVERIFY(nearest("zzzzzzzz", known).empty());
        QCOMPARE(nearest("every-block", {"none", "sqrt", "block"}), std::vector<std::string>{"block"});
        QCOMPARE(nearest("llama3", {"tinyllama-3x", "llama-3-70b", "llama-3-8b", "llama-2-7b"}),
                 (std::vector<std::string>{"llama-3-8b", "llama-3-70b", "tinyllama-3x"}));
        QCOMPARE(didYouMean("elem", known), std::string("did you mean element?"));
        QVERIFY(didYouMean("qqqqqqqqq", known).starts_with("known: stride"));
        QVERIFY(nearest(std::string(1'000'000, 'x'), known).empty()); // quick, whatever its length
    }

    void quotesForeignTextSafely()
    {
        QCOMPARE(quotedForMessage("a\nb\x1b[31m"), std::string("a b [31m"));
        const std::string euros = "€€€€€€€€€€"; // three bytes each
        for (std::size_t limit = 1; limit < 20; ++limit)
            QVERIFY(QString::fromStdString(quotedForMessage(euros, limit)).contains(QChar::ReplacementCharacter)
                    == false);
    }

    void knowsUtf8()
    {
        for (const char* good :
             {"", "gpt2", "h\xc3\xa9llo", "\xe2\x82\xac", "\xed\x9f\xbf", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
            QVERIFY2(validUtf8(good), good);
        // Python's bytes.decode("utf-8") refuses each of these too.
        for (const char* bad : {"\x80", "\xc0\xaf", "\xc3", "\xe2\x82", "\xe0\x80\xaf", "\xed\xa0\x80",
                                "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3("})
            QVERIFY2(!validUtf8(bad), bad);
    }

    void splitsAndJoins()
    {
        QCOMPARE(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
        QCOMPARE(join({"a", "b"}, " or "), std::string("a or b"));
        QCOMPARE(std::string(trimmed(" \t x y\r\n")), std::string("x y"));
        QCOMPARE(editDistance("kitten", "sitting"), 3);
    }

    void errorsNamePlaceAndRemedy()
    {
        const Error error{"parameter.range", "is out of range", "stride", "allowed: 0 to 64"};
        QCOMPARE(error.text(), std::string("stride: is out of range (allowed: 0 to 64)"));
    }

    void errorsMapToExitCodes()
    {
        QCOMPARE(int(exitCodeFor({"parameter.range", ""})), 2);
        QCOMPARE(int(exitCodeFor({"device.unknown", ""})), 3);
        QCOMPARE(int(exitCodeFor({"run.skipped", ""})), 3);
        QCOMPARE(int(exitCodeFor({"run.memory", ""})), 1);
        QCOMPARE(int(exitCodeFor({"run.cancelled", ""})), 130);
    }
};

QTEST_GUILESS_MAIN(TestText)
#include "tst_text.moc"
