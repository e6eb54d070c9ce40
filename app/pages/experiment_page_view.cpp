// SPDX-License-Identifier: GPL-3.0-or-later
// What an experiment's page draws from its prediction and the measurement beside it.
#include "app/pages/experiment_page.h"

#include "app/pages/record_text.h"
#include "core/experiment/comparison.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

QString text(const std::string& words)
{
    return QString::fromStdString(words);
}

QString percent(double share)
{
    return text(percentText(share));
}

/// "fits within 4.8 % (median of 12 points; at most 20 % at 32 MiB)".
QString fitText(const Outcome& predicted, const Outcome& measured, const SeriesGroup& group,
                ByteStyle bytes)
{
    const Comparison comparison = compare(predicted, measured);
    for (const SeriesComparison& series : comparison.series) {
        if (series.key != group.series.front() || series.points == 0)
            continue;
        const Series* curve = predicted.findSeries(series.key);
        return ExperimentPage::tr("%1: off by %2 (median of %n points), at most %3 at %4", nullptr,
                                  int(series.points))
            .arg(text(curve->label), percent(series.medianError), percent(series.largestError),
                 text(quantityText(series.worstX, curve->x.unit, bytes)));
    }
    return {};
}

/// The measured x nearest to the one that is shown; NaN without points.
double nearestMeasured(const Outcome& measured, double x)
{
    double best = std::numeric_limits<double>::quiet_NaN();
    for (const Series& series : measured.series) {
        for (std::size_t i = 0; i < series.x.values.size() && i < series.y.size(); ++i) {
            const double at = series.x.values[i];
            const bool nearer = !std::isfinite(best) || std::abs(at - x) < std::abs(best - x);
            if (std::isfinite(series.y[i]) && nearer)
                best = at;
        }
    }
    return best;
}

} // namespace

void ExperimentPage::refreshInputs()
{
    const Parameters now = parameters();
    m_inspector->form()->display(now, byteStyle());
    m_header->setDevice(deviceId());
    const bool bases = m_services.settings.showBases();
    m_plot->setBases(bases);
    if (const DeviceEntry* target = m_services.devices.find(deviceId())) {
        if (bases && !m_memory) // bytes do not depend on what rates stand on
            m_bases.request(m_id, *target, now);
        else
            m_bases.clear();
        if (m_memory)
            m_memory->request(m_predictor, target->device, now);
        else
            m_predictor.request(m_id, target->device, now, true);
        return;
    }
    m_bases.clear();
    m_prediction.reset();
    m_predictionError = Error{"device.unknown",
                              "the device \"" + deviceId() + "\" is not there", {},
                              "pick another in the device menu"};
    refreshOutputs();
}

void ExperimentPage::refreshOutputs()
{
    const ShownMeasurement now = shown();
    if (m_memory)
        m_memory->setPrediction(m_prediction.get(), byteStyle());
    if (m_picture) {
        m_picture->setByteStyle(byteStyle());
        if (const Device* target = device())
            m_picture->setState(m_experiment, *target, parameters(),
                                m_prediction ? &*m_prediction->predicted : nullptr,
                                now.outcome && !now.elsewhere ? &*now.outcome : nullptr);
    }
    refreshPlot(now);
    refreshInspector(now);
    emit updated();
}

ShownMeasurement ExperimentPage::shown() const
{
    static const Device none;
    const Device* target = device();
    return shownMeasurement(m_services.document, m_services.runs, m_experiment,
                            target ? *target : none, parameters(), m_chosen);
}

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

std::vector<PinnedOutcome> ExperimentPage::pinnedOutcomes(const ShownMeasurement& now) const
{
    std::vector<PinnedOutcome> pinned;
    const std::vector<Record>& records = m_services.document.records();
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Record& record = records[i];
        if (!record.pinned || record.experiment != m_id || int(i) == now.recordIndex)
            continue;
        pinned.push_back({recordName(record), m_inspector->records()->model()->paletteOf(i),
                          record.predicted ? &*record.predicted : nullptr,
                          record.measured ? &*record.measured : nullptr});
    }
    return pinned;
}

