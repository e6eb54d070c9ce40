// SPDX-License-Identifier: GPL-3.0-or-later
// The capacity bar and the cards under it, on a painter.
#include "app/pictures/training-memory/training_memory_picture.h"
#include "app/plots/part_colours.h"
#include "app/plots/plot_style.h"

#include <QFontMetricsF>
#include <QPainter>

namespace memscape {

void MemoryPen::label(const QRectF& rect, int align, const QString& text, const QFont& font, const QColor& colour,
                      Qt::TextElideMode elide) const
{
    if (rect.isEmpty())
        return;
    painter.setFont(font);
    painter.setPen(colour);
    painter.drawText(rect, align | Qt::AlignVCenter, QFontMetricsF(font).elidedText(text, elide, rect.width() + 1));
}

void MemoryPen::bar() const
{
    const double u = plotUnit();
    label(layout.title, Qt::AlignLeft, layout.titleText, plotFont(1.1, true), theme.text);
    if (state.memory.empty())
        return;
    painter.setPen(QPen(theme.border, 1));
    painter.setBrush(theme.surface);
    painter.drawRoundedRect(layout.bar, 3 * u, 3 * u);
    for (const PartBox& box : layout.parts) {
        const MemoryPart& part = state.memory.parts[std::size_t(box.part)];
        const QColor colour = partColour(theme, partIndex(part.key.toStdString()));
        painter.setPen(Qt::NoPen);
        painter.setBrush(colour);
        painter.drawRoundedRect(box.rect, 3 * u, 3 * u);
        QRectF inner = box.rect.adjusted(0, 0, -3 * u, 0);
        inner.setLeft(box.textLeft);
        QRectF upper = inner, lower = inner;
        upper.setBottom(inner.center().y());
        lower.setTop(inner.center().y());
        if (!box.label.isEmpty()) {
            label(upper, Qt::AlignLeft, box.label, plotFont(0.85, true), textOn(colour));
            label(lower, Qt::AlignLeft, box.size, plotFont(0.85), textOn(colour));
        }
    }
}

void MemoryPen::totals() const
{
    const double u = plotUnit();
    if (layout.capacityX) {
        const double x = std::min(*layout.capacityX, layout.bar.right());
        painter.setPen(QPen(theme.bad, 2 * u));
        painter.drawLine(QPointF(x, layout.bar.top() - 6 * u), QPointF(x, layout.bar.bottom() + 5 * u));
    }
    label(layout.capacity, Qt::AlignCenter, layout.capacityText, plotFont(0.85, true), theme.bad);
    const bool known = state.memory.capacity.has_value();
    label(layout.needed, Qt::AlignCenter, layout.neededText, plotFont(0.95, true),
          !known || !state.memory.fits ? theme.text
              : state.memory.isTight   ? theme.warning
                                       : theme.good);
}

void MemoryPen::ranks() const
{
    label(layout.rankLine, Qt::AlignLeft, layout.rankText, plotFont(0.88), theme.textDim);
    for (std::size_t i = 0; i < layout.ranks.size(); ++i) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(int(i) == state.memory.ranks.fullest ? theme.predicted : theme.textFaint);
        painter.drawRoundedRect(layout.ranks[i], 2 * plotUnit(), 2 * plotUnit());
    }
}

void MemoryPen::heading() const
{
    label(layout.heading, Qt::AlignLeft, layout.headingText, plotFont(1.0, true), theme.text);
    label(layout.caption, Qt::AlignLeft, layout.captionText, plotFont(0.85), theme.textFaint);
    if (layout.message.isEmpty())
        return;
    painter.setFont(plotFont(0.92));
    painter.setPen(theme.textDim);
    painter.drawText(layout.message, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, layout.messageText);
}

void MemoryPen::tick(const QRectF& card) const
{
    const double u = plotUnit();
    const QPointF centre(card.right() - 16 * u, card.top() + 16 * u);
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.predicted);
    painter.drawEllipse(centre, 7 * u, 7 * u);
    painter.setPen(QPen(theme.onAccent, 1.6 * u));
    painter.drawPolyline(QPolygonF(
        {centre + QPointF(-3.2 * u, 0), centre + QPointF(-0.8 * u, 2.6 * u), centre + QPointF(3.4 * u, -2.8 * u)}));
}

