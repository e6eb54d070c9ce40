// SPDX-License-Identifier: GPL-3.0-or-later
// Segments and blocks at the moment. The wheel zooms at the pointer, with Shift it scrolls; a double click shows all; F
// marks the free holes.
//
// Keys: arrows go from block to block, up and down scroll, + − zoom, 0 and Esc show all, F marks free holes, Enter goes
// to the moment that made the block.
#pragma once

#include "app/pages/snapshot/blocks_layout.h"
#include "app/pages/snapshot/snapshot_view.h"

#include <optional>

namespace memscape {

class BlocksView final : public SnapshotView
{
    Q_OBJECT

public:
    explicit BlocksView(QWidget* parent = nullptr);

    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString hint() const override;
    QString textAt(QPointF at) const override;
    static QString shortcuts();

    /// "Segments at event 1,204 …: 12 segments, 3 holes, the largest 412 MiB".
    QString title() const;
    void setMarksFree(bool marks);
    const BlocksChart& chartNow() const;
    const SnapshotLayout& blocksNow() const;
    const BlocksSight& sight() const { return m_sight; }
    void setSight(const BlocksSight& sight);
    QSize minimumSizeHint() const override;

protected:
    void shownChanged(bool isOtherDevice) override;
    void forgetLayout() override { m_chart.reset(); }
    void paintOver(QPainter& painter, const Theme& theme) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    void choose(std::size_t block);
    QString blockText(std::size_t block, std::size_t segment) const;
    QString neighbourText(std::size_t block, const LaidSegment& segment) const;

    BlocksSight m_sight;
    bool m_marksFree = false;
    std::optional<std::size_t> m_current; ///< block that the keyboard chose
    mutable std::size_t m_layoutMoment = 0;
    mutable std::optional<SnapshotLayout> m_layout; ///< of the moment
    mutable std::optional<BlocksChart> m_chart;
};

} // namespace memscape
