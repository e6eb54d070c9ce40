// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/main_window.h"

#include "app/pages/icons.h"
#include "app/pages/records/record_text.h"
#include "app/pages/snapshot/snapshot_page.h"
#include "app/settings/theme.h"
#include "app/window/window_actions.h"
#include "core/device/catalogue.h"
#include "core/experiments/training-memory/memory_history.h"

#include <QAbstractButton>
#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMimeData>
#include <QStackedWidget>
#include <QTimer>
#include <QToolBar>
#include <QUndoStack>

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

/// This machine's worker measures the PyTorch of the Python that the settings name.
QStringList withPython(QStringList command, const Settings& settings)
{
    if (!command.isEmpty() && !settings.python().isEmpty())
        command << QStringLiteral("--python") << settings.python();
    return command;
}

WorkerOptions localWorker(const QStringList& command)
{
    WorkerOptions options;
    options.command = command;
    return options;
}

/// The experiment whose pages show what is said of the run; a calibration is about all of them.
QString pageOf(const RunningMeasurement& run)
{
    return run.experiment == "calibrate" ? QString() : QString::fromStdString(run.experiment);
}

/// A page's wish for height (its texts wrap) must not squeeze what stands above it: pages scroll.
class PageStack : public QStackedWidget
{
public:
    using QStackedWidget::QStackedWidget;
    bool hasHeightForWidth() const override { return false; }
};

} // namespace

MainWindow::MainWindow(WindowOptions options, QWidget* parent)
    : QMainWindow(parent)
    , m_options(std::move(options))
    , m_devices(localWorker(withPython(m_options.workerCommand, m_settings)))
    , m_runs(m_document, m_devices)
    , m_views(m_session, m_document)
    , m_rail(new Rail(experiments(), m_devices, this))
    , m_stack(new PageStack(this))
    , m_banner(new Banner(m_stack))
    , m_first(new FirstSteps(m_settings, this))
    , m_toolbar(new QToolBar(tr("Toolbar"), this))
    , m_exportMenu(new QMenu(this))
    , m_files(new StudyFiles(m_document, m_settings, *m_banner, this))
    , m_exporter(new Exporter(m_document, m_settings, *m_banner, this))
    , m_palette(new CommandPalette(this))
{
    setObjectName(QStringLiteral("mainWindow"));
    m_document.setStandard([this](const std::string& id) {
        const auto experiment = findExperiment(id);
        return experiment ? standardParameters(**experiment, {}).value_or(Parameters()) : Parameters();
    });
    m_runs.setLoadReader(m_options.load);
    setAcceptDrops(true);
    setWindowIcon(QIcon(QStringLiteral(":/icons/memscape.svg")));
    initIcons();
    applyLook();
    defineActions(m_actions, experiments());
    for (QAction* action : m_actions.all()) {
        if (const QString keys = m_settings.shortcut(Actions::id(action)); !keys.isEmpty())
            m_actions.setShortcut(Actions::id(action), keys);
        if (!Actions::icon(action).isEmpty())
            setThemedIcon(action, Actions::icon(action));
    }
    addActions(m_actions.all());
    build();
    connectActions();
    fillMenus();
    m_devices.setDeviceFiles(m_settings.deviceFiles());
    setWorkersFromSettings();
    if (m_options.autosave) {
        m_autosave = std::make_unique<Autosave>(&m_document);
        connect(m_autosave.get(), &Autosave::failed, this, [this](const Error& error) { m_banner->showError(error); });
    }
    if (!m_options.firstSteps)
        m_first->hide();
    resize(standardSize);
    refreshTitle();
    refreshRun();
}

MainWindow::~MainWindow()
{
    m_autosave.reset(); // before the document that it watches
    for (const auto& [id, tool] : std::exchange(m_tools, {}))
        delete tool; // a page that is hidden saves what was typed: before the settings and devices that it works with
}