void MemoryPen::card(const MemoryButton& button, const LeverCard& lever, bool marked) const
{
    const double u = plotUnit();
    const bool hovered = button.rect.contains(pointer);
    const bool applied = button.item == MemoryItem::Applied;
    painter.setPen(QPen(marked || applied ? theme.predicted
                            : hovered     ? theme.textFaint
                                          : theme.border,
                        marked || applied ? 1.6 : 1));
    painter.setBrush(hovered ? mix(theme.raised, theme.text, 0.05) : theme.raised);
    painter.drawRoundedRect(button.rect, 6 * u, 6 * u);
    if (marked) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme.predicted, 1, Qt::DotLine));
        painter.drawRoundedRect(button.rect.adjusted(3, 3, -3, -3), 4 * u, 4 * u);
    }
    const bool helps = !applied && lever.fits && !state.memory.fits;
    const QFont small = plotFont(0.85, true);
    const QString fits = TrainingMemoryPicture::tr("fits");
    QRectF inner = button.rect.adjusted(13 * u, 8 * u, -12 * u, -8 * u);
    QRectF head = inner, foot = inner;
    head.setHeight(QFontMetricsF(plotFont(0.95, true)).height());
    if (helps)
        label(head, Qt::AlignRight, fits, small, theme.good);
    head.setRight(inner.right()
                  - (applied     ? 16 * u
                         : helps ? QFontMetricsF(small).horizontalAdvance(fits) + 8 * u
                                 : 0));
    foot.setTop(foot.bottom() - QFontMetricsF(plotFont(0.88)).height());
    // Combinations begin alike: what tells them apart is at their ends.
    const bool isCombination = lever.label.contains(QStringLiteral(", "));
    label(head, Qt::AlignLeft, lever.label, plotFont(0.84, true), theme.text,
          isCombination ? Qt::ElideMiddle : Qt::ElideRight);
    const bool known = !applied || state.applied[std::size_t(button.index)].savingHolds;
    const QFont strong = plotFont(0.88, true);
    const QString saving = known ? savingText(lever.saving, state.bytes) : TrainingMemoryPicture::tr("in force");
    label(foot, Qt::AlignLeft, saving, strong, lever.saving >= 0 ? theme.good : theme.bad);
    foot.setLeft(foot.left() + QFontMetricsF(strong).horizontalAdvance(saving) + 14 * u);
    QString cost = !applied ? timeChangeText(lever.timeChange)
        : onScreen          ? TrainingMemoryPicture::tr("click takes it back")
                            : QString();
    if (!applied && !lever.keepsTraining)
        cost += TrainingMemoryPicture::tr(" · inexact");
    label(foot, Qt::AlignLeft, cost, plotFont(0.88), theme.textDim);
    if (applied)
        tick(button.rect);
}

void MemoryPen::buttons() const
{
    const double u = plotUnit();
    for (std::size_t i = 0; i < layout.buttons.size(); ++i) {
        const MemoryButton& button = layout.buttons[i];
        const bool marked = int(i) == current;
        painter.setOpacity(state.settled || button.item == MemoryItem::Cancel ? 1.0 : 0.55);
        if (const LeverCard* lever = cardOf(state, button)) {
            card(button, *lever, marked);
            continue;
        }
        if (!onScreen)
            continue;
        const bool primary = button.item == MemoryItem::MakeItFit;
        const bool hovered = button.rect.contains(pointer);
        painter.setPen(primary && !marked ? QPen(Qt::NoPen)
                                          : QPen(marked ? theme.highlight : theme.border, marked ? 1.8 : 1));
        painter.setBrush(primary ? (hovered ? mix(theme.predicted, theme.text, 0.15) : theme.predicted)
                                 : (hovered ? mix(theme.raised, theme.text, 0.08) : theme.raised));
        painter.drawRoundedRect(button.rect.adjusted(0.5, 0.5, -0.5, -0.5), 5 * u, 5 * u);
        label(button.rect, Qt::AlignHCenter, button.text, plotFont(0.88, true), primary ? theme.onAccent : theme.text);
    }
    painter.setOpacity(1);
}

} // namespace memscape
