// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `layout`: the operations as chips that can be added, edited, dragged and removed, each with the
// strides that it leaves and whether it is a view or a copy; the tensor as a grid of elements beside the lines of
// its storage. Pointing at an element shows its address and the elements that share its line; the walk plays over both,
// with the lines that a small cache fetches for it. Under it stands the line of PyTorch, and of NumPy, that says the
// same.
#pragma once

#include "app/pictures/common/walk_picture.h"
#include "app/pictures/layout/layout_geometry.h"

#include <QLineEdit>

namespace memscape {

/// What the pointer is over; −1 for nothing.
struct LayoutHover
{
    int cell = -1, chip = -1;
    bool onRemove = false, onBase = false, onPlus = false;
    bool operator==(const LayoutHover&) const = default;
};

class LayoutPicture final : public WalkPicture
{
    Q_OBJECT

public:
    explicit LayoutPicture(QWidget* parent = nullptr);

    QString title() const override { return m_state.title(); }
    QString summary() const override;
    bool sharesHeight() const override { return true; }

    const LayoutState& state() const { return m_state; }
    LayoutGeometry layoutNow() const { return layoutGeometry(m_state, QRectF(rect())); }
    static QString shortcuts(); ///< for the help

    void editChip(int index); ///< opens the field; one behind the last adds
    void removeChip(int index);
    QLineEdit* editor() const { return m_editor; }

protected:
    void read(const PictureValues& values) override;
    QString wordsOf(int step) const override { return m_state.stepWords(step); }
    bool isWalk(QPointF at) const override;
    int stepNear(QPointF at) const override;
    QRectF playButton() const override { return layoutNow().playButton; }
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    LayoutHover hoverAt(QPointF at) const;
    void setViews(const QString& views, const QString& step);
    void commitEdit();
    void offerOperations(const QPoint& at);
    void offerExamples(const QPoint& at);

    LayoutState m_state;
    LayoutHover m_hover;
    int m_pressed = -1; ///< chip under the button
    QPointF m_pressedAt, m_draggedTo;
    bool m_isDragging = false;
    int m_edited = -1;
    QLineEdit* m_editor;
};

/// What of the picture moves.
struct LayoutMoment
{
    int cursor = -1;
    PlayButton play = PlayButton::None; ///< in an export
    LayoutHover hover;
    int dragged = -1;  ///< a chip
    QPointF draggedBy; ///< from its place
};

/// layout_paint.cpp: everything, at a moment.
void paintTensor(QPainter& painter, const LayoutState& state, const LayoutGeometry& layout, const LayoutMoment& moment,
                 const Theme& theme);

} // namespace memscape
