// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/snapshot/beside_panel.h"

#include "app/pages/byte_words.h"
#include "app/pages/cards/card.h"
#include "app/settings/words.h"

#include <QHBoxLayout>
#include <QPushButton>
#include <QToolButton>

namespace memscape {

namespace {

constexpr auto memory = "training-memory";

const Experiment& memoryBudget()
{
    return **findExperiment(memory);
}

} // namespace

BesidePanel::BesidePanel(PageServices services, QWidget* parent)
    : QWidget(parent)
    , m_services(services)
    , m_experiment(memoryBudget())
    , m_switch(new QToolButton(this))
    , m_body(new QWidget(this))
    , m_guess(new QPushButton(tr("Guess from the snapshot"), m_body))
    , m_open(new QPushButton(tr("open on Memory budget →"), m_body))
    , m_guessed(toneLabel({}, "faint", m_body, true))
    , m_problem(toneLabel({}, "warning", m_body, true))
    , m_form(new ParameterForm(m_experiment.schema(), m_body))
{
    build();
    m_timer.setSingleShot(true);
    m_timer.setInterval(0);
    connect(&m_timer, &QTimer::timeout, this, &BesidePanel::ask);
    connect(m_switch, &QToolButton::clicked, this, &BesidePanel::chosen);
    connect(m_guess, &QPushButton::clicked, this, &BesidePanel::guess);
    connect(m_open, &QPushButton::clicked, this, &BesidePanel::openWanted);
    connect(m_form, &ParameterForm::edited, this, &BesidePanel::edit);
    connect(m_form, &ParameterForm::editing, this,
            [this](bool active) { m_gesture = active ? m_services.document.newGesture() : 0; });
    connect(&m_services.document, &StudyDocument::changed, this, [this](const ChangeEvent& event) {
        const auto* parameters = std::get_if<ParametersChanged>(&event);
        const auto* device = std::get_if<DeviceChanged>(&event);
        if (std::holds_alternative<StudyReset>(event) || (parameters && parameters->experiment == memory)
            || (device && device->concerns(memory)))
            refresh();
    });
    connect(&m_services.devices, &DeviceDirectory::changed, this, &BesidePanel::refresh);
    connect(&m_predictor, &Predictor::predicted, this, [this](std::shared_ptr<const Record> record) {
        m_prediction = std::move(record);
        m_problem->hide();
        emit changed();
    });
    connect(&m_predictor, &Predictor::failed, this, [this](const Error& error) {
        m_prediction.reset();
        m_step.reset();
        m_problem->setText(QString::fromStdString(withBriefHint(error).text()));
        m_problem->show();
        emit changed();
    });
    connect(&m_finder, &MomentFinder::found, this, [this](const MemoryMoment&, std::shared_ptr<const StepBlocks> step) {
        m_step = std::move(step);
        emit changed();
    });
    connect(&m_work, &BackgroundWork::busyChanged, this, [this](bool busy) {
        m_guess->setEnabled(!busy && m_snapshot != nullptr);
        m_guess->setText(busy ? tr("Guessing…") : tr("Guess from the snapshot"));
    });
    setOn(false);
}

void BesidePanel::build()
{
    m_switch->setObjectName(QStringLiteral("beside"));
    m_switch->setText(tr("Beside a prediction"));
    m_switch->setToolTip(tr("Draw the step that Memory budget predicts over the steps of the snapshot"));
    m_switch->setProperty("role", "fold");
    m_switch->setCheckable(true);
    m_switch->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_switch->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_switch->setFocusPolicy(Qt::StrongFocus);
    m_guess->setObjectName(QStringLiteral("guess"));
    m_guess->setToolTip(tr("Model, optimizer, precision and checkpointing, as far as stacks and sizes tell them"));
    m_open->setObjectName(QStringLiteral("openBudget"));
    m_open->setProperty("role", "flat");
    m_form->leaveOut(QStringLiteral("advice"));
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_guess);
    buttons->addStretch(1);
    auto* body = new QVBoxLayout(m_body);
    body->setContentsMargins(0, 0, 0, 0);
    body->setSpacing(6);
    body->addLayout(buttons);
    for (QWidget* part :
         {static_cast<QWidget*>(m_guessed), static_cast<QWidget*>(m_problem), static_cast<QWidget*>(m_form)})
        body->addWidget(part);
    body->addWidget(m_open, 0, Qt::AlignLeft);
    m_guessed->hide();
    m_problem->hide();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    column->addWidget(m_switch);
    column->addWidget(m_body);
}

