// SPDX-License-Identifier: GPL-3.0-or-later
// Construction, edits and what the page reacts to; what it draws is in experiment_page_view.cpp.
#include "app/pages/experiment_page.h"

#include "app/pages/slider_stops.h"
#include "app/pages/text_field.h"

#include <nlohmann/json.hpp>

#include <QEvent>
#include <QSplitter>
#include <QVBoxLayout>

#include <cmath>

namespace memscape {

namespace {

constexpr int keyRepeatWindow = 600; ///< ms within which edits of one parameter are one undo step

} // namespace

ExperimentPage::ExperimentPage(const Experiment& experiment, PageServices services, QWidget* parent,
                               const std::string& page)
    : QWidget(parent)
    , m_experiment(experiment)
    , m_id(experiment.id())
    , m_info(pageOf(experiment, page))
    , m_services(services)
    , m_header(new PageHeader(experiment, m_info, services.devices, services.runs, this))
    , m_picture(makePicture(m_info.id, this))
    , m_plot(new PagePlot(this))
    , m_inspector(new Inspector(experiment, services.document, services.runs, this))
    , m_splitter(new QSplitter(Qt::Horizontal, this))
{
    setObjectName(QStringLiteral("page"));
    setAttribute(Qt::WA_StyledBackground);
    build();
    connectAll();
    if (MemoryGuide::guides(experiment))
        buildMemory();
    if (CheckpointGuide::guides(experiment))
        buildCheckpoint();
    m_timer.setSingleShot(true);
    m_timer.setInterval(0);
    connect(&m_timer, &QTimer::timeout, this, &ExperimentPage::updateNow);
}

void ExperimentPage::build()
{
    auto* centre = new QSplitter(Qt::Vertical, this);
    centre->setObjectName(QStringLiteral("centre"));
    centre->setChildrenCollapsible(false);
    if (m_picture) {
        m_picture->setObjectName(QStringLiteral("picture"));
        centre->addWidget(m_picture);
    }
    centre->addWidget(m_plot);
    centre->setStretchFactor(centre->count() - 1, 1);
    if (m_picture && m_info.id != m_id) // a further page looks into the curve: it stands on top
        centre->insertWidget(0, m_plot);

    m_inspector->setMinimumWidth(300);
    m_splitter->setObjectName(QStringLiteral("splitter"));
    m_splitter->addWidget(centre);
    m_splitter->addWidget(m_inspector);
    m_splitter->setStretchFactor(0, 1);
    m_splitter->setStretchFactor(1, 0);
    m_splitter->setChildrenCollapsible(false);
    m_splitter->setSizes({1000, 340});
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_header);
    column->addWidget(m_splitter, 1);
}

void ExperimentPage::connectAll()
{
    StudyDocument& document = m_services.document;
    connect(&document, &StudyDocument::changed, this, &ExperimentPage::documentChanged);
    connect(&m_services.devices, &DeviceDirectory::changed, this, [this] { schedule(Inputs); });
    connect(&m_services.runs, &RunController::pointsChanged, this, [this] { schedule(Outputs); });
    connect(&m_services.runs, &RunController::changed, this, [this] { schedule(Outputs); });
    connect(&m_services.settings, &Settings::changed, this, [this](Settings::Key key) {
        if (key == Settings::Key::ByteStyle || key == Settings::Key::Bases)
            schedule(Inputs);
    });
    connect(&m_services.runs, &RunController::finished, this,
            [this](const QString& id, int record) {
                if (id.toStdString() == m_id && record >= 0)
                    chooseRecord(-1);
            });
    connect(&m_predictor, &Predictor::predicted, this,
            [this](std::shared_ptr<const Record> record) {
                m_prediction = std::move(record);
                m_predictionError.reset();
                if (m_predictor.claims())
                    m_claims = *m_predictor.claims();
                refreshOutputs();
            });
    connect(&m_predictor, &Predictor::failed, this, [this](const Error& error) {
        m_prediction.reset();
        m_predictionError = error;
        refreshOutputs();
    });
    connect(&m_bases, &BasisPredictions::changed, this, [this] { schedule(Outputs); });
    connect(m_header, &PageHeader::measureWanted, this, &ExperimentPage::measure);
    connect(m_header->device(), &DeviceButton::picked, this,
            [this](const QString& id) { m_services.document.setDevice(m_id, id.toStdString()); });
    connect(m_header->device(), &DeviceButton::calibrateWanted, this, &ExperimentPage::calibrate);
    connect(m_inspector->form(), &ParameterForm::edited, this, &ExperimentPage::editText);
    connect(m_inspector->form(), &ParameterForm::editing, this, &ExperimentPage::setEditing);
    connect(m_inspector->records(), &RecordsList::chosen, this, &ExperimentPage::chooseRecord);
    connect(m_inspector->records(), &RecordsList::parametersWanted, this,
            &ExperimentPage::useRecord);
    connect(m_plot, &PagePlot::groupChosen, this, [this](const QString& key) {
        m_services.document.setViewSetting(m_id, "plot", Json(key.toStdString()));
    });
    connect(m_plot, &PagePlot::logChosen, this, &ExperimentPage::chooseLog);
    connect(m_plot, &PagePlot::basesChosen, &m_services.settings, &Settings::setShowBases);
    connect(m_plot->view(), &PlotView::rangeChanged, this, &ExperimentPage::rememberZoom);
    connect(m_plot->view(), &PlotView::markerDragged, this, &ExperimentPage::markerMoved);
    connect(m_plot->view(), &PlotView::markerReleased, this,
            [this](const QString&, double) { setEditing(false); });
    if (!m_picture)
        return;
    connect(m_picture, &Picture::parameterEdited, this, &ExperimentPage::editText);
    connect(m_picture, &Picture::changesWanted, this,
            [this](const ParameterChanges& changes, const QString& step) {
                static_cast<void>(setTexts(changes, step)); // what a picture offers parses
            });
    connect(m_picture, &Picture::editing, this, &ExperimentPage::setEditing);
    connect(m_picture, &Picture::hoverText, m_plot, &PagePlot::setHoverText);
}