void MainWindow::build()
{
    auto* centre = new QWidget(this);
    auto* row = new QHBoxLayout(centre);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    auto* column = new QVBoxLayout;
    column->setSpacing(0);
    column->addWidget(m_first);
    column->addWidget(m_stack, 1);
    row->addWidget(m_rail);
    row->addLayout(column, 1);
    setCentralWidget(centre);

    m_toolbar->setObjectName(QStringLiteral("toolbar"));
    for (const char* id : {"file.new", "file.open", "file.save", "edit.undo", "edit.redo", "run.measure", "run.stop",
                           "file.exportPage", "edit.palette"})
        m_toolbar->addAction(&m_actions.at(QString::fromLatin1(id)));
    m_toolbar->hide();
    addToolBar(m_toolbar);

    connect(m_rail, &Rail::pageWanted, this, &MainWindow::showPage);
    connect(m_rail, &Rail::calibrateWanted, this, [this] {
        if (page())
            page()->calibrate();
    });
    connect(&m_document, &StudyDocument::changed, this, &MainWindow::documentChanged);
    connect(&m_runs, &RunController::changed, this, &MainWindow::refreshRun);
    connect(&m_devices, &DeviceDirectory::changed, this, &MainWindow::refreshRun);
    connect(&m_runs, &RunController::problem, this, &MainWindow::showProblem);
    connect(&m_devices, &DeviceDirectory::workerFailed, this, &MainWindow::showProblem);
    connect(&m_runs, &RunController::refused, this, &MainWindow::offerToForce);
    connect(&m_runs, &RunController::busy, this, &MainWindow::offerToWait);
    connect(&m_runs, &RunController::calibrationDoubtful, this, &MainWindow::offerCalibration);
    connect(&m_runs, &RunController::notice, m_banner, &Banner::showNotice);
    connect(&m_runs, &RunController::warning, this, [this](const QString& text) {
        const auto& run = m_runs.current();
        m_banner->put({BannerKind::Warning, text, {}, {}, {}, QStringLiteral("run"), run ? pageOf(*run) : QString()});
    });
    connect(&m_runs, &RunController::changed, this, [this] {
        if (m_runs.current() && m_runs.current()->done == 0)
            closeRunBanners(); // of the run before
    });
    connect(&m_runs, &RunController::finished, this, [this](const QString&, int record) {
        if (record >= 0)
            m_first->finish(FirstStep::Measure);
    });
    connect(m_first, &FirstSteps::wanted, this, &MainWindow::takeFirstStep);
    connect(&m_settings, &Settings::changed, this, &MainWindow::applySettings);
    connect(m_files, &StudyFiles::recordsAdded, this, &MainWindow::showPage);
    connect(m_files, &StudyFiles::recordOpened, this, [this] {
        // Every page shows the first record of its experiment; the page of the first record is the last to be shown.
        for (std::size_t i = m_document.records().size(); i-- > 0;) {
            if (showPage(QString::fromStdString(m_document.records()[i].experiment)) && page())
                page()->useRecord(int(i));
        }
        m_document.undoStack()->setClean(); // looking at a record is no change that wants saving
    });
    connect(m_files, &StudyFiles::modelFileOpened, this,
            [this](const QString& path) { openFor(QStringLiteral("model"), QStringLiteral("training-memory"), path); });
    connect(m_files, &StudyFiles::chainFileOpened, this,
            [this](const QString& path) { openFor(QStringLiteral("chain"), QStringLiteral("checkpoint"), path); });
    connect(m_files, &StudyFiles::pageFileOpened, this, &MainWindow::openOn);
    connect(m_files, &StudyFiles::deviceFileOpened, this,
            [this](const QString& path) { chooseDevice(path.toStdString()); });
}

