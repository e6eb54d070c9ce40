// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of the page "Step timeline": one training step, tensor by tensor, with the modules at
// work under it and the tensors alive at the cursor. It is the page's plot: the wheel zooms (Ctrl: events
// only, Shift: bytes only), a drag pans, a double click shows all, a click moves the cursor or, on a
// module, shows that module alone.
//
// Keys: arrows move the cursor event by event (Shift: in larger steps), Home and End to the ends, P to
// the peak, + − zoom, 0 and Esc show all, / searches (Esc ends it), up and down scroll the list.
#pragma once

#include "app/pictures/common/picture.h"
#include "app/pictures/training-memory/moment_layout.h"
#include "app/plots/plot_types.h"

#include <QPixmap>

#include <optional>

class QLineEdit;

namespace memscape {

class MomentPicture final : public Picture
{
    Q_OBJECT

public:
    explicit MomentPicture(QWidget* parent = nullptr);

    /// The step's phases and capacity; the view goes back to all of it when the step has other events.
    void setTimeline(const MemoryTimeline& timeline);
    /// What is alive at the cursor.
    void setMoment(MemoryMoment moment, bool isPeak);
    /// Its blocks; `pending` while those of another step are still shown.
    void setStep(std::shared_ptr<const StepBlocks> step);
    void setPending(bool pending);
    /// What a run took, over the same events; empty: nothing is measured.
    void setMeasured(Curve measured);

    QString title() const override;
    QString summary() const override;
    bool sharesHeight() const override { return true; }
    bool isPlot() const override { return true; }
    QString hint() const override;
    static QString shortcuts(); ///< for the help

    const MomentState& state() const { return m_state; }
    const MomentLayout& layoutNow() const;
    const StepChart& chartNow() const;
    const StepView& view() const { return m_view; }
    void setView(const StepView& view); ///< kept within the step

signals:
    void cursorKey(int key, Qt::KeyboardModifiers modifiers); ///< left, right, Home, End, P
    void cursorWanted(double event);

protected:
    void read(const PictureValues& values) override;
    void draw(QPainter& painter, const QRectF& rect, const Theme& theme, bool isScreen) const override;
    QString toolTipAt(QPointF at) const override;
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void changed(); ///< other things are to be seen
    void search(const QString& words);
    void scroll(int rows);
    void zoomAbout(double xFactor, double yFactor, std::optional<QPointF> place = std::nullopt);
    void click(QPointF at);
    const FlameBox* boxAt(QPointF at) const;
    QString foundText(const StepChart& chart) const;
    MomentLayout layoutIn(const QRectF& rect, const QString& found) const;

    // moment_paint.cpp
    void paintAll(QPainter& painter, const MomentLayout& layout, const StepChart& chart,
                  const std::vector<FlameBox>& flame, const Theme& theme) const;
    void paintHead(QPainter& painter, const MomentLayout& layout, const Theme& theme, bool onScreen) const;
    void paintShapes(QPainter& painter, const StepChart& chart, const Theme& theme) const;
    void paintOver(QPainter& painter, const StepChart& chart, const MomentLayout& layout, const Theme& theme) const;
    void paintList(QPainter& painter, const MomentLayout& layout, const Theme& theme) const;

    mutable MomentState m_state; ///< mutable for its byte style, which is the window's
    StepView m_view;
    Curve m_measured;
    QLineEdit* m_search;
    mutable std::optional<MomentLayout> m_layout; ///< of what is shown, in this size
    mutable std::optional<StepChart> m_chart;
    mutable std::optional<std::vector<FlameBox>> m_flame;
    mutable QPixmap m_canvas; ///< all but what follows the pointer; null: to be painted anew
    QPointF m_pointer{-1, -1};
    std::optional<QPointF> m_pressed; ///< where; the view then is m_pressedView
    StepView m_pressedView;
    bool m_isPanning = false;
};

/// Whether a key moves the cursor of a timeline.
bool isCursorKey(int key);

} // namespace memscape
