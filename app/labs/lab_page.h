// SPDX-License-Identifier: GPL-3.0-or-later
// The page Labs: the list of labs, or one lab with its step on the left and, on the right, the axes to draw on or the
// live page of the experiment that the step asks, over a table of what became of the answers. All that a student
// answers goes through LabSession and is kept in a file at once; nothing of it gets into the study of the window.
//
// An author's view (Edit) is the same page with a panel below: it follows the lab's folder and shows the lab anew on
// each save.
#pragma once

#include "app/labs/lab_session.h"
#include "app/pages/tool_page.h"

class QLabel;
class QPushButton;
class QScrollArea;
class QStackedWidget;
class QTemporaryDir;
class QToolButton;

namespace memscape {

class AuthorPanel;
class CurveBoard;
class LabList;
class LabStage;
class ResultTable;
class StepPane;

class LabPage : public ToolPage
{
    Q_OBJECT

public:
    explicit LabPage(PageServices services, QWidget* parent = nullptr);
    ~LabPage() override;

    // Which lab. ---------------------------------------------------------------------------------
    /// A shipped lab's id or a lab's folder, with the answers of the student of the list. What goes wrong is on the
    /// page. False then.
    bool openLab(const QString& idOrFolder);
    /// Answers from any folder: they are continued in that file.
    bool openAnswers(const QString& path);
    void closeLab(); ///< saves; the list comes back
    /// *.mlab, or a folder.
    void open(const QString& path) override;

    // What a student does; each as its button does it. ---------------------------------------------
    void showStep(const QString& id);
    void answer(const std::string& question, const Json& given);
    void lock();
    void measure();
    void playReplay();
    void hint();
    void handIn(const QString& path);
    void exportReport(const QString& path); ///< .html or .pdf

    // What an author does. ---------------------------------------------------------------------------
    void setEditing(bool on);
    void gradeAttempt();
    void packForStudents(const QString& folder);
    void solveStep(); ///< the answers of solution.json, for this step

    LabSession* session() const { return m_session.get(); } ///< null while the list is shown
    LabList* list() const { return m_list; }
    StepPane* steps() const { return m_steps; }
    LabStage* labStage() const { return m_stage; }
    CurveBoard* board() const { return m_board; }
    ResultTable* results() const { return m_results; }
    AuthorPanel* author() const { return m_author; }
    QString title() const;
    QString subtitle() const;
    QString noticeText() const; ///< empty: none is shown

    /// Asks for a name to save under: (what, suggested name, filters). Empty: cancelled. Tests answer them.
    std::function<QString(const QString&, const QString&, const QString&)> askSave;
    std::function<QString(const QString&)> askFolder;
    std::function<QString()> askAnswers;

    QWidget* stage() const override;
    std::string deviceId() const override;
    void setDevice(const std::string& id) override;
    void showItem(const QString& labOrAnswers) override; ///< an id, or the path of a file
    QString item() const override;
    bool isSettled() const override;
    PageExports exports() const override;
    /// "lab=cache-size", "step=knees", "student=Ada", "answers=FILE"; "done=true" solves the shown step, too. Steps
    /// before the shown one are answered from solution.json. Nothing is written to the student's folder.
    Result<void> apply(const ScreenshotRequest& request) override;

protected:
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    struct Choice
    {
        QString text;
        std::function<void()> run;
    };
    // lab_page_build.cpp
    void build();
    QWidget* buildHeader();
    QWidget* buildNotice();
    QWidget* buildLab();
    void connectAll();
    void connectRuns();
    void addShortcuts();
    // lab_page.cpp
    bool start(std::shared_ptr<const Lab> lab, const QString& student, const QString& path);
    bool openToRead(std::shared_ptr<const Lab> lab, const QString& student, const QString& file);
    void refresh();
    void refreshHeader();
    void refreshBoard();
    void refreshResults();
    void refreshMeasuring();
    void chooseView(bool isNewStep);
    void fitSides(bool isCovered);
    void showView(int index);
    void tell(const QString& text, const char* tone, std::vector<Choice> choices = {});
    void tell(const Error& error, std::vector<Choice> choices = {});
    void closeNotice();
    void report(const Result<void>& result, const std::string& question = {});
    const LabQuestion* curveQuestion() const;
    std::string reportHtml();

    PageServices m_services;
    std::unique_ptr<QTemporaryDir> m_scratch;    ///< of answers for a picture; outlives the session
    std::unique_ptr<QTemporaryDir> m_copyToRead; ///< of another student's answers; outlives the session
    std::unique_ptr<LabSession> m_session;
    std::map<std::string, QString> m_folders; ///< of labs that were opened from elsewhere, by id
    std::string m_shownStep;
    const Lab* m_shownLab = nullptr;
    bool m_ownView = false;   ///< the view was chosen by hand
    bool m_isCovered = false; ///< the words have the room that the right side does not need
    QList<int> m_otherSizes;  ///< of the two sides, covered or not, whichever it is not now

    LabList* m_list;
    StepPane* m_steps;
    LabStage* m_stage;
    CurveBoard* m_board;
    ResultTable* m_results;
    AuthorPanel* m_author;
    QLabel* m_title = nullptr;
    QLabel* m_subtitle = nullptr;
    QPushButton* m_allLabs = nullptr;
    QPushButton* m_handIn = nullptr;
    QPushButton* m_export = nullptr;
    QPushButton* m_edit = nullptr;
    QFrame* m_notice = nullptr;
    QLabel* m_noticeText = nullptr;
    QHBoxLayout* m_noticeButtons = nullptr;
    QToolButton* m_curveChip = nullptr;
    QToolButton* m_pageChip = nullptr;
    QWidget* m_chips = nullptr;
    QLabel* m_cover = nullptr;
    QScrollArea* m_resultArea = nullptr;
    QStackedWidget* m_stack = nullptr; ///< list, lab
    QStackedWidget* m_views = nullptr; ///< cover, board, stage
    QSplitter* m_sides = nullptr;
    QSplitter* m_right = nullptr;
    QSplitter* m_rows = nullptr;
};

} // namespace memscape
