// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/labs/step_pane.h"

#include "app/labs/answer_fields.h"
#include "app/labs/markdown_view.h"
#include "app/pages/cards/card.h"
#include "app/pages/records/record_text.h"
#include "app/settings/scroll_column.h"
#include "app/settings/words.h"
#include "core/device/catalogue.h"

#include <QApplication>
#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>

#include <algorithm>

namespace memscape {

namespace {

/// "AMD EPYC, 2 cores, grade D, 21 Nov 2026 11:43".
QString runWords(const Record& record, bool isOfHere)
{
    QStringList parts{isOfHere ? toQString(record.device.name) : nameElsewhere(record.device)};
    if (record.device.units > 0)
        parts << QStringLiteral("%1 %2").arg(record.device.units).arg(toQString(record.device.unitWord()));
    if (const QString grade = recordGrade(record); !grade.isEmpty())
        parts << tr("grade %1").arg(grade);
    if (const QString date = dateText(recordTime(record)); !date.isEmpty())
        parts << date;
    return parts.join(QStringLiteral(", "));
}

QPushButton* button(const QString& text, const char* name, const QString& tip, QWidget* parent)
{
    auto* made = new QPushButton(text, parent);
    made->setObjectName(QString::fromLatin1(name));
    made->setToolTip(tip);
    made->setAutoDefault(false);
    return made;
}

QLabel* markdownLabel(const QString& text, QWidget* parent)
{
    auto* label = new QLabel(text, parent);
    label->setTextFormat(Qt::MarkdownText);
    label->setWordWrap(true);
    return label;
}

/// "(−1 point)".
QString costText(double cost)
{
    if (cost <= 0)
        return tr("(free)");
    return (cost == 1 ? tr("(−%1 point)") : tr("(−%1 points)")).arg(toQString(numberText(cost)));
}

/// "tune.quick" within its step.
QString goalName(const std::string& check)
{
    return spokenKey(check.substr(check.find('.') + 1));
}

/// What a goal asks for; of a ratio without the expressions of the lab.
QString wantedText(const LabStep& step, const LabCheckResult& result)
{
    for (const LabCheck& one : step.checks)
        if (one.id == result.id && one.kind == LabCheckKind::RatioAtLeast)
            return one.least == 1 ? QString() // the step's text says what
                                  : tr("at least %1 times are wanted").arg(toQString(numberText(one.least)));
    return toQString(result.expected);
}

} // namespace

StepPane::StepPane(QWidget* parent)
    : QFrame(parent)
    , m_circles(new StepCircles(this))
    , m_title(toneLabel({}, "subtitle", this))
    , m_text(new MarkdownView(this))
    , m_problem(toneLabel({}, "bad", this, true))
    , m_questions(new Card(this))
    , m_lock(button(tr("Lock my answers"), "lock", tr("They stay as they are; then the measurement opens (Ctrl+Enter)"),
                    this))
    , m_lockNote(toneLabel({}, "dim", this))
    , m_stepError(toneLabel({}, "bad", this, true))
    , m_run(new Card(this))
    , m_runText(toneLabel({}, "dim", m_run, true))
    , m_measure(button(tr("Measure"), "labMeasure", {}, m_run))
    , m_replay(button(tr("Play the recorded run"), "replay",
                      tr("The curve of another machine, recorded once; nothing is measured here"), m_run))
    , m_obstacle(toneLabel({}, "faint", m_run, true))
    , m_replayText(toneLabel({}, "faint", m_run, true))
    , m_goals(new Card(this))
    , m_hints(new Card(this))
    , m_hint(button({}, "hint", tr("Shows the next hint; its cost is taken off the points of this step (Ctrl+Shift+H)"),
                    m_hints))
    , m_back(button(tr("Back"), "back", tr("The step before (Ctrl+PgUp)"), this))
    , m_next(button(tr("Next"), "next", tr("The next step (Ctrl+PgDown)"), this))
    , m_later(toneLabel({}, "dim", this))
    , m_footer(toneLabel({}, "faint", this, true))
    , m_scroll(new QScrollArea(this))
{
    setObjectName(QStringLiteral("labSteps"));
    setAccessibleName(tr("Step"));
    build();
}

void StepPane::build()
{
    m_title->setObjectName(QStringLiteral("stepTitle"));
    m_lock->setProperty("role", "primary");
    m_measure->setProperty("role", "primary");
    m_stepError->hide();
    auto* lockRow = new QHBoxLayout;
    lockRow->addWidget(m_lock);
    lockRow->addWidget(m_lockNote, 1);
    auto* runRow = new QHBoxLayout;
    runRow->addWidget(m_measure);
    runRow->addStretch(1);
    m_runText->setObjectName(QStringLiteral("runText"));
    m_run->column()->addWidget(m_runText);
    m_run->column()->addLayout(runRow);
    m_run->column()->addWidget(m_obstacle);
    m_run->column()->addWidget(m_replay, 0, Qt::AlignLeft);
    m_run->column()->addWidget(m_replayText);
    auto* wayRow = new QHBoxLayout;
    wayRow->addWidget(m_back);
    wayRow->addStretch(1);
    wayRow->addWidget(m_next);

    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(16, 14, 16, 12);
    column->setSpacing(10);
    column->addWidget(m_circles);
    for (QWidget* part : {static_cast<QWidget*>(m_title), static_cast<QWidget*>(m_text),
                          static_cast<QWidget*>(m_problem), static_cast<QWidget*>(m_questions)})
        column->addWidget(part);
    column->addLayout(lockRow);
    for (QWidget* part : {static_cast<QWidget*>(m_stepError), static_cast<QWidget*>(m_run),
                          static_cast<QWidget*>(m_goals), static_cast<QWidget*>(m_hints)})
        column->addWidget(part);
    column->addLayout(wayRow);
    column->addWidget(m_later);
    column->addStretch(1);
    column->addWidget(m_footer);
    scrollColumn(m_scroll, content);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    outer->addWidget(m_scroll);

    connect(m_circles, &StepCircles::wanted, this, &StepPane::stepWanted);
    connect(m_lock, &QPushButton::clicked, this, &StepPane::lockWanted);
    connect(m_measure, &QPushButton::clicked, this, &StepPane::measureWanted);
    connect(m_replay, &QPushButton::clicked, this, &StepPane::replayWanted);
    connect(m_hint, &QPushButton::clicked, this, &StepPane::hintWanted);
    connect(m_back, &QPushButton::clicked, this, [this] { emit stepWanted(m_before); });
    connect(m_next, &QPushButton::clicked, this, [this] { emit stepWanted(m_after); });
}

void StepPane::makeFields(const LabStep& step)
{
    m_fields.clear();
    m_questions->clear();
    if (!step.questions.empty())
        m_questions->column()->addWidget(toneLabel(
            step.kind == LabStepKind::Predict ? tr("Your predictions") : tr("Your answers"), "strong", m_questions));
    for (const LabQuestion& one : step.questions) {
        QuestionField* field = makeQuestionField(one, m_questions);
        m_questions->column()->addWidget(field);
        connect(field, &QuestionField::answered, this, &StepPane::answered);
        if (auto* chosen = qobject_cast<ParametersAnswer*>(field))
            chosen->setSchema((*findExperiment(step.request->experiment))->schema());
        m_fields.push_back(field);
    }
    m_questions->setVisible(!step.questions.empty());
    // Tab goes on from the last field to the button that commits.
    if (!m_fields.empty())
        setTabOrder(m_fields.back(), m_lock);
    m_stepError->hide();
    m_scroll->verticalScrollBar()->setValue(0);
}

void StepPane::display(const LabSession& session, bool isNew)
{
    const LabStep& step = session.step();
    const LabAttempt& attempt = session.attempt();
    const bool hadFocus = isAncestorOf(QApplication::focusWidget());
    if (isNew)
        makeFields(step);
    m_folder = toQString(session.lab().folder.string());
    m_circles->display(attempt, step.id);
    m_title->setText(toQString(step.title));
    if (session.view().step == step.id) {
        m_text->display(session.view().text, m_folder + u'/' + QFileInfo(toQString(step.file)).path());
        const auto& problem = session.view().problem;
        m_problem->setText(problem ? toQString(problem->text()) : QString());
        m_problem->setVisible(problem.has_value());
    } else if (isNew) {
        m_text->display({}, m_folder);
        m_problem->hide();
    }
    displayQuestions(session);
    displayRun(session);
    displayGoals(session);
    displayHints(session);
    displayWay(session);
    if (hadFocus && !isAncestorOf(QApplication::focusWidget()))
        keepFocus(isNew);
}

/// Answers that are locked, a button that goes: the keyboard stays in the step, where the next thing is done.
void StepPane::keepFocus(bool isNew)
{
    if (isNew)
        return m_circles->setFocus(); // the fields follow
    for (QPushButton* one : {m_next, m_measure, m_replay, m_lock, m_back}) {
        if (one->isVisible() && one->isEnabled())
            return one->setFocus();
    }
}

void StepPane::displayQuestions(const LabSession& session)
{
    const LabStep& step = session.step();
    const LabAttempt& attempt = session.attempt();
    const bool isLocked = attempt.isLocked(step.id), isOpen = attempt.isOpen(step.id);
    const LabStepView& view = session.view();
    for (std::size_t i = 0; i < m_fields.size(); ++i) {
        if (view.step == step.id && i < view.questions.size())
            m_fields[i]->setView(view.questions[i]);
        m_fields[i]->display(attempt.given(step.questions[i]));
        m_fields[i]->setState(isOpen, isLocked);
    }
    const bool isPredict = step.kind == LabStepKind::Predict;
    const bool isCurve = !step.questions.empty()
        && std::ranges::all_of(step.questions, [](const auto& one) { return one.kind == LabQuestionKind::Curve; });
    m_lock->setText(isCurve ? tr("Lock my curve") : tr("Lock my answers"));
    m_lock->setVisible(isPredict && !isLocked);
    m_lock->setEnabled(isOpen);
    m_lockNote->setVisible(isPredict);
    m_lockNote->setText(isLocked ? tr("Locked: your answers stay as they were.") : tr("then the next step opens"));
}

void StepPane::displayRun(const LabSession& session)
{
    const LabStep& step = session.step();
    m_run->setVisible(step.kind == LabStepKind::Measure);
    if (step.kind != LabStepKind::Measure)
        return;
    const LabAttempt& attempt = session.attempt();
    const LabStepState* state = attempt.state(step.id);
    const Record* run = attempt.run(step.id);
    const bool isReplay = run && state && !state->replay.empty();
    m_runText->setVisible(run != nullptr);
    if (run)
        m_runText->setText(
            isReplay
                ? tr("A recorded run is played; nothing was measured here. It is of %1.").arg(runWords(*run, false))
                : tr("Measured: %1.").arg(runWords(*run, true)));
    m_runText->setToolTip(run ? recordToolTip(*run) : QString());
    const auto& replays = session.lab().replays;
    const auto recorded = replays.find(step.request->replay);
    m_replay->setVisible(recorded != replays.end() && !isReplay);
    m_replay->setEnabled(attempt.isOpen(step.id));
    m_replayText->setVisible(m_replay->isVisibleTo(m_run));
    if (recorded != replays.end())
        m_replayText->setText(
            tr("No quiet machine, or no such device? The recorded run: %1.").arg(runWords(recorded->second, false)));
}

void StepPane::setMeasuring(const QString& obstacle, const QString& progress)
{
    m_measure->setEnabled(obstacle.isEmpty());
    m_obstacle->setText(obstacle);
    m_obstacle->setVisible(!obstacle.isEmpty());
    m_measure->setToolTip(obstacle.isEmpty() ? tr("Runs it on the page's device (Ctrl+Shift+M)") : obstacle);
    m_measure->setText(progress.isEmpty() ? tr("Measure") : progress);
}

/// Live, of a tune or fix step: what is reached and what not.
void StepPane::displayGoals(const LabSession& session)
{
    const LabStep& step = session.step();
    const bool isShown = step.kind == LabStepKind::Tune || step.kind == LabStepKind::Fix;
    m_goals->setVisible(isShown && session.view().grade);
    if (!isShown || session.view().step != step.id || !session.view().grade)
        return;
    m_goals->clear();
    m_goalTexts.clear();
    m_goals->column()->addWidget(toneLabel(tr("The goal"), "strong", m_goals));
    const Schema& schema = (*findExperiment(step.request->experiment))->schema();
    QStringList free;
    for (const std::string& key : step.request->free)
        if (const ParameterSpec* spec = findParameter(schema, key))
            free << toQString(spec->label);
    const auto device = filledLabParameter(step.request->device, session.attempt().variant());
    const auto known = device ? findDevice(*device) : Result<Device>(fail(device.error()));
    m_goals->column()->addWidget(
        toneLabel(tr("You choose %1, for %2.")
                      .arg(free.join(QStringLiteral(", ")), known ? toQString(known->name) : tr("its device")),
                  "dim", m_goals));
    const bool isChosen = std::ranges::any_of(
        step.questions, [&](const LabQuestion& question) { return session.attempt().given(question) != nullptr; });
    for (const LabCheckResult& one : session.view().grade->checks) {
        if (one.step != step.id)
            continue;
        const bool isPassed = one.verdict == LabVerdict::Passed;
        const bool isOpen = !isChosen && one.actual.empty();
        const QString name = goalName(one.id);
        const bool isLater = !one.needs.empty();
        const QString text = one.hidden ? tr("%1: checked when you hand in").arg(name)
            : isOpen                    ? tr("%1: nothing is chosen yet").arg(name)
            : isLater                   ? tr("%1: counts once “%2” is reached").arg(name, goalName(one.needs))
            : isPassed                  ? tr("✓ %1: %2").arg(name, toQString(one.actual))
                       : tr("✗ %1: %2").arg(name, toQString(one.actual.empty() ? one.message : one.actual));
        m_goalTexts << text;
        m_goals->column()->addWidget(toneLabel(text,
                                               one.hidden || isOpen || isLater ? "dim"
                                                   : isPassed                  ? "good"
                                                                               : "bad",
                                               m_goals));
        if (const QString wanted = wantedText(step, one); !one.hidden && !isPassed && !wanted.isEmpty())
            m_goals->column()->addWidget(toneLabel(wanted, "faint", m_goals));
        if (!one.hidden && !isPassed && !one.because.empty())
            m_goals->column()->addWidget(markdownLabel(toQString(one.because), m_goals));
    }
}

void StepPane::displayHints(const LabSession& session)
{
    const LabStep& step = session.step();
    const LabStepState* state = session.attempt().state(step.id);
    const std::size_t seen = state ? std::min(state->hints, step.hints.size()) : 0;
    m_hints->setVisible(!step.hints.empty());
    if (step.hints.empty())
        return;
    const QStringList texts = session.view().step == step.id ? session.view().hints : QStringList();
    if (texts != m_hintTexts || m_hints->column()->count() < 2) {
        m_hintTexts = texts;
        m_hints->column()->removeWidget(m_hint);
        m_hint->setParent(this); // the card deletes what is in it
        m_hints->clear();
        m_hints->column()->addWidget(toneLabel(tr("Hints"), "strong", m_hints));
        for (const QString& one : texts)
            m_hints->column()->addWidget(markdownLabel(one, m_hints));
        m_hints->column()->addWidget(m_hint, 0, Qt::AlignLeft);
    }
    const bool hasMore = seen < step.hints.size();
    m_hint->setVisible(hasMore);
    if (hasMore)
        m_hint->setText(
            (seen == 0 ? tr("Show a hint %1") : tr("Show another hint %1")).arg(costText(step.hints[seen].cost)));
    m_hint->setEnabled(session.attempt().isOpen(step.id));
}

void StepPane::displayWay(const LabSession& session)
{
    const auto& steps = session.lab().steps;
    const auto here = std::size_t(&session.step() - steps.data());
    m_before = here > 0 ? toQString(steps[here - 1].id) : QString();
    m_after = here + 1 < steps.size() ? toQString(steps[here + 1].id) : QString();
    const bool isNextOpen = !m_after.isEmpty() && session.mayShow(m_after.toStdString());
    m_back->setEnabled(!m_before.isEmpty());
    m_next->setEnabled(isNextOpen);
    m_next->setVisible(!m_after.isEmpty());
    m_next->setToolTip(isNextOpen || m_after.isEmpty() ? tr("The next step (Ctrl+PgDown)")
                                                       : tr("It opens when this step is done"));
    QStringList later;
    for (std::size_t i = here + 1; i < steps.size(); ++i)
        later << tr("%1  %2").arg(i + 1).arg(toQString(steps[i].title));
    m_later->setText(later.isEmpty() ? QString() : tr("Later in this lab") + u'\n' + later.join(u'\n'));
    m_later->setVisible(!later.isEmpty());
    const QString file = QFileInfo(session.path()).fileName();
    const auto& problem = session.saveProblem();
    setTone(m_footer, problem ? "bad" : "faint");
    m_footer->setText(problem ? tr("Your answers could not be saved: %1. Use Hand in… to keep them elsewhere.")
                                    .arg(toQString(problem->text()))
                          : session.isCopy() ? tr("a copy: nothing that you change is kept")
                                             : tr("answers are saved as you go: %1").arg(file));
    m_footer->setToolTip(session.path());
}

void StepPane::showError(const std::string& question, const QString& text)
{
    if (QuestionField* one = field(question))
        return one->showError(text);
    m_stepError->setText(text);
    m_stepError->setVisible(!text.isEmpty());
    if (text.isEmpty())
        return;
    QApplication::sendPostedEvents(this, QEvent::LayoutRequest); // it has no place yet
    m_scroll->widget()->layout()->activate();
    m_scroll->ensureWidgetVisible(m_stepError);
}

void StepPane::commit()
{
    const auto fields = m_fields; // an answer may bring other ones
    for (QuestionField* one : fields)
        one->commit();
}

void StepPane::confirm()
{
    const auto fields = m_fields;
    for (QuestionField* one : fields)
        one->confirm();
}

void StepPane::reveal(QuestionField& field)
{
    QApplication::sendPostedEvents(this, QEvent::LayoutRequest); // what it says may be new
    m_scroll->widget()->layout()->activate();
    m_scroll->ensureWidgetVisible(&field);
    for (QWidget* one : field.findChildren<QWidget*>())
        if (one->isVisible() && one->isEnabled() && (one->focusPolicy() & Qt::TabFocus) != 0)
            return one->setFocus();
}

QuestionField* StepPane::field(const std::string& question) const
{
    for (QuestionField* one : m_fields)
        if (one->key() == question)
            return one;
    return nullptr;
}

QString StepPane::text() const
{
    return m_text->toPlainText();
}

QStringList StepPane::hints() const
{
    return m_hintTexts;
}

QStringList StepPane::goals() const
{
    return m_goalTexts;
}

QString StepPane::footer() const
{
    return m_footer->text();
}

} // namespace memscape
