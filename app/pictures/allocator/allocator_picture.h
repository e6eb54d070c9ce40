// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `allocator`: the segments by address with the blocks in them, after one request of the trace; what
// that request did is marked and said. Space plays, arrows step, the wheel zooms; a card chooses another allocator.
#pragma once

#include "app/pictures/allocator/allocator_layout.h"
#include "app/pictures/common/walk_picture.h"

namespace memscape {

class AllocatorPicture final : public WalkPicture
{
    Q_OBJECT

public:
    explicit AllocatorPicture(QWidget* parent = nullptr);

    QString title() const override { return m_state.title; }
    QString summary() const override;
    bool sharesHeight() const override { return true; }
    QString hint() const override;

    const AllocatorState& state() const { return m_state; }
    const AllocatorMoment* moment() const;
    AllocatorLayout layoutNow() const;
    TapeWindow window() const { return m_window; }
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    QString wordsOf(int step) const override;
    bool isWalk(QPointF at) const override { return layoutNow().scrub.adjusted(-4, -4, 4, 4).contains(at); }
    int stepNear(QPointF at) const override { return layoutNow().requestAt(at.x(), m_state.last + 1); }
    QRectF playButton() const override { return layoutNow().button; }
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void setWindow(TapeWindow window);

    AllocatorState m_state;
    TapeWindow m_window;
    int m_piece = -1;                 ///< under the pointer
    std::optional<QPointF> m_dragged; ///< the tape is being moved
};

// allocator_paint.cpp
struct AllocatorPen
{
    QPainter& painter;
    const AllocatorState& state;
    const AllocatorLayout& layout;
    const AllocatorMoment* moment;
    const Theme& theme;
    int cursor = -1, hovered = -1;
    PlayButton play = PlayButton::None;

    void all() const;

private:
    void heading() const;
    double legend() const;
    void scrub() const;
    void segments() const;
    void mark() const;
    void words() const;
    void cards() const;
    void card(const QRectF& rect, const ElsewhereCard& one) const;
    void fitted(const QRectF& rect, int flags, const QString& text) const;
};

} // namespace memscape
