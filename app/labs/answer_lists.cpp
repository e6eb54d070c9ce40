// SPDX-License-Identifier: GPL-3.0-or-later
// The fields that hold a list: an order, and the values of a curve.
#include "app/labs/answer_fields.h"

#include "app/pages/cards/card.h"
#include "app/plots/plot_style.h"
#include "app/settings/words.h"

#include <QEvent>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include <cmath>

namespace memscape {

// A ranking. --------------------------------------------------------------------------------------

RankingAnswer::RankingAnswer(const LabQuestion& question, QWidget* parent)
    : QuestionField(question, parent)
    , m_list(new QListWidget(this))
    , m_up(new QToolButton(this))
    , m_down(new QToolButton(this))
    , m_keep(new QPushButton(tr("Keep this order"), this))
{
    m_list->setObjectName(QStringLiteral("answer.") + toQString(question.key));
    m_list->setDragDropMode(QAbstractItemView::InternalMove);
    m_list->setDefaultDropAction(Qt::MoveAction);
    m_list->setWordWrap(true);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setAccessibleDescription(tr("Ctrl+Up and Ctrl+Down move the current item"));
    m_list->setToolTip(m_list->accessibleDescription());
    m_list->installEventFilter(this);
    for (const LabOption& one : question.options) {
        auto* item = new QListWidgetItem(toQString(one.label), m_list);
        item->setData(Qt::UserRole, toQString(one.key));
    }
    m_list->sortItems(); // by their words: many authors write down the answer
    m_list->setCurrentRow(0);
    for (const auto& [button, icon, name, places] :
         {std::tuple{m_up, "▲", tr("Move up"), -1}, std::tuple{m_down, "▼", tr("Move down"), 1}}) {
        button->setText(QString::fromUtf8(icon));
        button->setAccessibleName(name);
        button->setToolTip(name);
        button->setFocusPolicy(Qt::StrongFocus);
        connect(button, &QToolButton::clicked, this, [this, by = places] { move(by); });
    }
    m_keep->setAutoDefault(false);
    m_keep->setToolTip(tr("The order is right as it stands"));
    connect(m_keep, &QPushButton::clicked, this, &RankingAnswer::reportOrder);
    connect(m_list->model(), &QAbstractItemModel::rowsMoved, this, &RankingAnswer::reportOrder);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_up);
    buttons->addWidget(m_down);
    buttons->addWidget(m_keep);
    buttons->addStretch(1);
    column()->addWidget(m_list);
    column()->addLayout(buttons);
    fit();
}

void RankingAnswer::fit()
{
    int height = 2 * m_list->frameWidth() + 4;
    for (int i = 0; i < m_list->count(); ++i)
        height += std::max(m_list->sizeHintForRow(i), int(22 * plotUnit()));
    m_list->setFixedHeight(height);
}

void RankingAnswer::fill(const QuestionView& view)
{
    for (int i = 0; i < m_list->count(); ++i)
        for (std::size_t k = 0; k < m_question.options.size() && int(k) < view.labels.size(); ++k)
            if (m_list->item(i)->data(Qt::UserRole).toString() == toQString(m_question.options[k].key))
                m_list->item(i)->setText(QString(view.labels.at(int(k))).remove(u'`').remove(u'*'));
    m_list->setAccessibleName(shortName());
    fit();
}

Json RankingAnswer::order() const
{
    Json keys = Json::array();
    for (int i = 0; i < m_list->count(); ++i)
        keys.push_back(m_list->item(i)->data(Qt::UserRole).toString().toStdString());
    return keys;
}

void RankingAnswer::display(const Json* given)
{
    m_isAnswered = given != nullptr;
    m_keep->setVisible(!m_isAnswered && m_list->isEnabled());
    if (!given)
        return;
    const LabStep none;
    const auto answer = readLabAnswer(m_question, none, *given);
    if (!answer || order() == Json(answer->ranking))
        return;
    const QSignalBlocker quiet(m_list->model());
    for (std::size_t place = 0; place < answer->ranking.size(); ++place)
        for (int i = int(place); i < m_list->count(); ++i)
            if (m_list->item(i)->data(Qt::UserRole).toString() == toQString(answer->ranking[place])) {
                m_list->insertItem(int(place), m_list->takeItem(i));
                break;
            }
    m_list->viewport()->update();
}

void RankingAnswer::move(int places)
{
    const int from = m_list->currentRow(), to = from + places;
    if (from < 0 || to < 0 || to >= m_list->count() || !m_list->isEnabled())
        return;
    m_list->insertItem(to, m_list->takeItem(from));
    m_list->setCurrentRow(to);
    reportOrder();
}

void RankingAnswer::reportOrder()
{
    m_isAnswered = true;
    m_keep->hide();
    report(order());
}

void RankingAnswer::confirm()
{
    if (!m_isAnswered && m_list->isEnabled())
        reportOrder();
}

