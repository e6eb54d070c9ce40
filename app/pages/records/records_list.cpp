// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/records_list.h"

#include "app/pages/cards/card.h"
#include "app/pages/icons.h"
#include "app/pages/records/compare_text.h"
#include "app/pages/records/record_delegate.h"

#include <QContextMenuEvent>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QListView>
#include <QMenu>
#include <QPlainTextEdit>
#include <QSignalBlocker>
#include <QToolButton>

#include <algorithm>
#include <utility>

namespace memscape {

RecordsList::RecordsList(StudyDocument& document, const std::string& experiment, QWidget* parent)
    : QWidget(parent)
    , m_document(document)
    , m_model(new RecordsModel(document, experiment, this))
    , m_view(new QListView(this))
    , m_tools(new QWidget(this))
    , m_empty(toneLabel(tr("Each measurement becomes a record here. Pin records to see them side "
                           "by side; select two to compare them."),
                        "faint", this))
    , m_hint(toneLabel(tr("Ctrl+click a second record to compare two."), "faint", this))
    , m_comparison(toneLabel({}, "dim", this, true))
    , m_note(new QPlainTextEdit(this))
{
    m_view->setModel(m_model);
    m_view->setItemDelegate(new RecordDelegate(m_view));
    m_view->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_view->setEditTriggers(QAbstractItemView::EditKeyPressed);
    m_view->setContextMenuPolicy(Qt::CustomContextMenu);
    m_view->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    m_view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_view->setMouseTracking(true);
    m_view->setAccessibleName(tr("Records"));
    m_view->installEventFilter(this);
    m_note->setPlaceholderText(tr("A note to this record"));
    m_note->setAccessibleName(tr("Note of the selected record"));
    m_note->setTabChangesFocus(true);
    m_note->setMaximumHeight(QFontMetrics(font()).height() * 4);
    m_note->hide();
    buildTools();

    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addWidget(m_tools);
    column->addWidget(m_empty);
    column->addWidget(m_view);
    column->addWidget(m_hint);
    column->addWidget(m_comparison);
    column->addWidget(m_note);

    connect(m_view, &QListView::clicked, this,
            [this](const QModelIndex& index) { emit chosen(m_model->recordIndex(index.row())); });
    connect(m_view, &QListView::activated, this,
            [this](const QModelIndex& index) { emit chosen(m_model->recordIndex(index.row())); });
    connect(m_view, &QListView::customContextMenuRequested, this, &RecordsList::contextMenu);
    connect(m_view->selectionModel(), &QItemSelectionModel::selectionChanged, this, &RecordsList::selectionChanged);
    connect(m_note, &QPlainTextEdit::textChanged, this, &RecordsList::noteEdited);
    connect(m_model, &QAbstractItemModel::modelReset, this, &RecordsList::refresh);
    connect(m_model, &QAbstractItemModel::rowsInserted, this, &RecordsList::refresh);
    connect(m_model, &RecordsModel::cameBack, this, &RecordsList::selectReturned);
    connect(m_model, &QAbstractItemModel::rowsRemoved, this, &RecordsList::refresh);
    connect(m_model, &QAbstractItemModel::dataChanged, this, &RecordsList::refresh);
    refresh();
}

void RecordsList::buildTools()
{
    auto* row = new QHBoxLayout(m_tools);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(toneLabel(tr("Records"), "subtitle", this), 1);
    row->addWidget(tool("pin", tr("Pin to the plot, or take off (P)"), &RecordsList::togglePin));
    row->addWidget(tool("rename", tr("Rename (F2)"), &RecordsList::rename));
    row->addWidget(tool("note", tr("Note (N)"), &RecordsList::editNote));
    row->addWidget(tool("delete", tr("Delete; Undo brings it back (Del)"), &RecordsList::remove));
}

QToolButton* RecordsList::tool(const char* icon, const QString& tip, void (RecordsList::*action)())
{
    auto* button = new QToolButton(m_tools);
    button->setProperty("role", "flat");
    button->setToolTip(tip);
    button->setAccessibleName(tip);
    button->setFocusPolicy(Qt::StrongFocus);
    button->setObjectName(QStringLiteral("records.") + QLatin1String(icon));
    setThemedIcon(button, QString::fromLatin1(icon));
    connect(button, &QToolButton::clicked, this, action);
    return button;
}

std::vector<std::size_t> RecordsList::selected() const
{
    std::vector<std::size_t> indices;
    for (const QModelIndex& index : m_view->selectionModel()->selectedIndexes())
        indices.push_back(std::size_t(m_model->recordIndex(index.row())));
    std::ranges::sort(indices);
    return indices;
}

void RecordsList::togglePin()
{
    const std::vector<std::size_t> indices = selected();
    const bool pin = std::ranges::any_of(indices, [&](std::size_t i) { return !m_document.records()[i].pinned; });
    for (const std::size_t i : indices)
        m_document.setRecordPinned(i, pin);
}

/// The others are compared with it: in the figures, and where one points at a curve.
void RecordsList::toggleBaseline()
{
    const std::vector<std::size_t> indices = selected();
    if (indices.size() != 1)
        return;
    const bool isBaseline =
        baselineOf(m_document.records(), m_document.records()[indices.front()].experiment) == indices.front();
    m_document.setBaseline(indices.front(), !isBaseline);
}

void RecordsList::rename()
{
    if (m_view->currentIndex().isValid())
        m_view->edit(m_view->currentIndex());
}

void RecordsList::remove()
{
    m_document.removeRecords(selected());
}

/// What undo brings back is what one wants to see: selected, as it was when it was deleted.
void RecordsList::selectReturned(int row)
{
    using Flag = QItemSelectionModel::SelectionFlag;
    const QModelIndex index = m_model->index(row);
    const bool isFirst = !std::exchange(m_isReturning, true);
    m_view->selectionModel()->setCurrentIndex(index, isFirst ? Flag::ClearAndSelect : Flag::Select);
    m_view->scrollTo(index);
    QMetaObject::invokeMethod(
        this, [this] { m_isReturning = false; }, Qt::QueuedConnection);
}

void RecordsList::editNote()
{
    const std::vector<std::size_t> indices = selected();
    if (indices.size() != 1)
        return;
    m_noteOf = int(indices.front());
    m_noteGesture = m_document.newGesture();
    const QSignalBlocker quiet(m_note);
    m_note->setPlainText(QString::fromStdString(m_document.records()[indices.front()].note));
    m_note->show();
    m_note->setFocus();
    emit revealWanted(m_note);
}

void RecordsList::noteEdited()
{
    if (m_noteOf >= 0 && m_noteOf < int(m_document.records().size()))
        m_document.setRecordNote(std::size_t(m_noteOf), m_note->toPlainText().toStdString(), m_noteGesture);
}

void RecordsList::menuFor(int recordIndex, const QPoint& at)
{
    const int row = recordIndex < 0 ? -1 : m_model->rowOf(std::size_t(recordIndex));
    if (row < 0)
        return;
    m_view->selectionModel()->setCurrentIndex(m_model->index(row), QItemSelectionModel::ClearAndSelect);
    openMenu(at);
}

void RecordsList::contextMenu(const QPoint& at)
{
    openMenu(m_view->viewport()->mapToGlobal(at));
}

void RecordsList::openMenu(const QPoint& atScreen)
{
    const std::vector<std::size_t> indices = selected();
    if (indices.empty())
        return;
    QMenu menu(this);
    menu.addAction(tr("Pin to the plot, or take off"), this, &RecordsList::togglePin);
    const bool isBaseline = m_model->index(m_model->rowOf(indices.front())).data(RecordsModel::BaselineRole).toBool();
    QAction* base = menu.addAction(isBaseline ? tr("No longer the baseline") : tr("Make it the baseline"), this,
                                   &RecordsList::toggleBaseline);
    base->setEnabled(indices.size() == 1);
    QAction* use =
        menu.addAction(tr("Use its parameters and device"), this, [&] { emit parametersWanted(int(indices.front())); });
    use->setEnabled(indices.size() == 1);
    QAction* write = menu.addAction(tr("Save this record…"), this, [&] { emit exportWanted(int(indices.front())); });
    write->setEnabled(indices.size() == 1);
    menu.addSeparator();
    menu.addAction(tr("Rename"), this, &RecordsList::rename);
    menu.addAction(tr("Note"), this, &RecordsList::editNote);
    menu.addAction(tr("Delete"), this, &RecordsList::remove);
    menu.exec(atScreen);
}

/// Under the current record, where the keyboard is.
void RecordsList::contextMenuByKey()
{
    const QModelIndex current = m_view->currentIndex();
    if (!current.isValid())
        return;
    m_view->selectionModel()->select(current, QItemSelectionModel::Select);
    m_view->scrollTo(current);
    const QRect row = m_view->visualRect(current);
    contextMenu({row.left() + 24, row.bottom() - 4});
}

void RecordsList::selectionChanged()
{
    const std::vector<std::size_t> indices = selected();
    for (QToolButton* button : m_tools->findChildren<QToolButton*>())
        button->setEnabled(!indices.empty());
    const bool notePossible = indices.size() == 1;
    if (!notePossible || m_noteOf != int(indices.front()))
        m_note->hide();
    if (notePossible && !m_document.records()[indices.front()].note.empty() && m_note->isHidden()) {
        m_noteOf = int(indices.front());
        m_noteGesture = m_document.newGesture();
        const QSignalBlocker quiet(m_note);
        m_note->setPlainText(QString::fromStdString(m_document.records()[indices.front()].note));
        m_note->show();
    }
    const QString comparison = comparisonText();
    if (comparison == m_comparison->text())
        return;
    m_comparison->setText(comparison);
    m_comparison->setVisible(!comparison.isEmpty());
    if (!comparison.isEmpty())
        emit revealWanted(m_comparison);
}

/// The note as the study has it, after an undo.
void RecordsList::refreshNote()
{
    if (m_note->isHidden() || m_noteOf < 0 || m_noteOf >= int(m_document.records().size()))
        return;
    const QString note = QString::fromStdString(m_document.records()[std::size_t(m_noteOf)].note);
    if (note == m_note->toPlainText())
        return;
    const QSignalBlocker quiet(m_note);
    m_note->setPlainText(note);
}

QString RecordsList::comparisonText() const
{
    const std::vector<std::size_t> indices = selected();
    if (indices.size() != 2)
        return {};
    return compareText(m_document.records()[indices[0]], m_document.records()[indices[1]]);
}

void RecordsList::refresh()
{
    const bool any = m_model->rowCount() > 0;
    m_view->setVisible(any);
    m_empty->setVisible(!any);
    m_hint->setVisible(m_model->rowCount() > 1);
    fitHeight();
    selectionChanged();
    refreshNote();
}

void RecordsList::fitHeight()
{
    const int rows = std::clamp(m_model->rowCount(), 1, 6);
    const int height = m_view->sizeHintForRow(0);
    m_view->setFixedHeight(rows * std::max(height, 30) + 4);
}

bool RecordsList::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_view && event->type() == QEvent::ContextMenu
        && static_cast<QContextMenuEvent*>(event)->reason() == QContextMenuEvent::Keyboard) {
        contextMenuByKey();
        return true;
    }
    if (watched == m_view && event->type() == QEvent::KeyPress && m_view->hasFocus()) {
        const auto* key = static_cast<QKeyEvent*>(event);
        switch (key->key()) {
        case Qt::Key_F10: // where there is no Menu key
            if (key->modifiers() != Qt::ShiftModifier)
                break;
            contextMenuByKey();
            return true;
        case Qt::Key_Delete: remove(); return true;
        case Qt::Key_B: toggleBaseline(); return true;
        case Qt::Key_P: togglePin(); return true;
        case Qt::Key_N: editNote(); return true;
        default: break;
        }
    }
    return QWidget::eventFilter(watched, event);
}

} // namespace memscape
