// SPDX-License-Identifier: GPL-3.0-or-later
// What an experiment's page plots: which of its plots, on which axes, zoomed how, marked where.
#include "app/pages/experiment_page.h"

#include "app/pages/records/record_text.h"
#include "app/settings/words.h"

#include <nlohmann/json.hpp>

#include <QEvent>
#include <QSplitter>

#include <algorithm>
#include <iterator>

namespace memscape {

namespace {

/// What a curve of one point lacks; empty for others.
QString invitation(const SeriesAxis* axis, const Schema& schema)
{
    const ParameterSpec* spec = axis && axis->values.size() == 1 ? findParameter(schema, axis->key) : nullptr;
    if (!spec || (spec->kind != ParameterKind::Integer && spec->kind != ParameterKind::Real))
        return {};
    return ExperimentPage::tr("One point: type several values of %1 into the form, such as 1,2,4,8, for a curve.")
        .arg(toQString(spec->label));
}

} // namespace

SeriesGroup ExperimentPage::currentGroup(const std::vector<SeriesGroup>& groups) const
{
    if (groups.empty())
        return {};
    const Json chosen = m_services.document.viewSetting(m_id, "plot");
    for (const SeriesGroup& group : groups) {
        if (chosen.is_string() && group.key.toStdString() == chosen.get<std::string>())
            return group;
    }
    // A sweep that was asked for is what one wants to see; its x axis is the swept parameter.
    const std::optional<Sweep> sweep = parameters().sweep();
    for (const SeriesGroup& group : groups) {
        const SeriesAxis* axis = m_prediction && sweep ? axisOf(*m_prediction->predicted, group) : nullptr;
        if (axis && axis->key == sweep->key)
            return group;
    }
    return groups.front();
}

QWidget* ExperimentPage::stage() const
{
    return m_plot->isFolded() ? static_cast<QWidget*>(m_picture) : m_plot->view();
}

/// A picture that is a plot hides the curves, unless the user opened them or has records
/// pinned, which only they show.
void ExperimentPage::refreshFold()
{
    if (m_picture == nullptr || !m_picture->isPlot())
        return;
    const std::vector<Record>& records = m_services.document.records();
    const bool hasPins =
        std::ranges::any_of(records, [&](const Record& record) { return record.pinned && record.experiment == m_id; });
    const Json asked = m_services.document.viewSetting(m_id, "curves");
    const bool wantsCurves = asked.is_boolean() ? asked.get<bool>() : hasPins;
    const bool folded = !wantsCurves && !m_picture->isHidden();
    if (folded == m_plot->isFolded())
        return;
    m_plot->setFolded(folded);
    auto* centre = findChild<QSplitter*>(QStringLiteral("centre"));
    if (!folded && centre != nullptr)
        centre->setSizes({3 * centre->height() / 5, 2 * centre->height() / 5});
}

/// Without its picture the page has its curves at least.
bool ExperimentPage::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_picture && (event->type() == QEvent::HideToParent || event->type() == QEvent::ShowToParent))
        schedule(Outputs);
    return QWidget::eventFilter(watched, event);
}

std::vector<SeriesGroup> ExperimentPage::plotGroups(const Outcome& outcome) const
{
    std::vector<SeriesGroup> groups = seriesGroups(outcome);
    return m_extension->groups(std::move(groups), parameters().sweep().has_value());
}

void ExperimentPage::applyLogChoice(const SeriesGroup& group, AxisSpec& x, AxisSpec& y) const
{
    const std::string key = group.key.toStdString();
    const Json logX = m_services.document.viewSetting(m_id, "logX." + key);
    const Json logY = m_services.document.viewSetting(m_id, "logY." + key);
    if (logX.is_boolean())
        x.log = logX.get<bool>() ? (x.log != 0 ? x.log : x.unit == Unit::Byte ? 2 : 10) : 0;
    if (logY.is_boolean()) {
        y.log = logY.get<bool>() ? 10 : 0;
        y.fromZero = y.log == 0;
    }
}

void ExperimentPage::setZooms(const QVariantMap& zooms)
{
    m_zooms = zooms;
    m_zoomOf.clear();
    m_plot->view()->resetView();
    schedule(Outputs);
}

void ExperimentPage::rememberZoom()
{
    if (m_zoomOf.isEmpty())
        return; // the plot is changing what it shows
    const PlotView* view = m_plot->view();
    if (view->following()) {
        m_zooms.remove(m_zoomOf);
        return;
    }
    const PlotRange range = view->range();
    m_zooms[m_zoomOf] =
        QVariantList{range.xLow, range.xHigh, range.yLow, range.yHigh, view->xAxis().log, view->yAxis().log};
}

void ExperimentPage::restoreZoom(const QString& group)
{
    if (group == m_zoomOf)
        return;
    m_zoomOf.clear();
    PlotView* view = m_plot->view();
    const QVariantList zoom = m_zooms.value(group).toList();
    // Limits of another kind of axis say nothing on this one.
    if (zoom.size() == 6 && zoom[4].toInt() == view->xAxis().log && zoom[5].toInt() == view->yAxis().log)
        view->setRange({zoom[0].toDouble(), zoom[1].toDouble(), zoom[2].toDouble(), zoom[3].toDouble()});
    else
        view->resetView();
    m_zoomOf = group;
}

