// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/checkpoint_extension.h"

#include "app/pages/fields/checkpoint_fields.h"
#include "app/pages/fields/number_field.h"
#include "app/pages/memory_plot.h"
#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiments/checkpoint/checkpoint_chain.h"

#include <nlohmann/json.hpp>

#include <QMenu>
#include <QSplitter>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QString missingText(const Json& detail)
{
    const Json& missing = member(member(detail, "strategy"), "missing");
    const std::string message = words(missing, "message"), hint = words(missing, "hint");
    if (!message.empty())
        return toQString(hint.empty() ? message : message + " (" + hint + ")");
    return toQString(words(detail, "schedule_missing"));
}

QString basisText(const Json& detail)
{
    QStringList lines;
    const Json& chain = member(detail, "chain");
    if (const std::string note = words(member(detail, "strategy"), "note"); !note.empty())
        lines << CheckpointExtension::tr("this schedule: %1").arg(toQString(note));
    lines << CheckpointExtension::tr(
        "the front: optimal among persistent schedules, in which a kept value stays until its own backward");
    if (const std::string from = words(chain, "sizes_from"); !from.empty())
        lines << CheckpointExtension::tr("sizes: %1").arg(toQString(from));
    if (const std::string from = words(chain, "times_from"); !from.empty())
        lines << CheckpointExtension::tr("times: %1").arg(toQString(from));
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
    return std::ranges::all_of(a.values(), [&](const auto& one) {
        return choosesSchedule(one.first) || std::ranges::find(b.values(), one) != b.values().end();
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
            measured.push_back(
                {parameterText(record.parameters, "strategy"), peak, makespan, storedTime(*record.measured)});
    }
    return measured;
}

CheckpointExtension::CheckpointExtension(const PageParts& parts, QObject* parent)
    : PageExtension(parts, parent)
    , m_picture(qobject_cast<CheckpointPicture*>(parts.picture))
{
    connect(m_picture, &CheckpointPicture::cursorMoved, this, &CheckpointExtension::markersChanged);
    if (auto* centre = qobject_cast<QSplitter*>(m_picture->parentWidget())) // a long schedule wants its height
        centre->setStretchFactor(0, 1);
    const PagePlot* plot = parts.plot;
    connect(plot->view(), &PlotView::pointsClicked, this, &CheckpointExtension::offer);
    connect(plot->view(), &PlotView::curveClicked, this, [this](const QString& key) {
        if (const QString strategy = strategyOfCurve(key); !strategy.isEmpty())
            emit edited(QStringLiteral("strategy"), strategy);
    });
}

/// Schedules that stand at one place of the plane hide each other: a menu names them.
void CheckpointExtension::offer(const QStringList& curves, const QPoint& place)
{
    auto* menu = new QMenu(m_parts.plot);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const QString& curve : curves) {
        const QString key = strategyOfCurve(curve);
        const auto point = std::ranges::find(m_input.strategies, key, &StrategyPoint::key);
        if (key.isEmpty() || point == m_input.strategies.end())
            continue;
        const ScheduleUnits& units = m_input.front.units;
        QAction* action =
            menu->addAction(tr("%1: %2, %3").arg(point->label, units.memory(point->peak), units.time(point->makespan)),
                            this, [this, key] { emit edited(QStringLiteral("strategy"), key); });
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

void CheckpointExtension::showFields(const Parameters& parameters) const
{
    const bool isMlp = parameterText(parameters, "chain").startsWith(QStringLiteral("mlp:"));
    if (auto* batch = qobject_cast<NumberField*>(m_parts.form->field(QStringLiteral("batch"))))
        batch->setZeroText(QString::number(isMlp ? standardRows : standardSequences));
}

void CheckpointExtension::setPrediction(const Record* prediction, const Parameters& parameters, ByteStyle bytes)
{
    showFields(parameters);
    static const Json none;
    const Json& detail = prediction && prediction->predicted ? prediction->predicted->detail : none;
    m_input.front = readFront(detail);
    m_input.front.units.bytes = bytes;
    m_input.strategies = readStrategies(detail);
    m_input.chosen = parameterText(parameters, "strategy");
    m_missing = missingText(detail);
    m_basis = prediction ? basisText(detail) : QString();
    if (prediction == nullptr)
        return; // the last range stays: the slider may lead out of what could not be answered
    const Json& forward = member(member(detail, "chain"), "forward");
    if (auto* budget = qobject_cast<BudgetField*>(m_parts.form->field(QStringLiteral("budget"))))
        budget->setRange(m_input.front, forward.is_array() ? int(forward.size()) : 0);
    if (auto* strategy = qobject_cast<StrategyField*>(m_parts.form->field(QStringLiteral("strategy"))))
        strategy->setPoints(m_input.strategies, m_input.front.units);
}

void CheckpointExtension::setState(const ShownState& state)
{
    setPrediction(state.prediction, state.parameters, state.bytes);
    m_input.measured = measuredSchedules(state.records, state.parameters);
    m_input.measuredOn = state.measuredOn;
}

std::optional<InspectorNote> CheckpointExtension::note(bool)
{
    if (m_missing.isEmpty())
        return std::nullopt;
    const QString least = leastBudget();
    if (least.isEmpty())
        return InspectorNote{m_missing};
    return InspectorNote{m_missing, {{tr("Use %1").arg(m_input.front.units.memory(least.toDouble())), [this, least] {
                                          emit edited(QString::fromLatin1(budgetMarker), least);
                                      }}}};
}

std::vector<SeriesGroup> CheckpointExtension::groups(std::vector<SeriesGroup> own, bool isSwept) const
{
    if (!isSwept)
        std::erase_if(own, [](const SeriesGroup& group) { return group.key != QStringLiteral("memory"); });
    own.insert(isSwept ? own.end() : own.begin(),
               SeriesGroup{QString::fromLatin1(planeKey), tr("memory against time"), Unit::One, {}});
    return own;
}

bool CheckpointExtension::drawPlot(const QString& group)
{
    if (!draws(group))
        return false;
    const CheckpointPlane plane = checkpointPlane(m_input);
    PlotView* view = m_parts.plot->view();
    m_parts.plot->setAxes(plane.x, plane.y);
    m_parts.plot->setPlain(true);
    view->setTitle(tr("Memory against time: every point is a schedule"));
    view->setEmptyText(m_missing.isEmpty() ? tr("Nothing to draw yet.") : m_missing);
    view->setCurves(plane.curves);
    view->setMarkers(plane.markers);
    view->setBands({});
    view->setLines({});
    view->setPhases({});
    view->setCallouts({});
    return true;
}

std::optional<std::vector<Marker>> CheckpointExtension::markers(const QString& group, const SeriesAxis* axis) const
{
    if (draws(group))
        return checkpointPlane(m_input).markers;
    if (axis && axis->key == "step_time")
        return cursorMarkers();
    return std::nullopt;
}

std::vector<Marker> CheckpointExtension::cursorMarkers() const
{
    const ScheduleState& state = m_picture->state();
    const int step = m_picture->cursor();
    if (step < 0 || std::size_t(step) >= state.steps.size() || !state.hasTimes())
        return {};
    const ScheduleStep& at = state.steps[std::size_t(step)];
    return {{QString::fromLatin1(cursorMarker), (at.begin + at.end) / 2, state.name(step), true}};
}

bool CheckpointExtension::moveMarker(const QString& key, double time)
{
    if (key != QLatin1String(cursorMarker))
        return false;
    const std::vector<ScheduleStep>& steps = m_picture->state().steps;
    const auto at = std::ranges::find_if(steps, [time](const ScheduleStep& step) { return step.end > time; });
    if (!steps.empty())
        m_picture->setCursor(int(std::min<std::ptrdiff_t>(at - steps.begin(), std::ptrdiff_t(steps.size()) - 1)));
    return true;
}

QString CheckpointExtension::markerText(const QString& key, double memory) const
{
    if (key != QLatin1String(budgetMarker))
        return {};
    const FrontLine& front = m_input.front;
    const double least = front.budget.empty() ? front.least : front.budget.front();
    const double most = std::max(least, front.full);
    return budgetText(std::isfinite(least) && std::isfinite(most) ? std::clamp(memory, least, most) : memory);
}

QString CheckpointExtension::leastBudget() const
{
    const FrontLine& front = m_input.front;
    if (m_missing.isEmpty() || !std::isfinite(front.least) || !(front.given < front.least))
        return {};
    return budgetText(front.budget.empty() ? front.least : std::max(front.least, front.budget.front()));
}

} // namespace memscape
