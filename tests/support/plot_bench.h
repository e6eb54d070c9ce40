// SPDX-License-Identifier: GPL-3.0-or-later
// A plot of a predicted and a measured curve, shown offscreen, and the hand that drives it.
#pragma once

#include "app/plots/plot_style.h"
#include "app/plots/plot_view.h"

#include <QApplication>
#include <QMouseEvent>
#include <QTest>
#include <QWheelEvent>

#include <memory>

namespace memscape {

class PlotBench
{
protected:
    static AxisSpec xSpec()
    {
        AxisSpec axis;
        axis.label = QStringLiteral("stride");
        axis.log = 2;
        return axis;
    }

    static AxisSpec ySpec()
    {
        AxisSpec axis;
        axis.label = QStringLiteral("useful bandwidth");
        axis.unit = Unit::BytePerSecond;
        axis.fromZero = true;
        return axis;
    }

    static std::vector<Curve> strides(double scale = 1)
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

    void begin()
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
};

} // namespace memscape
