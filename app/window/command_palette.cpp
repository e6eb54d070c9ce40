// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/command_palette.h"

#include "app/settings/theme.h"
#include "app/window/fuzzy.h"

#include <QApplication>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

namespace memscape {

namespace {

enum Roles { DetailRole = Qt::UserRole, ShortcutRole, TypedRole };

/// One line: the words with the matched letters in bold, the sentence behind them, the shortcut.
class PaletteDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const override
    {
        return {200, option.fontMetrics.height() + 14};
    }

    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const Theme& theme = currentTheme();
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        if (option.state & QStyle::State_Selected) {
            painter->setPen(Qt::NoPen);
            painter->setBrush(mix(theme.raised, theme.predicted, 0.25));
            painter->drawRoundedRect(option.rect.adjusted(2, 1, -2, -1), 5, 5);
        }
        QRect rect = option.rect.adjusted(12, 0, -12, 0);
        const QIcon sign = index.data(Qt::DecorationRole).value<QIcon>();
        sign.paint(painter, QRect(rect.left(), rect.center().y() - 8, 16, 16));
        rect.setLeft(rect.left() + 26);
        painter->setPen(theme.textFaint);
        const QString shortcut = index.data(ShortcutRole).toString();
        painter->drawText(rect, Qt::AlignRight | Qt::AlignVCenter, shortcut);
        rect.setRight(rect.right() - painter->fontMetrics().horizontalAdvance(shortcut) - 16);
        paintText(painter, rect, index);
        painter->restore();
    }

private:
    static void paintText(QPainter* painter, QRect rect, const QModelIndex& index)
    {
        const Theme& theme = currentTheme();
        const QString text = index.data().toString();
        const FuzzyMatch match = fuzzyMatch(index.data(TypedRole).toString(), text);
        const QFont plain = relativeFont(1);
        const QFont bold = relativeFont(1, true);
        painter->setPen(theme.text);
        for (int i = 0; i < text.size(); ++i) {
            painter->setFont(match.positions.contains(i) ? bold : plain);
            painter->drawText(rect, Qt::AlignLeft | Qt::AlignVCenter, text.mid(i, 1));
            rect.setLeft(rect.left() + painter->fontMetrics().horizontalAdvance(text.at(i)));
        }
        rect.setLeft(rect.left() + 14);
        painter->setFont(relativeFont(0.9));
        painter->setPen(theme.textFaint);
        painter->drawText(
            rect, Qt::AlignLeft | Qt::AlignVCenter,
            painter->fontMetrics().elidedText(index.data(DetailRole).toString(), Qt::ElideRight, rect.width()));
    }
};

} // namespace

CommandPalette::CommandPalette(QWidget* window)
    : QFrame(window)
    , m_input(new QLineEdit(this))
    , m_list(new QListWidget(this))
{
    setObjectName(QStringLiteral("palette"));
    setProperty("card", true);
    setAccessibleName(tr("Command palette"));
    m_input->setPlaceholderText(tr("Type what you want to do, an experiment, a record, a device"));
    m_input->setAccessibleName(tr("Search commands"));
    m_input->installEventFilter(this);
    m_list->setItemDelegate(new PaletteDelegate(m_list));
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setAccessibleName(tr("Commands found"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(10, 10, 10, 10);
    column->addWidget(m_input);
    column->addWidget(m_list, 1);
    connect(m_input, &QLineEdit::textChanged, this, &CommandPalette::refresh);
    connect(m_list, &QListWidget::itemClicked, this, &CommandPalette::runCurrent);
    hide();
}

void CommandPalette::open(const QList<PaletteEntry>& entries)
{
    m_entries = entries;
    if (!isVisible())
        m_before = QApplication::focusWidget();
    m_input->clear();
    refresh();
    place();
    show();
    raise();
    m_input->setFocus();
}

QStringList CommandPalette::listed() const
{
    QStringList texts;
    for (const PaletteEntry& entry : m_shown)
        texts << entry.text;
    return texts;
}

void CommandPalette::place()
{
    const QSize window = parentWidget()->size();
    const int width = std::min(720, window.width() - 60);
    const int rows = std::max(1, m_list->count()) * (QFontMetrics(font()).height() + 15);
    const int height = std::min({460, window.height() - 120, rows + m_input->sizeHint().height() + 40});
    setGeometry((window.width() - width) / 2, std::max(40, window.height() / 9), width, height);
}

void CommandPalette::refresh()
{
    m_shown = rankedEntries(m_entries, m_input->text(), m_recent);
    m_list->clear();
    for (const PaletteEntry& entry : std::as_const(m_shown)) {
        auto* item = new QListWidgetItem(entry.icon, entry.text, m_list);
        item->setData(DetailRole, entry.detail);
        item->setData(ShortcutRole, entry.shortcut);
        item->setData(TypedRole, m_input->text());
        item->setToolTip(entry.detail);
    }
    if (m_shown.isEmpty()) {
        auto* none = new QListWidgetItem(tr("No match"), m_list);
        none->setFlags(Qt::NoItemFlags);
    }
    m_list->setCurrentRow(0);
    if (isVisible())
        place();
}

void CommandPalette::runCurrent()
{
    const int row = m_list->currentRow();
    if (row < 0 || row >= m_shown.size())
        return;
    const PaletteEntry entry = m_shown.at(row);
    m_recent.removeAll(entry.text);
    m_recent.prepend(entry.text);
    leave();
    entry.run();
}

/// Back to where the keyboard was.
void CommandPalette::leave()
{
    hide();
    (m_before ? m_before.data() : parentWidget())->setFocus();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_input && event->type() == QEvent::FocusOut && isVisible()
        && !isAncestorOf(QApplication::focusWidget()))
        hide();
    if (watched != m_input || event->type() != QEvent::KeyPress)
        return QFrame::eventFilter(watched, event);
    const int row = m_list->currentRow();
    switch (static_cast<QKeyEvent*>(event)->key()) {
    case Qt::Key_Escape: leave(); return true;
    case Qt::Key_Down: m_list->setCurrentRow(std::min(row + 1, m_list->count() - 1)); return true;
    case Qt::Key_Up: m_list->setCurrentRow(std::max(row - 1, 0)); return true;
    case Qt::Key_PageDown: m_list->setCurrentRow(std::min(row + 10, m_list->count() - 1)); return true;
    case Qt::Key_PageUp: m_list->setCurrentRow(std::max(row - 10, 0)); return true;
    case Qt::Key_Return:
    case Qt::Key_Enter: runCurrent(); return true;
    default: return QFrame::eventFilter(watched, event);
    }
}

} // namespace memscape
