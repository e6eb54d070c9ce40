// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/fuzzy.h"
#include "app/window/palette_entries.h"

#include <QTest>

using namespace memscape;

class TestFuzzy : public QObject
{
    Q_OBJECT

private slots:
    void matches_data()
    {
        QTest::addColumn<QString>("pattern");
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("matches");
        QTest::newRow("prefix") << "sav"
                                << "Save as…" << true;
        QTest::newRow("case") << "SAVE"
                              << "Save as…" << true;
        QTest::newRow("scattered") << "epg"
                                   << "Export page…" << true;
        QTest::newRow("words in any order") << "page exp"
                                            << "Export page…" << true;
        QTest::newRow("letters in the wrong order") << "gep"
                                                    << "Page" << false;
        QTest::newRow("one word does not match") << "export zebra"
                                                 << "Export page…" << false;
        QTest::newRow("empty text") << "a"
                                    << "" << false;
    }
    void matches()
    {
        QFETCH(QString, pattern);
        QFETCH(QString, text);
        QFETCH(bool, matches);
        QCOMPARE(fuzzyMatch(pattern, text).score > 0, matches);
    }

    void positionsAreThoseOfTheLetters()
    {
        QCOMPARE(fuzzyMatch("page", "Export page").positions, (QList<int>{7, 8, 9, 10}));
        QVERIFY(fuzzyMatch("zz", "Export page").positions.isEmpty());
    }

    void betterMatchesScoreMore()
    {
        const auto score = [](const char* text) { return fuzzyMatch("copy", text).score; };
        QVERIFY(score("Copy plot") > score("Photocopy"));                          // start of the line
        QVERIFY(score("Photocopy") > score("Compare pretty"));                     // together beats scattered
        QVERIFY(score("Copy") > score("Copy the data of all plots of this page")); // shorter
    }

    void rankingPutsTheBestFirstAndRecentOnesBeforeEquals()
    {
        QList<PaletteEntry> entries;
        for (const char* text : {"Export plot", "Export page", "Copy plot", "Undo"})
            entries << PaletteEntry{text, "", "", {}, [] {}};
        const auto texts = [&](const QString& typed, const QStringList& recent) {
            QStringList found;
            for (const PaletteEntry& entry : rankedEntries(entries, typed, recent))
                found << entry.text;
            return found;
        };
        QCOMPARE(texts("", {}).size(), 4);
        QCOMPARE(texts("exp", {}), (QStringList{"Export plot", "Export page"}));
        QCOMPARE(texts("exp", {"Export page"}), (QStringList{"Export page", "Export plot"}));
        QCOMPARE(texts("plot c", {}), QStringList{"Copy plot"});
        QVERIFY(texts("qqq", {}).isEmpty());
    }
};

QTEST_GUILESS_MAIN(TestFuzzy)
#include "tst_fuzzy.moc"
