// SPDX-License-Identifier: GPL-3.0-or-later
// What the page shows of its session: header, step, board or stage, results, and what it has to say.
#include "app/labs/lab_page.h"

#include "app/labs/curve_board.h"
#include "app/labs/lab_list.h"
#include "app/labs/lab_stage.h"
#include "app/labs/result_table.h"
#include "app/labs/step_pane.h"
#include "app/pages/cards/card.h"
#include "app/settings/words.h"

#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>

#include <algorithm>

namespace memscape {

namespace {

enum View { Cover = 0, Board = 1, Stage = 2 };

QString kindText(LabStepKind kind)
{
    switch (kind) {
    case LabStepKind::Read: return tr("read");
    case LabStepKind::Predict: return tr("predict");
    case LabStepKind::Measure: return tr("measure");
    case LabStepKind::Explain: return tr("explain");
    case LabStepKind::Tune: return tr("tune");
    case LabStepKind::Fix: break;
    }
    return tr("repair");
}

} // namespace

const LabQuestion* LabPage::curveQuestion() const
{
    if (!m_session)
        return nullptr;
    for (const LabQuestion& one : m_session->step().questions)
        if (one.kind == LabQuestionKind::Curve)
            return &one;
    const LabStepView& view = m_session->view();
    if (view.step != m_session->step().id || view.curves.empty())
        return nullptr;
    return m_session->lab().question(view.curves.back().question);
}

void LabPage::refresh()
{
    refreshHeader();
    if (!m_session)
        return;
    const bool isNewLab = m_shownLab != &m_session->lab();
    const bool isNew = isNewLab || m_shownStep != m_session->step().id;
    m_shownLab = &m_session->lab();
    m_shownStep = m_session->step().id;
    m_steps->display(*m_session, isNew);
    m_stage->show(m_session->attempt(), m_session->step());
    refreshBoard();
    refreshResults();
    chooseView(isNew);
    refreshMeasuring();
}

void LabPage::refreshHeader()
{
    for (QPushButton* one : {m_allLabs, m_handIn, m_export, m_edit})
        one->setVisible(m_session != nullptr && (one != m_handIn || !m_session->isCopy()));
    if (!m_session) {
        m_title->setText(toQString(info().title));
        m_subtitle->setText(toQString(info().question));
        return;
    }
    const Lab& lab = m_session->lab();
    const LabStep& step = m_session->step();
    m_title->setText(toQString(lab.title));
    QStringList parts{tr("step %1 of %2").arg(&step - lab.steps.data() + 1).arg(lab.steps.size()), kindText(step.kind)};
    if (m_session->view().grade)
        parts << tr("%1 points so far").arg(pointsText(m_session->view().points, lab.points));
    else if (lab.isStudentPack)
        parts << tr("%1 points, given when you hand in").arg(toQString(numberText(lab.points)));
    if (m_session->attempt().student() != m_services.settings.student().toStdString())
        parts << tr("answers of %1").arg(toQString(m_session->attempt().student()));
    m_subtitle->setText(parts.join(QStringLiteral(" · ")));
    // What comes next is the step's own button until everything is done.
    const bool isDone =
        std::ranges::all_of(lab.steps, [this](const LabStep& one) { return m_session->attempt().isDone(one.id); });
    if (const char* role = isDone ? "primary" : ""; m_handIn->property("role").toString() != QLatin1String(role)) {
        m_handIn->setProperty("role", QString::fromLatin1(role));
        m_handIn->style()->unpolish(m_handIn);
        m_handIn->style()->polish(m_handIn);
    }
}

void LabPage::refreshBoard()
{
    const LabQuestion* question = curveQuestion();
    if (!question)
        return;
    const LabAttempt& attempt = m_session->attempt();
    const LabStep& step = *m_session->lab().stepOf(*question);
    const LabStepView& view = m_session->view();
    if (view.step == step.id)
        for (std::size_t i = 0; i < step.questions.size() && i < view.questions.size(); ++i)
            if (&step.questions[i] == question)
                m_board->setQuestion(*question, view.questions[i].x);
    if (view.step != step.id && view.step == m_session->step().id)
        for (const CurveAnswer& one : view.curves)
            if (one.question == question->key)
                m_board->setQuestion(*question, one.x);
    const bool isLocked = attempt.isLocked(step.id);
    m_board->setLocked(isLocked || !attempt.isOpen(step.id));
    const Json* given = attempt.given(*question);
    const auto read = given ? readLabAnswer(*question, step, *given) : Result<LabAnswer>(LabAnswer());
    if (given && read)
        m_board->setValues(read->curve);
    std::optional<Series> predicted, measured;
    for (const CurveAnswer& one : view.curves)
        if (one.question == question->key && isLocked) {
            predicted = one.predicted;
            measured = one.measured;
        }
    m_board->setOthers(predicted, measured);
    m_board->setNote(
        !isLocked
            ? tr("Ours and the machine’s stay hidden until your curve is locked. Then all three lie on these axes.")
            : measured ? QString()
                       : tr("Your curve is locked. After the measurement all three lie on these axes."));
}

void LabPage::refreshResults()
{
    const LabStepView& view = m_session->view();
    const LabStepKind kind = m_session->step().kind;
    const bool hasGoals = kind == LabStepKind::Tune || kind == LabStepKind::Fix; // beside the step's words
    const bool isShown = view.step == m_session->step().id && !view.rows.empty() && !hasGoals;
    m_resultArea->setVisible(isShown);
    if (isShown)
        m_results->display(view.rows);
}

void LabPage::refreshMeasuring()
{
    if (!m_session || m_session->step().kind != LabStepKind::Measure)
        return;
    const auto& run = m_stage->runs().current();
    const QString progress = !run ? QString()
        : run->total > 0          ? tr("Stop (%1 of %2)").arg(run->done).arg(run->total)
                                  : tr("Stop");
    m_steps->setMeasuring(run ? QString() : m_stage->obstacle(), progress);
}

/// What is on the right: for a new step what it is about, until another view is chosen by hand.
void LabPage::chooseView(bool isNewStep)
{
    const LabStep& step = m_session->step();
    const bool hasPage = m_stage->page() != nullptr, hasCurve = curveQuestion() != nullptr;
    m_chips->setVisible(hasPage && hasCurve);
    if (hasPage)
        m_pageChip->setText(tr("the page %1").arg(m_stage->page()->title()));
    const bool drawsHere =
        std::ranges::any_of(step.questions, [](const LabQuestion& one) { return one.kind == LabQuestionKind::Curve; });
    const bool isRun = step.kind == LabStepKind::Measure && m_session->attempt().run(step.id);
    int wanted = drawsHere || (hasCurve && isRun) ? Board : hasPage ? Stage : Cover;
    const int now = m_views->currentIndex();
    const bool mayStay = (now == Board && hasCurve) || (now == Stage && hasPage);
    if (m_ownView && mayStay && !isNewStep)
        wanted = now;
    if (wanted == Cover) {
        const Lab& lab = m_session->lab();
        const auto next = std::find_if(&step, lab.steps.data() + lab.steps.size(),
                                       [](const LabStep& one) { return one.request.has_value(); });
        const bool isLast = next == lab.steps.data() + lab.steps.size();
        QString text = step.kind == LabStepKind::Predict && !m_session->attempt().isLocked(step.id)
            ? tr("The model’s answers and the machine’s stay hidden until yours are locked.")
            : toQString(lab.summary);
        if (!isLast)
            text += QStringLiteral("\n\n")
                + tr("Here the page %1 opens in step %2, “%3”.")
                      .arg(toQString((*findExperiment(next->request->experiment))->title()))
                      .arg(next - lab.steps.data() + 1)
                      .arg(toQString(next->title));
        m_cover->setText(text);
    }
    showView(wanted);
}

/// Under a cover the questions have more room; each arrangement is as it was left.
void LabPage::fitSides(bool isCovered)
{
    if (std::exchange(m_isCovered, isCovered) == isCovered)
        return;
    QList<int> now = m_sides->sizes();
    const int all = std::max(now.value(0) + now.value(1), width());
    if (m_otherSizes.isEmpty())
        m_otherSizes = {int(all * 0.55), all - int(all * 0.55)};
    now.swap(m_otherSizes);
    m_sides->setSizes(now);
}

void LabPage::showView(int index)
{
    fitSides(index == Cover);
    m_views->setCurrentIndex(index);
    m_curveChip->setChecked(index == Board);
    m_pageChip->setChecked(index == Stage);
    emit updated();
}

void LabPage::tell(const QString& text, const char* tone, std::vector<Choice> choices)
{
    clearLayout(m_noticeButtons);
    m_noticeText->setText(text);
    setTone(m_noticeText, tone);
    choices.push_back({tr("Close"), [] {}});
    for (const Choice& one : choices) {
        auto* button = new QPushButton(one.text, m_notice);
        button->setAutoDefault(false);
        connect(button, &QPushButton::clicked, this, [this, run = one.run] {
            const auto again = run; // the button is deleted
            closeNotice();
            again();
        });
        m_noticeButtons->addWidget(button);
    }
    m_notice->show();
}

void LabPage::tell(const Error& error, std::vector<Choice> choices)
{
    tell(toQString(error.text()), "bad", std::move(choices));
}

void LabPage::closeNotice()
{
    m_notice->hide();
}

QString LabPage::noticeText() const
{
    return m_notice->isHidden() ? QString() : m_noticeText->text();
}

void LabPage::report(const Result<void>& result, const std::string& question)
{
    QString problem;
    if (!result) {
        Error error = result.error();
        if (error.code == "lab.answer")
            error.place.clear(); // it stands at its question
        problem = capitalized(toQString(error.text()));
    }
    m_steps->showError(question, problem);
    if (result && !question.empty())
        m_steps->showError({}, {}); // what was missing may be there now
}

QString LabPage::title() const
{
    return m_title->text();
}

QString LabPage::subtitle() const
{
    return m_subtitle->text();
}

QWidget* LabPage::stage() const
{
    if (!m_session)
        return m_list->name();
    return m_views->currentIndex() == Board ? static_cast<QWidget*>(m_board->plot()) : m_steps;
}

} // namespace memscape