CurveInput ExperimentPage::curveInput(const ShownMeasurement& now) const
{
    CurveInput input;
    input.predicted = m_prediction ? &*m_prediction->predicted : nullptr;
    if (m_prediction && m_services.settings.showBases()) {
        input.others = m_bases.answers();
        input.basis = basisName(m_prediction->device);
    }
    input.measured = now.outcome ? &*now.outcome : nullptr;
    input.measuredOn = tr("measured on %1").arg(shortDeviceName(now.device));
    input.measuredElsewhere = now.elsewhere;
    if (now.elsewhere)
        input.measuredOn += tr(" (other settings)");
    input.pinned = pinnedOutcomes(now);
    return input;
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
    m_zooms[m_zoomOf] = QVariantList{range.xLow, range.xHigh, range.yLow, range.yHigh,
                                     view->xAxis().log, view->yAxis().log};
}

void ExperimentPage::restoreZoom(const QString& group)
{
    if (group == m_zoomOf)
        return;
    m_zoomOf.clear();
    PlotView* view = m_plot->view();
    const QVariantList zoom = m_zooms.value(group).toList();
    // Limits of another kind of axis say nothing on this one.
    if (zoom.size() == 6 && zoom[4].toInt() == view->xAxis().log
        && zoom[5].toInt() == view->yAxis().log)
        view->setRange({zoom[0].toDouble(), zoom[1].toDouble(), zoom[2].toDouble(), zoom[3].toDouble()});
    else
        view->resetView();
    m_zoomOf = group;
}

void ExperimentPage::refreshPlot(const ShownMeasurement& now)
{
    PlotView* view = m_plot->view();
    const Outcome* predicted = m_prediction ? &*m_prediction->predicted : nullptr;
    const Outcome* lead = predicted ? predicted : now.outcome ? &*now.outcome : nullptr;
    if (lead == nullptr) {
        view->setCurves({});
        view->setMarkers({});
        view->setEmptyText(m_predictionError ? text(m_predictionError->text()) : tr("calculating…"));
        return;
    }
    const ByteStyle bytes = byteStyle();
    const std::vector<SeriesGroup> groups = seriesGroups(*lead);
    const SeriesGroup group = currentGroup(groups);
    const CurveInput input = curveInput(now);
    AxisSpec x = xAxisOf(*lead, group, bytes);
    AxisSpec y = yAxisOf(group, input, bytes);
    const bool timeline = m_memory && group.key == QLatin1String(timelineKey);
    if (timeline)
        m_memory->dressAxes(x, y);
    applyLogChoice(group, x, y);
    m_plot->setGroups(groups, group.key);
    m_plot->setAxes(x, y);
    m_plot->setPlain(timeline);
    const QString title = timeline
        ? tr("One training step, byte by byte")
        : tr("%1 by %2").arg(group.label, x.label);
    view->setTitle(title.left(1).toUpper() + title.mid(1));
    view->setEmptyText(tr("Nothing to draw yet."));
    std::vector<Curve> curves = makeCurves(group, input);
    if (timeline)
        m_memory->dressCurves(curves, input.measured);
    view->setCurves(std::move(curves));
    restoreZoom(group.key);
    view->setMarkers(markers());
    const Device* target = device();
    const SeriesAxis* axis = axisOf(*lead, group);
    view->setBands(target && axis ? capacityBands(*target, *axis) : std::vector<Band>());
    view->setLines(target ? datasheetLines(*target, group.unit, bytes)
                          : std::vector<HorizontalLine>());
    view->setPhases({});
    view->setCallouts({});
    if (timeline)
        m_memory->dressPlot(*view);
}

const SeriesAxis* ExperimentPage::currentAxis() const
{
    if (!m_prediction || m_prediction->predicted->series.empty())
        return nullptr;
    const Outcome& predicted = *m_prediction->predicted;
    return axisOf(predicted, currentGroup(seriesGroups(predicted)));
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
        const auto at = std::find(axis.names.begin(), axis.names.end(), now.text(axis.key));
        return at == axis.names.end() ? std::nullopt : std::optional<double>(at - axis.names.begin());
    }
    const std::string choice
        = spec->kind == ParameterKind::Choice ? now.choice(axis.key) : std::string();
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
    if (m_memory && axis && axis->key == "event")
        return m_memory->markers();
    const std::optional<double> x = currentX();
    if (!x)
        return {};
    const std::string& key = axis->key;
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key);
    const Parameters now = parameters();
    QString label;
    for (const auto& [name, value] : now.values()) {
        if (name == key)
            label = text(valueLabel(*spec, value, byteStyle()));
    }
    return {{text(key), *x, label, !now.sweep()}};
}

