// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/question_field.h"

#include "app/labs/answer_fields.h"
#include "app/pages/cards/card.h"
#include "app/settings/words.h"

#include <QLabel>
#include <QVBoxLayout>

namespace memscape {

QuestionField::QuestionField(const LabQuestion& question, QWidget* parent)
    : QWidget(parent)
    , m_question(question)
    , m_ask(new QLabel(toQString(question.ask), this))
    , m_state(toneLabel({}, "faint", this))
    , m_error(toneLabel({}, "bad", this, true))
    , m_column(new QVBoxLayout)
{
    m_ask->setTextFormat(Qt::MarkdownText);
    m_ask->setWordWrap(true);
    m_error->setObjectName(QStringLiteral("error"));
    m_error->hide();
    m_state->hide();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 2, 0, 6);
    column->setSpacing(4);
    m_column->setSpacing(4);
    column->addWidget(m_ask);
    column->addLayout(m_column);
    column->addWidget(m_state);
    column->addWidget(m_error);
}

void QuestionField::setView(const QuestionView& view)
{
    m_ask->setText(view.ask);
    fill(view);
    if (view.problem)
        showError(toQString(view.problem->text()));
}

void QuestionField::fill(const QuestionView&) { }

QString QuestionField::shortName() const
{
    return m_ask->text();
}

void QuestionField::setState(bool mayAnswer, bool isLocked)
{
    enable(mayAnswer && !isLocked);
    m_isLocked = isLocked;
    remark(m_remark);
}

void QuestionField::remark(const QString& text)
{
    m_remark = text;
    m_state->setText(m_isLocked ? tr("locked") : text);
    m_state->setVisible(!m_state->text().isEmpty());
}

void QuestionField::showError(const QString& text)
{
    m_error->setText(text);
    m_error->setVisible(!text.isEmpty());
    m_error->setAccessibleName(text);
}

QString QuestionField::errorText() const
{
    return m_error->isHidden() ? QString() : m_error->text();
}

void QuestionField::report(const Json& given)
{
    showError({});
    emit answered(m_question.key, given);
}

QuestionField* makeQuestionField(const LabQuestion& question, QWidget* parent)
{
    switch (question.kind) {
    case LabQuestionKind::Number: return new NumberAnswer(question, parent);
    case LabQuestionKind::Choice: return new ChoiceAnswer(question, parent);
    case LabQuestionKind::Ranking: return new RankingAnswer(question, parent);
    case LabQuestionKind::Curve: return new CurveAnswerField(question, parent);
    case LabQuestionKind::Text: return new TextAnswer(question, parent);
    case LabQuestionKind::Parameters: break;
    }
    return new ParametersAnswer(question, parent);
}

} // namespace memscape
