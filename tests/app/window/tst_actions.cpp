// SPDX-License-Identifier: GPL-3.0-or-later
// The list of actions as the program registers it: no id twice, no shortcut twice, words for all.
#include "app/window/actions.h"
#include "app/window/window_actions.h"

#include <QMenu>
#include <QMenuBar>
#include <QTest>

using namespace memscape;

class TestActions : public QObject
{
    Q_OBJECT

private slots:
    void idsAreUniqueAndStable()
    {
        Actions actions;
        defineActions(actions, experiments());
        QStringList ids;
        for (const QAction* action : actions.all())
            ids << Actions::id(action);
        QCOMPARE(QSet<QString>(ids.begin(), ids.end()).size(), ids.size());
        for (const char* id : {"file.save", "edit.undo", "edit.palette", "view.restoreLayout", "run.measure",
                               "run.stop", "page.hierarchy", "page.stride"})
            QVERIFY2(actions.find(QString::fromLatin1(id)) != nullptr, id);
    }

    void shortcutsDoNotConflict()
    {
        Actions actions;
        defineActions(actions, experiments());
        QCOMPARE(actions.conflicts(), QStringList());
    }

    void aCustomShortcutReplacesTheStandardOneAndConflictsShow()
    {
        Actions actions;
        defineActions(actions, experiments());
        actions.setShortcut("file.save", "Ctrl+R");
        QCOMPARE(actions.at("file.save").shortcut(), QKeySequence("Ctrl+R"));
        QCOMPARE(actions.conflicts(), QStringList{"file.save run.measure Ctrl+R"});
        actions.setShortcut("file.save", {});
        QCOMPARE(actions.at("file.save").shortcut(), QKeySequence("Ctrl+S"));
        QVERIFY(actions.conflicts().isEmpty());
        actions.setShortcut("no.such.action", "Ctrl+R"); // of an older version: ignored
    }

    void everyActionSaysWhatItDoes()
    {
        Actions actions;
        defineActions(actions, experiments());
        for (const QAction* action : actions.all()) {
            QVERIFY2(!action->text().isEmpty(), qPrintable(Actions::id(action)));
            QVERIFY2(action->statusTip().size() > 5, qPrintable(Actions::id(action)));
            if (!action->shortcut().isEmpty())
                QVERIFY(action->toolTip().contains(action->shortcut().toString(QKeySequence::NativeText)));
        }
    }

    void everyActionIsInAMenu()
    {
        Actions actions;
        defineActions(actions, experiments());
        QMenuBar bar;
        actions.buildMenus(&bar);
        QSet<QAction*> inMenus;
        for (QAction* top : bar.actions()) {
            QVERIFY(top->menu() != nullptr);
            for (QAction* action : top->menu()->actions())
                inMenus.insert(action);
        }
        QCOMPARE(bar.actions().size(), 7);
        for (QAction* action : actions.all())
            QVERIFY2(inMenus.contains(action), qPrintable(Actions::id(action)));
    }

    void acceleratorsOfAMenuDiffer()
    {
        Actions actions;
        defineActions(actions, experiments());
        QMenuBar bar;
        actions.buildMenus(&bar);
        for (QAction* top : bar.actions()) {
            QStringList letters;
            for (const QAction* action : top->menu()->actions()) {
                const qsizetype at = action->text().indexOf(u'&');
                if (at < 0)
                    continue;
                const QString letter = action->text().mid(at + 1, 1).toLower();
                QVERIFY2(!letters.contains(letter), qPrintable(top->text() + ": " + action->text()));
                letters << letter;
            }
        }
    }
};

QTEST_MAIN(TestActions)
#include "tst_actions.moc"