void ExperimentPage::refreshInspector(const ShownMeasurement& now)
{
    const ByteStyle bytes = byteStyle();
    const Outcome* predicted = m_prediction ? &*m_prediction->predicted : nullptr;
    const Outcome* measured = now.outcome && !now.elsewhere ? &*now.outcome : nullptr;
    const std::optional<double> x = currentX();
    const std::string swept
        = currentAxis() && currentAxis()->key != "event" ? currentAxis()->key : "";
    const bool samePoint
        = measured && (swept.empty() || differenceText(m_experiment.schema(), parameters(),
                                                       now.parameters, {}).isEmpty());
    m_inspector->setFigures(figureRows(predicted, measured, x, samePoint), bytes);

    const Device* target = device();
    QString basis;
    if (target && predicted)
        basis = tr("prediction stands on: %1").arg(basisText(*target));
    if (m_memory && predicted && !m_memory->assumptions().isEmpty())
        basis += u'\n' + tr("assumed of the model: %1").arg(m_memory->assumptions());
    QString fit;
    if (predicted && measured)
        fit = fitText(*predicted, *measured, currentGroup(seriesGroups(*predicted)), bytes);
    m_inspector->setFooting(basis, fit);
    m_inspector->setNote(noteFor(now));
    m_inspector->claims()->setClaims(target && predicted ? m_claims : std::vector<Claim>());
    if (m_memory && predicted && predicted->detail.is_object() && predicted->detail.contains("textbook"))
        m_inspector->textbook()->setFormulas(readTextbook(predicted->detail["textbook"]), bytes);
    else
        m_inspector->textbook()->setFormulas({}, bytes);
    m_inspector->records()->model()->setShown(now.recordIndex);
}

InspectorNote ExperimentPage::noteFor(const ShownMeasurement& now) const
{
    auto* self = const_cast<ExperimentPage*>(this); // the actions run later, from a click
    if (m_predictionError)
        return {text(m_predictionError->text()), tr("Reset parameters"),
                [self] { self->resetParameters(); }};
    if (now.live)
        return {};
    if (!now.outcome && m_memory && !m_memory->doctor().isEmpty())
        return {tr("Out of memory: %1.").arg(m_memory->doctor()), {}, {}};
    if (!now.outcome) {
        const QString obstacle = m_services.runs.obstacle(m_id, deviceId());
        if (!obstacle.isEmpty())
            return {obstacle, {}, {}};
        if (m_services.runs.current())
            return {};
        return {tr("Not measured yet: press Measure to put the real thing beside the prediction."),
                {}, {}};
    }
    if (now.elsewhere) {
        const int index = now.recordIndex;
        QString difference = differenceText(m_experiment.schema(), now.parameters, parameters(),
                                            sweptKey(m_services.document.records()[std::size_t(index)]),
                                            byteStyle());
        if (difference.isEmpty())
            difference = shortDeviceName(now.device);
        return {tr("The hollow dots were measured with: %1.").arg(difference),
                tr("Use these settings"), [self, index] { self->useRecord(index); }};
    }
    const std::optional<double> x = currentX();
    if (!x || parameters().sweep() || !m_prediction)
        return {};
    const double nearest = nearestMeasured(*now.outcome, *x);
    if (!std::isfinite(nearest) || nearest == *x)
        return {};
    const std::string key = currentAxis()->key;
    const ParameterSpec* spec = findParameter(m_experiment.schema(), key);
    if (spec->kind != ParameterKind::Integer && spec->kind != ParameterKind::Real)
        return {};
    const ByteStyle bytes = byteStyle();
    return {tr("Not measured at %1.").arg(text(valueLabel(*spec, *x, bytes))),
            tr("Go to %1").arg(text(valueLabel(*spec, nearest, bytes))),
            [self, key, nearest] { self->editText(text(key), text(numberText(nearest))); }};
}

std::optional<Record> ExperimentPage::shownRecord() const
{
    const ShownMeasurement now = shown();
    if (now.recordIndex >= 0 && !now.elsewhere)
        return m_services.document.records()[std::size_t(now.recordIndex)];
    if (!m_prediction)
        return std::nullopt;
    Record record = *m_prediction;
    if (now.live && !now.elsewhere)
        record.measured = now.outcome;
    return record;
}

std::vector<Record> ExperimentPage::exportRecords() const
{
    std::vector<Record> records;
    const ShownMeasurement now = shown();
    if (auto record = shownRecord())
        records.push_back(std::move(*record));
    const std::vector<Record>& all = m_services.document.records();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].pinned && all[i].experiment == m_id && int(i) != now.recordIndex)
            records.push_back(all[i]);
    }
    return records;
}

} // namespace memscape
