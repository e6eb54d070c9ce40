// SPDX-License-Identifier: GPL-3.0-or-later
// Flame graph of bytes. A click shows one box alone, a click on what stands above it goes back.
//
// Keys: arrows go from box to box, Enter shows it alone, Backspace goes back, 0 shows all.
#pragma once

#include "app/pages/snapshot/flame_layout.h"
#include "app/pages/snapshot/snapshot_view.h"

#include <optional>

namespace memscape {

class FlameView final : public SnapshotView
{
    Q_OBJECT

public:
    explicit FlameView(QWidget* parent = nullptr);

    void setItems(std::vector<FlameItem> items);
    void setWords(const QString& words);
    const std::vector<FlameItem>& items() const { return m_items; }
    std::uint32_t root() const { return m_root; }
    void setRoot(std::uint32_t item);
    const std::vector<ItemBox>& boxesNow() const;

    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QString hint() const override;
    QString textAt(QPointF at) const override;
    static QString shortcuts();

protected:
    void shownChanged(bool) override { }
    bool followsMoment() const override { return false; }
    void forgetLayout() override { m_boxes.reset(); }
    void paintOver(QPainter& painter, const Theme& theme) const override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    const ItemBox* boxAt(QPointF at) const;
    QString textOf(std::uint32_t item) const;
    void choose(std::uint32_t item);
    void move(int key);

    std::vector<FlameItem> m_items;
    std::uint32_t m_root = 0, m_current = 0;
    QString m_words;
    mutable std::optional<std::vector<ItemBox>> m_boxes;
};

} // namespace memscape
