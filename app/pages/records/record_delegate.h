// SPDX-License-Identifier: GPL-3.0-or-later
// One record as a card in the list: the dot of its curve, name, grade, age; framed in the colour of
// measurements when it is the one that the page shows.
#pragma once

#include <QStyledItemDelegate>

namespace memscape {

class RecordDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                              const QModelIndex& index) const override;
};

} // namespace memscape
