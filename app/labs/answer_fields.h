// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of the six kinds of question.
#pragma once

#include "app/labs/question_field.h"

class QButtonGroup;
class QLineEdit;
class QListWidget;
class QPlainTextEdit;
class QPushButton;
class QToolButton;

namespace memscape {

/// How such a number is written, as examples: "48 KiB, 1.5 GB".
QString answerHint(Unit unit);
/// The red frame of what cannot be read.
void markInvalid(QLineEdit* edit, bool isInvalid);

/// A line of text, reported when it is left or Enter is pressed.
class NumberAnswer : public QuestionField
{
    Q_OBJECT

public:
    NumberAnswer(const LabQuestion& question, QWidget* parent);
    void display(const Json* given) override;
    void commit() override;
    QLineEdit* edit() const { return m_edit; }

protected:
    void fill(const QuestionView& view) override;
    void enable(bool mayAnswer) override;

private:
    QLineEdit* m_edit;
    QString m_kept;     ///< the kept answer, as it was displayed last
    QString m_reported; ///< what was made of it last, kept or refused
};

/// Options below each other, as wide as their words need.
class ChoiceAnswer : public QuestionField
{
    Q_OBJECT

public:
    ChoiceAnswer(const LabQuestion& question, QWidget* parent);
    void display(const Json* given) override;
    QButtonGroup* options() const { return m_group; }

protected:
    void fill(const QuestionView& view) override;
    void enable(bool mayAnswer) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    QButtonGroup* m_group;
    std::vector<QLabel*> m_labels;
};

/// Items to be dragged, or moved with Ctrl+Up and Ctrl+Down, or the two buttons. The order counts as an answer once
/// something was moved, it was kept by the button, or the prediction is locked.
class RankingAnswer : public QuestionField
{
    Q_OBJECT

public:
    RankingAnswer(const LabQuestion& question, QWidget* parent);
    void display(const Json* given) override;
    void confirm() override;
    QListWidget* list() const { return m_list; }
    /// The current item by so many places.
    void move(int places);

protected:
    void fill(const QuestionView& view) override;
    void enable(bool mayAnswer) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void reportOrder();
    void fit();
    Json order() const;

    QListWidget* m_list;
    QToolButton* m_up;
    QToolButton* m_down;
    QPushButton* m_keep;
    bool m_isAnswered = false;
};

/// y at each x: drawn over the axes of the stage, or typed here. Reported when every value is there.
class CurveAnswerField : public QuestionField
{
    Q_OBJECT

public:
    CurveAnswerField(const LabQuestion& question, QWidget* parent);
    void display(const Json* given) override;
    void commit() override;
    /// As drawn; NaN where nothing is drawn yet.
    void setDrawn(const std::vector<double>& y);
    /// What stands in the lines; NaN where it is no number.
    std::vector<double> values() const;
    QLineEdit* edit(std::size_t index) const { return m_edits[index]; }

signals:
    void typed(); ///< values() changed by hand

protected:
    void fill(const QuestionView& view) override;
    void enable(bool mayAnswer) override;

private:
    void reportValues(bool isComplaint);

    std::vector<QLabel*> m_names;
    std::vector<QLineEdit*> m_edits;
    std::vector<double> m_drawn; ///< the numbers behind the lines that were drawn; NaN: typed
    Json m_kept, m_reported;     ///< as of a number
};

/// A few sentences, reported while they are typed.
class TextAnswer : public QuestionField
{
    Q_OBJECT

public:
    TextAnswer(const LabQuestion& question, QWidget* parent);
    void display(const Json* given) override;
    void commit() override;
    QPlainTextEdit* edit() const { return m_edit; }

protected:
    void fill(const QuestionView& view) override;
    void enable(bool mayAnswer) override;

private:
    QPlainTextEdit* m_edit;
    QString m_kept;
    bool m_isShowing = false;
};

/// The parameters that were chosen on the page beside it.
class ParametersAnswer : public QuestionField
{
    Q_OBJECT

public:
    ParametersAnswer(const LabQuestion& question, QWidget* parent);
    void display(const Json* given) override;
    /// Names its parameters as the page does.
    void setSchema(const Schema& schema) { m_schema = schema; }
    QString text() const;

protected:
    void enable(bool) override { }

private:
    QLabel* m_text;
    Schema m_schema;
};

} // namespace memscape
