// SPDX-License-Identifier: GPL-3.0-or-later
// Construction and what the page reacts to; what people do to it is in experiment_page_edits.cpp, what it
// draws in experiment_page_view.cpp.
#include "app/pages/experiment_page.h"

#include "app/pages/fields/parameter_section.h"
#include "app/plots/plot_style.h"

#include <nlohmann/json.hpp>

#include <QEvent>
#include <QShortcut>
#include <QSplitter>
#include <QVBoxLayout>

#include <algorithm>

namespace memscape {

namespace {

constexpr double leastPlot = 270; ///< in plotUnit(): what a plot has beside a picture of the usual height
constexpr int longWait = 400;     ///< ms after which a prediction is said to take long

} // namespace

ExperimentPage::ExperimentPage(const Experiment& experiment, PageServices services, QWidget* parent,
                               const std::string& page)
    : QWidget(parent)
    , m_experiment(experiment)
    , m_id(experiment.id())
    , m_info(pageOf(experiment, page))
    , m_services(services)
    , m_improvements(experiment)
    , m_tableClaims(experiment)
    , m_header(new PageHeader(experiment, m_info, services.devices, services.runs, this))
    , m_picture(makePicture(m_info.id, this))
    , m_plot(new PagePlot(this))
    , m_inspector(new Inspector(experiment, services.document, services.runs, this))
    , m_splitter(new QSplitter(Qt::Horizontal, this))
{
    setObjectName(QStringLiteral("page"));
    setAttribute(Qt::WA_StyledBackground);
    build();
    m_extension = makePageExtension({experiment, m_picture, m_plot, m_inspector->form(), m_predictor}, this);
    buildStrip();
    connectAll();
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
    if (m_picture && m_picture->sharesHeight()) {
        centre->setStretchFactor(0, 1);
        const int likes = m_picture->sizeHint().height();
        centre->setSizes({likes, std::max(likes * 3 / 5, int(leastPlot * plotUnit()))});
    }
    if (m_picture && m_picture->isPlot()) {
        m_plot->setFoldable(true, m_picture->hint());
        m_plot->setFolded(true);
        m_picture->installEventFilter(this);
    }

    m_splitter->setObjectName(QStringLiteral("splitter"));
    m_splitter->addWidget(centre);
    m_splitter->addWidget(m_inspector);
    m_splitter->setStretchFactor(0, 1);
    m_splitter->setStretchFactor(1, 0);
    m_splitter->setChildrenCollapsible(false);
    fitInspector();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_header);
    column->addWidget(m_splitter, 1);
}

/// Makes the inspector as wide as its words need at this text size. A splitter that was dragged stays where
/// it is until the text size changes.
void ExperimentPage::fitInspector()
{
    const double unit = plotUnit();
    if (std::exchange(m_textUnit, unit) == unit)
        return;
    m_inspector->setMinimumWidth(int(280 * unit));
    m_splitter->setSizes({1000, int(364 * unit)}); // figures beside a measurement, uncut
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
    connect(&m_services.runs, &RunController::finished, this, [this](const QString& id, int record) {
        if (id.toStdString() == m_id && record >= 0)
            chooseRecord(-1);
    });
    connectPredictor();
    connect(m_extension, &PageExtension::edited, this, &ExperimentPage::editText);
    connect(m_extension, &PageExtension::markersChanged, this, [this] { m_plot->view()->setMarkers(markers()); });
    connect(&m_bases, &BasisPredictions::changed, this, [this] { schedule(Outputs); });
    connect(&m_improvements, &ImprovementFinder::found, this, [this] { schedule(Outputs); });
    connect(&m_tableClaims, &TableClaims::found, this, [this] { schedule(Outputs); });
    connect(m_inspector, &Inspector::claimWanted, this, [this](const QString& id) {
        emit pageWanted({QLatin1String(claimsPageId), {}, deviceId(), tr("Show the claim"), id});
    });
    connect(m_header, &PageHeader::measureWanted, this, &ExperimentPage::measure);
    connect(m_header, &PageHeader::changeWanted, this, &ExperimentPage::editText);
    connect(m_header->device(), &DeviceButton::picked, this,
            [this](const QString& id) { m_services.document.setDevice(m_id, id.toStdString()); });
    connect(m_header->device(), &DeviceButton::calibrateWanted, this, &ExperimentPage::calibrate);
    connect(m_header, &PageHeader::calibrationWanted, this, &ExperimentPage::calibrate);
    connect(m_header->device(), &DeviceButton::forgetWanted, this,
            [this] { m_services.runs.forgetCalibration(deviceId()); });
    connect(m_inspector->form(), &ParameterForm::edited, this, &ExperimentPage::editText);
    const auto section = [this](const QString& title) { return QString::fromStdString(m_id) + u'/' + title; };
    for (ParameterSection* one : m_inspector->form()->sections())
        one->setOpen(m_services.settings.isUnfolded(section(one->title())));
    connect(m_inspector->form(), &ParameterForm::folded, this, [this, section](const QString& title, bool open) {
        m_services.settings.setUnfolded(section(title), open);
    });
    connect(m_inspector->form(), &ParameterForm::editing, this, &ExperimentPage::setEditing);
    connect(m_inspector->records(), &RecordsList::parametersWanted, this, &ExperimentPage::useRecord);
    connect(m_plot, &PagePlot::groupChosen, this,
            [this](const QString& key) { m_services.document.setViewSetting(m_id, "plot", Json(key.toStdString())); });
    connect(m_plot, &PagePlot::logChosen, this, &ExperimentPage::chooseLog);
    connect(m_plot, &PagePlot::foldChosen, this,
            [this](bool folded) { m_services.document.setViewSetting(m_id, "curves", Json(!folded)); });
    connect(m_plot, &PagePlot::basesChosen, &m_services.settings, &Settings::setShowBases);
    connect(m_plot->view(), &PlotView::rangeChanged, this, &ExperimentPage::rememberZoom);
    connect(m_plot->view(), &PlotView::markerDragged, this, &ExperimentPage::markerMoved);
    connect(m_plot->view(), &PlotView::markerReleased, this, [this](const QString&, double) { setEditing(false); });
    if (!m_picture)
        return;
    connect(m_picture, &Picture::parameterEdited, this, &ExperimentPage::editText);
    connect(m_picture, &Picture::changesWanted, this, [this](const ParameterChanges& changes, const QString& step) {
        static_cast<void>(setTexts(changes, step)); // what a picture offers parses
    });
    connect(m_picture, &Picture::experimentWanted, this,
            [this](const QString& experiment, const ParameterChanges& changes, const QString& step) {
                emit pageWanted({experiment, changes, deviceId(), step});
            });
    connect(m_picture, &Picture::editing, this, &ExperimentPage::setEditing);
    connect(m_picture, &Picture::hoverText, m_plot, &PagePlot::setHoverText);
}

