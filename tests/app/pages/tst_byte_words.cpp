// SPDX-License-Identifier: GPL-3.0-or-later
// Bytes in sentences follow the window's setting.
#include "app/pages/byte_words.h"
#include "app/pages/cards/why_card.h"

#include <QtTest>

using namespace memscape;

class TestByteWords : public QObject
{
    Q_OBJECT

private slots:
    void sizesAreSaidAgain_data()
    {
        QTest::addColumn<QString>("binary");
        QTest::addColumn<QString>("decimal");
        QTest::newRow("one") << "= 43.45 GiB"
                             << "= 46.7 GB";
        QTest::newRow("several") << "= 1.5 KiB + 512 MiB weights, in the forward phase"
                                 << "= 1.54 kB + 537 MB weights, in the forward phase";
        QTest::newRow("at the end") << "half: 2 TiB"
                                    << "half: 2.2 TB";
        QTest::newRow("decimal already") << "900 GB/s and 4.3 GB"
                                         << "900 GB/s and 4.3 GB";
        QTest::newRow("a name") << "model-7.5 GiBson, x12 MiB, MiB"
                                << "model-7.5 GiBson, x12 MiB, MiB";
        QTest::newRow("none") << "no bytes here: 12 steps"
                              << "no bytes here: 12 steps";
        QTest::newRow("empty") << ""
                               << "";
    }

    void sizesAreSaidAgain()
    {
        QFETCH(QString, binary);
        QFETCH(QString, decimal);
        QCOMPARE(bytesInStyle(binary, ByteStyle::Decimal), decimal);
        QCOMPARE(bytesInStyle(binary, ByteStyle::Binary), binary);
    }

    void aReasonFollowsTheWindow()
    {
        const Figure figure{
            "peak", "peak", Unit::Byte, 186e9, {}, {}, Why{"a + b", "= 100 GiB + 73.2 GiB", {}, "us", {}}};
        WhyCard card;
        card.setFigure(&figure, ByteStyle::Decimal);
        QVERIFY2(card.text().contains("107 GB + 78.6 GB") && !card.text().contains("iB"), qPrintable(card.text()));
        card.setFigure(&figure, ByteStyle::Binary);
        QVERIFY2(card.text().contains("100 GiB + 73.2 GiB"), qPrintable(card.text()));
    }
};

QTEST_MAIN(TestByteWords)
#include "tst_byte_words.moc"
