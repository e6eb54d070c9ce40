// SPDX-License-Identifier: GPL-3.0-or-later
// The plot as a person uses it: shown offscreen, driven by mouse, wheel and keys.
#include "app/plots/plot_style.h"
#include "app/plots/plot_view.h"

#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <QWheelEvent>

#include <cmath>

using namespace memscape;

namespace {

AxisSpec xSpec()
{
    AxisSpec axis;
    axis.label = QStringLiteral("stride");
    axis.log = 2;
    return axis;
}

AxisSpec ySpec()
{
    AxisSpec axis;
    axis.label = QStringLiteral("useful bandwidth");
    axis.unit = Unit::BytePerSecond;
    axis.fromZero = true;
    return axis;
}

std::vector<Curve> strides(double scale = 1)
{
    Curve predicted;
    predicted.key = predicted.name = QStringLiteral("predicted");
    Curve measured;
    measured.key = measured.name = QStringLiteral("measured");
    measured.role = CurveRole::Measured;
    for (int s = 1; s <= 128; s *= 2) {
        predicted.x.push_back(s);
        predicted.y.push_back(scale * 4e12 / s);
        measured.x.push_back(s);
        measured.y.push_back(scale * 3.9e12 / s);
        measured.low.push_back(scale * 3.7e12 / s);
        measured.high.push_back(scale * 4.1e12 / s);
    }
    return {predicted, measured};
}

} // namespace

class TestPlotView : public QObject
{
    Q_OBJECT

    std::unique_ptr<PlotView> m_view;
    QWidget* m_canvas = nullptr;

    // The drawing area, for places to click at.
    QPointF at(double shareX, double shareY) const { return {m_canvas->width() * shareX, m_canvas->height() * shareY}; }

    void mouse(QEvent::Type type, QPointF place, Qt::MouseButtons buttons, Qt::MouseButton button = Qt::LeftButton,
               Qt::KeyboardModifiers modifiers = {})
    {
        QMouseEvent event(type, place, m_canvas->mapToGlobal(place), button, buttons, modifiers);
        QApplication::sendEvent(m_canvas, &event);
    }

    void drag(QPointF from, QPointF to)
    {
        mouse(QEvent::MouseButtonPress, from, Qt::LeftButton);
        for (int i = 1; i <= 10; ++i)
            mouse(QEvent::MouseMove, from + (to - from) * i / 10.0, Qt::LeftButton, Qt::NoButton);
        mouse(QEvent::MouseButtonRelease, to, Qt::NoButton);
        settle();
    }

    void wheel(QPointF place, int steps, Qt::KeyboardModifiers modifiers = {})
    {
        QWheelEvent event(place, m_canvas->mapToGlobal(place), {}, {0, 120 * steps}, Qt::NoButton, modifiers,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(m_canvas, &event);
        settle();
    }

    static void settle() { QTest::qWait(40); }

    // Pixels that are nearly of that colour.
    static int coloured(const QImage& image, const QColor& colour)
    {
        int count = 0;
        for (int y = 0; y < image.height(); ++y) {
            for (int x = 0; x < image.width(); ++x) {
                const QColor pixel = image.pixelColor(x, y);
                count += std::abs(pixel.red() - colour.red()) < 24 && std::abs(pixel.green() - colour.green()) < 24
                        && std::abs(pixel.blue() - colour.blue()) < 24
                    ? 1
                    : 0;
            }
        }
        return count;
    }

private slots:
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

    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }

