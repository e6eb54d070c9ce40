// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of `training-memory` and `inference-memory`: what the memory of a device is needed
// for, and what would help most. A card that is clicked (or reached with the arrow keys and Enter)
// changes its parameters as one step; a card in force is marked and takes its change back.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/training-memory/training_memory_layout.h"
#include "core/experiment/parameter.h"

namespace memscape {

class TrainingMemoryPicture final : public Picture
{
    Q_OBJECT

public:
    /// `advises`: the experiment has levers; without them the bar stands alone.
    explicit TrainingMemoryPicture(QWidget* parent = nullptr, bool advises = true);

    /// False while something moves: the prediction comes without levers, and the old ones stay,
    /// dimmed.
    void setSettled(bool settled);
    /// One that is known while others are simulated: the first of them takes the place of the old ones.
    void addLever(const Json& lever);
    /// What makeItFit answered; nothing while it is looked for (`searching`) or given up.
    void setFit(std::optional<FitAnswer> answer, bool searching);

    QString title() const override;
    QString summary() const override;

    TrainingMemoryState state() const;
    TrainingMemoryLayout layoutNow() const;
    /// Does what a click on that button would.
    void activate(const MemoryButton& button);

signals:
    void fitWanted(bool on); ///< "Make it fit", or its end

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void refreshApplied();
    void apply(const LeverCard& card);
    void takeBack(const AppliedLever& lever);
    void showPage(int first);
    ParameterChanges batchChanges() const;
    const MemoryButton* buttonAt(const TrainingMemoryLayout& layout, QPointF at) const;
    void moveFocus(int key);
    void focusInEvent(QFocusEvent* event) override;

    TrainingMemoryState m_state;
    std::vector<AppliedLever> m_made; ///< every lever that was chosen here, in force or not
    Parameters m_parameters;
    const Schema* m_schema = nullptr;
    QPointF m_pointer{-1, -1};
    int m_current = 0;       ///< button that the keyboard is at
    bool m_isByKeys = false; ///< its ring is shown: a press of the mouse leaves none behind
};

// training_memory_paint.cpp
struct MemoryPen
{
    QPainter& painter;
    const TrainingMemoryState& state;
    const TrainingMemoryLayout& layout;
    const Theme& theme;
    int current = -1; ///< the button with the keyboard, −1 none
    QPointF pointer{-1, -1};
    bool onScreen = true; ///< else without what can only be pressed

    void bar() const;
    void totals() const;
    void ranks() const;
    void heading() const;
    void buttons() const;

private:
    void card(const MemoryButton& button, const LeverCard& lever, bool marked) const;
    void tick(const QRectF& card) const;
    void label(const QRectF& rect, int align, const QString& text, const QFont& font, const QColor& colour,
               Qt::TextElideMode elide = Qt::ElideRight) const;
};

} // namespace memscape
