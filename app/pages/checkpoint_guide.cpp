// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/checkpoint_guide.h"

#include "app/pages/checkpoint_fields.h"
#include "app/pages/memory_plot.h"
#include "app/pages/number_field.h"
#include "app/pictures/json_values.h"
#include "app/settings/words.h"
#include "core/experiments/checkpoint_chain.h"

#include <nlohmann/json.hpp>

#include <QMenu>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

std::string words(const Json& object, const char* key)
{
    const Json& value = member(object, key);
    return value.is_string() ? value.get<std::string>() : std::string();
}

QString missingText(const Json& detail)
{
    const Json& missing = member(member(detail, "strategy"), "missing");
    const std::string message = words(missing, "message"), hint = words(missing, "hint");
    if (!message.empty())
        return toQString(hint.empty() ? message : message + " (" + hint + ")");
    return toQString(words(detail, "schedule_missing"));
}

QString footingText(const Json& detail)
{
    QStringList lines;
    const Json& chain = member(detail, "chain");
    if (const std::string note = words(member(detail, "strategy"), "note"); !note.empty())
        lines << CheckpointGuide::tr("this schedule: %1").arg(toQString(note));
    lines << CheckpointGuide::tr("the front: optimal among persistent schedules, in which what is kept stays until its own backward");
    if (const std::string from = words(chain, "sizes_from"); !from.empty())
        lines << CheckpointGuide::tr("sizes: %1").arg(toQString(from));
    if (const std::string from = words(chain, "times_from"); !from.empty())
        lines << CheckpointGuide::tr("times: %1").arg(toQString(from));
    return lines.join(u'\n');
}

double figure(const Outcome& outcome, const char* key)
{
    const Figure* found = findFigure(outcome.figures, key);
    return found && found->isNumber() ? found->number() : std::nan("");
}

/// Parameters that choose a schedule, not what is scheduled.
bool choosesSchedule(const std::string& key)
{
    return key == "strategy" || key == "budget" || key == "slots" || key == "last_segment";
}

bool sameChain(const Parameters& a, const Parameters& b)
{
    return std::all_of(a.values().begin(), a.values().end(), [&](const auto& one) {
        return choosesSchedule(one.first)
            || std::find(b.values().begin(), b.values().end(), one) != b.values().end();
    });
}

QString parameterText(const Parameters& parameters, const char* key)
{
    for (const auto& [name, value] : parameters.values()) {
        if (name == key)
            return toQString(valueText(value));
    }
    return {};
}

/// What the run's own profile says that storing everything takes.
double storedTime(const Measurement& measured)
{
    return number(measured.detail, "profile_without_recomputation");
}

} // namespace

std::vector<MeasuredSchedule> measuredSchedules(const std::vector<Record>& records, const Parameters& parameters)
{
    std::vector<MeasuredSchedule> measured;
    for (const Record& record : records) {
        if (record.experiment != "checkpoint" || !record.measured || !sameChain(record.parameters, parameters))
            continue;
        const double peak = figure(*record.measured, "peak"), makespan = figure(*record.measured, "makespan");
        if (std::isfinite(peak) && std::isfinite(makespan))
            measured.push_back({parameterText(record.parameters, "strategy"), peak, makespan, storedTime(*record.measured)});
    }
    return measured;
}

bool CheckpointGuide::guides(const Experiment& experiment)
{
    return experiment.id() == "checkpoint";
}

CheckpointGuide::CheckpointGuide(PagePlot* plot, ParameterForm* form, CheckpointPicture* picture, QObject* parent)
    : QObject(parent)
    , m_plot(plot)
    , m_form(form)
    , m_picture(picture)
{
    connect(picture, &CheckpointPicture::cursorMoved, this, &CheckpointGuide::cursorMoved);
    connect(plot->view(), &PlotView::pointsClicked, this, &CheckpointGuide::offer);
    connect(plot->view(), &PlotView::curveClicked, this, [this](const QString& key) {
        if (const QString strategy = strategyOfCurve(key); !strategy.isEmpty())
            emit edited(QStringLiteral("strategy"), strategy);
    });
}

/// Schedules that stand at one place of the plane hide each other: a menu names them.
void CheckpointGuide::offer(const QStringList& curves, const QPoint& place)
{
    auto* menu = new QMenu(m_plot);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const QString& curve : curves) {
        const QString key = strategyOfCurve(curve);
        const auto point = std::find_if(m_input.strategies.begin(), m_input.strategies.end(),
                                        [&](const StrategyPoint& one) { return one.key == key; });
        if (key.isEmpty() || point == m_input.strategies.end())
            continue;
        const ScheduleUnits& units = m_input.front.units;
        QAction* action = menu->addAction(
            tr("%1: %2, %3").arg(point->label, units.memory(point->peak), units.time(point->makespan)), this,
            [this, key] { emit edited(QStringLiteral("strategy"), key); });
        action->setCheckable(true);
        action->setChecked(key == m_input.chosen);
    }
    if (menu->actions().size() > 1) {
        menu->popup(place);
        return;
    }
    if (!menu->isEmpty())
        menu->actions().front()->trigger(); // the rest was measured: only one can be chosen
    delete menu;
}