std::string BesidePanel::deviceId() const
{
    return m_services.deviceOf(memory);
}

void BesidePanel::setSnapshot(std::shared_ptr<const SnapshotDevice> device)
{
    m_snapshot = std::move(device);
    m_work.cancel();
    m_guessed->hide();
    m_guess->setEnabled(m_snapshot != nullptr);
}

void BesidePanel::setOn(bool on)
{
    m_isOn = on;
    m_switch->setChecked(on);
    m_switch->setArrowType(on ? Qt::DownArrow : Qt::RightArrow);
    m_body->setVisible(on);
    refresh();
    if (!on)
        emit changed();
}

void BesidePanel::refresh()
{
    if (!m_isOn)
        return;
    const Parameters now = m_services.document.parameters(memory);
    m_form->display(now, m_services.settings.byteStyle());
    if (const DeviceEntry* entry = m_services.devices.find(deviceId())) {
        m_form->setStandard(standardParameters(m_experiment, entry->device));
        m_form->setIdle(m_experiment.idleParameters(entry->device, now));
    }
    m_timer.start();
}

void BesidePanel::ask()
{
    const DeviceEntry* entry = m_services.devices.find(deviceId());
    if (!m_isOn || entry == nullptr)
        return;
    const Parameters parameters = this->parameters();
    m_predictor.request(memory, entry->device, parameters);
    m_finder.request(entry->device, parameters, 0);
}

Parameters BesidePanel::parameters() const
{
    Parameters parameters = m_services.document.parameters(memory);
    parameters.setSweep(std::nullopt);
    parameters.set("advice", std::string("none"));
    return parameters;
}

std::vector<double> BesidePanel::step() const
{
    return m_isOn && m_step ? m_step->totals : std::vector<double>();
}

void BesidePanel::edit(const QString& key, const QString& text)
{
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key.toStdString());
    const auto value = spec ? parseValue(*spec, text.toStdString()) : fail("parameter.unknown", key.toStdString());
    if (value) // what a field reports parses, or is a sweep, which means nothing here
        m_services.document.setParameter(memory, spec->key, *value, m_gesture);
}

void BesidePanel::guess()
{
    if (!m_snapshot)
        return;
    m_work.start([this, device = m_snapshot]() -> BackgroundWork::Finish {
        return [this, guesses = guessPlan(*device)] { apply(guesses); };
    });
}

void BesidePanel::apply(const std::vector<PlanGuess>& guesses)
{
    Parameters next = m_services.document.parameters(memory);
    QStringList lines;
    for (const PlanGuess& guess : guesses) {
        const ParameterSpec* spec = findParameter(m_experiment.schema(), guess.key);
        const auto value = spec ? parseValue(*spec, guess.value) : fail("parameter.unknown", guess.key);
        if (!value)
            continue;
        next.set(guess.key, *value);
        lines << tr("%1: %2, since %3")
                     .arg(toQString(spec->label), toQString(guess.value),
                          bytesInStyle(toQString(guess.why), m_services.settings.byteStyle()));
    }
    if (lines.isEmpty())
        lines << tr("The snapshot tells neither model nor optimizer: its stacks name no library.");
    else
        lines << tr("Batch and sequence leave no trace: set them by hand.");
    m_guessed->setText(lines.join(u'\n'));
    m_guessed->show();
    m_services.document.setParameters(memory, next, tr("Guess the plan from the snapshot"));
}

} // namespace memscape
