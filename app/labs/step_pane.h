// SPDX-License-Identifier: GPL-3.0-or-later
// The left side of a lab: where one is among its steps, the words of the step, its questions with their errors, the
// button that commits, hints, what comes later, and where the answers are kept.
#pragma once

#include "app/labs/lab_session.h"
#include "app/labs/question_field.h"
#include "app/labs/step_circles.h"

#include <QFrame>

class QLabel;
class QPushButton;
class QScrollArea;

namespace memscape {

class Card;
class MarkdownView;

class StepPane : public QFrame
{
    Q_OBJECT

public:
    explicit StepPane(QWidget* parent = nullptr);

    /// `isNew`: another step or another version of the lab, whose fields are made anew.
    void display(const LabSession& session, bool isNew);
    /// Why it cannot be measured now (empty: it can), and what the running measurement says of itself.
    void setMeasuring(const QString& obstacle, const QString& progress);
    /// Beside the field of a question, or at the button of the step where there is none.
    void showError(const std::string& question, const QString& text);
    /// Scrolls to it and gives it the keyboard.
    void reveal(QuestionField& field);
    /// Reports what is typed and was not reported yet.
    void commit();
    /// The same before a prediction is locked.
    void confirm();

    QuestionField* field(const std::string& question) const;
    const std::vector<QuestionField*>& fields() const { return m_fields; }
    StepCircles* circles() const { return m_circles; }
    QString text() const; ///< of the step, as plain words
    QStringList hints() const;
    QString footer() const;
    QPushButton* lockButton() const { return m_lock; }
    QPushButton* measureButton() const { return m_measure; }
    QPushButton* hintButton() const { return m_hint; }
    QPushButton* nextButton() const { return m_next; }
    QPushButton* backButton() const { return m_back; }
    QStringList goals() const;

signals:
    void stepWanted(const QString& step);
    void answered(const std::string& question, const memscape::Json& given);
    void lockWanted();
    void measureWanted();
    void replayWanted();
    void hintWanted();

private:
    void build();
    void makeFields(const LabStep& step);
    void displayQuestions(const LabSession& session);
    void displayRun(const LabSession& session);
    void displayGoals(const LabSession& session);
    void displayHints(const LabSession& session);
    void displayWay(const LabSession& session);
    void keepFocus(bool isNew);

    StepCircles* m_circles;
    QLabel* m_title;
    MarkdownView* m_text;
    QLabel* m_problem;
    Card* m_questions;
    std::vector<QuestionField*> m_fields;
    QPushButton* m_lock;
    QLabel* m_lockNote;
    QLabel* m_stepError;
    Card* m_run;
    QLabel* m_runText;
    QPushButton* m_measure;
    QPushButton* m_replay;
    QLabel* m_obstacle;
    QLabel* m_replayText;
    Card* m_goals;
    QStringList m_goalTexts;
    Card* m_hints;
    QPushButton* m_hint;
    QStringList m_hintTexts;
    QPushButton* m_back;
    QPushButton* m_next;
    QLabel* m_later;
    QLabel* m_footer;
    QScrollArea* m_scroll;
    QString m_before, m_after; ///< ids of the steps that the buttons lead to
    QString m_folder;
};

} // namespace memscape
