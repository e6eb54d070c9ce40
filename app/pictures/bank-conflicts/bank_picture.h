// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `bank-conflicts`: the lanes of a warp above 32 banks of shared memory, played wavefront
// by wavefront. Each bank opens one word in a wavefront; lanes that access another word of it wait. Beside
// it stands what padding or a swizzle would make of the same lanes: a click applies it. A drag sideways
// over the grid, and the keys up and down, change the stride.
#pragma once

#include "app/pictures/bank-conflicts/bank_layout.h"
#include "app/pictures/common/walk_picture.h"

namespace memscape {

/// What the pointer is over; −1 for nothing.
struct BankHover
{
    int lane = -1, word = -1, cure = -1;
    bool operator==(const BankHover&) const = default;
};

class BankPicture final : public WalkPicture
{
    Q_OBJECT

public:
    explicit BankPicture(QWidget* parent = nullptr);

    void setRequest(BankState state); ///< in place of that of a prediction
    QString title() const override { return m_state.title(); }
    QString summary() const override;

    const BankState& state() const { return m_state; }
    BankLayout layoutNow() const { return layoutBanks(m_state, QRectF(rect())); }
    static QString shortcuts(); ///< for the help

protected:
    void read(const PictureValues& values) override;
    QString wordsOf(int step) const override { return step < 0 ? QString() : m_state.words(step); }
    bool isWalk(QPointF at) const override { return layoutNow().strip.contains(at); }
    int stepNear(QPointF at) const override;
    QRectF playButton() const override { return layoutNow().playButton; }
    bool isButton(QPointF at) const override;
    QString toolTipAt(QPointF at) const override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    struct Drag
    {
        double from = 0; ///< x
        int stride = 0;
    };
    bool hasStride() const { return m_state.pattern == QLatin1String("strided"); }
    BankHover hoverAt(QPointF at) const;
    void setStride(int stride);
    void applyCure(int index);

    BankState m_state;
    BankHover m_hover;
    Drag m_drag; ///< over the banks, while it is held
};

/// bank_paint.cpp: everything, with the cursor at a wavefront.
void paintBanks(QPainter& painter, const BankState& state, const BankLayout& layout, int cursor, PlayButton button,
                const BankHover& hover, const Theme& theme);

} // namespace memscape
