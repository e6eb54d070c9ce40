// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/lab_stage.h"

#include "app/pages/fields/parameter_form.h"
#include "app/pages/records/record_text.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include <algorithm>

namespace memscape {

namespace {

constexpr auto owner = "lab"; ///< of recorded devices

const ParameterValue* valueIn(const Parameters& parameters, const std::string& key)
{
    for (const auto& [name, value] : parameters.values())
        if (name == key)
            return &value;
    return nullptr;
}

} // namespace

const LabStep* stagedStep(const LabAttempt& attempt, const LabStep& step)
{
    const auto& steps = attempt.lab().steps;
    if (step.request)
        return attempt.isOpen(step.id) ? &step : nullptr;
    const auto here = std::size_t(&step - steps.data());
    if (step.kind == LabStepKind::Predict && attempt.isLocked(step.id))
        for (std::size_t i = here + 1; i < steps.size(); ++i)
            if (steps[i].request && attempt.isOpen(steps[i].id))
                return &steps[i];
    if (step.kind == LabStepKind::Predict || step.kind == LabStepKind::Read)
        return nullptr;
    for (std::size_t i = here; i-- > 0;)
        if (steps[i].request && attempt.isDone(steps[i].id))
            return &steps[i];
    return nullptr;
}

LabStage::LabStage(PageServices window, QWidget* parent)
    : QWidget(parent)
    , m_window(window)
    , m_runs(m_document, window.devices)
    , m_column(new QVBoxLayout(this))
{
    m_column->setContentsMargins(0, 0, 0, 0);
    m_runs.setLoadReader(window.runs.loadReader());
    connect(&m_document, &StudyDocument::changed, this, &LabStage::documentChanged);
    connect(&m_runs, &RunController::finished, this, [this](const QString&, int index) {
        if (index >= 0 && m_step)
            emit measured(m_step->id, Record(m_document.records()[std::size_t(index)])); // a copy: the study changes
    });
}

LabStage::~LabStage()
{
    clear(); // before the study that the page reads
}

void LabStage::clear()
{
    delete std::exchange(m_page, nullptr);
    m_step.reset();
}

void LabStage::show(const LabAttempt& attempt, const LabStep& step)
{
    const LabStep* staged = stagedStep(attempt, step);
    if (!staged)
        return clear();
    const bool isSame = m_page && m_step && m_step->id == staged->id;
    m_step = *staged; // the lab may be read anew while its author writes it
    if (!isSame) {
        delete std::exchange(m_page, nullptr);
        m_experiment = staged->request->experiment;
        m_run = Json();
    }
    const auto texts = attempt.parameters(*staged);
    const Experiment& experiment = **findExperiment(m_experiment);
    const auto parameters = texts ? resolve(experiment.schema(), *texts) : Result<Parameters>(fail(texts.error()));
    if (!parameters)
        return clear(); // the step's text says what is wrong with the lab
    m_fixed = *parameters;
    if (isSame && staged->kind == LabStepKind::Measure) { // where the student reads the curve stays
        const Parameters shown = m_document.parameters(m_experiment);
        for (const auto& [key, value] : shown.values())
            if (isFree(key))
                m_fixed.set(key, value);
    }
    fillDocument(attempt);
    if (!isSame)
        build(*staged);
    m_page->updateNow();
}

/// The step's run, device and parameters, and nothing else.
void LabStage::fillDocument(const LabAttempt& attempt)
{
    if (m_runs.current())
        return; // its points would have no place
    m_isFilling = true;
    const Record* run = attempt.run(m_step->id);
    const Json identity = run ? Json{jsonLine(run->provenance.value("time", Json())), run->device.name} : Json(false);
    if (identity != m_run) {
        m_run = identity;
        m_document.newStudy();
        std::vector<Record> records;
        if (run)
            records.push_back(*run);
        tellMachinesApart(records);
        for (Record& one : records) { // of a device that is not here now, a PyTorch say, under another id
            listRecorded(one.device);
            const DeviceEntry* known = m_window.devices.find(one.device.id);
            if (known && !known->isNameOnly())
                continue;
            one.device.name = nameElsewhere(one.device).toStdString();
            one.device.id = "recorded " + one.device.name;
            listRecorded(one.device);
        }
        if (!records.empty())
            m_document.addRecords(std::move(records), tr("The run of the lab"));
        std::string device = m_step->request->device;
        if (const auto filled = filledLabParameter(device, attempt.variant()))
            device = *filled;
        if (run && m_step->kind == LabStepKind::Measure)
            device = m_document.records().front().device.id; // beside what was measured there
        m_document.setDevice(m_experiment, device);
    }
    if (!(m_document.parameters(m_experiment) == m_fixed))
        m_document.setParameters(m_experiment, m_fixed, tr("Parameters of the lab"));
    m_isFilling = false;
}

void LabStage::listRecorded(const Device& device)
{
    m_window.devices.setRecorded({device}, QString::fromLatin1(owner));
}

void LabStage::build(const LabStep& step)
{
    const Experiment& experiment = **findExperiment(m_experiment);
    m_page = new ExperimentPage(experiment, {m_document, m_window.devices, m_window.settings, m_runs}, this);
    m_column->addWidget(m_page);
    const DeviceEntry* entry = m_window.devices.find(m_page->deviceId());
    m_reading.clear();
    if (step.kind == LabStepKind::Measure && entry && !m_fixed.sweep())
        m_reading = sweepOf(experiment, entry->device, m_fixed).key;
    // What the window's menus do for a page of its own does not lead anywhere here.
    if (auto* button = m_page->findChild<QPushButton*>(QStringLiteral("export")))
        button->hide();
    // Its answer and the changes with the largest effect would solve what is to be tuned.
    m_page->header()->setVisible(step.kind == LabStepKind::Measure);
    if (auto* changes = m_page->findChild<QWidget*>(QStringLiteral("changes")))
        changes->setMaximumHeight(0);
    m_page->header()->device()->setEnabled(step.request->device.empty());
    m_page->strip()->setMaximumHeight(0); // the lab has one run
    m_page->inspector()->records()->hide();
    connect(m_page, &ExperimentPage::updated, this, &LabStage::dressFields);
    dressFields();
    m_page->show();
    fit();
}

/// The inspector is as wide as its fields need, and where there is little room the picture leaves it to the curves.
void LabStage::fit()
{
    if (!m_page)
        return;
    const double unit = plotUnit();
    if (width() < 1000 * unit)
        m_page->splitter()->setSizes({int(width() - 330 * unit), int(330 * unit)});
    if (Picture* picture = m_page->picture(); picture && !picture->isPlot()) {
        const double least = picture->isHidden() ? 600 : 540; // a line of news above does not take it away
        picture->setVisible(height() > least * unit && width() > 760 * unit);
    }
}

void LabStage::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    fit();
}