void ExperimentPage::buildMemory()
{
    m_memory = new MemoryGuide(m_experiment, m_picture, m_plot, this);
    connect(m_memory, &MemoryGuide::cursorMoved, this,
            [this] { m_plot->view()->setMarkers(markers()); });
    if (ParameterField* advice = m_inspector->form()->field(QStringLiteral("advice")))
        advice->hide(); // the page itself asks for what it shows
}

void ExperimentPage::buildCheckpoint()
{
    m_checkpoint = new CheckpointGuide(m_plot, m_inspector->form(), this);
    connect(m_checkpoint, &CheckpointGuide::edited, this, &ExperimentPage::editText);
    if (auto* centre = findChild<QSplitter*>(QStringLiteral("centre"))) // a long schedule wants its height
        centre->setStretchFactor(0, 1);
}

QString ExperimentPage::title() const
{
    return QString::fromStdString(m_info.title);
}

QString ExperimentPage::question() const
{
    return QString::fromStdString(m_info.question);
}

bool ExperimentPage::upToDate() const
{
    return !m_dirty && !m_predictor.isBusy() && !m_bases.isBusy()
        && (!m_memory || m_memory->rests());
}

void ExperimentPage::documentChanged(const ChangeEvent& event)
{
    const auto concerns = [this](const auto& change) { return change.experiment == m_id; };
    if (std::holds_alternative<StudyReset>(event)) {
        m_chosen = -1;
        schedule(Inputs);
    } else if (const auto* parameters = std::get_if<ParametersChanged>(&event)) {
        if (concerns(*parameters))
            schedule(Inputs);
    } else if (const auto* device = std::get_if<DeviceChanged>(&event)) {
        if (concerns(*device))
            schedule(Inputs);
    } else if (const auto* view = std::get_if<ViewChanged>(&event)) {
        if (concerns(*view))
            schedule(Outputs);
    } else if (std::holds_alternative<RecordRemoved>(event)
               || std::holds_alternative<RecordMoved>(event)) {
        m_chosen = -1; // indices have moved
        schedule(Outputs);
    } else if (std::holds_alternative<RecordAdded>(event)
               || std::holds_alternative<RecordChanged>(event)
               || std::holds_alternative<RecordRenamed>(event)) {
        schedule(Outputs);
    }
}

void ExperimentPage::schedule(int what)
{
    m_dirty |= what;
    if (isVisible() && !m_timer.isActive())
        m_timer.start();
}

void ExperimentPage::updateNow()
{
    m_timer.stop();
    const int dirty = std::exchange(m_dirty, 0);
    if (dirty & Inputs)
        refreshInputs();
    else if (dirty & Outputs)
        refreshOutputs();
}

void ExperimentPage::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    if (m_dirty)
        schedule(m_dirty);
}

void ExperimentPage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        schedule(Outputs);
}

std::string ExperimentPage::deviceId() const
{
    const std::string chosen = m_services.document.device(m_id);
    if (!chosen.empty())
        return chosen;
    const DeviceEntry* preferred = m_services.devices.preferred();
    return preferred ? preferred->id : "cpu";
}

const Device* ExperimentPage::device() const
{
    const DeviceEntry* entry = m_services.devices.find(deviceId());
    return entry ? &entry->device : nullptr;
}

Parameters ExperimentPage::parameters() const
{
    return m_services.document.parameters(m_id);
}

void ExperimentPage::measure()
{
    m_services.runs.measure(m_id, deviceId(), parameters());
}

void ExperimentPage::calibrate()
{
    m_services.runs.calibrate(deviceId());
}

void ExperimentPage::chooseRecord(int index)
{
    m_chosen = index;
    schedule(Outputs);
}

