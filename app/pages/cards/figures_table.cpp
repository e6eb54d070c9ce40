// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/cards/figures_table.h"

#include "app/settings/theme.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QRegularExpression>
#include <QStyledItemDelegate>

namespace memscape {

namespace {

constexpr double ordinarySize = 0.92, smallSize = 0.82;
constexpr int cellPadding = 9, labelPadding = 6;

/// The widest piece that no line break parts: all of a number unless its unit may go to the next line, of words
/// the longest unless all of them fit the room.
int widestPiece(const QModelIndex& index, const QFontMetrics& metrics, int room, bool breaksUnits)
{
    static const QRegularExpression breaks(QStringLiteral(" |(?<=-)")); // a hyphen stays with what is before it
    const QString text = index.data().toString();
    const int whole = metrics.horizontalAdvance(text);
    if (whole <= room || !(breaksUnits || index.data(FiguresModel::WordsRole).toBool()))
        return whole;
    int widest = 0;
    for (const QString& word : text.split(breaks))
        widest = std::max(widest, metrics.horizontalAdvance(word));
    return widest;
}

/// A header whose sections keep the model's colours; style sheets have only one.
class FiguresHeader : public QHeaderView
{
public:
    explicit FiguresHeader(QWidget* parent)
        : QHeaderView(Qt::Horizontal, parent)
    {
        setSectionsClickable(false);
    }

protected:
    void paintSection(QPainter* painter, const QRect& rect, int section) const override
    {
        const auto value = [&](int role) { return model()->headerData(section, Qt::Horizontal, role); };
        painter->save();
        painter->setFont(section == 0 ? relativeFont(1.15, true) : relativeFont(0.85, section < 3));
        painter->setPen(value(Qt::ForegroundRole).value<QColor>());
        painter->drawText(rect.adjusted(section == 0 ? 0 : 4, 0, -4, -2), value(Qt::TextAlignmentRole).toInt(),
                          value(Qt::DisplayRole).toString());
        painter->setPen(currentTheme().border);
        painter->drawLine(rect.bottomLeft(), rect.bottomRight());
        painter->restore();
    }

    QSize sectionSizeFromContents(int section) const override
    {
        QSize size = QHeaderView::sectionSizeFromContents(section);
        const auto lines = model()->headerData(section, Qt::Horizontal, Qt::DisplayRole).toString().count(u'\n') + 1;
        size.setHeight(std::max(QFontMetrics(relativeFont(1.15, true)).height(),
                                int(lines) * QFontMetrics(relativeFont(0.85, true)).height())
                       + 8);
        return size;
    }
};

/// Cells with a hairline under each row and values in bold; the selected row is tinted, the one that the keyboard
/// is on stands between lines of the accent.
class FiguresDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const Theme& theme = currentTheme();
        const bool value =
            index.column() == FiguresModel::PredictedColumn || index.column() == FiguresModel::MeasuredColumn;
        painter->save();
        if (option.state & QStyle::State_Selected)
            painter->fillRect(option.rect, mix(theme.surface, theme.text, 0.07));
        const auto* table = static_cast<const FiguresTable*>(parent());
        const bool hasKeyboard = table->hasFocus() && table->currentIndex().row() == index.row();
        painter->setPen(hasKeyboard ? theme.predicted : theme.border);
        painter->drawLine(option.rect.bottomLeft(), option.rect.bottomRight());
        if (hasKeyboard)
            painter->drawLine(option.rect.topLeft(), option.rect.topRight());
        const double valueSize = table->valueSize();
        painter->setFont(value ? relativeFont(valueSize, true) : relativeFont(ordinarySize, false));
        painter->setPen(index.data(Qt::ForegroundRole).value<QColor>());
        const QRect text = option.rect.adjusted(index.column() == 0 ? 2 : 4, 0, -4, 0);
        const int flags = index.data(Qt::TextAlignmentRole).toInt();
        if (index.column() == FiguresModel::LabelColumn || (value && table->wraps(index)))
            painter->drawText(text, flags | Qt::TextWordWrap, index.data().toString());
        else
            painter->drawText(text, flags,
                              painter->fontMetrics().elidedText(index.data().toString(), Qt::ElideRight, text.width()));
        painter->restore();
    }
};

} // namespace