bool LabStage::isFree(const std::string& key) const
{
    const auto& free = m_step->request->free;
    return key == m_reading || std::ranges::find(free, key) != free.end();
}

/// What the lab fixed is grey and says so.
void LabStage::dressFields()
{
    for (const ParameterSpec& spec : m_page->experiment().schema()) {
        ParameterField* field = m_page->inspector()->form()->field(toQString(spec.key));
        if (!field || field->isEnabled() == isFree(spec.key))
            continue;
        field->setEnabled(isFree(spec.key));
        field->setToolTip(isFree(spec.key) ? QString() : tr("The lab sets this"));
    }
}

Json LabStage::freeTexts() const
{
    Json texts = Json::object();
    const Parameters now = m_document.parameters(m_experiment);
    for (const std::string& key : m_step->request->free)
        if (const ParameterValue* value = valueIn(now, key))
            texts[key] = valueText(*value);
    return texts;
}

void LabStage::documentChanged(const ChangeEvent& event)
{
    const auto* change = std::get_if<ParametersChanged>(&event);
    if (!change || m_isFilling || !m_step || change->experiment != m_experiment)
        return;
    const Parameters now = m_document.parameters(m_experiment);
    Parameters allowed = m_fixed;
    QString refused;
    for (const auto& [key, value] : now.values()) {
        const ParameterSpec* spec = findParameter((*findExperiment(m_experiment))->schema(), key);
        if (isFree(key))
            allowed.set(key, value);
        else if (const ParameterValue* fixed = valueIn(m_fixed, key); fixed && *fixed != value && spec)
            refused = toQString(spec->label);
    }
    if (now.sweep() && !(now.sweep() == m_fixed.sweep()) && refused.isEmpty())
        refused = tr("a sweep");
    if (!(allowed == now)) {
        m_isFilling = true;
        m_document.setParameters(m_experiment, allowed, tr("Parameters of the lab"));
        m_isFilling = false;
        m_page->updateNow();
        emit putBack(refused);
        return;
    }
    if (m_step->kind != LabStepKind::Measure)
        emit chosen(m_step->id, freeTexts());
}

void LabStage::setDevice(const std::string& id)
{
    if (m_page && m_step->kind == LabStepKind::Measure)
        m_document.setDevice(m_experiment, id);
}

QString LabStage::obstacle() const
{
    if (!m_page)
        return tr("Nothing is measured in this step.");
    if (m_window.runs.current())
        return tr("Another page measures: wait for its end, or stop it there.");
    const DeviceEntry* shown = m_window.devices.find(m_page->deviceId());
    const bool isRecorded = shown && shown->source == DeviceSource::Record;
    const std::string& wanted = m_step->request->device; // empty: any
    return m_runs.obstacle(m_experiment, isRecorded && m_window.devices.find(wanted) ? wanted : m_page->deviceId());
}

void LabStage::measure()
{
    if (const QString reason = obstacle(); reason.isEmpty())
        m_page->measure();
}

} // namespace memscape