void MainWindow::takeFirstStep(FirstStep step)
{
    switch (step) {
    case FirstStep::Drag:
        if (!page() && !showPage(QStringLiteral("hierarchy")))
            break;
        page()->plot()->setHoverText(tr("Drag the yellow line in the plot, or its slider: the prediction follows."));
        break;
    case FirstStep::Measure: m_actions.at(QStringLiteral("run.measurePoint")).trigger(); break;
    case FirstStep::Model:
        if (showPage(QStringLiteral("training-memory"))) {
            if (ParameterField* model = page()->inspector()->form()->field(QStringLiteral("model")))
                model->setFocus();
        }
        break;
    case FirstStep::Example: m_files->openExample(); break;
    }
}

/// A worker that is not started again by itself leaves Measure grey: how to get it back stands beside the reason.
void MainWindow::showProblem(const Error& error, const QString& details)
{
    const auto workers = m_devices.workers();
    const bool hasFailed = std::ranges::any_of(
        workers, [](const WorkerClient* worker) { return worker->state() == WorkerClient::State::Failed; });
    if (!hasFailed || !error.code.starts_with("worker.")) // of a run: the next one closes it
        return m_banner->showError(error, details, {}, QStringLiteral("run"));
    const auto restart = [this] { m_actions.at(QStringLiteral("run.restartWorkers")).trigger(); };
    m_banner->showError(error, details, {{tr("Restart workers"), restart}}, QStringLiteral("workers"));
}

/// What does not fit is not tried unless the user wants that: the worker may be lost, the window not.
void MainWindow::offerToForce(const Error& error, const RunningMeasurement& run)
{
    const auto again = [this, run] { m_runs.measure(run.experiment, run.device, run.parameters, true); };
    m_banner->put({BannerKind::Problem,
                   QString::fromStdString(error.message),
                   QString::fromStdString(error.hint),
                   QString::fromStdString(error.code + '\n' + error.text()),
                   {{tr("Try anyway"), again}},
                   QStringLiteral("run"),
                   pageOf(run)});
}

void MainWindow::closeRunBanners()
{
    m_banner->closeTopic(QStringLiteral("run"));
    m_banner->closeTopic(QStringLiteral("busy"));
}

/// Others use the machine: their work would be in the times, so it is said before, not after.
void MainWindow::offerToWait(const QString& text, const RunningMeasurement& run)
{
    const auto anyway = [this, run] { m_runs.startAnyway(run); };
    const auto wait = [this, text, run, anyway] {
        m_runs.startWhenQuiet(run);
        m_banner->put({BannerKind::Info,
                       tr("Waiting for a quiet machine. It was: %1.").arg(text),
                       {},
                       {},
                       {{tr("Measure anyway"), anyway}, {tr("Don’t measure"), [this] { m_runs.stopWaiting(); }}},
                       QStringLiteral("busy"),
                       pageOf(run),
                       true});
    };
    m_banner->put({BannerKind::Warning,
                   text,
                   tr("The times measured now include this load."),
                   {},
                   {{tr("Wait"), wait}, {tr("Measure anyway"), anyway}},
                   QStringLiteral("busy"),
                   pageOf(run)});
}

/// A calibration that was not used: predictions go on with what they had.
void MainWindow::offerCalibration(const Error& error, const std::string& deviceId,
                                  const std::optional<Device>& calibrated)
{
    QList<BannerAction> actions{{tr("Try again"), [this, deviceId] { m_runs.calibrate(deviceId); }}};
    if (calibrated) {
        actions.append({tr("Use anyway"), [this, deviceId, device = *calibrated] {
                            m_runs.keepCalibration(deviceId, device, Keep::Anyway);
                        }});
    }
    m_banner->put({BannerKind::Warning,
                   QString::fromStdString(error.message),
                   QString::fromStdString(error.hint),
                   {},
                   actions,
                   QStringLiteral("calibration")});
}

