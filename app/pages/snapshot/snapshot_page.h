// SPDX-License-Identifier: GPL-3.0-or-later
// The page Snapshot: a memory snapshot of PyTorch, or a run file of memscape_probe, as it was recorded. It has no
// experiment, no parameters and nothing to measure: the file is the measurement. What can be undone and is saved with
// the study is which file, which view and which range (document: view settings of the page "snapshot").
//
//   "file", "compare"  absolute paths      "view"   "timeline", "blocks", "flame", "table", "compare"
//   "range"            [first, last]       "time"   true: even in time      "beside"   true: with a prediction
//   "device"           number of the device within the file
//
// Without a file the page shows the newest record of a snapshot that the study holds, see record_pane.h.
//
// Reading, rebuilding and every sum run beside the window's thread; what is shown stays until its successor is there.
#pragma once

#include "app/pages/snapshot/blocks_view.h"
#include "app/pages/snapshot/compare_pane.h"
#include "app/pages/snapshot/findings_list.h"
#include "app/pages/snapshot/groups_pane.h"
#include "app/pages/snapshot/record_pane.h"
#include "app/pages/snapshot/snapshot_inspector.h"
#include "app/pages/snapshot/snapshot_opener.h"
#include "app/pages/snapshot/start_pane.h"
#include "app/pages/snapshot/timeline_view.h"
#include "app/pages/tool_page.h"

class QButtonGroup;
class QComboBox;
class QLabel;
class QPushButton;
class QStackedWidget;
class QToolButton;

namespace memscape {

/// The requests of that file on the page Allocator, with the setting that the run had.
PageVisit playSnapshot(const QString& path);

class SnapshotPage : public ToolPage
{
    Q_OBJECT

public:
    explicit SnapshotPage(PageServices services, QWidget* parent = nullptr);
    ~SnapshotPage() override;

    /// As one step of the history: the selection and a comparison are of the file before. The same file is read again.
    void open(const QString& path) override;
    void compareWith(const QString& path);
    void setKind(const QString& kind); ///< a value of "view"
    QString kind() const;
    QString file() const; ///< that the study names; empty: none

    const SnapshotShown& shown() const { return m_shown; }
    const OpenedSnapshot& opened() const { return m_opened; }
    const Figures& figures() const { return m_figures; }
    /// Of the prediction beside it: the one of Memory budget.
    std::string deviceId() const override { return m_inspector->beside()->deviceId(); }
    void setDevice(const std::string& id) override;
    QString title() const; ///< the file's name
    QString facts() const; ///< "1.4 GB · 2,184,331 events · …"
    QString statusText() const;
    const std::optional<Error>& problem() const { return m_problem; }
    /// Nothing is being read or summed.
    bool isSettled() const override;

    QSplitter* splitter() const override { return m_splitter; }
    SnapshotInspector* inspector() const override { return m_inspector; }
    TimelineView* timeline() const { return m_timeline; }
    BlocksView* blocks() const { return m_blocks; }
    BlocksView* strip() const { return m_strip; } ///< under the timeline
    GroupsPane* flame() const { return m_flame; }
    GroupsPane* table() const { return m_table; }
    ComparePane* comparison() const { return m_compare; }
    FindingsList* findings() const { return m_findings; }
    StartPane* start() const { return m_start; }
    QWidget* stage() const override;
    void resetView() override;
    /// The picture that an export draws; null where a table is shown.
    const SnapshotView* picture() const;
    QString data() const; ///< of what is shown, as a table for the clipboard
    Sheet sheet() const;
    PageExports exports() const override;
    void setExportMenu(QMenu* menu) override;
    Result<void> apply(const ScreenshotRequest& request) override;
    void moveTo(std::size_t moment);
    void select(std::size_t first, std::size_t last);

protected:
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    // snapshot_page_build.cpp
    void build();
    QWidget* buildHeader();
    QWidget* buildViews();
    QWidget* buildBelow();
    void addKind(const QString& key, const QString& text, const QString& tip, QWidget* view);
    void connectAll();
    void connectViews();
    void fitInspector();
    void fitStrip();
    void askComparison();
    // snapshot_page_study.cpp
    void documentChanged(const ChangeEvent& event);
    void readDocument();
    void readFile();
    void readRange();
    const Record* record() const;
    void set(const std::string& key, const Json& value);
    Json setting(const std::string& key) const;
    QString pathSetting(const std::string& key) const;
    // snapshot_page.cpp
    bool isOpen() const; ///< the file that the study names, and no other one until it is there
    void take(const OpenedSnapshot& opened);
    void drop();
    void showStart();
    void showAll();
    void showMoment();
    void showKind();
    void fitBelow();
    void showHeader();
    void showStatus(const QString& hover);
    void showBeside();
    // snapshot_page_findings.cpp
    void askFigures();
    void askFindings();
    void askFixes();
    void showFindings();
    void goTo(const SnapshotFinding& finding);

    PageServices m_services;
    SnapshotOpener m_opener;
    BackgroundWork m_figuresWork, m_findingsWork, m_fixesWork;
    std::vector<SnapshotFinding> m_found; ///< with general remedies
    std::vector<SnapshotFix> m_fixes;     ///< simulated for the prediction beside
    QString m_fixedPlan;
    OpenedSnapshot m_opened; ///< no device: none is open
    SnapshotShown m_shown;
    Figures m_figures; ///< of the range
    QString m_asked;   ///< the file that was asked for last
    std::optional<Error> m_problem;
    bool m_isStopped = false, m_isStale = true;
    QTimer m_patience; ///< a small file opens before progress is worth showing
    double m_textUnit = 0;
    bool m_isParted = false; ///< the splitter above the findings was moved by hand

    QLabel* m_title = nullptr;
    QLabel* m_facts = nullptr;
    QLabel* m_notes = nullptr;
    QComboBox* m_devices = nullptr;
    QPushButton* m_openButton = nullptr;
    QPushButton* m_playButton = nullptr;
    QPushButton* m_compareButton = nullptr;
    QPushButton* m_export = nullptr;
    QLabel* m_heading = nullptr;
    QButtonGroup* m_kinds = nullptr;
    QStringList m_kindKeys;
    QToolButton* m_byTime = nullptr;
    QStackedWidget* m_stack = nullptr; ///< start pane, or the views
    QStackedWidget* m_views = nullptr;
    QWidget* m_below = nullptr;
    QLabel* m_stripTitle = nullptr;
    QLabel* m_status = nullptr;
    QSplitter* m_centre = nullptr;
    QSplitter* m_splitter = nullptr;
    StartPane* m_start;
    RecordPane* m_recordPane;
    TimelineView* m_timeline;
    BlocksView* m_blocks;
    BlocksView* m_strip;
    GroupsPane* m_flame;
    GroupsPane* m_table;
    ComparePane* m_compare;
    FindingsList* m_findings;
    SnapshotInspector* m_inspector;
};

} // namespace memscape