    void init()
    {
        m_view = std::make_unique<PlotView>();
        m_view->resize(900, 500);
        m_view->setAxes(xSpec(), ySpec());
        m_view->setCurves(strides());
        m_view->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
        settle();
        m_canvas = m_view->findChild<QWidget*>();
        QVERIFY(m_canvas);
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

    void wheelZoomsBothOrOneAxis()
    {
        const PlotRange before = m_view->range();
        wheel(at(0.5, 0.5), 1);
        const PlotRange both = m_view->range();
        QVERIFY(both.xLow > before.xLow && both.xHigh < before.xHigh);
        QVERIFY(both.yHigh < before.yHigh);
        wheel(at(0.5, 0.5), 1, Qt::ControlModifier);
        const PlotRange x = m_view->range();
        QVERIFY(x.xLow > both.xLow);
        QCOMPARE(x.yHigh, both.yHigh);
        wheel(at(0.5, 0.5), 1, Qt::ShiftModifier);
        const PlotRange y = m_view->range();
        QCOMPARE(y.xLow, x.xLow);
        QVERIFY(y.yHigh < x.yHigh);
        mouse(QEvent::MouseButtonDblClick, at(0.5, 0.5), Qt::LeftButton);
        QCOMPARE(m_view->range(), before);
    }

    void dragPans()
    {
        const PlotRange before = m_view->range();
        drag(at(0.6, 0.5), at(0.4, 0.6));
        const PlotRange after = m_view->range();
        QVERIFY(after.xLow > before.xLow);   // the content went left
        QVERIFY(after.yHigh > before.yHigh); // and down
        // The same distance on the logarithmic axis: a ratio, not a difference.
        QVERIFY(std::fabs(std::log(after.xHigh / after.xLow) - std::log(before.xHigh / before.xLow)) < 1e-9);
    }

    void dragOnAnAxisPansThatAxis()
    {
        const PlotRange before = m_view->range();
        drag(QPointF(m_canvas->width() * 0.5, m_canvas->height() - 30),
             QPointF(m_canvas->width() * 0.4, m_canvas->height() - 90));
        QVERIFY(m_view->range().xLow > before.xLow);
        QCOMPARE(m_view->range().yHigh, before.yHigh);
    }

    void rubberBandZooms()
    {
        m_view->setRubberBand(true);
        const PlotRange before = m_view->range();
        drag(at(0.5, 0.5), at(0.51, 0.505)); // a slip
        QCOMPARE(m_view->range(), before);
        drag(at(0.4, 0.4), at(0.6, 0.6));
        const PlotRange after = m_view->range();
        QVERIFY(after.xLow > before.xLow && after.xHigh < before.xHigh);
        QVERIFY(after.yLow > before.yLow && after.yHigh < before.yHigh);
    }

    void markersAreDragged()
    {
        m_view->setMarkers({{QStringLiteral("stride"), 8, QStringLiteral("stride 8")}});
        settle();
        QSignalSpy dragged(m_view.get(), &PlotView::markerDragged);
        QSignalSpy released(m_view.get(), &PlotView::markerReleased);
        // Where x = 8 is: found with the crosshair's own arithmetic, by trying every pixel.
        double x8 = 0;
        const PlotRange range = m_view->range();
        const double share = std::log(8 / range.xLow) / std::log(range.xHigh / range.xLow);
        const double left = 58 * m_canvas->fontInfo().pixelSize() / 13.0;
        const double right = m_canvas->width() - 26 * m_canvas->fontInfo().pixelSize() / 13.0;
        x8 = left + share * (right - left);
        mouse(QEvent::MouseMove, QPointF(x8, m_canvas->height() * 0.5), Qt::NoButton, Qt::NoButton);
        QVERIFY(m_view->readout().contains(QStringLiteral("stride 8:")));
        drag(QPointF(x8, m_canvas->height() * 0.5), QPointF(x8 + 120, m_canvas->height() * 0.5));
        QVERIFY(dragged.count() >= 8);
        QCOMPARE(released.count(), 1);
        QCOMPARE(released[0][0].toString(), QStringLiteral("stride"));
        const double x = released[0][1].toDouble();
        QVERIFY2(x > 12 && x < 64, qPrintable(QString::number(x)));
        QCOMPARE(m_view->range(), range); // the plot itself stood still
        // The crosshair reads where the drag ended, not where it began.
        const double read = m_view->readout().section(u' ', 1, 1).chopped(1).toDouble();
        QVERIFY2(std::abs(std::log2(read / x)) <= 0.5, qPrintable(m_view->readout()));
    }

    void crosshairReadsAllSeries()
    {
        QSignalSpy readout(m_view.get(), &PlotView::readoutChanged);
        m_view->showCrosshairAt(4.4);
        QCOMPARE(m_view->readout(),
                 QStringLiteral("stride 4: predicted 1 TB/s · measured 975 GB/s (925 GB/s to 1.02 TB/s)"));
        QCOMPARE(readout.count(), 1);
        m_view->setCurves(strides(2)); // new points under a standing crosshair
        QVERIFY(m_view->readout().contains(QStringLiteral("2 TB/s")));
        m_view->hideCrosshair();
        QCOMPARE(m_view->readout(), QString());
    }

    void crosshairSaysHowFarItIsFromTheBaseline()
    {
        std::vector<Curve> curves = strides();
        Curve baseline = curves[1];
        baseline.key = QStringLiteral("pinned0.measured");
        baseline.name = QStringLiteral("before");
        baseline.role = CurveRole::Pinned;
        baseline.low = baseline.high = {};
        for (double& y : baseline.y)
            y /= 1.25;
        curves[1].against = baseline.key;
        curves.push_back(baseline);
        m_view->setCurves(curves);
        m_view->showCrosshairAt(4.4);
        const QString text = m_view->readout();
        QVERIFY2(text.contains(QStringLiteral("1.02 TB/s), +25 % vs baseline · before")), qPrintable(text));
        QCOMPARE(text.count(QStringLiteral("vs baseline")), 1); // not the prediction, not itself
        curves.pop_back();
        m_view->setCurves(curves); // one that is not drawn is left out
        QVERIFY2(!m_view->readout().contains(QStringLiteral("baseline")), qPrintable(m_view->readout()));
    }

    void crosshairDrawsOnlyTheOverlay()
    {
        const int before = m_view->replotCount();
        for (int i = 0; i < 50; ++i)
            mouse(QEvent::MouseMove, at(0.2 + 0.01 * i, 0.5), Qt::NoButton, Qt::NoButton);
        settle();
        QCOMPARE(m_view->replotCount(), before);
        QVERIFY(!m_view->readout().isEmpty());
    }

    void keys()
    {
        const PlotRange before = m_view->range();
        QTest::keyClick(m_view.get(), Qt::Key_Plus);
        QVERIFY(m_view->range().xHigh < before.xHigh);
        QTest::keyClick(m_view.get(), Qt::Key_0);
        QCOMPARE(m_view->range(), before);
        QTest::keyClick(m_view.get(), Qt::Key_Y);
        QCOMPARE(m_view->range().xHigh, before.xHigh);
        QVERIFY(m_view->range().yHigh < before.yHigh);
        QTest::keyClick(m_view.get(), Qt::Key_Y, Qt::ShiftModifier);
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QVERIFY(m_view->range().xLow > before.xLow);
        QTest::keyClick(m_view.get(), Qt::Key_Home);
        QTest::keyClick(m_view.get(), Qt::Key_L);
        QCOMPARE(m_view->yAxis().log, 10);
        QTest::keyClick(m_view.get(), Qt::Key_L, Qt::ShiftModifier);
        QCOMPARE(m_view->xAxis().log, 0);
        // Space puts the crosshair, arrows walk it from point to point.
        QTest::keyClick(m_view.get(), Qt::Key_Space);
        const QString first = m_view->readout();
        QVERIFY(!first.isEmpty());
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QVERIFY(m_view->readout() != first);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        QCOMPARE(m_view->readout(), QString());
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

    void legendTogglesCurves()
    {
        // The legend stands at the right of the title's row: its last entry comes first.
        for (int x = m_canvas->width() - 10; x > 0 && m_view->curves()[1].visible; x -= 20) {
            mouse(QEvent::MouseButtonPress, QPointF(x, 14), Qt::LeftButton);
            mouse(QEvent::MouseButtonRelease, QPointF(x, 14), Qt::NoButton);
        }
        QVERIFY(m_view->curves()[0].visible);
        QVERIFY(!m_view->curves()[1].visible);
    }

    void copies()
    {
        m_view->copyData();
        const QString text = QApplication::clipboard()->text();
        QVERIFY(text.startsWith(QStringLiteral("stride\tpredicted [B/s]\tmeasured [B/s]")));
        QCOMPARE(text.count(QLatin1Char('\n')), 9);
        m_view->copyImage();
        QCOMPARE(QApplication::clipboard()->image().size(), m_view->size() * 2);
    }

    void menuOffersEverything()
    {
        QMenu menu;
        m_view->fillMenu(menu);
        QStringList texts;
        for (const QAction* action : menu.actions())
            texts << action->text();
        const QString all = texts.join(QLatin1Char('\n'));
        for (const char* word :
             {"Copy plot", "Copy data", "Export", "Logarithmic x", "Logarithmic y", "Show everything"})
            QVERIFY2(all.contains(QLatin1String(word)), word);
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

    void theMouseOpensTheMenu()
    {
        bool opened = false;
        QTimer::singleShot(0, m_view.get(), [&] {
            if (QWidget* menu = QApplication::activePopupWidget()) {
                opened = qobject_cast<QMenu*>(menu) && !menu->actions().isEmpty();
                menu->close();
            }
        });
        QContextMenuEvent event(QContextMenuEvent::Mouse, at(0.5, 0.5).toPoint(),
                                m_canvas->mapToGlobal(at(0.5, 0.5)).toPoint());
        QApplication::sendEvent(m_canvas, &event); // a right click is one of the canvas
        QVERIFY(opened);
    }
};

QTEST_MAIN(TestPlotView)
#include "tst_plot_view.moc"
