// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `attention`: the queries × keys matrix that standard attention writes to memory
// and flash attention never does. A cursor walks over its tiles as flash attention does, row by
// row: what is on the chip, the running maximum and sum, and the bytes that have gone to memory by
// then stand beside it. Arrow keys up and down go a row of tiles.
#pragma once

#include "app/pictures/attention/attention_layout.h"
#include "app/pictures/common/walk_picture.h"

namespace memscape {

class AttentionPicture final : public WalkPicture
{
    Q_OBJECT

public:
    explicit AttentionPicture(QWidget* parent = nullptr);

    void setWalk(AttentionState state); ///< in place of that of a prediction
    QString title() const override { return m_state.title; }
    QString summary() const override;

    const AttentionState& state() const { return m_state; }
    AttentionLayout layoutNow() const { return layoutAttention(m_state, QRectF(rect())); }
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    QString wordsOf(int step) const override { return m_state.words(step); }
    bool isWalk(QPointF at) const override { return layoutNow().matrix.contains(at); }
    int stepNear(QPointF at) const override;
    QRectF playButton() const override { return layoutNow().playButton; }
    bool isButton(QPointF at) const override { return playButton().contains(at) || isWalk(at); }
    QString toolTipAt(QPointF at) const override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    AttentionState m_state;
};

/// attention_paint.cpp: everything, with the cursor at a step.
void paintAttention(QPainter& painter, const AttentionState& state, const AttentionLayout& layout, int cursor,
                    PlayButton button, const Theme& theme);

} // namespace memscape
