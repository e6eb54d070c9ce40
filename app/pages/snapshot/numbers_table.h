// SPDX-License-Identifier: GPL-3.0-or-later
// A table of names with numbers: who holds how many bytes, or how two snapshots differ. Sortable by each column, with
// a filter on the names; Ctrl+C copies what is shown, with exact numbers.
#pragma once

#include "core/base/number.h"

#include <QAbstractTableModel>
#include <QTableView>

#include <vector>

class QSortFilterProxyModel;

namespace memscape {

struct NumbersColumn
{
    enum class Kind { Bytes, Change, Count, Share };
    QString title, toolTip;
    Kind kind = Kind::Bytes;
};

struct NumbersRow
{
    QString label;
    int part = -1;              ///< index of a colour (part_colours.h); −1: none
    std::vector<double> values; ///< as many as columns; NaN: none
};

struct Numbers
{
    QString heading; ///< of the names
    std::vector<NumbersColumn> columns;
    std::vector<NumbersRow> rows;
};

class NumbersModel : public QAbstractTableModel
{
    Q_OBJECT

public:
    enum Roles { SortRole = Qt::UserRole };

    using QAbstractTableModel::QAbstractTableModel;
    void setNumbers(Numbers numbers, ByteStyle bytes);
    const Numbers& numbers() const { return m_numbers; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    QString text(const NumbersColumn& column, double value) const;

    Numbers m_numbers;
    ByteStyle m_bytes = ByteStyle::Binary;
};

class NumbersTable : public QTableView
{
    Q_OBJECT

public:
    explicit NumbersTable(QWidget* parent = nullptr);

    /// Sorted by the first column of numbers until a header is clicked.
    void setNumbers(Numbers numbers, ByteStyle bytes);
    void setFilter(const QString& words);
    /// Tab-separated, as shown.
    QString text() const;
    NumbersModel* numbers() const { return m_model; }

signals:
    void chosen(int row); ///< of Numbers::rows: by a double click or Enter

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    NumbersModel* m_model;
    QSortFilterProxyModel* m_order;
};

} // namespace memscape
