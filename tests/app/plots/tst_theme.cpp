// SPDX-License-Identifier: GPL-3.0-or-later
// Every colour that text is drawn in must read on every surface that it is drawn on: a contrast of
// 4.5:1 (WCAG 2.1, level AA). Dots and lines need 3:1 against the background of plots.
#include "app/settings/theme.h"

#include <QApplication>
#include <QCheckBox>
#include <QPalette>
#include <QRadioButton>
#include <QTest>

#include <cmath>

using namespace memscape;

class TestTheme : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        QPalette desktop; // what "system" is, from now on
        desktop.setColor(QPalette::Window, Qt::black);
        desktop.setColor(QPalette::WindowText, Qt::white);
        QApplication::setPalette(desktop);
        QVERIFY(themeByName("system").dark);
    }

    /// WCAG 2.1, 1.4.6: 7:1 for text.
    void aDesktopOfHighContrastIsFollowed()
    {
        const Theme& t = themeByName("system");
        QCOMPARE(t.background, QColor(Qt::black));
        for (const QColor& colour : {t.text, t.textDim, t.textFaint, t.border, t.predicted, t.measured, t.predictedText,
                                     t.measuredText, t.good, t.bad, t.warning, t.highlightText})
            QVERIFY2(contrast(colour, t.background) >= 7, qPrintable(colour.name()));
        QVERIFY(contrast(t.onAccent, t.predicted) >= 7);
        QCOMPARE(themeByName("dark").background, darkTheme().background); // as it is chosen
    }

    void contrastOfKnownPairs()
    {
        QCOMPARE(contrast(Qt::black, Qt::white), 21.0);
        QCOMPARE(contrast(Qt::white, Qt::white), 1.0);
        // #767676 on white is the lightest grey that passes, as WCAG's own examples say: 4.54.
        QVERIFY(std::abs(contrast(QColor(0x767676u), Qt::white) - 4.54) < 0.01);
    }

    void textReads_data()
    {
        QTest::addColumn<QString>("theme");
        QTest::newRow("light") << "light";
        QTest::newRow("dark") << "dark";
    }

    void textReads()
    {
        QFETCH(QString, theme);
        const Theme& t = themeByName(theme);
        const std::vector<std::pair<const char*, QColor>> texts{{"text", t.text},
                                                                {"textDim", t.textDim},
                                                                {"textFaint", t.textFaint},
                                                                {"predictedText", t.predictedText},
                                                                {"measuredText", t.measuredText},
                                                                {"good", t.good},
                                                                {"bad", t.bad},
                                                                {"warning", t.warning},
                                                                {"highlightText", t.highlightText}};
        for (const auto& [name, colour] : texts) {
            for (const QColor& surface : {t.background, t.surface, t.raised}) {
                QVERIFY2(contrast(colour, surface) >= 4.5,
                         qPrintable(
                             QStringLiteral("%1 on %2: %3").arg(name, surface.name()).arg(contrast(colour, surface))));
            }
        }
        QVERIFY(contrast(t.onAccent, t.predicted) >= 4.5);
        QVERIFY(contrast(t.onHighlight, t.highlightFill) >= 4.5);
        // A selected row of the rail and a hovered button are a little off their surface.
        QVERIFY(contrast(t.textDim, mix(t.surface, t.text, 0.07)) >= 4.5);
        QVERIFY(contrast(t.text, mix(t.raised, t.text, 0.14)) >= 4.5);
    }

    void graphicsAreSeen_data() { textReads_data(); }
    void graphicsAreSeen()
    {
        QFETCH(QString, theme);
        const Theme& t = themeByName(theme);
        QVERIFY(contrast(t.predicted, t.background) >= 3);
        QVERIFY2(contrast(t.measured, t.background) >= 2.6,
                 qPrintable(QString::number(contrast(t.measured, t.background))));
        for (const QColor& colour : t.palette)
            QVERIFY2(contrast(colour, t.background) >= 3, qPrintable(colour.name()));
    }

    void pinsAreNoOtherCurvesColour_data() { textReads_data(); }
    void pinsAreNoOtherCurvesColour()
    {
        QFETCH(QString, theme);
        const Theme& t = themeByName(theme);
        std::vector<QColor> curves = t.palette;
        curves.insert(curves.end(), {t.predicted, t.measured});
        const auto apart = [](const QColor& a, const QColor& b) {
            return std::hypot(a.red() - b.red(), a.green() - b.green(), a.blue() - b.blue());
        };
        for (std::size_t i = 0; i < t.pins.size(); ++i) {
            QVERIFY2(contrast(t.pins[i], t.background) >= 3, qPrintable(t.pins[i].name()));
            for (const QColor& other : curves)
                QVERIFY2(apart(t.pins[i], other) >= 50, qPrintable(t.pins[i].name() + " like " + other.name()));
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY(apart(t.pins[i], t.pins[j]) >= 50);
        }
        QCOMPARE(t.pin(int(t.pins.size())), t.pin(0));
    }

    void uncheckedBoxesAreSeen_data()
    {
        QTest::addColumn<QString>("theme");
        QTest::addColumn<bool>("radio");
        for (const char* theme : {"light", "dark"}) {
            QTest::addRow("%s box", theme) << theme << false;
            QTest::addRow("%s radio", theme) << theme << true;
        }
    }
    void uncheckedBoxesAreSeen()
    {
        QFETCH(QString, theme);
        QFETCH(bool, radio);
        applyTheme(*qApp, theme);
        QWidget window;
        window.resize(60, 40);
        QAbstractButton* box =
            radio ? static_cast<QAbstractButton*>(new QRadioButton(&window)) : new QCheckBox(&window);
        box->resize(40, 30);
        const auto drawn = [&] { return window.grab().toImage(); };
        const QImage empty = drawn();
        const QColor ground = empty.pixelColor(55, 35);
        double most = 1;
        for (int y = 0; y < 30; ++y) {
            for (int x = 0; x < 40; ++x)
                most = std::max(most, contrast(empty.pixelColor(x, y), ground));
        }
        QVERIFY2(most >= 3, qPrintable(QString::number(most)));
        box->setChecked(true);
        QVERIFY(drawn() != empty);
    }

    void appliesAndNamesItself()
    {
        for (const char* name : {"light", "dark"}) {
            applyTheme(*qApp, QString::fromLatin1(name));
            QCOMPARE(currentTheme().name, QString::fromLatin1(name));
            QCOMPARE(qApp->palette().color(QPalette::Window), currentTheme().background);
            // Nothing of the sheet's own notation is left.
            const QString sheet = qApp->styleSheet();
            QVERIFY(!sheet.contains(QLatin1Char('$')));
            QVERIFY(!sheet.contains(QLatin1Char('~')));
            QVERIFY(!sheet.contains(QLatin1Char('@')));
        }
        QVERIFY(themeByName(QStringLiteral("system")).name == QLatin1String("light")
                || themeByName(QStringLiteral("system")).name == QLatin1String("dark"));
    }

    void whatStandsIsNotAppliedAgain()
    {
        applyTheme(*qApp, QStringLiteral("light"));
        struct Restyled : QWidget
        {
            int times = 0;
            bool event(QEvent* event) override
            {
                times += event->type() == QEvent::StyleChange;
                return QWidget::event(event);
            }
        } widget;
        widget.ensurePolished();
        widget.times = 0;
        applyTheme(*qApp, QStringLiteral("light"));
        QCOMPARE(widget.times, 0);
        applyTheme(*qApp, QStringLiteral("dark"));
        QVERIFY(widget.times > 0);
    }

    void fontsFollowTheZoom()
    {
        applyTheme(*qApp, QStringLiteral("dark"), 1.0);
        const double before = relativeFont(1.5).pointSizeF();
        applyTheme(*qApp, QStringLiteral("dark"), 2.0);
        QCOMPARE(relativeFont(1.5).pointSizeF(), 2 * before);
        applyTheme(*qApp, QStringLiteral("dark"), 1.0);
    }

    void paletteWrapsRound()
    {
        const Theme& t = darkTheme();
        const int count = static_cast<int>(t.palette.size());
        QCOMPARE(t.series(count), t.series(0));
        QCOMPARE(t.series(-1), t.series(count - 1));
    }
};

QTEST_MAIN(TestTheme)
#include "tst_theme.moc"