void MainWindow::documentChanged(const ChangeEvent& event)
{
    const bool reset = std::holds_alternative<StudyReset>(event);
    if (reset)
        exchangeViews();
    else if (std::holds_alternative<FileChanged>(event))
        m_views.follow();
    if (reset || std::holds_alternative<PageChanged>(event)) {
        const QString wanted = QString::fromStdString(m_document.page());
        if (!wanted.isEmpty() && wanted != m_page)
            showPage(wanted);
        else if (reset && wanted.isEmpty() && !m_page.isEmpty())
            m_document.setPage(m_page.toStdString());
    }
    if (reset || std::holds_alternative<RecordAdded>(event) || std::holds_alternative<RecordRemoved>(event)) {
        std::vector<Device> devices;
        for (const Record& record : m_document.records())
            devices.push_back(record.device);
        m_devices.setRecorded(devices);
    }
    if (std::holds_alternative<ParametersChanged>(event))
        m_first->finish(FirstStep::Drag);
    refreshTitle();
}

void MainWindow::exchangeViews()
{
    const auto each = [this](const auto& act) {
        for (const auto& [id, page] : m_pages)
            act(*page);
    };
    if (m_options.remember)
        each([this](ExperimentPage& page) { m_views.remember(page); });
    m_views.follow();
    each([this](ExperimentPage& page) {
        if (m_options.remember)
            m_views.restore(page);
        else
            page.setZooms({});
    });
}

Result<Parameters> MainWindow::standardParameters(const Experiment& experiment,
                                                  const std::vector<std::string>& assignments) const
{
    const std::string id = m_devices.idFor(m_document.device(experiment.id()), m_document.lastDevice());
    const DeviceEntry* entry = m_devices.find(id);
    if (entry == nullptr)
        return askedParameters(experiment, assignments);
    return memscape::standardParameters(experiment, entry->device, assignments);
}

void MainWindow::refreshTitle()
{
    QString name = m_document.displayName();
    if (m_document.isReadOnly())
        name += tr(" (read-only)");
    setWindowTitle(tr("%1[*] – Memscape").arg(name));
    setWindowModified(m_document.isModified());
    m_actions.at(QStringLiteral("file.reload")).setEnabled(!m_document.fileName().isEmpty());
}

void MainWindow::refreshRun()
{
    const bool running = m_runs.current().has_value();
    const bool free = page() && !running;
    m_actions.at(QStringLiteral("run.measure"))
        .setEnabled(free && m_runs.obstacle(page()->experiment().id(), page()->deviceId()).isEmpty());
    m_actions.at(QStringLiteral("run.measurePoint"))
        .setEnabled(m_actions.at(QStringLiteral("run.measure")).isEnabled());
    m_actions.at(QStringLiteral("run.calibrate")).setEnabled(free && m_runs.obstacle(page()->deviceId()).isEmpty());
    m_actions.at(QStringLiteral("run.stop")).setEnabled(running);
    const DeviceEntry* target = page() ? m_devices.find(page()->deviceId()) : nullptr;
    std::error_code unknown; // no file to forget, then
    m_actions.at(QStringLiteral("run.forgetCalibration"))
        .setEnabled(free && std::filesystem::exists(calibrationPath(page()->deviceId()), unknown));
    const PageExports exports = tool() ? tool()->exports() : PageExports();
    m_actions.at(QStringLiteral("file.exportMemoryViz"))
        .setEnabled(bool(exports.memoryViz) || (target && hasMemoryHistory(page()->experiment().id(), target->device)));
    m_rail->setBusy(running);
    const std::vector<Snippet> snippets = page() ? page()->snippets() : std::vector<Snippet>();
    for (const auto& [action, key] : {std::pair{"edit.copyPytorch", "pytorch"},
                                      {"edit.copyDeepspeed", "deepspeed"},
                                      {"edit.copyAccelerate", "accelerate"},
                                      {"edit.copyTorchrun", "torchrun"}}) {
        const std::string wanted = key;
        m_actions.at(QString::fromLatin1(action)).setEnabled(std::ranges::any_of(snippets, [&](const Snippet& snippet) {
            return snippet.key == wanted;
        }));
    }
}

