// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `batch-size`: memory against the device's capacity, throughput with what holds it, steps against
// examples to the target, the front of memory and throughput, and the schedule, which plays. The batch is dragged
// in the upper panels, points of the lower ones are chosen by a click.
#pragma once

#include "app/pictures/batch-size/batch_layout.h"
#include "app/pictures/common/picture.h"

#include <QTimer>

namespace memscape {

class BatchPicture final : public Picture
{
    Q_OBJECT

public:
    explicit BatchPicture(QWidget* parent = nullptr);

    QString title() const override;
    QString summary() const override;
    bool sharesHeight() const override { return true; }
    bool isPlot() const override { return true; }
    QString hint() const override;

    const BatchState& state() const { return m_state; }
    bool isPlaying() const { return m_timer.isActive(); }
    /// 0 to 1 of the schedule's steps; where the playing moment is.
    double moment() const { return m_moment; }

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    enum class Drag { None, Batch, Schedule };

    void paintPlay(QPainter& painter, QPointF centre, const QColor& colour) const;
    void paintPanel(QPainter& painter, const BatchPanel& panel, const Theme& theme, const QString& title,
                    const QString& note) const;
    void paintAxes(QPainter& painter, const BatchPanel& panel, const Theme& theme, Unit yUnit, Unit xUnit) const;
    void paintMemory(QPainter& painter, const BatchPanel& panel, const Theme& theme) const;
    void paintThroughput(QPainter& painter, const BatchPanel& panel, const Theme& theme) const;
    void paintTarget(QPainter& painter, const BatchPanel& panel, const Theme& theme) const;
    void paintFront(QPainter& painter, const BatchPanel& panel, const Theme& theme) const;
    void paintSchedule(QPainter& painter, const BatchLayout& layout, const Theme& theme, bool onScreen) const;
    void paintCursor(QPainter& painter, const BatchPanel& panel, const Theme& theme, double y,
                     const QString& label) const;
    void paintReason(QPainter& painter, const BatchLayout& layout, const Theme& theme) const;

    double largestShown() const;
    void setBatch(double batch);
    void dragTo(const QPointF& at, const BatchLayout& layout);
    const BatchMark* markAt(const QPointF& at, const BatchLayout& layout) const;
    void togglePlay();
    void advance();
    BatchSchedulePoint scheduleNow() const;

    BatchState m_state;
    Drag m_drag = Drag::None;
    QTimer m_timer;
    double m_moment = 1;
};

} // namespace memscape