void RankingAnswer::enable(bool mayAnswer)
{
    m_list->setEnabled(mayAnswer);
    if (!mayAnswer)
        m_list->setCurrentRow(-1); // a row that stands out would look like the answer
    m_up->setVisible(mayAnswer);
    m_down->setVisible(mayAnswer);
    m_keep->setVisible(mayAnswer && !m_isAnswered);
}

bool RankingAnswer::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_list && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool moves = key->modifiers() & (Qt::ControlModifier | Qt::AltModifier);
        if (moves && (key->key() == Qt::Key_Up || key->key() == Qt::Key_Down)) {
            move(key->key() == Qt::Key_Up ? -1 : 1);
            return true;
        }
    }
    return QuestionField::eventFilter(watched, event);
}

// A curve. ----------------------------------------------------------------------------------------

CurveAnswerField::CurveAnswerField(const LabQuestion& question, QWidget* parent)
    : QuestionField(question, parent)
    , m_drawn(question.x.size(), nan)
{
    column()->addWidget(toneLabel(tr("Draw it over the axes beside this, or type:"), "dim", this));
    auto* grid = new QGridLayout;
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setColumnStretch(1, 1);
    for (std::size_t i = 0; i < question.x.size(); ++i) {
        m_names.push_back(toneLabel(tr("at %1").arg(toQString(question.x[i])), "dim", this));
        auto* edit = new QLineEdit(this);
        edit->setObjectName(QStringLiteral("answer.%1.%2").arg(toQString(question.key)).arg(i));
        edit->setPlaceholderText(answerHint(question.unit));
        edit->setMaxLength(60);
        m_names.back()->setBuddy(edit);
        m_edits.push_back(edit);
        grid->addWidget(m_names.back(), int(i), 0);
        grid->addWidget(edit, int(i), 1);
        connect(edit, &QLineEdit::textEdited, this, [this, i] { m_drawn[i] = nan; });
        connect(edit, &QLineEdit::editingFinished, this, &CurveAnswerField::commit);
    }
    column()->addLayout(grid);
}

void CurveAnswerField::fill(const QuestionView& view)
{
    for (std::size_t i = 0; i < m_names.size() && i < view.x.size(); ++i) {
        m_names[i]->setText(tr("at %1").arg(toQString(view.x[i].text())));
        m_edits[i]->setAccessibleName(tr("%1 at %2").arg(toQString(m_question.yLabel), toQString(view.x[i].text())));
    }
}

void CurveAnswerField::display(const Json* given)
{
    if (!given || *given == m_kept || !given->is_array())
        return;
    m_kept = *given;
    if (m_kept == m_reported)
        return; // it came from here
    m_reported = m_kept;
    for (std::size_t i = 0; i < m_edits.size() && i < given->size(); ++i) {
        m_edits[i]->setText(answerText(m_question, (*given)[i]));
        m_drawn[i] = (*given)[i].is_number() ? (*given)[i].get<double>() : nan;
        markInvalid(m_edits[i], false);
    }
}

std::vector<double> CurveAnswerField::values() const
{
    std::vector<double> values;
    for (std::size_t i = 0; i < m_edits.size(); ++i)
        values.push_back(
            std::isfinite(m_drawn[i])
                ? m_drawn[i]
                : parseQuantity(m_edits[i]->text().trimmed().toStdString(), m_question.unit).value_or(nan));
    return values;
}

void CurveAnswerField::setDrawn(const std::vector<double>& y)
{
    for (std::size_t i = 0; i < m_edits.size() && i < y.size(); ++i) {
        if (!std::isfinite(y[i]) || y[i] == m_drawn[i])
            continue;
        m_drawn[i] = y[i];
        m_edits[i]->setText(typedNumber(y[i], m_question.unit));
    }
    reportValues(false);
}

void CurveAnswerField::commit()
{
    if (m_edits.empty() || m_edits.front()->isReadOnly())
        return;
    reportValues(true);
    emit typed();
}

/// Values that are all there; of those typed so far, what does not read.
void CurveAnswerField::reportValues(bool isComplaint)
{
    Json all = Json::array();
    bool isComplete = true;
    for (std::size_t i = 0; i < m_edits.size(); ++i) {
        const std::string text = m_edits[i]->text().trimmed().toStdString();
        const bool reads = std::isfinite(m_drawn[i]) || parseQuantity(text, m_question.unit);
        markInvalid(m_edits[i], !text.empty() && !reads);
        isComplete = isComplete && !text.empty();
        all.push_back(std::isfinite(m_drawn[i]) ? Json(m_drawn[i]) : Json(text));
        if (isComplaint && !text.empty() && !reads)
            isComplete = true; // core says what is wrong with it
    }
    if (!isComplete || all == m_reported)
        return;
    m_reported = all;
    report(all);
}

void CurveAnswerField::enable(bool mayAnswer)
{
    for (QLineEdit* one : m_edits) {
        one->setReadOnly(!mayAnswer);
        one->setEnabled(mayAnswer || !one->text().isEmpty());
    }
}

} // namespace memscape
