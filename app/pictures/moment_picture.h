// SPDX-License-Identifier: GPL-3.0-or-later
// The picture of the page "Step timeline": who is alive at the moment of the plot's cursor, as a
// list and as a treemap by module. A click on a module looks into it, the path above leads back (as
// does Backspace). Arrow keys move the cursor event by event, Home and End to the ends, P to the
// peak.
#pragma once

#include "app/pictures/moment_layout.h"
#include "app/pictures/picture.h"

#include <optional>

namespace memscape {

class MomentPicture final : public Picture
{
    Q_OBJECT

public:
    explicit MomentPicture(QWidget* parent = nullptr);

    void setState(const Experiment& experiment, const Device& device, const Parameters& parameters,
                  const Prediction* predicted, const Measurement* measured) override;
    /// What is alive at the cursor; `pending` while that of another moment is still shown.
    void setMoment(MemoryMoment moment, std::shared_ptr<const MemoryNode> tree, bool isPeak);
    void setPending(bool pending);
    void lookInto(const QStringList& path);

    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString title() const override;
    QString summary() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

    const MomentState& state() const { return m_state; }
    const MomentLayout& layoutNow() const;

signals:
    void cursorKey(int key, Qt::KeyboardModifiers modifiers); ///< left, right, Home, End, P

protected:
    bool event(QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void changed(); ///< other things are to be seen
    void scroll(int rows);
    QString textAt(QPointF at) const;
    MomentLayout layoutIn(const QRectF& rect) const;
    void paint(QPainter& painter, const MomentLayout& layout, const QRectF& rect, const Theme& theme,
               QPointF pointer) const;

    mutable MomentState m_state; ///< mutable for its byte style, which is the window's
    mutable std::optional<MomentLayout> m_layout; ///< of what is shown, in this size
    QPointF m_pointer{-1, -1};
};

/// Whether a key moves the cursor of a timeline.
bool isCursorKey(int key);

} // namespace memscape
