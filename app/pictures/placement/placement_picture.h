// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `placement`: what runs on the device and what on the host, the tensors that cross between them, and
// the lanes of both processors and of the copies over time. An operator that is dragged into the other band runs there.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/placement/placement_layout.h"

namespace memscape {

class PlacementPicture final : public Picture
{
    Q_OBJECT

public:
    explicit PlacementPicture(QWidget* parent = nullptr);

    QString title() const override { return m_state.title; }
    QString summary() const override;
    bool sharesHeight() const override { return true; }
    QString hint() const override;

    const PlacementState& state() const { return m_state; }
    PlacementLayout layoutNow() const;
    int chosen() const { return m_chosen; } ///< the node that keys move; −1 for none
    static QString shortcuts();             ///< for the help

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    bool isMovable(int node) const;
    void place(int node, std::optional<bool> onHost);
    void choose(int node);

    PlacementState m_state;
    int m_chosen = -1;
    int m_told = -1; ///< node whose words stand below the picture; −1: none
    int m_dragged = -1;
    QPointF m_pointer;
};

/// What a hand does just now; none in exports.
struct PlacementHand
{
    int chosen = -1, dragged = -1;
    QPointF pointer;
};

/// placement_paint.cpp.
void paintPlacement(QPainter& painter, const PlacementState& state, const PlacementLayout& layout,
                    const PlacementHand& hand, const Theme& theme);

} // namespace memscape
