// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/numbers_table.h"
#include "app/pictures/training-memory/memory_state.h"
#include "app/plots/part_colours.h"
#include "app/settings/words.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QSortFilterProxyModel>

#include <cmath>

namespace memscape {

void NumbersModel::setNumbers(Numbers numbers, ByteStyle bytes)
{
    beginResetModel();
    m_numbers = std::move(numbers);
    m_bytes = bytes;
    endResetModel();
}

int NumbersModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : int(m_numbers.rows.size());
}

int NumbersModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : int(m_numbers.columns.size()) + 1;
}

QString NumbersModel::text(const NumbersColumn& column, double value) const
{
    if (!std::isfinite(value))
        return QStringLiteral("–");
    switch (column.kind) {
    case NumbersColumn::Kind::Bytes: return memoryText(value, m_bytes);
    case NumbersColumn::Kind::Change:
        return value == 0 ? tr("equal") : (value > 0 ? u'+' : QChar(0x2212)) + memoryText(std::fabs(value), m_bytes);
    case NumbersColumn::Kind::Count: return toQString(countText(value));
    case NumbersColumn::Kind::Share: break;
    }
    return value > 0 && value < 1e-4 ? QStringLiteral("<0.01 %") : toQString(percentText(value));
}

QVariant NumbersModel::data(const QModelIndex& index, int role) const
{
    const NumbersRow& row = m_numbers.rows[std::size_t(index.row())];
    if (index.column() == 0) {
        switch (role) {
        case Qt::DisplayRole:
        case Qt::ToolTipRole:
        case SortRole: return row.label;
        case Qt::DecorationRole: return row.part < 0 ? QVariant() : QVariant(partColour(currentTheme(), row.part));
        default: return {};
        }
    }
    const std::size_t column = std::size_t(index.column()) - 1;
    const double value = row.values[column];
    switch (role) {
    case Qt::DisplayRole: return text(m_numbers.columns[column], value);
    case SortRole: return m_numbers.columns[column].kind == NumbersColumn::Kind::Change ? std::fabs(value) : value;
    case Qt::TextAlignmentRole: return int(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ToolTipRole:
        return m_numbers.columns[column].kind == NumbersColumn::Kind::Share ? QVariant()
                                                                            : QVariant(toQString(countText(value)));
    default: return {};
    }
}

QVariant NumbersModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    const bool isName = section == 0;
    switch (role) {
    case Qt::DisplayRole: return isName ? m_numbers.heading : m_numbers.columns[std::size_t(section) - 1].title;
    case Qt::ToolTipRole: return isName ? QVariant() : QVariant(m_numbers.columns[std::size_t(section) - 1].toolTip);
    case Qt::TextAlignmentRole: return int((isName ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    default: return {};
    }
}

namespace {

/// The column that sorts says so in its name: Fusion's arrow lies over the name of a right-aligned one.
class OrderedNumbers : public QSortFilterProxyModel
{
public:
    using QSortFilterProxyModel::QSortFilterProxyModel;

    QVariant headerData(int section, Qt::Orientation orientation, int role) const override
    {
        const QVariant value = QSortFilterProxyModel::headerData(section, orientation, role);
        if (role != Qt::DisplayRole || orientation != Qt::Horizontal || section != sortColumn())
            return value;
        return value.toString() + (sortOrder() == Qt::DescendingOrder ? QStringLiteral(" ▾") : QStringLiteral(" ▴"));
    }
};

} // namespace

NumbersTable::NumbersTable(QWidget* parent)
    : QTableView(parent)
    , m_model(new NumbersModel(this))
    , m_order(new OrderedNumbers(this))
{
    m_order->setSourceModel(m_model);
    m_order->setSortRole(NumbersModel::SortRole);
    m_order->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_order->setFilterKeyColumn(0);
    setModel(m_order);
    setSortingEnabled(true);
    setShowGrid(false);
    setWordWrap(false);
    setTextElideMode(Qt::ElideMiddle);
    setTabKeyNavigation(false);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::SingleSelection);
    verticalHeader()->hide();
    horizontalHeader()->setHighlightSections(false);
    connect(this, &QTableView::doubleClicked, this,
            [this](const QModelIndex& index) { emit chosen(m_order->mapToSource(index).row()); });
}

void NumbersTable::setNumbers(Numbers numbers, ByteStyle bytes)
{
    const bool isOther = numbers.columns.size() != m_model->numbers().columns.size();
    m_model->setNumbers(std::move(numbers), bytes);
    if (m_model->columnCount() < 2)
        return;
    if (isOther)
        sortByColumn(1, Qt::DescendingOrder);
    horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
}

void NumbersTable::setFilter(const QString& words)
{
    m_order->setFilterFixedString(words);
}

QString NumbersTable::text() const
{
    QStringList lines;
    const auto line = [&](const auto& cell) {
        QStringList cells;
        for (int column = 0; column < m_order->columnCount(); ++column)
            cells << cell(column);
        lines << cells.join(u'\t');
    };
    line([&](int column) { return m_model->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString(); });
    for (int row = 0; row < m_order->rowCount(); ++row) {
        line([&](int column) {
            const QModelIndex source = m_order->mapToSource(m_order->index(row, column));
            const NumbersRow& one = m_model->numbers().rows[std::size_t(source.row())];
            return column == 0 ? one.label : toQString(numberText(one.values[std::size_t(column) - 1]));
        });
    }
    return lines.join(u'\n') + u'\n';
}

void NumbersTable::keyPressEvent(QKeyEvent* event)
{
    if (event->matches(QKeySequence::Copy)) {
        QGuiApplication::clipboard()->setText(text());
        return;
    }
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && currentIndex().isValid()) {
        emit chosen(m_order->mapToSource(currentIndex()).row());
        return;
    }
    QTableView::keyPressEvent(event);
}

} // namespace memscape
