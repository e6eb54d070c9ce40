// SPDX-License-Identifier: Apache-2.0
#include "core/report/text_table.h"

#include "golden.h"

using namespace memscape;
using namespace memscape::test;

class TestTextTable : public QObject
{
    Q_OBJECT

private slots:
    void columnsLineUpByCharacters()
    {
        const TextTable table{{{"figure", false}, {"speed\npredicted", true}},
                              {{"time", "12.6 µs"}, {"a longer name", "−3 %"}}};
        QCOMPARE(bytes(alignedText(table, 2)),
                 QByteArray("                     speed\n"
                            "  figure         predicted\n"
                            "  time             12.6 µs\n"
                            "  a longer name       −3 %\n"));
    }

    void shortRowsAreAllowed()
    {
        const TextTable table{{{"a", false}, {"b", false}}, {{"1"}}};
        QCOMPARE(bytes(alignedText(table)), QByteArray("a  b\n1\n"));
    }

    void markdown()
    {
        const TextTable table{{{"name", false}, {"speed\nmeasured", true}}, {{"a|b", "1 GB/s"}}};
        QCOMPARE(bytes(markdownTable(table)),
                 QByteArray("| name | speed measured |\n"
                            "| --- | ---: |\n"
                            "| a\\|b | 1 GB/s |\n"));
    }

    void controlCharactersNeverReachATerminal()
    {
        QCOMPARE(bytes(printable("a\x1b[2Jb\nc\x7f")), QByteArray("a [2Jb c "));
        QCOMPARE(bytes(printable("a\xC2\x9B"
                                 "2J")),
                 QByteArray("a  2J")); // CSI as one code point
        QCOMPARE(bytes(printable("µs")), QByteArray("µs"));
    }
};

QTEST_APPLESS_MAIN(TestTextTable)
#include "tst_text_table.moc"
