// SPDX-License-Identifier: GPL-3.0-or-later
// The page Claims: the claims of five course notes and their deep questions, judged for a device. On the left the list
// with search and filters, on the right what is chosen, in full, with a button that opens the page which shows it.
//
// The device is saved with the study; what is chosen and filtered is not: looking at a list is no change.
// Left out: verdicts by what was measured. These are on the pages of the experiments, in the card Textbook says.
#pragma once

#include "app/claims/claim_pane.h"
#include "app/claims/claims_model.h"
#include "app/document/change_event.h"
#include "app/pages/device_button.h"
#include "app/pages/tool_page.h"

class QButtonGroup;
class QComboBox;
class QLineEdit;
class QListView;
class QProgressBar;
class QPushButton;
class QStackedWidget;
class QToolButton;

namespace memscape {

class ClaimsPage : public ToolPage
{
    Q_OBJECT

public:
    explicit ClaimsPage(PageServices services, QWidget* parent = nullptr);

    QWidget* stage() const override;
    std::string deviceId() const override;
    void setDevice(const std::string& id) override;
    bool isSettled() const override;
    void setExportMenu(QMenu* menu) override;
    PageExports exports() const override;
    void showItem(const QString& id) override; ///< a claim
    Result<void> apply(const ScreenshotRequest& request) override;

    const ClaimsModel& model() const { return m_model; }
    QListView* list() const { return m_list; }
    ClaimPane* pane() const { return m_pane; }
    QLineEdit* search() const { return m_search; }
    /// What stands in place of the list: empty while the list is there.
    QString stateText() const;
    void setFilter(const ClaimsFilter& filter);
    /// Choosing what the filter hides ends the filter. False when there is none of that name.
    bool choose(const ClaimsModel::Key& key);
    /// Opens the page of the chosen claim's first case.
    void showChosen();
    void stopJudging();

protected:
    void showEvent(QShowEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    enum class State { Fresh, Judging, Judged, Failed, Stopped };

    // claims_page_build.cpp
    void build();
    QWidget* buildHeader();
    QWidget* buildFilters();
    QWidget* buildState();
    void connectAll();
    void fillChoices();
    // claims_page.cpp
    void documentChanged(const ChangeEvent& event);
    void judge();
    void take(const ClaimsResult& result);
    void setState(State state, const QString& text, const QString& hint);
    void readFilter();
    void showCounts();
    void showChosenRow();
    const Device* device() const;

    PageServices m_services;
    ClaimsJudge m_judge;
    ClaimsModel m_model;
    State m_state = State::Fresh;
    std::optional<ClaimsModel::Key> m_chosen;
    std::optional<Error> m_problem;
    QString m_wanted; ///< a claim to be shown as soon as it is judged
    bool m_isStale = true;

    DeviceButton* m_device;
    QPushButton* m_export = nullptr;
    QLineEdit* m_search = nullptr;
    QComboBox* m_source = nullptr;
    QComboBox* m_topic = nullptr;
    QButtonGroup* m_verdicts = nullptr; ///< 0: all, then by ClaimVerdict
    QListView* m_list = nullptr;
    ClaimPane* m_pane;
    QStackedWidget* m_stack = nullptr; ///< the list with the pane, or why there is none
    QLabel* m_stateText = nullptr;
    QLabel* m_stateHint = nullptr;
    QLabel* m_progressText = nullptr;
    QProgressBar* m_progress = nullptr;
    QWidget* m_progressRow = nullptr; ///< while another device is judged
    QPushButton* m_stop = nullptr;
    QPushButton* m_again = nullptr;
    QPushButton* m_copy = nullptr;
    QPushButton* m_clear = nullptr;
};

} // namespace memscape
