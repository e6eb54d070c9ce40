// SPDX-License-Identifier: GPL-3.0-or-later
// What a plot shows: data as it comes, once drawn for many changes, without points that mean nothing.
#include "tests/support/plot_bench.h"

#include <QAccessible>
#include <QSignalSpy>

#include <cmath>

using namespace memscape;

class TestPlotView : public QObject, private PlotBench
{
    Q_OBJECT

private slots:
    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }
    void init() { begin(); }

    void dotsThatWouldTouchAreLeftToTheirLine()
    {
        const auto inked = [&](int points) {
            Curve pinned;
            pinned.key = pinned.name = QStringLiteral("pinned");
            pinned.role = CurveRole::Pinned;
            for (int i = 0; i < points; ++i) {
                pinned.x.push_back(1 + 127.0 * i / (points - 1));
                pinned.y.push_back(2e12);
            }
            AxisSpec x = xSpec();
            x.log = 0;
            m_view->setAxes(x, ySpec());
            m_view->setCurves({pinned});
            PlotExport plain;
            plain.scale = 1;
            return coloured(m_view->image(plain), styleOf(pinned, lightTheme()).colour);
        };
        QVERIFY(inked(2000) < inked(20)); // a line alone, a line with twenty dots
    }

    /// Media, formats, kinds: nothing lies between two of them, so that no line may join them.
    void linesStandAtCategoriesAndDoNotJoinThem()
    {
        AxisSpec media;
        media.names = {QStringLiteral("hdd"), QStringLiteral("sata"), QStringLiteral("nvme4")};
        Curve predicted;
        predicted.key = predicted.name = QStringLiteral("predicted");
        predicted.x = {0, 1, 2};
        predicted.y = {1e12, 4e12, 2e12};
        predicted.listed = false;                   // no ink of the legend
        const auto lines = [&](const AxisSpec& x) { // that stand apart by more than a dash does
            m_view->setAxes(x, ySpec());
            m_view->setCurves({predicted});
            PlotExport plain;
            plain.scale = 1;
            const QImage image = m_view->image(plain);
            int count = 0, last = -100;
            for (int column = 0; column < image.width(); ++column) {
                if (coloured(image.copy(column, 0, 1, image.height()), lightTheme().predicted) == 0)
                    continue;
                count += column - last > 20;
                last = column;
            }
            return count;
        };
        QCOMPARE(lines(media), 3);
        QCOMPARE(lines(AxisSpec()), 1);
        QCOMPARE(lines(media), 3); // the same points again
    }

    void manyChangesAreOneReplot()
    {
        const int before = m_view->replotCount();
        for (int i = 0; i < 200; ++i) {
            m_view->setCurves(strides(1 + i));
            m_view->setMarkers({{QStringLiteral("stride"), 1.0 + i, QString::number(i)}});
        }
        settle();
        QCOMPARE(m_view->replotCount() - before, 1);
    }

    void nothingNewIsNoReplot()
    {
        const int before = m_view->replotCount();
        m_view->setCurves(strides());
        m_view->setAxes(xSpec(), ySpec());
        m_view->setTitle(m_view->title());
        settle();
        QCOMPARE(m_view->replotCount(), before);
    }

    void hiddenPlotsWaitUntilShown()
    {
        m_view->hide();
        settle();
        const int before = m_view->replotCount();
        m_view->setCurves(strides(3));
        settle();
        QCOMPARE(m_view->replotCount(), before);
        m_view->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
        settle();
        QVERIFY(m_view->replotCount() > before);
    }

    void followsDataUntilZoomed()
    {
        m_view->setCurves(strides(10));
        settle();
        QVERIFY(m_view->range().yHigh > 4e13);
        m_view->zoom(0.5, 0.5);
        QVERIFY(!m_view->following());
        const PlotRange zoomed = m_view->range();
        m_view->setCurves(strides(100));
        settle();
        QCOMPARE(m_view->range(), zoomed);
        m_view->resetView();
        QVERIFY(m_view->range().yHigh > 4e14);
    }

    void aCurveHiddenByTheLegendStaysHidden()
    {
        const auto hidden = [&] { return !m_view->curves()[1].visible; };
        // The legend stands at the top right; its second entry is the last.
        for (double x = m_canvas->width() - 6; x > 0 && !hidden(); x -= 6) {
            mouse(QEvent::MouseButtonPress, {x, 16}, Qt::LeftButton);
            mouse(QEvent::MouseButtonRelease, {x, 16}, Qt::NoButton);
        }
        QVERIFY(hidden());
        m_view->setCurves(strides(1.1));
        QVERIFY(hidden());
        QVERIFY(m_view->curves()[0].visible);
    }

    void aZoomThatShowsNothingOfNewDataIsGivenUp()
    {
        m_view->setRange({1, 8, 1e12, 4e12});
        m_view->setCurves(strides(1.1));
        QVERIFY(!m_view->following());
        m_view->setCurves(strides(1e-3)); // of a machine a thousand times slower
        QVERIFY(m_view->following());
        m_view->setRange({2.2, 3.5, 1.2e9, 1.8e9}); // between two points the line still passes
        m_view->setCurves(strides(1.01e-3));
        QVERIFY(!m_view->following());
    }

    void logarithmsHideWhatTheyCannotShow()
    {
        Curve zeros = strides()[0];
        zeros.y[3] = 0;
        zeros.y[4] = NAN;
        m_view->setCurves({zeros});
        QVERIFY(m_view->note().contains(QStringLiteral("1 without a value")));
        QVERIFY(!m_view->note().contains(QStringLiteral("logarithmic")));
        QSignalSpy note(m_view.get(), &PlotView::noteChanged);
        m_view->setLogY(10);
        QVERIFY(m_view->note().contains(QStringLiteral("1 zero or negative on a logarithmic axis")));
        QCOMPARE(note.count(), 1);
        QVERIFY(m_view->range().yLow > 0);
        m_view->setLogY(0);
        settle();
    }

    void oddData_data()
    {
        QTest::addColumn<QList<double>>("y");
        QTest::newRow("empty") << QList<double>{};
        QTest::newRow("one point") << QList<double>{5};
        QTest::newRow("zero") << QList<double>{0};
        QTest::newRow("infinite") << QList<double>{INFINITY, -INFINITY, 3};
        QTest::newRow("not numbers") << QList<double>{NAN, NAN};
        QTest::newRow("huge") << QList<double>{1e308, -1e308};
    }

    void oddData()
    {
        QFETCH(QList<double>, y);
        for (const int log : {0, 2, 10}) {
            Curve curve;
            curve.key = QStringLiteral("odd");
            curve.y = {y.begin(), y.end()};
            for (qsizetype i = 0; i < y.size(); ++i)
                curve.x.push_back(static_cast<double>(i));
            m_view->setLogX(log);
            m_view->setLogY(log);
            m_view->setCurves({curve});
            m_view->setBands({{0, 0, QStringLiteral("zero")}, {NAN, 3, QStringLiteral("nowhere")}});
            m_view->setMarkers({{QStringLiteral("m"), 0, QStringLiteral("m")}});
            settle();
            wheel(at(0.5, 0.5), 3);
            drag(at(0.6, 0.5), at(0.3, 0.6));
            m_view->showCrosshairAt(1);
            const PlotRange range = m_view->range();
            QVERIFY(std::isfinite(range.xLow) && std::isfinite(range.yHigh));
            QVERIFY(range.xHigh > range.xLow && range.yHigh > range.yLow);
            m_view->resetView();
        }
    }

    void hasTextForScreenReaders()
    {
        m_view->setTitle(QStringLiteral("Effective bandwidth by stride"));
        QCOMPARE(m_view->accessibleName(), QStringLiteral("Effective bandwidth by stride"));
        QVERIFY(m_view->summary().contains(QStringLiteral("measured: 8 points")));
        // It need not be asked first, nor have had the focus.
        const QAccessibleInterface* told = QAccessible::queryAccessibleInterface(m_view.get());
        QCOMPARE(told->text(QAccessible::Name), m_view->title());
        QTRY_VERIFY(told->text(QAccessible::Description).contains("measured: 8 points"));
        std::vector<Curve> fewer = m_view->curves();
        for (Curve& curve : fewer) {
            curve.x.resize(5);
            curve.y.resize(5);
            curve.low.clear();
            curve.high.clear();
        }
        m_view->setCurves(fewer);
        QTRY_VERIFY(told->text(QAccessible::Description).contains("measured: 5 points"));
    }

    // How fast is bench_plot's figure; here a view of them follows every move.
    void aMillionPoints()
    {
        Curve curve;
        curve.key = curve.name = QStringLiteral("predicted");
        Curve dots;
        dots.key = dots.name = QStringLiteral("measured");
        dots.role = CurveRole::Measured;
        for (int i = 0; i < 1000000; ++i) {
            const double y = 2e12 + 1e12 * std::sin(i * 1e-5) + 1e11 * ((i % 1000) * 7919 % 1000) / 1000.0;
            curve.x.push_back(1 + i);
            curve.y.push_back(y);
            dots.x.push_back(1 + i);
            dots.y.push_back(y * 1.1);
        }
        m_view->setCurves({curve, dots});
        settle();
        for (int i = 0; i < 10; ++i) {
            m_view->pan(0.02, 0);
            const int before = m_view->replotCount();
            QTRY_VERIFY(m_view->replotCount() > before);
        }
    }
};

QTEST_MAIN(TestPlotView)
#include "tst_plot_view.moc"
