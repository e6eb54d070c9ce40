// SPDX-License-Identifier: GPL-3.0-or-later
// A row of the list: the mark of the verdict, at most two lines of the quote, and a line with verdict, topic and
// experiment.
#pragma once

#include <QStyledItemDelegate>

namespace memscape {

class ClaimsDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

/// `text` in at most `most` lines of that width; the last ends in "…" where more is left.
QStringList linesOf(const QString& text, const QFont& font, double width, int most);

} // namespace memscape