void ExperimentPage::useRecord(int index)
{
    const auto& records = m_services.document.records();
    if (index < 0 || index >= int(records.size()))
        return;
    const Record record = records[std::size_t(index)]; // a copy: the edits below may move them
    m_services.document.setParameters(m_id, record.parameters, tr("Use parameters of a record"));
    m_services.document.setDevice(m_id, record.device.id);
    chooseRecord(index);
}

void ExperimentPage::resetParameters()
{
    if (const auto standard = resolve(m_experiment.schema(), std::vector<std::string>{}))
        m_services.document.setParameters(m_id, *standard, tr("Reset parameters"));
}

Result<void> ExperimentPage::setText(const QString& key, const QString& text)
{
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key.toStdString());
    if (spec == nullptr)
        return fail("parameter.unknown", "no parameter \"" + key.toStdString() + "\"");
    auto values = parseSweep(*spec, text.toStdString());
    if (!values)
        return fail(values.error());
    StudyDocument& document = m_services.document;
    if (values->size() > 1) {
        document.setSweep(m_id, Sweep{spec->key, std::move(*values)});
        return {};
    }
    Parameters now = document.parameters(m_id);
    if (now.sweep() && now.sweep()->key == spec->key) {
        now.setSweep(std::nullopt);
        now.set(spec->key, values->front());
        document.setParameters(m_id, now, tr("End sweep"));
        return {};
    }
    document.setParameter(m_id, spec->key, values->front(), gestureFor(key));
    return {};
}

void ExperimentPage::proposeText(const QString& key, const QString& text)
{
    auto* field = qobject_cast<TextField*>(m_inspector->form()->field(key));
    if (field != nullptr)
        field->propose(text);
}

Result<void> ExperimentPage::setTexts(const ParameterChanges& changes, const QString& step)
{
    Parameters next = parameters();
    for (const auto& [key, text] : changes) {
        const ParameterSpec* spec = findParameter(m_experiment.schema(), key);
        if (spec == nullptr)
            return fail("parameter.unknown", "no parameter \"" + key + "\"");
        MEMSCAPE_TRY(value, parseValue(*spec, text));
        if (next.sweep() && next.sweep()->key == key)
            next.setSweep(std::nullopt);
        next.set(key, value);
    }
    m_services.document.setParameters(m_id, next, step);
    return {};
}

void ExperimentPage::editText(const QString& key, const QString& text)
{
    // What a field or a picture reports parses; were it not so, the field shows why.
    static_cast<void>(setText(key, text));
}

void ExperimentPage::setEditing(bool active)
{
    m_dragging = active;
    m_gesture = active ? m_services.document.newGesture() : 0;
    m_gestureKey.clear();
}

int ExperimentPage::gestureFor(const QString& key)
{
    if (!m_dragging) {
        const bool goesOn = m_gesture != 0 && key == m_gestureKey && m_lastEdit.isValid()
            && m_lastEdit.elapsed() < keyRepeatWindow;
        if (!goesOn)
            m_gesture = m_services.document.newGesture();
    }
    m_gestureKey = key;
    m_lastEdit.start();
    return m_gesture;
}

void ExperimentPage::markerMoved(const QString& key, double x)
{
    if (m_memory && key == QLatin1String(cursorMarker))
        return m_memory->moveCursor(x);
    if (m_checkpoint && key == QLatin1String(budgetMarker)) {
        if (!m_dragging)
            setEditing(true);
        return editText(key, m_checkpoint->budgetAt(x));
    }
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key.toStdString());
    const SeriesAxis* shownAxis = currentAxis();
    if (spec == nullptr || shownAxis == nullptr)
        return;
    if (!m_dragging)
        setEditing(true);
    const SeriesAxis axis = *shownAxis; // an edit may bring another prediction
    if (spec->kind == ParameterKind::Choice) {
        const int last = int(spec->choices.size()) - 1;
        const int index =
            std::clamp(int(std::lround(x)), 0, std::min(last, int(axis.names.size()) - 1));
        for (const ChoiceValue& choice : spec->choices) {
            if (choice.label == axis.names[std::size_t(index)]
                || choice.key == axis.names[std::size_t(index)])
                editText(key, QString::fromStdString(choice.key));
        }
        return;
    }
    if (spec->kind == ParameterKind::Text) {
        if (!axis.names.empty()) {
            const int index = std::clamp(int(std::lround(x)), 0, int(axis.names.size()) - 1);
            editText(key, QString::fromStdString(axis.names[std::size_t(index)]));
        }
        return;
    }
    const std::vector<double> stops = sliderStops(*spec);
    const double value = stops[std::size_t(nearestStop(stops, x))];
    editText(key, QString::fromStdString(numberText(value)));
}

void ExperimentPage::chooseLog(Qt::Axis axis, bool on)
{
    const std::string which = axis == Qt::XAxis ? "logX." : "logY.";
    std::string group;
    if (m_prediction)
        group = currentGroup(seriesGroups(*m_prediction->predicted)).key.toStdString();
    m_services.document.setViewSetting(m_id, which + group, Json(on));
}

} // namespace memscape
