// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/command_palette.h"

#include <QLineEdit>
#include <QTest>

using namespace memscape;

class TestCommandPalette : public QObject
{
    Q_OBJECT

private slots:
    void typingNarrowsEnterRunsEscapeLeaves()
    {
        QWidget window;
        window.resize(800, 600);
        CommandPalette palette(&window);
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QString ran;
        QList<PaletteEntry> entries;
        for (const char* text : {"Save", "Save as…", "Measure"})
            entries << PaletteEntry{text, "", "", {}, [&ran, text] { ran = text; }};
        palette.open(entries);
        QCOMPARE(palette.listed().size(), 3);
        QTest::keyClicks(palette.input(), "meas");
        QCOMPARE(palette.listed(), QStringList{"Measure"});
        QTest::keyClick(palette.input(), Qt::Key_Return);
        QCOMPARE(ran, "Measure");
        QVERIFY(!palette.isVisible());

        palette.open(entries); // what was used lately comes first
        QCOMPARE(palette.listed().first(), "Measure");
        QTest::keyClick(palette.input(), Qt::Key_Down);
        QTest::keyClick(palette.input(), Qt::Key_Return);
        QCOMPARE(ran, "Save");

        palette.open(entries);
        QTest::keyClicks(palette.input(), "zzz");
        QVERIFY(palette.listed().isEmpty());
        QTest::keyClick(palette.input(), Qt::Key_Return); // nothing to run
        QVERIFY(palette.isVisible());
        QTest::keyClick(palette.input(), Qt::Key_Escape);
        QVERIFY(!palette.isVisible());
    }
};

QTEST_MAIN(TestCommandPalette)
#include "tst_command_palette.moc"
