// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/card.h"

#include <QPainter>
#include <QStyle>
#include <QVariant>

namespace memscape {

Card::Card(QWidget* parent)
    : QFrame(parent)
    , m_column(new QVBoxLayout(this))
{
    setProperty("card", true);
    m_column->setContentsMargins(12, 10, 12, 10);
    m_column->setSpacing(4);
}

void Card::clear()
{
    clearLayout(m_column);
}

QLabel* toneLabel(const QString& text, const char* tone, QWidget* parent, bool selectable)
{
    auto* label = new QLabel(text, parent);
    label->setProperty("tone", QString::fromLatin1(tone));
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    if (selectable)
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return label;
}

LinkLabel::LinkLabel(const char* tone, QWidget* parent)
    : QLabel(parent)
{
    setProperty("tone", QString::fromLatin1(tone));
    setTextFormat(Qt::RichText);
    setWordWrap(true);
    setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
}

void LinkLabel::focusInEvent(QFocusEvent* event)
{
    QLabel::focusInEvent(event);
    if (event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason)
        focusNextPrevChild(event->reason() == Qt::TabFocusReason);
}

ElidedLabel::ElidedLabel(const QString& text, const char* tone, QWidget* parent)
    : QLabel(text, parent)
{
    setProperty("tone", QString::fromLatin1(tone));
    setTextFormat(Qt::PlainText);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
}

void ElidedLabel::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setPen(palette().color(foregroundRole()));
    painter.drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter,
                     fontMetrics().elidedText(text(), Qt::ElideMiddle, width()));
}

void setTone(QLabel* label, const char* tone)
{
    if (label->property("tone").toString() == QLatin1String(tone))
        return;
    label->setProperty("tone", QString::fromLatin1(tone));
    label->style()->unpolish(label);
    label->style()->polish(label);
}

void clearLayout(QLayout* layout)
{
    while (QLayoutItem* item = layout->takeAt(0)) {
        if (QLayout* inner = item->layout())
            clearLayout(inner);
        delete item->widget();
        delete item;
    }
}

} // namespace memscape
