// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `in-place`: the tensors that are alive before, while and after y = f(x), beside the one buffer that
// f_(x) overwrites; what autograd keeps for backward has a dark corner. Where PyTorch refuses, what would be destroyed
// has a red rim and the error stands below. Pointer and arrow keys read a tensor's bytes and why it is there.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/in-place/in_place_layout.h"

namespace memscape {

class InPlacePicture final : public Picture
{
    Q_OBJECT

public:
    explicit InPlacePicture(QWidget* parent = nullptr);

    QString title() const override { return m_state.title(); }
    QString summary() const override;

    const InPlaceState& state() const { return m_state; }
    InPlaceLayout layoutNow() const;
    QString wordsOf(const InPlaceBlock& block) const;
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    QString show(int block); ///< under the pointer or the keyboard; its words

    InPlaceState m_state;
    int m_block = -1; ///< of layoutNow(); −1 for none
};

/// in_place_paint.cpp: everything, with one block marked.
void paintInPlace(QPainter& painter, const InPlaceState& state, const InPlaceLayout& layout, int marked,
                  const Theme& theme);

} // namespace memscape