void ExperimentPage::connectPredictor()
{
    connect(&m_predictor, &Predictor::predicted, this, [this](std::shared_ptr<const Record> record) {
        m_prediction = std::move(record);
        m_predictionError.reset();
        m_isStopped = false;
        // Advice brings those about memory; until then the last ones stay.
        const Json& detail = m_prediction->predicted->detail;
        if (!m_extension->claimsComeLater() || detail.contains("claims"))
            m_claims = readClaims(detail);
        m_plot->setBusy(false);
        m_longWait.start();
        refreshOutputs();
    });
    connect(&m_predictor, &Predictor::failed, this, [this](const Error& error) {
        m_prediction.reset();
        m_predictionError = error;
        m_isStopped = false;
        refreshOutputs();
    });
    connect(&m_predictor, &Predictor::cancelled, this, [this] {
        m_isStopped = true;
        schedule(Outputs);
    });
    // Something that takes long says so, and can be stopped; most answers are there before.
    m_longWait.setSingleShot(true);
    m_longWait.setInterval(longWait);
    auto* stop = new QShortcut(Qt::Key_Escape, this, &m_predictor, &Predictor::cancel, Qt::WidgetWithChildrenShortcut);
    stop->setEnabled(false);
    const auto tell = [this, stop](bool busy) {
        m_plot->setBusy(busy);
        stop->setEnabled(busy);
    };
    connect(&m_longWait, &QTimer::timeout, this, [this, tell] { tell(m_predictor.isBusy()); });
    connect(&m_predictor, &Predictor::busyChanged, this, [this, tell](bool busy) {
        if (busy)
            m_longWait.start();
        else
            tell(false);
    });
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
    return !m_dirty && !m_predictor.isBusy() && !m_bases.isBusy() && m_extension->rests() && m_inspector->isComplete();
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
        if (device->concerns(m_id))
            schedule(Inputs);
    } else if (const auto* view = std::get_if<ViewChanged>(&event)) {
        if (concerns(*view))
            schedule(Outputs);
    } else if (std::holds_alternative<RecordRemoved>(event)) {
        m_chosen = -1; // indices have moved
        schedule(Outputs);
    } else if (std::holds_alternative<RecordAdded>(event) || std::holds_alternative<RecordChanged>(event)
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
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        fitInspector();
}

std::string ExperimentPage::deviceId() const
{
    return m_services.deviceOf(m_id);
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

void ExperimentPage::measurePoint()
{
    Parameters point = parameters();
    const SeriesAxis* axis = currentAxis();
    if (!point.sweep() && axis && point.has(axis->key)) {
        const auto own =
            std::ranges::find_if(point.values(), [&](const auto& pair) { return pair.first == axis->key; });
        point.setSweep(Sweep{axis->key, {own->second}});
    }
    m_services.runs.measure(m_id, deviceId(), point);
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

Parameters ExperimentPage::standard() const
{
    if (const Device* target = device())
        return standardParameters(m_experiment, *target);
    return resolve(m_experiment.schema(), std::vector<std::string>{}).value_or(Parameters());
}

void ExperimentPage::resetParameters()
{
    m_services.document.setParameters(m_id, standard(), tr("Reset parameters"));
}

} // namespace memscape
