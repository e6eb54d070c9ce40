// SPDX-License-Identifier: GPL-3.0-or-later
// The records of a page as chips under its plot, the newest last: click shows one, the pin on the chip
// draws it beside, the menu of the list comes on a right click. Arrows go along, Enter shows, P pins, B
// makes it the baseline. Hidden while there is no record.
#pragma once

#include "app/pages/records/records_model.h"

#include <QSortFilterProxyModel>
#include <QStyledItemDelegate>
#include <QWidget>

class QListView;
class QToolButton;

namespace memscape {

/// A chip: the dot of its curve (a ring where nothing was measured), what distinguishes the record from the others,
/// "baseline", grade, pin.
class RecordChip : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
    /// The place of the pin on a chip that fills `chip`.
    static QRect pinOf(const QRect& chip);
};

class RecordsStrip : public QWidget
{
    Q_OBJECT

public:
    /// `model`: that of the list; both show the same records.
    RecordsStrip(StudyDocument& document, RecordsModel* model, QWidget* parent = nullptr);

    QListView* view() const { return m_view; }
    int recordOf(const QModelIndex& index) const; ///< in the study

signals:
    void chosen(int recordIndex);
    void menuWanted(int recordIndex, const QPoint& at); ///< on the screen
    void predictionWanted();                            ///< keep the present prediction as a record

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QToolButton* arrow(const QString& sign, const QString& name, int direction);
    bool viewportEvent(QEvent* event);
    bool keyPressed(int key);
    void togglePin(const QModelIndex& index);
    void menuAt(const QModelIndex& index);
    void showNewest();
    void fit();

    StudyDocument& m_document;
    QSortFilterProxyModel m_byAge;
    QListView* m_view;
    QToolButton* m_back;
    QToolButton* m_on;
    QToolButton* m_add; ///< keeps the prediction
};

} // namespace memscape