FiguresTable::FiguresTable(QWidget* parent)
    : QTableView(parent)
    , m_model(new FiguresModel(this))
{
    setModel(m_model);
    setHorizontalHeader(new FiguresHeader(this));
    setItemDelegate(new FiguresDelegate(this));
    verticalHeader()->hide();
    setShowGrid(false);
    setFrameShape(QFrame::NoFrame);
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::SingleSelection);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setTabKeyNavigation(false);
    setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setMinimumSectionSize(20);
    setAccessibleName(tr("Figures: predicted, measured, error"));
    setColumnHidden(FiguresModel::BaselineColumn, true);
    forget();
    setCompared(false);
}

void FiguresTable::setRows(std::vector<FigureRow> rows, ByteStyle bytes)
{
    const bool sameShape = rows.size() == m_model->rows().size();
    const bool hasBaseline = !rows.empty() && rows.front().hasBaseline;
    if (hasBaseline == isColumnHidden(FiguresModel::BaselineColumn)) {
        setColumnHidden(FiguresModel::BaselineColumn, !hasBaseline);
        forget();
    }
    m_model->setRows(std::move(rows), bytes);
    if (!sameShape)
        forget();
    layoutColumns();
    if (!sameShape)
        updateGeometry(); // also where no row is left
}

QString FiguresTable::currentKey() const
{
    const QModelIndex index = currentIndex().isValid() ? currentIndex() : m_model->index(0, 0);
    return index.isValid() ? index.data(FiguresModel::KeyRole).toString() : QString();
}

QSize FiguresTable::sizeHint() const
{
    return {260, horizontalHeader()->sizeHint().height() + verticalHeader()->length() + 2};
}

QSize FiguresTable::minimumSizeHint() const
{
    return {200, sizeHint().height()};
}

void FiguresTable::keyPressEvent(QKeyEvent* event)
{
    if (event->matches(QKeySequence::Copy))
        QGuiApplication::clipboard()->setText(m_model->text());
    else
        QTableView::keyPressEvent(event);
}

bool FiguresTable::wraps(const QModelIndex& value) const
{
    return m_breaksUnits || value.data(FiguresModel::WordsRole).toBool();
}

void FiguresTable::forget()
{
    m_widest.fill(0);
    m_valueSize = ordinarySize;
    m_breaksUnits = false;
}

void FiguresTable::resizeEvent(QResizeEvent* event)
{
    QTableView::resizeEvent(event);
    if (event->size().width() != event->oldSize().width())
        forget();
    layoutColumns();
}

void FiguresTable::changeEvent(QEvent* event)
{
    QTableView::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) {
        forget();
        layoutColumns();
    }
}

void FiguresTable::setCompared(bool compared)
{
    if (compared == !isColumnHidden(FiguresModel::MeasuredColumn))
        return;
    forget();
    m_model->setBrief(compared);
    for (const int column : {FiguresModel::MeasuredColumn, FiguresModel::ErrorColumn})
        setColumnHidden(column, !compared);
    layoutColumns();
}

void FiguresTable::setPredicted(bool predicted)
{
    if (std::exchange(m_isPredicted, predicted) == predicted)
        return;
    forget();
    setColumnHidden(FiguresModel::PredictedColumn, !predicted);
    layoutColumns();
}