void CheckpointGuide::showFields(const Parameters& parameters) const
{
    const bool isMlp = parameterText(parameters, "chain").startsWith(QStringLiteral("mlp:"));
    if (auto* batch = qobject_cast<NumberField*>(m_form->field(QStringLiteral("batch"))))
        batch->setZeroText(QString::number(isMlp ? standardRows : standardSequences));
}

void CheckpointGuide::setPrediction(const Record* prediction, const Parameters& parameters, ByteStyle bytes)
{
    showFields(parameters);
    static const Json none;
    const Json& detail = prediction && prediction->predicted ? prediction->predicted->detail : none;
    m_input.front = readFront(detail);
    m_input.front.units.bytes = bytes;
    m_input.strategies = readStrategies(detail);
    m_input.chosen = parameterText(parameters, "strategy");
    m_missing = missingText(detail);
    m_footing = prediction ? footingText(detail) : QString();
    if (prediction == nullptr)
        return; // the last range stays: the slider may lead out of what could not be answered
    const Json& forward = member(member(detail, "chain"), "forward");
    if (auto* budget = qobject_cast<BudgetField*>(m_form->field(QStringLiteral("budget"))))
        budget->setRange(m_input.front, forward.is_array() ? int(forward.size()) : 0);
    if (auto* strategy = qobject_cast<StrategyField*>(m_form->field(QStringLiteral("strategy"))))
        strategy->setPoints(m_input.strategies, m_input.front.units);
}

void CheckpointGuide::setMeasured(std::vector<MeasuredSchedule> measured, const QString& measuredOn)
{
    m_input.measured = std::move(measured);
    m_input.measuredOn = measuredOn;
}

std::vector<SeriesGroup> CheckpointGuide::groups(std::vector<SeriesGroup> own, bool isSwept) const
{
    if (!isSwept)
        std::erase_if(own, [](const SeriesGroup& group) { return group.key != QStringLiteral("memory"); });
    own.insert(isSwept ? own.end() : own.begin(),
               SeriesGroup{QString::fromLatin1(planeKey), tr("memory against time"), Unit::One, {}});
    return own;
}

void CheckpointGuide::dressPlane()
{
    const CheckpointPlane plane = checkpointPlane(m_input);
    PlotView* view = m_plot->view();
    m_plot->setAxes(plane.x, plane.y);
    m_plot->setPlain(true);
    view->setTitle(tr("Memory against time: every point is a schedule"));
    view->setEmptyText(m_missing.isEmpty() ? tr("Nothing to draw yet.") : m_missing);
    view->setCurves(plane.curves);
    view->setMarkers(plane.markers);
    view->setBands({});
    view->setLines({});
    view->setPhases({});
    view->setCallouts({});
}

std::vector<Marker> CheckpointGuide::markers() const
{
    return checkpointPlane(m_input).markers;
}

std::vector<Marker> CheckpointGuide::cursorMarkers() const
{
    const ScheduleState& state = m_picture->state();
    const int step = m_picture->cursor();
    if (step < 0 || std::size_t(step) >= state.steps.size() || !state.hasTimes())
        return {};
    const ScheduleStep& at = state.steps[std::size_t(step)];
    return {{QString::fromLatin1(cursorMarker), (at.begin + at.end) / 2, state.name(step), true}};
}

void CheckpointGuide::moveCursor(double time)
{
    const std::vector<ScheduleStep>& steps = m_picture->state().steps;
    const auto at = std::find_if(steps.begin(), steps.end(), [time](const ScheduleStep& step) { return step.end > time; });
    if (!steps.empty())
        m_picture->setCursor(int(std::min<std::ptrdiff_t>(at - steps.begin(), std::ptrdiff_t(steps.size()) - 1)));
}

QString CheckpointGuide::budgetAt(double memory) const
{
    const FrontLine& front = m_input.front;
    const double least = front.budget.empty() ? front.least : front.budget.front();
    const double most = std::max(least, front.full);
    return budgetText(std::isfinite(least) && std::isfinite(most) ? std::clamp(memory, least, most) : memory);
}

QString CheckpointGuide::leastBudget() const
{
    const FrontLine& front = m_input.front;
    if (m_missing.isEmpty() || !std::isfinite(front.least) || !(front.given < front.least))
        return {};
    return budgetText(front.budget.empty() ? front.least : std::max(front.least, front.budget.front()));
}

QString CheckpointGuide::leastText() const
{
    const QString budget = leastBudget();
    return budget.isEmpty() ? QString() : m_input.front.units.memory(budget.toDouble());
}

} // namespace memscape
