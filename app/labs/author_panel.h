// SPDX-License-Identifier: GPL-3.0-or-later
// What an author sees below a lab while writing it: what is wrong, with file and key, checked anew on each save of a
// file of the folder; the whole grade of the answers on the page; the pack for students.
#pragma once

#include "app/pages/background_work.h"
#include "core/lab/lab_authoring.h"

#include <QFrame>
#include <QTimer>

class QFileSystemWatcher;
class QLabel;
class QListWidget;
class QPushButton;
class QStackedWidget;

namespace memscape {

class ResultTable;

class AuthorPanel : public QFrame
{
    Q_OBJECT

public:
    explicit AuthorPanel(QWidget* parent = nullptr);

    /// Watches the folder and checks the lab; empty: watches nothing.
    void watch(const QString& folder);
    QString folder() const { return m_folder; }
    void showGrade(const LabGrade& grade);
    void tell(const QString& text, bool isGood);
    bool isBusy() const { return m_work.isBusy() || m_rest.isActive(); }
    QStringList problems() const;
    QString statusText() const;
    ResultTable* grade() const { return m_grade; }

signals:
    void labRead(std::shared_ptr<const memscape::Lab> lab); ///< as it is in the folder now
    void gradeWanted();
    void packWanted();
    void solutionWanted();

private:
    void follow();
    void check();
    void showProblems(const std::vector<Error>& problems);

    QString m_folder;
    QFileSystemWatcher* m_watcher;
    QTimer m_rest; ///< an editor writes several times
    BackgroundWork m_work;
    QLabel* m_status;
    QPushButton* m_gradeButton;
    QPushButton* m_packButton;
    QPushButton* m_solveButton;
    QListWidget* m_problems;
    ResultTable* m_grade;
    QStackedWidget* m_stack;
};

} // namespace memscape
