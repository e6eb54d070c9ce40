// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/record_delegate.h"

#include "app/pages/icons.h"
#include "app/pages/records/records_model.h"
#include "app/settings/theme.h"

#include <QPainter>

namespace memscape {

namespace {

constexpr int cardGap = 5; ///< between cards

void paintFrame(QPainter* painter, const QRectF& card, const QStyleOptionViewItem& option, bool shown)
{
    const Theme& theme = currentTheme();
    const bool selected = option.state & QStyle::State_Selected;
    const bool hover = option.state & QStyle::State_MouseOver;
    painter->setPen(QPen(shown          ? theme.measured
                             : selected ? theme.predicted
                                        : theme.border,
                         shown || selected ? 1.5 : 1));
    painter->setBrush(selected || hover ? mix(theme.raised, theme.text, 0.06) : theme.raised);
    painter->drawRoundedRect(card, 6, 6);
}

/// Draws right-aligned faint text and returns the right edge that is left.
int paintTail(QPainter* painter, const QRect& rect, const QString& text, const QColor& colour)
{
    if (text.isEmpty())
        return rect.right();
    painter->setFont(relativeFont(0.85));
    painter->setPen(colour);
    painter->drawText(rect, Qt::AlignRight | Qt::AlignVCenter, text);
    return rect.right() - painter->fontMetrics().horizontalAdvance(text) - 8;
}

} // namespace

void RecordDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const Theme& theme = currentTheme();
    const QRect card = option.rect.adjusted(1, 1, -1, -cardGap);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    paintFrame(painter, QRectF(card).adjusted(0.5, 0.5, -0.5, -0.5), option,
               index.data(RecordsModel::ShownRole).toBool());

    const QPointF dot(card.left() + 14, card.center().y() + 0.5);
    painter->setPen(Qt::NoPen);
    painter->setBrush(index.data(RecordsModel::ColourRole).value<QColor>());
    painter->drawEllipse(dot, 4, 4);

    QRect inner = card.adjusted(26, 0, -10, 0);
    inner.setRight(paintTail(painter, inner, index.data(RecordsModel::AgeRole).toString(), theme.textFaint));
    const QString grade = index.data(RecordsModel::GradeRole).toString();
    inner.setRight(
        paintTail(painter, inner, grade,
                  grade == QStringLiteral("A") || grade == QStringLiteral("B") ? theme.good : theme.warning));
    if (index.data(RecordsModel::PinnedRole).toBool()) {
        themedIcon(QStringLiteral("pin"), theme.text)
            .paint(painter, QRect(inner.right() - 14, card.center().y() - 7, 14, 14));
        inner.setRight(inner.right() - 20);
    }
    painter->setFont(option.font);
    painter->setPen(theme.text);
    painter->drawText(inner, Qt::AlignLeft | Qt::AlignVCenter,
                      painter->fontMetrics().elidedText(index.data().toString(), Qt::ElideMiddle, inner.width()));
    painter->restore();
}

QSize RecordDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const
{
    return {120, option.fontMetrics.height() + 14 + cardGap};
}

void RecordDelegate::updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option, const QModelIndex&) const
{
    editor->setGeometry(option.rect.adjusted(22, 2, -4, -cardGap - 1));
}

} // namespace memscape
