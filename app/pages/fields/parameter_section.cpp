// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/fields/parameter_section.h"

#include "app/pages/cards/card.h"

#include <QHBoxLayout>
#include <QToolButton>

#include <algorithm>
#include <utility>

namespace memscape {

ParameterSection::ParameterSection(const QString& title, QWidget* parent)
    : QWidget(parent)
    , m_title(title)
    , m_header(new QToolButton(this))
    , m_count(toneLabel({}, "predicted", this))
    , m_changed(toneLabel({}, "faint", this))
    , m_body(new QWidget(this))
    , m_column(new QVBoxLayout(m_body))
{
    setObjectName(QStringLiteral("section.") + title);
    m_header->setText(title);
    m_header->setObjectName(QStringLiteral("fold"));
    m_header->setProperty("role", "fold");
    m_header->setCheckable(true);
    m_header->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_header->setFocusPolicy(Qt::StrongFocus);
    m_header->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_count->setWordWrap(false);
    m_count->setAttribute(Qt::WA_TransparentForMouseEvents); // it lies on the heading
    m_column->setContentsMargins(0, 2, 0, 2);
    m_column->setSpacing(7);
    auto* inHeader = new QHBoxLayout(m_header);
    inHeader->setContentsMargins(0, 0, 6, 0);
    inHeader->addStretch(1);
    inHeader->addWidget(m_count);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    column->addWidget(m_header);
    column->addWidget(m_changed);
    column->addWidget(m_body);
    connect(m_header, &QToolButton::toggled, this, &ParameterSection::showState);
    connect(m_header, &QToolButton::clicked, this, [this](bool open) { emit folded(m_title, open); });
    showState();
}

void ParameterSection::add(ParameterField* field)
{
    m_column->addWidget(field);
    m_fields.push_back(field);
}

bool ParameterSection::isOpen() const
{
    return m_header->isChecked();
}

void ParameterSection::setOpen(bool open)
{
    m_header->setChecked(open);
}

void ParameterSection::setChanged(const QStringList& changed)
{
    if (std::exchange(m_differing, changed) != changed)
        showState();
}

QString ParameterSection::changedText() const
{
    return m_differing.join(QStringLiteral(", "));
}

void ParameterSection::refresh()
{
    setVisible(std::ranges::any_of(m_fields, [](const ParameterField* field) { return !field->isHidden(); }));
}

void ParameterSection::showState()
{
    const bool open = isOpen();
    m_header->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
    m_body->setVisible(open);
    m_count->setText(m_differing.isEmpty() ? QString() : tr("%n changed", nullptr, int(m_differing.size())));
    m_changed->setText(changedText());
    m_changed->setVisible(!open && !m_differing.isEmpty());
    const QString state = open ? tr("unfolded") : tr("folded");
    m_header->setAccessibleName(
        m_differing.isEmpty()
            ? tr("%1, %2").arg(m_title, state)
            : tr("%1, %2, %n changed: %3", nullptr, int(m_differing.size())).arg(m_title, state, changedText()));
    m_header->setToolTip(m_differing.isEmpty() ? tr("All of these are at their defaults.")
                                               : tr("Not at their defaults: %1").arg(changedText()));
}

} // namespace memscape
