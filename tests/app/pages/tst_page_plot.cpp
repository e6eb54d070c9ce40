// SPDX-License-Identifier: GPL-3.0-or-later
// Chips above a plot are readable, or there is a list in their place: also when another answer brings
// other ones while the window stands open.
#include "app/pages/page_plot.h"

#include <QComboBox>
#include <QLabel>
#include <QLayout>
#include <QSignalSpy>
#include <QTest>

using namespace memscape;

namespace {

std::vector<SeriesGroup> groupsNamed(const QStringList& labels)
{
    std::vector<SeriesGroup> groups;
    for (const QString& label : labels)
        groups.push_back({label, label, Unit::One, {}});
    return groups;
}

/// Chips that choose among series, not those of the axes.
QList<QToolButton*> chipsOf(const PagePlot& plot)
{
    QList<QToolButton*> chips;
    for (QToolButton* button : plot.findChildren<QToolButton*>()) {
        if (button->accessibleName().startsWith(QStringLiteral("Plot ")) && button->isVisible())
            chips << button;
    }
    return chips;
}

} // namespace

class TestPagePlot : public QObject
{
    Q_OBJECT

private slots:
    void longerNamesBecomeAList()
    {
        PagePlot plot;
        plot.resize(740, 420);
        plot.setGroups(groupsNamed({"time", "rate"}), "time");
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        QCOMPARE(chipsOf(plot).size(), 2);
        plot.setGroups(
            groupsNamed({"gradients that become zero", "gradients with fewer bits", "gradients that overflow"}),
            "gradients that become zero");
        QCoreApplication::processEvents();
        for (const QToolButton* chip : chipsOf(plot))
            QVERIFY2(chip->width() >= chip->sizeHint().width(), qPrintable(chip->text()));
        auto* list = plot.findChild<QComboBox*>();
        QVERIFY(list->isVisible());
        QCOMPARE(list->currentText(), QStringLiteral("gradients that become zero"));
        QSignalSpy chosen(&plot, &PagePlot::groupChosen);
        QTest::keyClick(list, Qt::Key_Down);
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen.front().front().toString(), QStringLiteral("gradients with fewer bits"));
    }

    void thePlaceOfTheListGoesBackToChips()
    {
        PagePlot plot;
        plot.resize(740, 420);
        plot.setGroups(
            groupsNamed({"gradients that become zero", "gradients with fewer bits", "gradients that overflow"}),
            "gradients that become zero");
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        QVERIFY(chipsOf(plot).isEmpty());
        plot.setGroups(groupsNamed({"time", "rate"}), "rate");
        QCoreApplication::processEvents();
        QCOMPARE(chipsOf(plot).size(), 2);
        QVERIFY(!plot.findChild<QComboBox*>()->isVisible());
        QVERIFY(chipsOf(plot).back()->isChecked());
    }

    void nothingIsCutOffWhereItIsNarrow()
    {
        PagePlot plot;
        plot.setGroups(groupsNamed({"one", "two", "three", "four"}), "one");
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        for (const int width : {700, 500, 420, 330, 700}) {
            plot.resize(width, 300);
            QCoreApplication::processEvents();
            for (QWidget* tool : plot.findChildren<QWidget*>()) {
                const bool isTool = qobject_cast<QToolButton*>(tool) || qobject_cast<QComboBox*>(tool);
                if (!isTool || !tool->isVisible())
                    continue;
                const QRect place(tool->mapTo(&plot, QPoint()), tool->size());
                QVERIFY2(plot.rect().contains(place), qPrintable(QString::number(width)));
                QVERIFY(tool->width() >= tool->minimumSizeHint().width() || qobject_cast<QComboBox*>(tool));
            }
        }
        QVERIFY(plot.minimumSizeHint().width() <= 330);
    }

    void theLineBelowEndsWithAWholeSentence()
    {
        PagePlot plot;
        plot.resize(900, 300);
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        auto* line = plot.findChild<QLabel*>(QStringLiteral("statusLine"));
        QCOMPARE(line->text(), plot.statusText());
        for (const int width : {900, 500, 404, 330}) { // 404: what a window of 944 × 552 leaves it
            plot.resize(width, 300);
            QCoreApplication::processEvents();
            QVERIFY2(line->fontMetrics().horizontalAdvance(line->text()) <= line->width(), qPrintable(line->text()));
            QVERIFY2(line->text().endsWith(u'.'), qPrintable(line->text()));
        }
        plot.updateGeometry();
        plot.layout()->invalidate(); // as whatever changes its size does
        plot.setHoverText("26 found.");
        QCOMPARE(line->text(), QStringLiteral("26 found."));
        const QString word(300, u'm');
        plot.setHoverText(word);
        QVERIFY(line->text().endsWith(QChar(0x2026)));
        QVERIFY(line->toolTip().contains(word));
        QCOMPARE(plot.statusText(), word);
    }

    void aFoldedPlotLeavesItsLineAlone()
    {
        PagePlot plot;
        plot.resize(700, 400);
        plot.setFoldable(true, QStringLiteral("Drag it."));
        plot.setFolded(true);
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        QVERIFY(!plot.view()->isVisible());
        QVERIFY(plot.maximumHeight() < 60);
        QCOMPARE(plot.statusText(), QStringLiteral("Drag it."));
        QSignalSpy asked(&plot, &PagePlot::foldChosen);
        QList<QToolButton*> shown;
        for (QToolButton* button : plot.findChildren<QToolButton*>()) {
            if (button->isVisible())
                shown << button;
        }
        QCOMPARE(shown.size(), 1);
        shown.front()->click();
        QCOMPARE(asked.size(), 1);
        QCOMPARE(asked[0][0].toBool(), false);
        plot.setFolded(false);
        QVERIFY(plot.view()->isVisible());
        QVERIFY(plot.maximumHeight() > 10000);
    }

    void aFoldedPlotMakesRoomForWhatComesBelow()
    {
        PagePlot plot;
        auto* strip = new QWidget;
        auto* row = new QVBoxLayout(strip);
        plot.addBelow(strip);
        plot.resize(700, 400);
        plot.setFoldable(true, QStringLiteral("Drag it."));
        plot.setFolded(true);
        plot.show();
        QVERIFY(QTest::qWaitForWindowExposed(&plot));
        auto* chip = new QToolButton;
        chip->setMinimumHeight(70);
        row->addWidget(chip); // a first record: the strip is shown already
        QTRY_VERIFY(plot.maximumHeight() >= 70);
        QVERIFY(plot.maximumHeight() >= plot.minimumSizeHint().height());
    }
};

QTEST_MAIN(TestPagePlot)
#include "tst_page_plot.moc"
