// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/first_steps.h"

#include "app/pages/cards/card.h"
#include "app/pages/icons.h"

#include <QHBoxLayout>
#include <QToolButton>

namespace memscape {

namespace {

constexpr int allDone = 0b111; ///< the example alone is no reason to stay

int bitOf(FirstStep step)
{
    return step == FirstStep::Example ? 0 : 1 << int(step);
}

} // namespace

FirstSteps::FirstSteps(Settings& settings, QWidget* parent)
    : QFrame(parent)
    , m_settings(settings)
    , m_row(new QWidget(this))
{
    setObjectName(QStringLiteral("firstSteps"));
    setAccessibleName(tr("First steps"));
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
    auto* row = new QHBoxLayout(m_row);
    row->setContentsMargins(20, 6, 12, 6);
    row->setSpacing(8);
    row->addWidget(toneLabel(tr("First steps:"), "dim", m_row));
    add(FirstStep::Drag, tr("Drag the yellow marker"), tr("The prediction follows while you drag"));
    add(FirstStep::Measure, tr("Measure this point"), tr("A few seconds on this machine, beside the prediction"));
    add(FirstStep::Model, tr("Will my model fit?"), tr("What training a model takes, and what would make it fit"));
    add(FirstStep::Example, tr("Open the example"), tr("A study that was predicted and measured"));
    row->addStretch(1);
    auto* close = new QToolButton(m_row);
    close->setProperty("role", "flat");
    close->setIcon(themedIcon(QStringLiteral("close")));
    close->setToolTip(tr("Close; Help shows them again"));
    close->setAccessibleName(tr("Close the first steps"));
    connect(close, &QToolButton::clicked, this, [this] { m_settings.setFirstSteps(allDone); });
    row->addWidget(close);
    connect(&settings, &Settings::changed, this, [this](Settings::Key key) {
        if (key == Settings::Key::FirstSteps)
            refresh();
    });
    refresh();
}

void FirstSteps::add(FirstStep step, const QString& text, const QString& tip)
{
    auto* chip = new QToolButton(m_row);
    chip->setProperty("role", "chip");
    chip->setText(text);
    chip->setToolTip(tip);
    connect(chip, &QToolButton::clicked, this, [this, step] {
        emit wanted(step);
        if (step == FirstStep::Model)
            finish(step); // the page is open; the others are done when something has changed
    });
    m_row->layout()->addWidget(chip);
    m_chips[step] = chip;
}

void FirstSteps::finish(FirstStep step)
{
    if (!isHidden()) // once closed, they stay closed
        m_settings.setFirstSteps(m_settings.firstSteps() | bitOf(step));
}

void FirstSteps::refresh()
{
    const int done = m_settings.firstSteps();
    for (const auto& [step, chip] : m_chips)
        chip->setVisible(step == FirstStep::Example || (done & bitOf(step)) == 0);
    setVisible((done & allDone) != allDone);
    updateGeometry();
}

/// A window too low or too narrow for the row leaves it out.
void FirstSteps::resizeEvent(QResizeEvent* event)
{
    QFrame::resizeEvent(event);
    const QSize whole = m_row->minimumSizeHint();
    m_row->setGeometry(rect());
    m_row->setVisible(height() >= whole.height() && width() >= whole.width());
}

QStringList FirstSteps::texts() const
{
    QStringList texts;
    for (const auto& [step, chip] : m_chips) {
        if (!isHidden() && !chip->isHidden())
            texts << chip->text();
    }
    return texts;
}

} // namespace memscape
