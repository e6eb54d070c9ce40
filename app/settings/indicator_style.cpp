// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/settings/indicator_style.h"

#include "app/settings/theme.h"

#include <QPainter>
#include <QPainterPath>
#include <QStyleFactory>
#include <QStyleOption>

#include <algorithm>

namespace memscape {

namespace {

struct IndicatorColours
{
    QColor frame, ground, sign;
};

IndicatorColours coloursOf(QStyle::State state, const Theme& theme)
{
    const QColor off = mix(theme.raised, theme.textFaint, 0.7);
    const bool enabled = state & QStyle::State_Enabled;
    if (!(state & (QStyle::State_On | QStyle::State_NoChange))) {
        const bool pointedAt = state & QStyle::State_MouseOver;
        return {!enabled ? off : pointedAt ? theme.text : theme.textFaint, theme.raised, {}};
    }
    if (!enabled)
        return {off, off, theme.raised};
    return {theme.predicted, theme.predicted, theme.onAccent};
}

QPainterPath tick(const QRectF& box)
{
    QPainterPath path(QPointF(box.left() + 0.22 * box.width(), box.top() + 0.52 * box.height()));
    path.lineTo(box.left() + 0.43 * box.width(), box.top() + 0.73 * box.height());
    path.lineTo(box.left() + 0.79 * box.width(), box.top() + 0.29 * box.height());
    return path;
}

void paintBox(QPainter& painter, const QRectF& box, QStyle::State state)
{
    const IndicatorColours colours = coloursOf(state, currentTheme());
    painter.setPen(QPen(colours.frame, 1.3));
    painter.setBrush(colours.ground);
    painter.drawRoundedRect(box, 0.2 * box.width(), 0.2 * box.width());
    painter.setPen(QPen(colours.sign, std::max(1.5, 0.13 * box.width()), Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.setBrush(Qt::NoBrush);
    if (state & QStyle::State_On)
        painter.drawPath(tick(box));
    else if (state & QStyle::State_NoChange)
        painter.drawLine(QPointF(box.left() + 0.25 * box.width(), box.center().y()),
                         QPointF(box.right() - 0.25 * box.width(), box.center().y()));
}

void paintRadio(QPainter& painter, const QRectF& box, QStyle::State state)
{
    const IndicatorColours colours = coloursOf(state, currentTheme());
    painter.setPen(QPen(colours.frame, 1.3));
    painter.setBrush(colours.ground);
    painter.drawEllipse(box);
    if (!(state & QStyle::State_On))
        return;
    painter.setPen(Qt::NoPen);
    painter.setBrush(colours.sign);
    painter.drawEllipse(box.center(), 0.22 * box.width(), 0.22 * box.height());
}

} // namespace

IndicatorStyle::IndicatorStyle()
    : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion")))
{ }

void IndicatorStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                                   const QWidget* widget) const
{
    const bool radio = element == PE_IndicatorRadioButton;
    if (!radio && element != PE_IndicatorCheckBox && element != PE_IndicatorItemViewItemCheck)
        return QProxyStyle::drawPrimitive(element, option, painter, widget);
    const double side = std::min(option->rect.width(), option->rect.height()) - 1.5;
    QRectF box(0, 0, side, side);
    box.moveCenter(QRectF(option->rect).center());
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    if (radio)
        paintRadio(*painter, box, option->state);
    else
        paintBox(*painter, box, option->state);
    painter->restore();
}

/// A menu that is longer than the screen scrolls: in two columns its last entries stand beside the first.
int IndicatorStyle::styleHint(StyleHint hint, const QStyleOption* option, const QWidget* widget,
                              QStyleHintReturn* returned) const
{
    return hint == SH_Menu_Scrollable ? 1 : QProxyStyle::styleHint(hint, option, widget, returned);
}

} // namespace memscape