void MainWindow::showEvent(QShowEvent* event)
{
    QMainWindow::showEvent(event);
    if (m_started)
        return;
    m_started = true;
    QTimer::singleShot(0, this, &MainWindow::startLate); // after the first paint
}

void MainWindow::startLate()
{
    if (m_options.startWorkers)
        m_devices.startAll();
    if (m_autosave)
        m_files->offerRecovery(*m_autosave);
    for (const Error& problem : m_devices.problems())
        m_banner->showError(problem);
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    event->ignore();
    if (m_asking || (m_closing && m_runs.current()))
        return; // asked already: closing again is no answer
    if (!m_closing) {
        m_asking = true;
        const SaveAnswer answer = m_files->beforeClosing(m_runs.current().has_value());
        m_asking = false;
        if (answer == SaveAnswer::Cancel)
            return;
        if (m_runs.current()) {
            stopAndClose(answer);
            return;
        }
    }
    if (m_options.remember)
        rememberLayout();
    event->accept();
}

/// What the run has measured becomes a record, which is saved if the answer was so.
void MainWindow::stopAndClose(SaveAnswer answer)
{
    m_closing = true;
    const auto leave = [this, answer] {
        const bool wantsSaving = answer == SaveAnswer::Save && m_document.isModified();
        m_closing = !wantsSaving || m_files->save();
        if (m_closing)
            close();
    };
    connect(&m_runs, &RunController::finished, this, leave,
            Qt::ConnectionType(Qt::QueuedConnection | Qt::SingleShotConnection));
    m_runs.stop();
}

/// Enter presses the button that has the keyboard, as Space does: Qt does so in dialogs alone.
void MainWindow::keyPressEvent(QKeyEvent* event)
{
    auto* button = qobject_cast<QAbstractButton*>(QApplication::focusWidget());
    const bool isEnter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (isEnter && !event->isAutoRepeat() && button && button->window() == this)
        button->click();
    else
        QMainWindow::keyPressEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    if (event->mimeData()->hasUrls())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event)
{
    QStringList paths;
    for (const QUrl& url : event->mimeData()->urls()) {
        if (url.isLocalFile())
            paths << url.toLocalFile();
    }
    event->acceptProposedAction();
    const bool isToBePlayed = page() && page()->experiment().id() == "allocator" && paths.size() == 1;
    if (isToBePlayed && isSnapshotFile(paths.front()))
        visit(playSnapshot(paths.front()));
    else
        m_files->openPaths(paths);
}

void MainWindow::applyLook()
{
    static const char* const names[] = {"system", "light", "dark"};
    const QString theme =
        m_options.theme.isEmpty() ? QString::fromLatin1(names[int(m_settings.theme())]) : m_options.theme;
    setMotionAllowed(!m_settings.reducedMotion());
    applyTheme(*qApp, theme, m_settings.fontZoom() / 100.0);
}

void MainWindow::applySettings(Settings::Key key)
{
    switch (key) {
    case Settings::Key::Theme:
    case Settings::Key::FontZoom: applyLook(); break;
    case Settings::Key::ReducedMotion: setMotionAllowed(!m_settings.reducedMotion()); break;
    case Settings::Key::Workers:
        setWorkersFromSettings();
        m_devices.startAll();
        break;
    case Settings::Key::Python: m_devices.setLocalCommand(withPython(m_options.workerCommand, m_settings)); break;
    case Settings::Key::DeviceFiles: m_devices.setDeviceFiles(m_settings.deviceFiles()); break;
    default: break;
    }
    setPanels();
}

void MainWindow::setWorkersFromSettings()
{
    std::vector<WorkerCommand> workers;
    for (const SavedWorker& saved : m_settings.workers())
        workers.push_back({saved.name, saved.command});
    m_devices.setWorkers(workers);
}

} // namespace memscape
