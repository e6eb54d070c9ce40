// SPDX-License-Identifier: GPL-3.0-or-later
// Mouse, keys and tool tips of the memory budget.
#include "app/pictures/training-memory/training_memory_picture.h"
#include "app/settings/words.h"

#include <QKeyEvent>
#include <QMouseEvent>

#include <algorithm>
#include <cmath>

namespace memscape {

const MemoryButton* TrainingMemoryPicture::buttonAt(const TrainingMemoryLayout& layout, QPointF at) const
{
    const auto found =
        std::ranges::find_if(layout.buttons, [&](const MemoryButton& button) { return button.rect.contains(at); });
    return found == layout.buttons.end() ? nullptr : &*found;
}

QString TrainingMemoryPicture::toolTipAt(QPointF at) const
{
    const TrainingMemoryState now = state();
    const TrainingMemoryLayout layout = layoutNow();
    for (const PartBox& box : layout.parts) {
        const MemoryPart& part = now.memory.parts[std::size_t(box.part)];
        if (box.rect.adjusted(-1, 0, 1, 0).contains(at))
            return tr("%1: %2, %3 of what the device holds at the peak")
                .arg(part.label, memoryText(part.bytes, now.bytes),
                     toQString(percentText(part.bytes / now.memory.total())));
    }
    if (layout.title.contains(at) && !now.memory.assumptions.empty())
        return tr("Assumed: %1")
            .arg(QStringList(now.memory.assumptions.begin(), now.memory.assumptions.end()).join(QStringLiteral("; ")));
    const MemoryButton* button = buttonAt(layout, at);
    const LeverCard* card = button ? cardOf(now, *button) : nullptr;
    if (card == nullptr)
        return {};
    QStringList changes;
    for (const auto& [key, value] : card->changes) {
        const ParameterSpec* spec = m_schema ? findParameter(*m_schema, key) : nullptr;
        changes << toQString(spec ? spec->label : key) + QStringLiteral(" → ") + toQString(value);
    }
    QString why = card->why.isEmpty() ? card->label : card->why;
    if (!card->keepsTraining)
        why += u'\n' + tr("Inexact: it trains with other arithmetic, or other weights.");
    return tr("%1\n%2\nThen %3 on the device: %4.")
        .arg(why, changes.join(QStringLiteral(", ")), memoryText(card->total, now.bytes),
             card->fits ? tr("it fits") : tr("it does not fit yet"));
}

void TrainingMemoryPicture::mousePressEvent(QMouseEvent* event)
{
    const TrainingMemoryLayout layout = layoutNow();
    const MemoryButton* button = event->button() == Qt::LeftButton ? buttonAt(layout, event->position()) : nullptr;
    if (button == nullptr)
        return Picture::mousePressEvent(event);
    m_current = int(button - layout.buttons.data());
    m_isByKeys = false;
    activate(*button);
}

void TrainingMemoryPicture::focusInEvent(QFocusEvent* event)
{
    m_isByKeys = event->reason() != Qt::MouseFocusReason;
    Picture::focusInEvent(event);
}

void TrainingMemoryPicture::mouseMoveEvent(QMouseEvent* event)
{
    m_pointer = event->position();
    const TrainingMemoryLayout layout = layoutNow();
    setCursor(buttonAt(layout, m_pointer) ? Qt::PointingHandCursor : Qt::ArrowCursor);
    emit hoverText(toolTipAt(m_pointer).section(u'\n', 0, 0));
    update();
}

void TrainingMemoryPicture::leaveEvent(QEvent* event)
{
    m_pointer = {-1, -1};
    update();
    Picture::leaveEvent(event);
}

/// To the nearest button in the direction of an arrow key.
void TrainingMemoryPicture::moveFocus(int key)
{
    const TrainingMemoryLayout layout = layoutNow();
    if (layout.buttons.empty())
        return;
    m_current = std::clamp(m_current, 0, int(layout.buttons.size()) - 1);
    const QPointF from = layout.buttons[std::size_t(m_current)].rect.center();
    double best = 1e18;
    int next = m_current;
    for (std::size_t i = 0; i < layout.buttons.size(); ++i) {
        const QPointF way = layout.buttons[i].rect.center() - from;
        const double along = key == Qt::Key_Right ? way.x()
            : key == Qt::Key_Left                 ? -way.x()
            : key == Qt::Key_Down                 ? way.y()
                                                  : -way.y();
        const bool sideways = key == Qt::Key_Right || key == Qt::Key_Left;
        const double across = sideways ? way.y() : way.x();
        if (sideways && std::abs(across) > layout.buttons[i].rect.height() / 2)
            continue; // a row is left upwards and downwards
        if (along > 1 && along + 3 * std::abs(across) < best) {
            best = along + 3 * std::abs(across);
            next = int(i);
        }
    }
    m_current = next;
    const LeverCard* card = cardOf(state(), layout.buttons[std::size_t(m_current)]);
    setAccessibleDescription(card ? card->label : layout.buttons[std::size_t(m_current)].text);
    update();
}

void TrainingMemoryPicture::keyPressEvent(QKeyEvent* event)
{
    const TrainingMemoryLayout layout = layoutNow();
    m_isByKeys = true;
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down: moveFocus(event->key()); return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space:
        if (m_current >= 0 && m_current < int(layout.buttons.size()))
            activate(layout.buttons[std::size_t(m_current)]);
        return;
    case Qt::Key_Escape:
        if (m_state.view != TrainingMemoryView::Levers) {
            activate({MemoryItem::Back, 0, {}, {}});
            return;
        }
        break;
    default: break;
    }
    Picture::keyPressEvent(event);
}

} // namespace memscape