void ExperimentPage::refreshPlot(const ShownMeasurement& now)
{
    refreshFold();
    PlotView* view = m_plot->view();
    const Outcome* predicted = m_prediction ? &*m_prediction->predicted : nullptr;
    const Outcome* lead = predicted ? predicted : now.outcome ? &*now.outcome : nullptr;
    if (lead == nullptr) {
        view->setCurves({});
        view->setMarkers({});
        view->setBands({});
        view->setLines({});
        view->setPhases({});
        view->setCallouts({});
        const bool isSaid = m_picture && !m_picture->isHidden() && !m_picture->problem().isEmpty();
        view->setEmptyText(m_predictionError && isSaid ? tr("Nothing to draw: the heading says why.")
                               : m_predictionError ? QString::fromStdString(withBriefHint(*m_predictionError).text())
                               : m_isStopped       ? tr("The calculation was stopped.")
                                                   : tr("calculating…"));
        return;
    }
    const ByteStyle bytes = byteStyle();
    std::vector<SeriesGroup> groups = plotGroups(*lead);
    if (now.outcome) { // what only a run can say: the losses of a training
        for (SeriesGroup& more : seriesGroups(*now.outcome)) {
            if (lead->findSeries(more.series.front()) == nullptr)
                groups.push_back(std::move(more));
        }
    }
    const SeriesGroup group = currentGroup(groups);
    const auto isIn = [&](const Outcome& outcome) {
        return !group.series.empty() && outcome.findSeries(group.series.front()) != nullptr;
    };
    const bool isMeasuredAlone = now.outcome && !isIn(*lead) && isIn(*now.outcome);
    if (isMeasuredAlone)
        lead = &*now.outcome;
    m_plot->setGroups(groups, group.key);
    if (m_prediction && m_extension->drawPlot(group.key))
        return restoreZoom(group.key);
    const CurveInput input = curveInput(now);
    AxisSpec x = xAxisOf(*lead, group, bytes, m_experiment.schema());
    AxisSpec y = yAxisOf(group, input, bytes);
    const bool isOwn = m_extension->draws(group.key);
    if (isOwn)
        m_extension->dressAxes(x, y);
    applyLogChoice(group, x, y);
    m_plot->setAxes(x, y);
    m_plot->setPlain(isOwn);
    m_plot->setInvitation(isOwn ? QString() : invitation(axisOf(*lead, group), m_experiment.schema()));
    const QString title = tr("%1 by %2").arg(group.label, x.label);
    view->setTitle(capitalized(title));
    view->setEmptyText(tr("Nothing to draw yet."));
    std::vector<Curve> curves = makeCurves(group, input);
    if (isOwn)
        m_extension->dressCurves(curves, input);
    view->setCurves(std::move(curves));
    restoreZoom(group.key);
    view->setMarkers(isMeasuredAlone ? std::vector<Marker>() : markers());
    const Device* target = device();
    const SeriesAxis* axis = axisOf(*lead, group);
    const bool hasLevels = target && m_experiment.isThroughMemory(*target);
    view->setBands(hasLevels && axis ? capacityBands(*target, *axis) : std::vector<Band>());
    std::vector<HorizontalLine> lines = m_extension->limits(group);
    if (hasLevels)
        std::ranges::copy(datasheetLines(*target, group.unit, bytes), std::back_inserter(lines));
    view->setLines(std::move(lines));
    view->setPhases({});
    view->setCallouts({});
    if (isOwn)
        m_extension->dressPlot(*view);
}

const SeriesAxis* ExperimentPage::currentAxis() const
{
    if (!m_prediction || m_prediction->predicted->series.empty())
        return nullptr;
    const Outcome& predicted = *m_prediction->predicted;
    return axisOf(predicted, currentGroup(plotGroups(predicted)));
}

std::optional<double> ExperimentPage::currentX() const
{
    const SeriesAxis* shownAxis = currentAxis();
    if (shownAxis == nullptr)
        return std::nullopt;
    const SeriesAxis& axis = *shownAxis;
    const ParameterSpec* spec = findParameter(m_experiment.schema(), axis.key);
    const Parameters now = parameters();
    if (spec == nullptr || !now.has(axis.key))
        return std::nullopt;
    if (spec->kind == ParameterKind::Integer || spec->kind == ParameterKind::Real)
        return now.number(axis.key);
    if (spec->kind == ParameterKind::Text) {
        const auto at = std::ranges::find(axis.names, now.text(axis.key));
        return at == axis.names.end() ? std::nullopt : std::optional<double>(at - axis.names.begin());
    }
    const std::string choice = spec->kind == ParameterKind::Choice ? now.choice(axis.key) : std::string();
    for (std::size_t i = 0; i < axis.names.size(); ++i) {
        for (const ChoiceValue& known : spec->choices) {
            if (known.key == choice && (axis.names[i] == known.key || axis.names[i] == known.label))
                return double(i);
        }
    }
    return std::nullopt;
}

std::vector<Marker> ExperimentPage::markers() const
{
    const SeriesAxis* axis = currentAxis();
    const QString group = m_prediction ? currentGroup(plotGroups(*m_prediction->predicted)).key : QString();
    if (auto own = m_extension->markers(group, axis))
        return *own;
    const std::optional<double> x = currentX();
    if (!x)
        return {};
    const std::string& key = axis->key;
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key);
    const Parameters now = parameters();
    QString label;
    for (const auto& [name, value] : now.values()) {
        if (name == key)
            label = QString::fromStdString(valueLabel(*spec, value, byteStyle()));
    }
    return {{QString::fromStdString(key), *x, label, !now.sweep()}};
}

} // namespace memscape
