// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/text_field.h"

#include <QAbstractItemView>
#include <QCompleter>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>

#include <utility>

namespace memscape {

namespace {

/// "llama 3" finds "llama-3-8b": the names of models and settings have no spaces.
class NameCompleter : public QCompleter
{
public:
    using QCompleter::QCompleter;
    QStringList splitPath(const QString& text) const override { return {text.trimmed().replace(u' ', u'-')}; }
};

} // namespace

TextField::TextField(const ParameterSpec& spec, QWidget* parent)
    : ParameterField(spec, parent)
    , m_edit(new QLineEdit(this))
{
    m_edit->setObjectName(QStringLiteral("value"));
    m_edit->setAccessibleName(QString::fromStdString(spec.label));
    m_edit->setAccessibleDescription(QString::fromStdString(spec.help));
    m_edit->installEventFilter(this);
    label()->setBuddy(m_edit);
    connect(m_edit, &QLineEdit::editingFinished, this, &TextField::commit);
    column()->insertWidget(0, label());
    column()->insertSpacing(1, 4);
    column()->insertWidget(2, m_edit);
}

void TextField::display(const ParameterValue& value, const std::optional<Sweep>& sweep)
{
    QStringList texts;
    if (sweep && sweep->key == spec().key) {
        for (const ParameterValue& swept : sweep->values)
            texts << QStringLiteral("\"%1\"").arg(QString::fromStdString(valueText(swept)));
    }
    m_shown = texts.isEmpty() ? QString::fromStdString(valueText(value)) : texts.join(u',');
    m_edit->setText(m_shown);
    m_edit->setCursorPosition(0);
    clearError();
}

bool TextField::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_edit && event->type() == QEvent::FocusIn && m_choices)
        complete(std::exchange(m_choices, {})());
    if (watched == m_edit && event->type() == QEvent::KeyPress
        && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        clearError();
        m_edit->setText(m_shown);
        m_edit->selectAll();
        return true;
    }
    return ParameterField::eventFilter(watched, event);
}

void TextField::complete(QAbstractItemModel* choices)
{
    auto* completer = new NameCompleter(choices, this);
    choices->setParent(completer);
    completer->setFilterMode(Qt::MatchContains);
    completer->setCaseSensitivity(Qt::CaseInsensitive);
    completer->setMaxVisibleItems(14);
    completer->popup()->setObjectName(QStringLiteral("choices"));
    m_edit->setCompleter(completer);
    connect(completer, qOverload<const QString&>(&QCompleter::activated), this, &TextField::propose);
}

QToolButton* TextField::addFileButton(const QString& text, const QString& tip)
{
    auto* open = new QToolButton(this);
    open->setText(text);
    open->setToolTip(tip);
    open->setFocusPolicy(Qt::StrongFocus);
    open->setProperty("role", "flat");
    connect(open, &QToolButton::clicked, this, [this] {
        if (const QString path = askFile(); !path.isEmpty())
            propose(path);
    });
    auto* head = new QHBoxLayout;
    head->setContentsMargins(0, 0, 0, 0);
    column()->removeWidget(label());
    head->addWidget(label(), 1);
    head->addWidget(open);
    column()->insertLayout(0, head);
    return open;
}

void TextField::commit()
{
    if (!m_edit->isModified())
        return;
    if (m_edit->text() == m_shown) // what was refused in between is gone
        return clearError();
    propose(m_edit->text());
}

void TextField::propose(const QString& text)
{
    m_edit->setText(text);
    m_edit->setModified(false);
    if (const auto checked = check(text.trimmed()); !checked)
        showError(checked.error());
    else
        offer(text);
}

} // namespace memscape
