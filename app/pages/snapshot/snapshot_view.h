// SPDX-License-Identifier: GPL-3.0-or-later
// What the views of a snapshot have in common: they show one device of a file at one moment, over a range of events
// that the page selects; what stands still is painted once; a hint says what lies under the pointer, a tool tip more.
#pragma once

#include "app/settings/theme.h"
#include "core/snapshot/snapshot_device.h"

#include <QPixmap>
#include <QWidget>

#include <memory>

namespace memscape {

/// What all views show.
struct SnapshotShown
{
    std::shared_ptr<const SnapshotDevice> device; ///< null: no file is open
    std::size_t moment = 0;
    std::size_t peak = 0;    ///< the moment with the most allocated bytes
    EventRange range;        ///< moments [first, last]; of the whole trace while nothing is selected
    bool isSelected = false; ///< the range is a choice
    bool byTime = false;     ///< of the timeline: even in time instead of in events
    ByteStyle bytes = ByteStyle::Binary;
};

class SnapshotView : public QWidget
{
    Q_OBJECT

public:
    explicit SnapshotView(QWidget* parent = nullptr);

    void setShown(const SnapshotShown& shown);
    const SnapshotShown& shown() const { return m_shown; }
    /// On screen and in exports.
    virtual void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const = 0;
    /// What a hand can do here.
    virtual QString hint() const = 0;
    /// What lies there: a line, and further lines for the tool tip; empty where nothing does.
    virtual QString textAt(QPointF at) const = 0;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void momentWanted(std::size_t moment);
    /// Moments [first, last]; the whole trace ends the selection.
    void rangeWanted(std::size_t first, std::size_t last);
    void hoverText(const QString& text);

protected:
    /// `m_shown` is another; `isOtherDevice`: so is what was laid out.
    virtual void shownChanged(bool isOtherDevice) = 0;
    /// What stands still is of the moment; else the moment is drawn over it.
    virtual bool followsMoment() const { return true; }
    /// What follows the pointer, over the canvas.
    virtual void paintOver(QPainter&, const Theme&) const { }
    void changed(); ///< other things are to be seen
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    QPointF pointer() const { return m_pointer; }
    void setPointer(QPointF at) { m_pointer = at; }
    virtual void forgetLayout() = 0;

private:
    SnapshotShown m_shown;
    QPixmap m_canvas; ///< null: to be painted anew
    QPointF m_pointer{-1, -1};
};

} // namespace memscape
