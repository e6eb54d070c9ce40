// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/flame_view.h"

#include "app/pages/snapshot/snapshot_words.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>

namespace memscape {

namespace {

QColor colourOf(const FlameItem& item, bool isMatch, const Theme& theme)
{
    if (item.kind.isEmpty())
        return mix(theme.background, theme.textFaint, isMatch ? 0.4 : 0.14);
    uint hash = 0; // the same in every run, unlike Qt's
    for (const QChar c : item.kind)
        hash = hash * 31 + c.unicode();
    return mix(theme.background, theme.series(int(hash % 997)), isMatch ? 0.55 : 0.14);
}

} // namespace

FlameView::FlameView(QWidget* parent)
    : SnapshotView(parent)
{
    setAccessibleName(tr("Flame graph of bytes"));
}

void FlameView::setItems(std::vector<FlameItem> items)
{
    m_items = std::move(items);
    m_root = m_current = 0;
    setAccessibleDescription(m_items.empty() ? QString() : textOf(0));
    changed();
}

void FlameView::setWords(const QString& words)
{
    m_words = words;
    changed();
}

void FlameView::setRoot(std::uint32_t item)
{
    m_root = item < m_items.size() ? item : 0;
    m_current = m_root;
    changed();
}

const std::vector<ItemBox>& FlameView::boxesNow() const
{
    if (!m_boxes)
        m_boxes = layoutItems(m_items, m_root, QRectF(rect()).adjusted(4, 2, -4, -2), m_words);
    return *m_boxes;
}

QString FlameView::hint() const
{
    return tr("Click shows one box alone; click what stands above it to go back.");
}

QString FlameView::shortcuts()
{
    return tr("arrows go from box to box, Enter shows it alone, Backspace goes back, 0 shows all.");
}

const ItemBox* FlameView::boxAt(QPointF at) const
{
    const auto& boxes = boxesNow();
    const auto found = std::ranges::find_if(boxes, [&](const ItemBox& box) { return box.rect.contains(at); });
    return found == boxes.end() ? nullptr : &*found;
}

QString FlameView::textOf(std::uint32_t index) const
{
    const FlameItem& item = m_items[index];
    const double whole = m_items.front().bytes;
    return tr("%1: %2 in %3 blocks, %4 of all")
        .arg(item.text, memoryText(item.bytes, shown().bytes), eventsText(item.blocks),
             toQString(percentText(whole > 0 ? item.bytes / whole : 0)));
}

QString FlameView::textAt(QPointF at) const
{
    const ItemBox* box = boxAt(at);
    return box == nullptr ? QString() : textOf(box->item);
}

void FlameView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const
{
    painter.save();
    painter.fillRect(rect, theme.background);
    const bool isScreen = rect == QRectF(this->rect());
    const std::vector<ItemBox> boxes =
        isScreen ? boxesNow() : layoutItems(m_items, m_root, rect.adjusted(4, 2, -4, -2), m_words);
    painter.setFont(plotFont(0.78));
    for (const ItemBox& box : boxes) {
        const QColor colour = colourOf(m_items[box.item], box.isMatch, theme);
        painter.fillRect(box.rect.adjusted(0, 0, box.rect.width() > 3 ? -1 : 0, 0), colour);
        if (box.text.isEmpty())
            continue;
        painter.setPen(box.isMatch ? textOn(colour) : theme.textFaint);
        painter.drawText(box.rect.adjusted(3 * plotUnit(), 0, -3 * plotUnit(), 0), Qt::AlignLeft | Qt::AlignVCenter,
                         box.text);
    }
    painter.restore();
}

void FlameView::paintOver(QPainter& painter, const Theme& theme) const
{
    painter.setBrush(Qt::NoBrush);
    const ItemBox* pointed = boxAt(pointer());
    for (const ItemBox& box : boxesNow()) {
        const bool isCurrent = hasFocus() && box.item == m_current;
        if (!isCurrent && &box != pointed)
            continue;
        painter.setPen(QPen(isCurrent ? theme.highlight : theme.text, 1.4));
        painter.drawRect(box.rect);
    }
}

void FlameView::mousePressEvent(QMouseEvent* event)
{
    const ItemBox* box = event->button() == Qt::LeftButton ? boxAt(event->position()) : nullptr;
    if (box != nullptr)
        setRoot(box->item);
}

void FlameView::mouseMoveEvent(QMouseEvent* event)
{
    SnapshotView::mouseMoveEvent(event);
    setCursor(boxAt(event->position()) ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void FlameView::choose(std::uint32_t item)
{
    m_current = item;
    const QString text = textOf(item);
    setAccessibleDescription(text);
    emit hoverText(text);
    update();
}

/// Up to what it is part of, down to its largest part, to the sides among the parts of one.
void FlameView::move(int key)
{
    const FlameItem& now = m_items[m_current];
    if (key == Qt::Key_Up)
        return choose(now.parent);
    if (key == Qt::Key_Down)
        return choose(now.children.empty() ? m_current : now.children.front());
    const auto& row = m_items[now.parent].children;
    const auto at = std::ranges::find(row, m_current);
    if (at == row.end())
        return;
    if (key == Qt::Key_Right && at + 1 != row.end())
        choose(*(at + 1));
    else if (key == Qt::Key_Left && at != row.begin())
        choose(*(at - 1));
}

void FlameView::keyPressEvent(QKeyEvent* event)
{
    if (m_items.empty())
        return QWidget::keyPressEvent(event);
    switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Left:
    case Qt::Key_Right: return move(event->key());
    case Qt::Key_Return:
    case Qt::Key_Enter: return setRoot(m_current);
    case Qt::Key_Backspace: return setRoot(m_items[m_root].parent);
    case Qt::Key_0: return setRoot(0);
    default: QWidget::keyPressEvent(event);
    }
}

} // namespace memscape
