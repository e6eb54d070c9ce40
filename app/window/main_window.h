// SPDX-License-Identifier: GPL-3.0-or-later
// The window: puts rail, banner and pages together and connects them to the document, the devices
// and the actions. It does nothing itself; files, exports, runs, palette each have their own class.
#pragma once

#include "app/document/autosave.h"
#include "app/document/study_document.h"
#include "app/pages/experiment_page.h"
#include "app/pages/tool_page.h"
#include "app/settings/settings.h"
#include "app/settings/window_session.h"
#include "app/window/actions.h"
#include "app/window/banner.h"
#include "app/window/command_palette.h"
#include "app/window/exporter.h"
#include "app/window/first_steps.h"
#include "app/window/page_views.h"
#include "app/window/rail.h"
#include "app/window/study_files.h"
#include "app/workers/devices.h"
#include "core/device/host_load.h"

#include <QMainWindow>

#include <functional>
#include <map>
#include <memory>

class QMenu;
class QSplitter;
class QStackedWidget;

namespace memscape {

struct WindowOptions
{
    QStringList workerCommand = defaultWorkerCommand();
    bool startWorkers = true; ///< after the first paint
    bool autosave = true;
    bool remember = true;                ///< read and write the session (not for screenshots)
    bool firstSteps = true;              ///< suggest them, until they are taken
    std::function<HostLoad()> load = {}; ///< of this machine, before its CPU is measured
    QString theme = {};                  ///< "light" or "dark" instead of the settings'
};

class MainWindow : public QMainWindow
{
    Q_OBJECT

public:
    explicit MainWindow(WindowOptions options = {}, QWidget* parent = nullptr);
    ~MainWindow() override;

    StudyDocument& document() { return m_document; }
    DeviceDirectory& devices() { return m_devices; }
    RunController& runs() { return m_runs; }
    Settings& settings() { return m_settings; }
    WindowSession& session() { return m_session; }
    Actions& actions() { return m_actions; }
    Banner& banner() { return *m_banner; }
    Rail& rail() { return *m_rail; }
    StudyFiles& files() { return *m_files; }
    Exporter& exporter() { return *m_exporter; }
    CommandPalette& palette() { return *m_palette; }

    /// Shows the page of that experiment, made when first wanted. False when there is no such one.
    bool showPage(const QString& experiment);
    /// What a page of the experiment opens with on its device, with some parameters assigned. Errors: those of
    /// resolve().
    Result<Parameters> standardParameters(const Experiment& experiment,
                                          const std::vector<std::string>& assignments) const;
    /// The shown page of an experiment; null while another is shown.
    ExperimentPage* page() const;
    /// The shown page that is no experiment; null while another is shown.
    ToolPage* tool() const;
    /// Shows a file of that tool page, as a step of the history.
    void openOn(const QString& page, const QString& path);
    /// Another page at a setting, as one step of the history; where nothing is set it is only shown.
    void visit(const PageVisit& visit);
    /// Layout of the last time, last study when `reopen`; call before show().
    void restore(bool reopen);
    void restoreDefaultLayout();
    /// No larger than the screen it is on.
    void shrinkToScreen();
    void openPalette();
    QList<PaletteEntry> paletteEntries();

protected:
    void showEvent(QShowEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    static constexpr QSize standardSize{1440, 900};

    // main_window.cpp
    void build();
    void startLate();
    void documentChanged(const ChangeEvent& event);
    void exchangeViews();
    void refreshTitle();
    void refreshRun();
    void takeFirstStep(FirstStep step);
    void showProblem(const Error& error, const QString& details);
    void offerToForce(const Error& error, const RunningMeasurement& run);
    void offerToWait(const QString& text, const RunningMeasurement& run);
    void offerCalibration(const Error& error, const std::string& deviceId, const std::optional<Device>& calibrated);
    void closeRunBanners();
    void stopAndClose(SaveAnswer answer);
    void applySettings(Settings::Key key);
    void applyLook();
    void setWorkersFromSettings();
    // main_window_pages.cpp
    void openFor(const QString& key, const QString& otherwise, const QString& path);
    ToolPage* makeTool(const QString& id);
    ExperimentPage* makePage(const Experiment& experiment, const QString& id);
    void chooseDevice(const std::string& id);
    QSplitter* shownSplitter() const;
    void shown(const QString& id, QWidget* page);
    void pageUpdated();
    // main_window_layout.cpp
    void rememberLayout();
    // main_window_actions.cpp
    void connectActions();
    void connectFileActions();
    void connectViewActions();
    void connectRunActions();
    void connectHelpActions();
    void fillMenus();
    void on(const char* id, const std::function<void()>& run);
    void onPage(const char* id, const std::function<void(ExperimentPage&)>& run,
                const std::function<void(ToolPage&)>& onTool = {});
    template <typename Run> void onAnyPage(const char* id, Run run) { onPage(id, run, run); }
    void setPanels();
    void zoom(int step);
    void addWorker();
    void tellOfWorker(const QString& name);
    void openSettings(bool atWorkers = false);

    WindowOptions m_options;
    Settings m_settings;
    WindowSession m_session;
    StudyDocument m_document;
    DeviceDirectory m_devices;
    RunController m_runs;
    PageViews m_views;
    Actions m_actions;
    std::unique_ptr<Autosave> m_autosave;
    Rail* m_rail;
    QStackedWidget* m_stack;
    Banner* m_banner; ///< lies over m_stack
    FirstSteps* m_first;
    QToolBar* m_toolbar;
    QMenu* m_exportMenu;
    StudyFiles* m_files;
    Exporter* m_exporter;
    CommandPalette* m_palette;
    std::map<std::string, ExperimentPage*> m_pages; ///< made when first wanted, as are m_tools
    std::map<std::string, ToolPage*> m_tools;
    QString m_page;
    bool m_started = false;
    bool m_closing = false; ///< as soon as the run has stopped: the question is answered
    bool m_asking = false;  ///< whether to save, before it closes
};

} // namespace memscape
