// SPDX-License-Identifier: GPL-3.0-or-later
// The plot as a person drives it: by mouse, wheel, keys and menu.
#include "tests/support/plot_bench.h"

#include <QClipboard>
#include <QContextMenuEvent>
#include <QMenu>
#include <QSignalSpy>
#include <QTimer>

#include <cmath>

using namespace memscape;

class TestPlotInput : public QObject, private PlotBench
{
    Q_OBJECT

private slots:
    void initTestCase() { applyTheme(*qApp, QStringLiteral("dark")); }
    void init() { begin(); }

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

QTEST_MAIN(TestPlotInput)
#include "tst_plot_input.moc"
