// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `hierarchy`: the levels of a device as boxes one can see the size and distance of,
// the working set that fills them, and an access that travels to the level that serves it and back.
// Which level that is follows the model's shares: of a hundred trips as many go to DRAM as the
// model says. The trip takes longer the farther the level is (by the logarithm). It stops while
// hidden, when paused (space, or a click on the sign), and does not start where motion is not
// wanted.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/hierarchy/hierarchy_layout.h"

#include <QElapsedTimer>
#include <QTimer>

namespace memscape {

class HierarchyPicture final : public Picture
{
    Q_OBJECT

public:
    explicit HierarchyPicture(QWidget* parent = nullptr);

    QString title() const override;
    QString summary() const override;

    void setPaused(bool paused);
    bool moving() const { return m_frames.isActive(); }

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    HierarchyState state() const;
    HierarchyLayout layoutNow() const;
    bool isHandle(QPointF at) const;
    void paintTexts(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const;
    void paintLevels(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const;
    void paintHandle(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const;
    void paintTraveller(QPainter& painter, const HierarchyLayout& layout, const Theme& theme) const;
    void editWorkingSet(double bytes);
    void updateMotion();
    void nextFrame();

    HierarchyState m_state;
    double m_least = 1024, m_most = 0x1p44; ///< of the parameter
    QTimer m_frames;
    QElapsedTimer m_clock;
    bool m_paused = false;
    double m_phase = 0; ///< of the trip, 0 … 1
    int m_trip = 0;
    std::size_t m_goal = 0; ///< level that serves this trip
};

} // namespace memscape
