// SPDX-License-Identifier: GPL-3.0-or-later
// What the actions of window_actions.cpp do.
#include "app/document/pages.h"
#include "app/labs/lab_list.h"
#include "app/pages/records/record_text.h"
#include "app/window/help_dialog.h"
#include "app/window/main_window.h"
#include "app/window/settings_dialog.h"
#include "app/window/worker_dialog.h"

#include <QActionGroup>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>
#include <QUndoStack>

namespace memscape {

void MainWindow::on(const char* id, const std::function<void()>& run)
{
    connect(&m_actions.at(QString::fromLatin1(id)), &QAction::triggered, this, run);
}

void MainWindow::onPage(const char* id, const std::function<void(ExperimentPage&)>& run,
                        const std::function<void(ToolPage&)>& onTool)
{
    on(id, [this, run, onTool] {
        if (page())
            run(*page());
        else if (tool() && onTool)
            onTool(*tool());
    });
}

void MainWindow::connectActions()
{
    connectFileActions();
    connectViewActions();
    connectRunActions();
    connectHelpActions();
}

void MainWindow::connectFileActions()
{
    on("file.new", [this] { m_files->newStudy(); });
    on("file.open", [this] { m_files->open(); });
    on("file.example", [this] { m_files->openExample(); });
    on("file.reload", [this] { m_files->reload(); });
    on("file.save", [this] { m_files->save(); });
    on("file.saveAs", [this] { m_files->saveAs(); });
    on("file.quit", [this] { close(); });
    onAnyPage("file.exportPlot", [this](auto& page) { m_exporter->plot(page); });
    onAnyPage("file.exportPage", [this](auto& page) { m_exporter->page(page); });
    onAnyPage("file.exportCsv", [this](auto& page) { m_exporter->csv(page); });
    onAnyPage("file.exportJson", [this](auto& page) { m_exporter->json(page); });
    on("file.exportReport", [this] {
        if (tool() && tool()->exports().report && m_document.records().empty())
            m_exporter->report(*tool());
        else
            m_exporter->report(page());
    });
    onAnyPage("file.exportMemoryViz", [this](auto& page) { m_exporter->memoryViz(page); });
    onAnyPage("edit.copyPlot", [this](auto& page) { m_exporter->copyPlot(page); });
    onAnyPage("edit.copyData", [this](auto& page) { m_exporter->copyData(page); });
    onPage("edit.copyPytorch", [this](ExperimentPage& page) { m_exporter->copySnippet(page, "pytorch"); });
    onPage("edit.copyDeepspeed", [this](ExperimentPage& page) { m_exporter->copySnippet(page, "deepspeed"); });
    onPage("edit.copyAccelerate", [this](ExperimentPage& page) { m_exporter->copySnippet(page, "accelerate"); });
    onPage("edit.copyTorchrun", [this](ExperimentPage& page) { m_exporter->copySnippet(page, "torchrun"); });
    on("edit.palette", [this] { openPalette(); });
    on("view.message", [this] {
        if (m_banner->isAncestorOf(focusWidget()) || !m_banner->takeFocus())
            (page() ? page()->stage() : tool()->stage())->setFocus();
    });

    QUndoStack* stack = m_document.undoStack();
    QAction* undo = &m_actions.at(QStringLiteral("edit.undo"));
    QAction* redo = &m_actions.at(QStringLiteral("edit.redo"));
    connect(undo, &QAction::triggered, stack, &QUndoStack::undo);
    connect(redo, &QAction::triggered, stack, &QUndoStack::redo);
    connect(stack, &QUndoStack::canUndoChanged, undo, &QAction::setEnabled);
    connect(stack, &QUndoStack::canRedoChanged, redo, &QAction::setEnabled);
    connect(stack, &QUndoStack::undoTextChanged, undo,
            [undo](const QString& text) { undo->setText(text.isEmpty() ? tr("&Undo") : tr("&Undo %1").arg(text)); });
    connect(stack, &QUndoStack::redoTextChanged, redo,
            [redo](const QString& text) { redo->setText(text.isEmpty() ? tr("&Redo") : tr("&Redo %1").arg(text)); });
    undo->setEnabled(stack->canUndo());
    redo->setEnabled(stack->canRedo());
}

void MainWindow::connectViewActions()
{
    for (const char* id : {"view.rail", "view.inspector", "view.picture"}) {
        QAction* action = &m_actions.at(QString::fromLatin1(id));
        action->setChecked(true);
        connect(action, &QAction::toggled, this, &MainWindow::setPanels);
    }
    QAction* toolbar = &m_actions.at(QStringLiteral("view.toolbar"));
    connect(toolbar, &QAction::toggled, m_toolbar, &QToolBar::setVisible);
    connect(m_toolbar, &QToolBar::visibilityChanged, toolbar,
            [this, toolbar] { toolbar->setChecked(!m_toolbar->isHidden()); });
    on("view.fullScreen", [this] {
        setWindowState(windowState() ^ Qt::WindowFullScreen);
        m_actions.at(QStringLiteral("view.fullScreen")).setChecked(isFullScreen());
    });
    on("view.zoomIn", [this] { zoom(10); });
    on("view.zoomOut", [this] { zoom(-10); });
    on("view.zoomReset", [this] { m_settings.setFontZoom(100); });
    auto* themes = new QActionGroup(this);
    const std::pair<const char*, ThemeChoice> choices[] = {{"view.themeSystem", ThemeChoice::System},
                                                           {"view.themeLight", ThemeChoice::Light},
                                                           {"view.themeDark", ThemeChoice::Dark}};
    for (const auto& [id, choice] : choices) {
        themes->addAction(&m_actions.at(QString::fromLatin1(id)));
        on(id, [this, choice = choice] {
            m_options.theme.clear();
            m_settings.setTheme(choice);
            applyLook();
        });
    }
    on("view.bases", [this] { m_settings.setShowBases(m_actions.at(QStringLiteral("view.bases")).isChecked()); });
    onPage(
        "view.resetPlot", [](ExperimentPage& page) { page.plot()->view()->resetView(); },
        [](ToolPage& page) { page.resetView(); });
    on("view.restoreLayout", [this] { restoreDefaultLayout(); });
}

void MainWindow::connectRunActions()
{
    for (const PageInfo& info : allPages(experiments())) {
        const QString id = QString::fromStdString(info.id);
        connect(&m_actions.at(QStringLiteral("page.") + id), &QAction::triggered, this, [this, id] { showPage(id); });
    }
    onPage("experiment.reset", [](ExperimentPage& page) { page.resetParameters(); });
    onPage("experiment.latest", [](ExperimentPage& page) { page.chooseRecord(-1); });
    onPage("run.measure", [](ExperimentPage& page) { page.measure(); });
    onPage("run.pinPrediction", [](ExperimentPage& page) { page.pinPrediction(); });
    onPage("run.measurePoint", [](ExperimentPage& page) { page.measurePoint(); });
    onPage("run.forgetCalibration", [this](ExperimentPage& page) { m_runs.forgetCalibration(page.deviceId()); });
    onPage("run.calibrate", [](ExperimentPage& page) { page.calibrate(); });
    on("run.stop", [this] { m_runs.stop(); });
    on("run.addWorker", [this] { addWorker(); });
    on("run.openDevice", [this] { m_files->open(); });
    on("run.restartWorkers", [this] {
        for (WorkerClient* worker : m_devices.workers())
            worker->stop();
        m_devices.startAll();
    });
}

void MainWindow::connectHelpActions()
{
    on("settings.open", [this] { openSettings(); });
    on("settings.decimal", [this] {
        const bool decimal = m_actions.at(QStringLiteral("settings.decimal")).isChecked();
        m_settings.setByteStyle(decimal ? ByteStyle::Decimal : ByteStyle::Binary);
    });
    on("settings.motion",
       [this] { m_settings.setReducedMotion(m_actions.at(QStringLiteral("settings.motion")).isChecked()); });
    on("help.experiment", [this] {
        if (page())
            showHelp(this, QString::fromStdString(page()->experiment().title()), experimentHelp(page()->experiment()));
        else if (tool())
            showHelp(this, QString::fromStdString(tool()->info().title),
                     helpChapter(QString::fromStdString(tool()->info().chapter)));
    });
    const auto onChapter = [this](const char* action, const QString& title, const char* chapter) {
        on(action, [this, title, chapter] { showHelp(this, title, helpChapter(QString::fromLatin1(chapter))); });
    };
    onChapter("help.start", tr("Getting started"), "start");
    onChapter("help.measuring", tr("How Memscape measures"), "measuring");
    onChapter("help.pytorch", tr("Your own PyTorch programs"), "pytorch");
    onChapter("help.accuracy", tr("What was checked against what"), "accuracy");
    onChapter("help.published", tr("Published figures, row by row"), "published");
    onChapter("help.claims", tr("What course notes claim"), "claims");
    onChapter("help.labs", tr("Labs"), "labs");
    onChapter("help.glossary", tr("Glossary"), "glossary");
    on("help.first", [this] { m_settings.setFirstSteps(0); });
    on("help.shortcuts", [this] { showHelp(this, tr("Keyboard shortcuts"), shortcutsHelp(m_actions)); });
    on("help.about", [this] { showHelp(this, tr("About Memscape"), aboutHelp()); });
}

void MainWindow::fillMenus()
{
    m_actions.buildMenus(menuBar());
    auto* recent = new QMenu(tr("Open &recent"), this);
    recent->setToolTipsVisible(true);
    connect(recent, &QMenu::aboutToShow, this, [this, recent] { m_files->fillRecent(*recent); });
    m_actions.menu(QStringLiteral("file"))->insertMenu(&m_actions.at(QStringLiteral("file.reload")), recent);
    // People look for the palette under Help as well.
    m_actions.menu(QStringLiteral("help"))
        ->insertAction(&m_actions.at(QStringLiteral("help.about")), &m_actions.at(QStringLiteral("edit.palette")));
    m_exportMenu->setToolTipsVisible(true);
    for (const char* id : {"file.exportPlot", "file.exportPage", "file.exportCsv", "file.exportJson",
                           "file.exportReport", "file.exportMemoryViz", "edit.copyPlot", "edit.copyData",
                           "edit.copyPytorch", "edit.copyDeepspeed", "edit.copyAccelerate", "edit.copyTorchrun"}) {
        if (QLatin1String(id) == QLatin1String("edit.copyPlot"))
            m_exportMenu->addSeparator();
        m_exportMenu->addAction(&m_actions.at(QString::fromLatin1(id)));
    }
    setPanels();
}

void MainWindow::setPanels()
{
    const auto checked = [this](const char* id) { return m_actions.at(QString::fromLatin1(id)).isChecked(); };
    m_rail->setVisible(checked("view.rail"));
    if (ExperimentPage* shown = page()) {
        shown->inspector()->setVisible(checked("view.inspector"));
        if (shown->picture())
            shown->picture()->setVisible(checked("view.picture"));
    }
    if (tool() && tool()->inspector())
        tool()->inspector()->setVisible(checked("view.inspector"));
    const char* const themes[] = {"view.themeSystem", "view.themeLight", "view.themeDark"};
    m_actions.at(QString::fromLatin1(themes[int(m_settings.theme())])).setChecked(true);
    m_actions.at(QStringLiteral("settings.decimal")).setChecked(m_settings.byteStyle() == ByteStyle::Decimal);
    m_actions.at(QStringLiteral("view.bases")).setChecked(m_settings.showBases());
    m_actions.at(QStringLiteral("settings.motion")).setChecked(m_settings.reducedMotion());
}

void MainWindow::zoom(int step)
{
    m_settings.setFontZoom(std::clamp(m_settings.fontZoom() + step, 50, 300));
}

void MainWindow::addWorker()
{
    WorkerDialog dialog(m_settings.workers(), this);
    if (dialog.exec() != QDialog::Accepted)
        return;
    std::vector<SavedWorker> workers = m_settings.workers();
    workers.push_back(dialog.worker());
    m_settings.setWorkers(workers);
    tellOfWorker(dialog.worker().name);
}

/// Whether a command that was just added has led to a worker: once, as soon as it is known.
void MainWindow::tellOfWorker(const QString& name)
{
    WorkerClient* client = m_devices.worker(name);
    if (client == nullptr)
        return;
    const auto tell = [this, client, name] {
        const QString topic = QStringLiteral("worker.") + name;
        if (client->state() == WorkerClient::State::Ready) {
            m_banner->put({BannerKind::Info,
                           tr("%1 is connected: its devices are in the device menu now.").arg(name),
                           {},
                           {},
                           {},
                           topic});
            return true;
        }
        if (client->state() != WorkerClient::State::Failed)
            return false;
        const QString reason = client->error() ? QString::fromStdString(client->error()->text()) : QString();
        m_banner->put({BannerKind::Problem,
                       tr("%1 does not answer: %2").arg(name, reason),
                       tr("Remove it in the settings and add it with another command."),
                       reason,
                       {{tr("Settings…"), [this] { openSettings(true); }}},
                       topic});
        return true;
    };
    if (tell())
        return;
    auto* once = new QObject(client);
    connect(client, &WorkerClient::stateChanged, once, [tell, once] {
        if (tell())
            once->deleteLater();
    });
}

void MainWindow::openSettings(bool atWorkers)
{
    auto* dialog = new SettingsDialog(m_settings, m_actions, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &SettingsDialog::addWorkerWanted, this, &MainWindow::addWorker);
    if (atWorkers)
        dialog->showWorkers();
    dialog->show();
}

void MainWindow::openPalette()
{
    m_palette->open(paletteEntries());
}

QList<PaletteEntry> MainWindow::paletteEntries()
{
    QList<PaletteEntry> entries;
    for (QAction* action : m_actions.all()) {
        const QString id = Actions::id(action);
        if (!action->isEnabled() || id == QStringLiteral("edit.palette"))
            continue;
        QString text = QString(action->text()).remove(u'&');
        if (id.startsWith(QStringLiteral("page.")))
            text = tr("Go to %1").arg(text);
        else if (id.startsWith(QStringLiteral("help."))) // "labs" finds the page first
            text = tr("Help: %1").arg(text);
        entries << PaletteEntry{text, action->statusTip(), action->shortcut().toString(QKeySequence::NativeText),
                                action->icon(), [action] { action->trigger(); }};
    }
    for (const DeviceEntry& device : m_devices.entries()) {
        entries << PaletteEntry{tr("Device: %1").arg(device.label),
                                device.measurable() ? basisText(device.device) : tr("predictions only"),
                                {},
                                {},
                                [this, id = device.id] { chooseDevice(id); }};
    }
    for (const LabName& lab : labNames()) {
        entries << PaletteEntry{tr("Lab: %1").arg(lab.title), lab.summary, {}, {}, [this, id = lab.id] {
                                    if (showPage(QStringLiteral("labs")) && tool())
                                        tool()->showItem(id);
                                }};
    }
    const std::vector<Record>& records = m_document.records();
    for (std::size_t i = 0; i < records.size(); ++i) {
        entries << PaletteEntry{tr("Record: %1").arg(recordName(records[i])),
                                ageText(recordTime(records[i])),
                                {},
                                {},
                                [this, i, id = QString::fromStdString(records[i].experiment)] {
                                    if (showPage(id) && page())
                                        page()->chooseRecord(int(i));
                                }};
    }
    for (const QString& path : m_settings.recentFiles()) {
        if (QFileInfo::exists(path))
            entries << PaletteEntry{
                tr("Open %1").arg(QFileInfo(path).fileName()), path, {}, {}, [this, path] { m_files->openPath(path); }};
    }
    return entries;
}

} // namespace memscape