void FiguresTable::layoutColumns()
{
    // Values get what they need, the label the rest. Columns only grow while the rows stay the
    // same: a slider that moves must not make the table tremble.
    const int wanted = QFontMetrics(relativeFont(1.15, true)).horizontalAdvance(QStringLiteral("attainable rate"));
    const int least = longestLabelWord();
    const bool isCompared = !isColumnHidden(FiguresModel::MeasuredColumn);
    setColumnHidden(FiguresModel::ErrorColumn, !isCompared || !m_isPredicted);
    int rest = layoutValues();
    if (rest < wanted && m_valueSize > smallSize) {
        m_valueSize = smallSize;
        m_widest.fill(0);
        rest = layoutValues();
    }
    // With a baseline its column comes first; the error is also given in words below.
    if (rest < wanted && !isColumnHidden(FiguresModel::BaselineColumn) && isCompared) {
        setColumnHidden(FiguresModel::ErrorColumn, true);
        rest = layoutValues();
    }
    if (rest < least && isCompared && !m_breaksUnits) {
        m_breaksUnits = true;
        m_widest.fill(0);
        rest = layoutValues();
    }
    setColumnWidth(0, std::max(least, rest));
    layoutRows();
}

int FiguresTable::longestLabelWord() const
{
    const QFontMetrics metrics(relativeFont(ordinarySize, false));
    int longest = QFontMetrics(relativeFont(1.15, true))
                      .horizontalAdvance(
                          m_model->headerData(FiguresModel::LabelColumn, Qt::Horizontal, Qt::DisplayRole).toString());
    for (int row = 0; row < m_model->rowCount(); ++row) {
        for (const QString& word : m_model->index(row, FiguresModel::LabelColumn).data().toString().split(u' '))
            longest = std::max(longest, metrics.horizontalAdvance(word));
    }
    return longest + labelPadding;
}

int FiguresTable::layoutValues()
{
    const QFontMetrics values(relativeFont(m_valueSize, true));
    const QFontMetrics head(relativeFont(0.85, true));
    int rest = viewport()->width();
    const int room = isColumnHidden(FiguresModel::MeasuredColumn) ? rest / 2 : 0; // of words
    for (int column = 1; column < FiguresModel::NUM_COLUMNS; ++column) {
        if (isColumnHidden(column))
            continue;
        int& width = m_widest[std::size_t(column)];
        const QString name = m_model->headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
        for (const QString& line : name.split(u'\n'))
            width = std::max(width, head.horizontalAdvance(line));
        for (int row = 0; row < m_model->rowCount(); ++row)
            width = std::max(width, widestPiece(m_model->index(row, column), values, room, m_breaksUnits));
        setColumnWidth(column, width + cellPadding);
        rest -= width + cellPadding;
    }
    return rest;
}

void FiguresTable::layoutRows()
{
    // What is wider than its column takes a second line rather than lose its end.
    const int before = verticalHeader()->length();
    const auto heightOf = [&](const QModelIndex& index, const QFont& font, int padding) {
        const QRect room(0, 0, columnWidth(index.column()) - padding, 1000);
        return QFontMetrics(font).boundingRect(room, Qt::TextWordWrap, index.data().toString()).height();
    };
    for (int row = 0; row < m_model->rowCount(); ++row) {
        int height = std::max(
            QFontMetrics(font()).height(),
            heightOf(m_model->index(row, FiguresModel::LabelColumn), relativeFont(ordinarySize, false), labelPadding));
        for (const int column : {FiguresModel::PredictedColumn, FiguresModel::MeasuredColumn}) {
            const QModelIndex index = m_model->index(row, column);
            if (!isColumnHidden(column) && wraps(index))
                height = std::max(height, heightOf(index, relativeFont(m_valueSize, true), cellPadding - 1));
        }
        setRowHeight(row, height + 9);
    }
    if (verticalHeader()->length() != before)
        updateGeometry();
}

void FiguresTable::currentChanged(const QModelIndex& current, const QModelIndex& previous)
{
    QTableView::currentChanged(current, previous);
    if (current.row() != previous.row())
        emit currentKeyChanged(currentKey());
}

} // namespace memscape
