// SPDX-License-Identifier: GPL-3.0-or-later
// What the files of PlotView share: plot_view.cpp (what is shown), plot_range.cpp (how much of it),
// plot_mouse.cpp, plot_keys.cpp (keys and menu), plot_export.cpp (files and clipboard).
#pragma once

#include "app/plots/plot_scene.h"
#include "app/plots/plot_view.h"

#include <QElapsedTimer>
#include <QSet>
#include <QTimer>

namespace memscape {

class PlotView::Private
{
public:
    explicit Private(PlotView* view);

    enum class Drag { None, Pan, PanX, PanY, MoveMarker, RubberBand, Pen };

    void setCrosshair(const Sample& sample, QPointF pointer);
    void paintOverlay(QPainter& painter);
    void updateNote();
    void describe();                        ///< to screen readers
    void fillScene(PlotScene& scene) const; ///< the same state for an export

    // plot_range.cpp
    /// Logarithms from the specs and the person's own choice; limits while following.
    void applyAxes();
    void ensureRanges();
    bool inSight() const;                                     ///< a visible curve comes through the limits
    void changeRange(const AxisRange& x, const AxisRange& y); ///< by a person

    // plot_mouse.cpp
    bool mousePress(QMouseEvent& event);
    bool mouseMove(QMouseEvent& event);
    bool mouseRelease(QMouseEvent& event);
    bool mouseDoubleClick(QMouseEvent& event);
    bool wheel(QWheelEvent& event);
    void leave();
    void moveMarker(double x);
    void drawTo(QPointF from, QPointF to); ///< with the pen, pixels
    void zoomInto(const QRectF& rectangle);
    void click(QPointF position);
    void hover(QPointF position);
    int markerAt(QPointF position) const;
    int markerAlong(const QString& curve) const;      ///< that is dragged along that curve; -1 for none
    QPointF lonePointAt(QPointF position) const;      ///< the point of a curve of one point there; else the position
    QStringList lonePointsAt(QPointF position) const; ///< keys of all that stand there, on top first
    int legendAt(QPointF position) const;
    QString curveAt(QPointF position) const;

    // plot_keys.cpp
    bool key(QKeyEvent& event);
    void stepCrosshair(int direction);
    void toggleLog(bool xAxis);
    bool panKey(QKeyEvent& event);
    void toggleKeyboardCrosshair();

    PlotView* view;
    PlotScene scene;
    AxisSpec specX, specY;    ///< as given; scene.state() holds them with the logarithms of now
    int logX = -1, logY = -1; ///< chosen by hand, -1: as the spec says
    bool following = true;
    bool rangesDirty = true;
    QTimer frame;
    QTimer rest; ///< after the last frame
    QElapsedTimer sinceFrame;

    QSet<QString> hiddenByHand; ///< keys of curves
    bool crosshairOn = true;
    bool byKeyboard = false; ///< the crosshair was put by a key and stays
    Crosshair crosshair;
    QString readout;
    QString note;

    Drag drag = Drag::None;
    QPointF pressed, last;
    QString dragged; ///< key of the marker
    bool moved = false;
    bool rubberBand = false;
    bool pen = false;
    bool keyboardFocus = false;
};

} // namespace memscape
