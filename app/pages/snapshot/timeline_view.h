// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline of a snapshot. The wheel zooms at the pointer (Shift: bytes), a drag selects a range, a click sets the
// moment that all views show, a double click shows all, the right or middle button pans.
//
// Keys: arrows move the moment event by event (Shift: in larger steps), Home and End to the ends, P to the peak,
// + − zoom, Z to the selection, 0 shows all, Page up and down pan, Esc ends the selection, then shows
// all.
#pragma once

#include "app/pages/snapshot/timeline_layout.h"

#include <optional>

namespace memscape {

/// What Memory budget predicts of one step: bytes at equal distances; empty: nothing.
using PredictedStep = std::vector<double>;

class TimelineView final : public SnapshotView
{
    Q_OBJECT

public:
    explicit TimelineView(QWidget* parent = nullptr);

    void setPrediction(PredictedStep step);
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString hint() const override;
    QString textAt(QPointF at) const override;
    static QString shortcuts(); ///< for the help

    const TimelineSight& sight() const { return m_sight; }
    TimelineSight whole() const; ///< with room for what is predicted
    void setSight(const TimelineSight& sight);
    /// Brings moments [first, last] into sight, with some room beside them.
    void look(std::size_t first, std::size_t last);
    const TimelineChart& chartNow() const;

protected:
    void shownChanged(bool isOtherDevice) override;
    void forgetLayout() override { m_chart.reset(); }
    bool followsMoment() const override { return false; }
    void paintOver(QPainter& painter, const Theme& theme) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    TimelineChart chartIn(const QRectF& rect) const;
    void moveMoment(int key, bool isFar);
    void zoomBy(double factor);
    void paintPrediction(QPainter& painter, const TimelineChart& chart, const Theme& theme) const;
    void paintCursor(QPainter& painter, const TimelineChart& chart, const Theme& theme) const;
    void paintSelection(QPainter& painter, const TimelineChart& chart, const Theme& theme) const;

    TimelineSight m_sight;
    PredictedStep m_prediction;
    mutable std::optional<TimelineChart> m_chart;
    std::optional<QPointF> m_pressed;
    Qt::MouseButton m_button = Qt::NoButton;
    bool m_isDragged = false;
    TimelineSight m_pressedSight;
};

/// What stands still: bands, axes, steps. The rest is drawn over it.
void paintTimeline(QPainter& painter, const TimelineChart& chart, const Theme& theme);

} // namespace memscape
