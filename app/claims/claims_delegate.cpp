// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/claims/claims_delegate.h"

#include "app/claims/claims_model.h"
#include "app/pages/cards/verdict.h"
#include "app/settings/theme.h"

#include <QListView>
#include <QPainter>
#include <QScrollBar>
#include <QTextLayout>

#include <algorithm>

namespace memscape {

namespace {

constexpr int quoteLines = 2;
constexpr int paddingAbove = 6;

/// What a row is laid out with, at this size of the text.
struct RowLook
{
    QFont head = relativeFont(0.8, true), quote = relativeFont(1), question = relativeFont(1, true),
          detail = relativeFont(0.9);
    int mark = 0, left = 0;

    RowLook()
    {
        mark = QFontMetrics(quote).height() * 3 / 4;
        left = mark + 22;
    }
    const QFont& ofText(const ClaimsModel::Row& row) const
    {
        return row.kind == ClaimsModel::Row::Kind::Question ? question : quote;
    }
    /// The same with and without a scroll bar, so that a row keeps its lines when one appears.
    double widthOfText(const QStyleOptionViewItem& option) const
    {
        const auto* view = qobject_cast<const QListView*>(option.widget);
        const int whole = view ? view->width() - view->verticalScrollBar()->sizeHint().width() : option.rect.width();
        return std::max(40, whole - left - 10);
    }
};

const ClaimsModel::Row& rowOf(const QModelIndex& index)
{
    return static_cast<const ClaimsModel*>(index.model())->rows()[std::size_t(index.row())];
}

} // namespace

QStringList linesOf(const QString& text, const QFont& font, double width, int most)
{
    QTextLayout layout(text, font);
    QTextOption option;
    option.setWrapMode(QTextOption::WordWrap);
    layout.setTextOption(option);
    layout.beginLayout();
    QStringList lines;
    for (QTextLine line = layout.createLine(); line.isValid(); line = layout.createLine()) {
        line.setLineWidth(width);
        const bool isLast = lines.size() + 1 == most;
        const int end = line.textStart() + line.textLength();
        lines << (isLast && end < text.size()
                      ? QFontMetricsF(font).elidedText(text.mid(line.textStart()), Qt::ElideRight, width)
                      : text.mid(line.textStart(), line.textLength()).trimmed());
        if (isLast)
            break;
    }
    layout.endLayout();
    return lines;
}

QSize ClaimsDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const RowLook look;
    const ClaimsModel::Row& row = rowOf(index);
    const int width = int(look.widthOfText(option)); // the view stretches it
    if (row.kind == ClaimsModel::Row::Kind::Head)
        return {width, QFontMetrics(look.head).height() + 18};
    const QFont& font = look.ofText(row);
    const auto lines = linesOf(row.text, font, width, quoteLines).size();
    return {width,
            int(lines) * QFontMetrics(font).lineSpacing() + QFontMetrics(look.detail).height() + 2 * paddingAbove + 2};
}

void ClaimsDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const RowLook look;
    const Theme& theme = currentTheme();
    const ClaimsModel::Row& row = rowOf(index);
    QRect rect = option.rect;
    painter->save();
    if (row.kind == ClaimsModel::Row::Kind::Head) {
        painter->setFont(look.head);
        painter->setPen(theme.textFaint);
        painter->drawText(rect.adjusted(10, 10, -8, -4), Qt::AlignLeft | Qt::AlignVCenter,
                          QFontMetrics(look.head).elidedText(row.text.toUpper(), Qt::ElideRight, rect.width() - 18));
        painter->restore();
        return;
    }
    const bool isSelected = option.state & QStyle::State_Selected;
    if (isSelected || (option.state & QStyle::State_MouseOver))
        painter->fillRect(rect, mix(theme.background, theme.text, isSelected ? 0.10 : 0.05));
    if (isSelected)
        painter->fillRect(QRect(rect.left(), rect.top(), 3, rect.height()), theme.predicted);
    paintVerdict(*painter, QRectF(rect.left() + 11, rect.top() + paddingAbove + 2, look.mark, look.mark), row.verdict,
                 theme);
    const QFont& font = look.ofText(row);
    painter->setFont(font);
    painter->setPen(theme.text);
    int y = rect.top() + paddingAbove;
    for (const QString& line : linesOf(row.text, font, look.widthOfText(option), quoteLines)) {
        painter->drawText(rect.left() + look.left, y + QFontMetrics(font).ascent(), line);
        y += QFontMetrics(font).lineSpacing();
    }
    painter->setFont(look.detail);
    painter->setPen(theme.textFaint);
    painter->drawText(rect.left() + look.left, y + 2 + QFontMetrics(look.detail).ascent(),
                      QFontMetrics(look.detail).elidedText(row.detail, Qt::ElideRight, int(look.widthOfText(option))));
    if (isSelected && (option.state & QStyle::State_HasFocus)) {
        painter->setPen(theme.predicted);
        painter->drawRect(rect.adjusted(0, 0, -1, -1));
    }
    painter->restore();
}

} // namespace memscape
