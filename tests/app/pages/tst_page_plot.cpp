// SPDX-License-Identifier: GPL-3.0-or-later
// Chips above a plot are readable, or there is a list in their place: also when another answer brings
// other ones while the window stands open.
#include "app/pages/page_plot.h"

#include <QComboBox>
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
    void longerNamesBecomeAList();
    void thePlaceOfTheListGoesBackToChips();
};

void TestPagePlot::longerNamesBecomeAList()
{
    PagePlot plot;
    plot.resize(740, 420);
    plot.setGroups(groupsNamed({"time", "rate"}), "time");
    plot.show();
    QVERIFY(QTest::qWaitForWindowExposed(&plot));
    QCOMPARE(chipsOf(plot).size(), 2);
    plot.setGroups(groupsNamed({"gradients that become zero", "gradients with fewer bits",
                                "gradients that overflow"}),
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

void TestPagePlot::thePlaceOfTheListGoesBackToChips()
{
    PagePlot plot;
    plot.resize(740, 420);
    plot.setGroups(groupsNamed({"gradients that become zero", "gradients with fewer bits",
                                "gradients that overflow"}),
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

QTEST_MAIN(TestPagePlot)
#include "tst_page_plot.moc"
