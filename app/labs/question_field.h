// SPDX-License-Identifier: GPL-3.0-or-later
// One question of a step: what is asked, a field of its kind, and the error of an answer beside it. A field shows the
// kept answer and reports what a person made of it as JSON, the way LabAttempt takes it; what is refused stays as it
// was typed. Numbers are texts as on the command line, whatever the locale: "48 KiB", "1.5 ns".
#pragma once

#include "app/labs/step_view.h"

#include <QWidget>

class QLabel;
class QVBoxLayout;

namespace memscape {

class QuestionField : public QWidget
{
    Q_OBJECT

public:
    QuestionField(const LabQuestion& question, QWidget* parent);

    const std::string& key() const { return m_question.key; }
    const LabQuestion& question() const { return m_question; }
    /// What is asked; until it is there, the lab's own text.
    void setView(const QuestionView& view);
    /// The kept answer, null for none. What is being typed is left alone.
    virtual void display(const Json* given) = 0;
    /// Whether it may be answered; a locked answer stays readable.
    void setState(bool mayAnswer, bool isLocked);
    void showError(const QString& text);
    QString errorText() const;
    /// Reports what was typed and was not reported yet.
    virtual void commit() { }
    /// Before a prediction is locked: what stands there as it is counts, too.
    virtual void confirm() { commit(); }

signals:
    void answered(const std::string& question, const memscape::Json& given);

protected:
    QVBoxLayout* column() const { return m_column; }
    virtual void fill(const QuestionView& view);
    virtual void enable(bool mayAnswer) = 0;
    void report(const Json& given);
    /// Below the answer, while it is not locked: how it was understood; empty: nothing.
    void remark(const QString& text);
    QString shortName() const; ///< for screen readers: what is asked

    const LabQuestion m_question;

private:
    QLabel* m_ask;
    QLabel* m_state;
    QString m_remark;
    bool m_isLocked = false;
    QLabel* m_error;
    QVBoxLayout* m_column;
};

QuestionField* makeQuestionField(const LabQuestion& question, QWidget* parent);

} // namespace memscape
