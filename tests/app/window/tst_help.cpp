// SPDX-License-Identifier: GPL-3.0-or-later
// The chapters of resources/help in the window: each is there, and what was checked stands on the pages' own help.
#include "app/window/help_dialog.h"
#include "core/experiment/experiment.h"

#include <QDialog>
#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <QTest>
#include <QTextBrowser>
#include <QTextDocument>
#include <QUrl>

using namespace memscape;

class TestHelp : public QObject
{
    Q_OBJECT

private slots:
    void everyChapterIsThere_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"start", "measuring", "accuracy", "published", "claims", "glossary"})
            QTest::newRow(name) << name;
    }
    void everyChapterIsThere()
    {
        QFETCH(QString, name);
        QVERIFY(helpChapter(name).startsWith(QStringLiteral("# ")));
        QTextDocument document;
        document.setMarkdown(helpChapter(name));
        QVERIFY(document.blockCount() > 10);
    }

    void chaptersThatAreLinkedAreThere()
    {
        const QRegularExpression link(QStringLiteral("\\]\\((\\w+)\\.md\\)"));
        int found = 0;
        for (const QString& file : QDir(QStringLiteral(":/help")).entryList()) {
            auto links = link.globalMatch(helpChapter(QFileInfo(file).completeBaseName()));
            for (; links.hasNext(); ++found) {
                const QString name = links.next().captured(1);
                QVERIFY2(!helpChapter(name).isEmpty(), qPrintable(name));
            }
        }
        QVERIFY(found > 0);
    }

    void aLinkedChapterOpensBesideTheOther()
    {
        QWidget window;
        showHelp(&window, QStringLiteral("Accuracy"), helpChapter(QStringLiteral("accuracy")));
        emit window.findChild<QTextBrowser*>()->anchorClicked(QUrl(QStringLiteral("published.md")));
        QStringList titles;
        for (const QDialog* dialog : window.findChildren<QDialog*>())
            titles << dialog->windowTitle();
        QVERIFY(titles.contains(QStringLiteral("Accuracy")));
        QVERIFY(titles.contains(QStringLiteral("Published figures, row by row")));
    }

    void whatIsNoChapterIsEmpty() { QVERIFY(helpChapter(QStringLiteral("nothing")).isEmpty()); }

    void keysOfPicturesAreUnderTheirPagesTitles()
    {
        const QString help = shortcutsHelp(Actions(nullptr));
        QVERIFY(help.contains(QStringLiteral("On the picture of Checkpointing")));
        QVERIFY(help.contains(QStringLiteral("T changes between rows and true time")));
        QVERIFY(!help.contains(QStringLiteral("On the picture of Roofline"))); // it has none of its own
    }

    void everyCheckBelongsToAPage()
    {
        QStringList titles{QStringLiteral("Published figures")}; // of several pages
        for (const Experiment* experiment : experiments())
            titles << QString::fromStdString(experiment->title());
        const QStringList parts = helpChapter(QStringLiteral("accuracy")).split(QStringLiteral("\n## ")).mid(1);
        QVERIFY(parts.size() > 3);
        for (const QString& part : parts)
            for (const QString& title : part.left(part.indexOf(u'\n')).split(QStringLiteral(", ")))
                QVERIFY2(titles.contains(title), qPrintable(title));
    }

    void aPagesHelpSaysWhatWasChecked()
    {
        const QString help = experimentHelp(**findExperiment("checkpoint"));
        QVERIFY(help.contains(QStringLiteral("What it was checked against")));
        QVERIFY(help.contains(QStringLiteral("Revolve: advances")));
        QVERIFY(!help.contains(QStringLiteral("linear layer's weight in NF4"))); // of another page
        QVERIFY(!experimentHelp(**findExperiment("bank-conflicts"))
                     .contains(QStringLiteral("What it was checked against")));
    }
};

QTEST_MAIN(TestHelp)
#include "tst_help.moc"
