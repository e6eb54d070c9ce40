// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/worker_dialog.h"

#include "app/pages/cards/card.h"
#include "app/workers/devices.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLineEdit>
#include <QPushButton>

namespace memscape {

WorkerDialog::WorkerDialog(const std::vector<SavedWorker>& known, QWidget* parent)
    : QDialog(parent)
    , m_known(known)
    , m_name(new QLineEdit(this))
    , m_command(new QLineEdit(this))
    , m_problem(toneLabel({}, "bad", this))
{
    setWindowTitle(tr("Add device from command"));
    m_name->setPlaceholderText(QStringLiteral("lab-gpu"));
    m_command->setPlaceholderText(QStringLiteral("ssh lab-gpu memscape-cli worker"));
    m_name->setAccessibleName(tr("Name"));
    m_command->setAccessibleName(tr("Command"));
    auto* form = new QFormLayout;
    form->setSpacing(10);
    form->addRow(tr("Name"), m_name);
    form->addRow(tr("Command"), m_command);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    m_add = buttons->addButton(tr("Add"), QDialogButtonBox::AcceptRole);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    auto* column = new QVBoxLayout(this);
    column->setSpacing(10);
    column->addWidget(
        toneLabel(tr("The command must start a worker and connect it to its input and output. It is run as "
                     "these words, not through a shell."),
                  "dim", this));
    column->addLayout(form);
    column->addWidget(m_problem);
    column->addWidget(buttons);
    connect(m_name, &QLineEdit::textChanged, this, &WorkerDialog::check);
    connect(m_command, &QLineEdit::textChanged, this, &WorkerDialog::check);
    resize(560, 0);
    check();
}

SavedWorker WorkerDialog::worker() const
{
    return {m_name->text().trimmed(), m_command->text().trimmed()};
}

void WorkerDialog::check()
{
    std::vector<WorkerCommand> others;
    for (const SavedWorker& known : m_known)
        others.push_back({known.name, known.command});
    const SavedWorker now = worker();
    const auto words = checkWorkerCommand({now.name, now.command}, others);
    m_add->setEnabled(words.has_value());
    const bool untouched = now.name.isEmpty() && now.command.isEmpty();
    m_problem->setText(words || untouched ? QString() : QString::fromStdString(words.error().text()));
}

} // namespace memscape
