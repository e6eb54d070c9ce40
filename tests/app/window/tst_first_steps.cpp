// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/first_steps.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

using namespace memscape;

class TestFirstSteps : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_settings = std::make_unique<Settings>(m_folder->filePath("memscape.ini"));
    }

    void aStepGoesOnceItIsDone()
    {
        FirstSteps steps(*m_settings);
        QCOMPARE(
            steps.texts(),
            (QStringList{"Drag the yellow marker", "Measure this point", "Will my model fit?", "Open the example"}));
        steps.finish(FirstStep::Drag);
        QCOMPARE(steps.texts().first(), "Measure this point");
        steps.finish(FirstStep::Measure);
        QCOMPARE(steps.texts().first(), "Will my model fit?");
        QVERIFY(!steps.isHidden());
        click(steps, "Will my model fit?");
        QVERIFY(steps.isHidden()); // the example alone is no reason to stay
    }

    void aChipAsksForItsStep()
    {
        FirstSteps steps(*m_settings);
        QSignalSpy wanted(&steps, &FirstSteps::wanted);
        click(steps, "Measure this point");
        QCOMPARE(wanted.size(), 1);
        QCOMPARE(wanted.front().front().value<FirstStep>(), FirstStep::Measure);
        QVERIFY(steps.texts().contains("Measure this point")); // done when a record has come of it
    }

    void closedStaysClosedUntilHelpShowsThemAgain()
    {
        {
            FirstSteps steps(*m_settings);
            click(steps, {});
            QVERIFY(steps.isHidden());
        }
        FirstSteps next(*m_settings);
        QVERIFY(next.isHidden());
        m_settings->setFirstSteps(0);
        QVERIFY(!next.isHidden());
        QCOMPARE(next.texts().size(), 4);
    }

private:
    /// The chip with that text; the button without one closes the row.
    static void click(FirstSteps& steps, const QString& text)
    {
        for (QToolButton* button : steps.findChildren<QToolButton*>()) {
            if (button->text() == text)
                return button->click();
        }
        QFAIL(qPrintable(text));
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<Settings> m_settings;
};

QTEST_MAIN(TestFirstSteps)
#include "tst_first_steps.moc"
