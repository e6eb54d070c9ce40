// SPDX-License-Identifier: GPL-3.0-or-later
// The labs to choose from: those that ship, how far the student is in each, and the ways to others. The student's name
// is asked here once; without it nothing begins, since a lab's parameters come from it.
#pragma once

#include "app/pages/background_work.h"
#include "app/settings/settings.h"
#include "core/lab/lab_attempt.h"

#include <QWidget>

class QLabel;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace memscape {

/// A lab as the list shows it.
struct LabEntry
{
    std::shared_ptr<const Lab> lab; ///< null where it cannot be read
    QString title, facts, summary;
    QString progress;             ///< "3 of 5 steps done"; empty: not begun
    std::optional<Error> problem; ///< of the lab, or of the student's answers to it
};

struct LabName
{
    QString id, title, summary;
};
/// Of the shipped labs that can be read, in the order they are taught.
std::vector<LabName> labNames();
/// Of the shipped labs, for that student. Reads files: not on the window's thread.
std::vector<LabEntry> labEntries(const QString& student);

class LabList : public QWidget
{
    Q_OBJECT

public:
    explicit LabList(Settings& settings, QWidget* parent = nullptr);

    /// Reads the labs again; the cards follow.
    void refresh();
    bool isBusy() const { return m_work.isBusy(); }
    const std::vector<LabEntry>& entries() const { return m_entries; }
    QLineEdit* name() const { return m_name; }
    QPushButton* button(const QString& lab) const; ///< Start or Continue
    /// Empty and marked where there is none.
    QString student();
    void showProblem(const Error& error);

signals:
    void labWanted(const QString& id);
    void folderWanted();
    void answersWanted();

private:
    void fill();

    Settings& m_settings;
    QLineEdit* m_name;
    QLabel* m_nameError;
    QLabel* m_problem;
    QPushButton* m_folder;
    QPushButton* m_answers;
    QVBoxLayout* m_cards;
    std::vector<LabEntry> m_entries;
    BackgroundWork m_work;
};

} // namespace memscape
