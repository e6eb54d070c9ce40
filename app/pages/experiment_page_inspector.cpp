// SPDX-License-Identifier: GPL-3.0-or-later
// The text of an experiment's page beside its plot: figures, their basis, and what to do next.
#include "app/pages/experiment_page.h"

#include "app/pages/byte_words.h"
#include "app/pages/fields/parameter_field.h"
#include "app/pages/measurement_text.h"
#include "app/pages/records/record_text.h"
#include "app/pages/remedies.h"
#include "app/pictures/common/json_values.h"
#include "app/settings/words.h"
#include "core/experiment/comparison.h"
#include "core/experiment/gap_sentences.h"
#include "core/report/memory_tables.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace memscape {

namespace {

QString percent(double share)
{
    return toQString(percentText(share));
}

/// "latency: off by 4.8 % (median of 12 points), at most 20 % at 32 MiB"; of one point the table of figures says it.
QString fitText(const Outcome& predicted, const Outcome& measured, const SeriesGroup& group, ByteStyle bytes,
                const Schema& schema)
{
    const Comparison comparison = compare(predicted, measured);
    for (const SeriesComparison& series : comparison.series) {
        if (series.key != group.series.front() || series.points < 2)
            continue;
        const Series* curve = predicted.findSeries(series.key);
        const auto worst = std::size_t(std::max(0.0, series.worstX)); // of a category its place among the names
        return ExperimentPage::tr("%1: off by %2 (median of %n points), at most %3 at %4", nullptr, int(series.points))
            .arg(toQString(curve->label), percent(series.medianError), percent(series.largestError),
                 worst < curve->x.names.size() ? categoryName(curve->x, worst, schema)
                                               : toQString(quantityText(series.worstX, curve->x.unit, bytes)));
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

/// "Faster: %1", "Higher useful bandwidth: %1", "Less device total: %1": what the links after it lead to. A time of one
/// of many is named: of a larger batch a step is not faster.
QString betterText(const Figure& figure, bool wantsMore)
{
    const bool isTime = figure.unit == Unit::Second && !wantsMore;
    const bool isOfOne = figure.label.starts_with("time per ");
    if (isTime && !isOfOne)
        return ExperimentPage::tr("Faster: %1");
    const QString form = isTime || figure.unit == Unit::Byte
        ? (wantsMore ? ExperimentPage::tr("More %2: %1") : ExperimentPage::tr("Less %2: %1"))
        : wantsMore ? ExperimentPage::tr("Higher %2: %1")
                    : ExperimentPage::tr("Lower %2: %1");
    return QString(form).replace(QStringLiteral("%2"), toQString(figure.label).toHtmlEscaped());
}

/// What a press on it changes is in its reference.
QString changeLink(const std::string& key, const std::string& value, const QString& label)
{
    return QStringLiteral("<a href=\"%1=%2\">%3</a>")
        .arg(toQString(key).toHtmlEscaped(), toQString(value).toHtmlEscaped(), label.toHtmlEscaped());
}

} // namespace

/// Links to the changes that a refusal proposes, of one parameter each; the note under the figures has all of them.
QString ExperimentPage::waysOut(const Error& error) const
{
    QStringList links;
    for (const Proposal& proposal : proposalsOf(error, m_experiment.schema(), byteStyle())) {
        if (proposal.changes.size() != 1)
            continue;
        links << changeLink(proposal.changes.front().first, proposal.changes.front().second, proposal.label);
    }
    return links.isEmpty() ? QString() : tr("Way out: %1").arg(links.join(QStringLiteral(" · ")));
}

/// The answer to the page's question, of what was measured where it was, and links to what would change it.
void ExperimentPage::refreshAnswer(const ShownMeasurement& now)
{
    const Device* target = device();
    if (!target || !m_prediction || m_info.id != m_id) { // a further page has another question
        m_improvements.clear();
        m_header->setAnswer(m_prediction            ? m_extension->answer()
                                : m_predictionError ? tr("No answer: %1.").arg(toQString(m_predictionError->message))
                                                    : QString(),
                            m_predictionError ? waysOut(*m_predictionError) : QString());
        return;
    }
    const Figures& predicted = m_prediction->predicted->figures;
    const bool isMeasured = now.outcome && !now.live && !now.elsewhere && now.parameters == parameters();
    const ShortAnswer answer = m_experiment.shortAnswer(
        *target, m_prediction->parameters, isMeasured ? measuredFirst(predicted, now.outcome->figures) : predicted);
    m_improvements.request(*target, m_prediction->parameters, predicted, byteStyle());
    const Figure* figure = findFigure(predicted, answer.figure);
    QString changes;
    if (!answer.knobs.empty() && figure) {
        QStringList links;
        for (const Improvement& one : m_improvements.improvements()) {
            if (links.size() < 3)
                links << changeLink(one.parameter, one.value, toQString(one.label)) + QStringLiteral(" → ")
                        + toQString(one.after).toHtmlEscaped();
        }
        const QString wanted = betterText(*figure, answer.wantsMore);
        changes = wanted.arg(m_improvements.isBusy() ? tr("looking for changes…") // those found are of other parameters
                                 : links.isEmpty()   ? tr("no single change does this")
                                                     : links.join(QStringLiteral(" · ")));
    }
    const QString sentence = bytesInStyle(toQString(answer.sentence), byteStyle());
    m_header->setAnswer(isMeasured && !sentence.isEmpty() ? tr("Measured: %1").arg(sentence) : sentence, changes);
}

void ExperimentPage::refreshInspector(const ShownMeasurement& now)
{
    const ByteStyle bytes = byteStyle();
    const Outcome* predicted = m_prediction ? &*m_prediction->predicted : nullptr;
    const Outcome* measured = now.outcome && !now.elsewhere ? &*now.outcome : nullptr;
    const std::optional<double> x = currentX();
    const std::string swept = currentAxis() && currentAxis()->key != "event" ? currentAxis()->key : "";
    const bool samePoint = measured
        && (swept.empty() || differenceText(m_experiment.schema(), parameters(), now.parameters, {}).isEmpty());
    std::vector<FigureRow> rows = figureRows(predicted, measured, x, samePoint);
    std::erase_if(rows, [&](const FigureRow& row) {
        return row.predicted && !row.measured && isIdleFigure(*predicted, *row.predicted);
    });
    m_inspector->setFigures(figuresBeside(std::move(rows)), bytes, now.outcome.has_value());

    const Device* target = device();
    QString basis;
    if (target && predicted)
        basis = tr("prediction based on: %1").arg(basisText(*target));
    if (const QString more = m_extension->basis(); predicted && !more.isEmpty())
        basis += u'\n' + more;
    QStringList fit;
    if (predicted && measured)
        fit << fitText(*predicted, *measured, currentGroup(seriesGroups(*predicted)), bytes, m_experiment.schema());
    fit << toQString(probedText(now.outcome));
    for (const std::string& gap : gapSentences(predicted, measured))
        fit << bytesInStyle(toQString(gap), bytes);
    fit.removeAll(QString());
    m_inspector->setBasis(basis, fit.join(u'\n'));
    m_inspector->setNote(noteFor(now));
    m_inspector->form()->setRefusal(m_predictionError);
    if (ParameterField* const attention = m_inspector->form()->field(QStringLiteral("attention")))
        attention->setNote(predicted ? textOf(predicted->detail, "attention") : QString());
    m_inspector->setClaims(claimsBeside(samePoint ? now : ShownMeasurement()), bytes);
    m_inspector->setFormulas(predicted ? m_extension->textbook() : std::vector<TextbookFormula>(), bytes);
    m_inspector->records()->model()->setShown(now.recordIndex);
}

/// Verdicts by what was measured, where a finished measurement answers for what is on the page; else
/// those that came with the prediction. With them those of the table at exactly these parameters.
std::vector<Claim> ExperimentPage::claimsBeside(const ShownMeasurement& now) const
{
    if (!device() || !m_prediction)
        return {};
    if (!now.outcome || now.live || now.elsewhere)
        return m_tableClaims.beside(m_claims, false);
    return m_tableClaims.beside(m_experiment.claims(now.device, now.parameters, *now.outcome), true);
}

/// Where levels are predicted from a calibration and the measurement contradicts it.
QString ExperimentPage::staleCalibration(const ShownMeasurement& now) const
{
    const Device* target = device();
    const bool ofLevels = m_id == "hierarchy" || m_id == "stride";
    if (!ofLevels || !target || !target->calibration || !m_prediction || !now.outcome || now.elsewhere)
        return {};
    const Outcome& predicted = *m_prediction->predicted;
    return staleText(predicted, *now.outcome, currentGroup(seriesGroups(predicted)).series.front());
}

/// ": 12 points, within about half a minute": how long Measure would take, where it goes over the plot's points.
QString ExperimentPage::extentText() const
{
    const SeriesAxis* axis = currentAxis();
    const Device* target = device();
    if (!axis || !target || !findParameter(m_experiment.schema(), axis->key))
        return {};
    const QString points = tr(": %n points", nullptr, int(axis->values.size()));
    return parameters().sweep() || target->isGpu() ? points : points + tr(", within about half a minute");
}

/// What was refused, with a button for each change that it proposes. Where it proposes none the standard parameters
/// help: not where the device is at fault, or they are.
InspectorNote ExperimentPage::refusal(const Error& error) const
{
    auto* self = const_cast<ExperimentPage*>(this); // the actions run later, from a click
    InspectorNote note{QString::fromStdString(withBriefHint(error).text())};
    for (const Proposal& proposal : proposalsOf(error, m_experiment.schema(), byteStyle()))
        note.actions.push_back({proposal.label, [self, changes = proposal.changes, step = proposal.label] {
                                    static_cast<void>(self->setTexts(changes, step)); // they parse
                                }});
    if (note.actions.empty() && parameters() != standard() && !error.code.starts_with("device."))
        note.actions.push_back({tr("Reset parameters"), [self] { self->resetParameters(); }});
    return note;
}

InspectorNote ExperimentPage::noteFor(const ShownMeasurement& now) const
{
    auto* self = const_cast<ExperimentPage*>(this); // the actions run later, from a click
    if (m_predictionError)
        return refusal(*m_predictionError);
    if (m_isStopped)
        return {tr("The calculation was stopped: the values shown are not for these parameters."),
                {{tr("Calculate"), [self] { self->schedule(Inputs); }}}};
    if (now.live)
        return {};
    if (auto note = m_extension->note(now.outcome.has_value()))
        return *note;
    if (!now.outcome) {
        const QString obstacle = m_services.runs.obstacle(m_id, deviceId());
        if (!obstacle.isEmpty())
            return {obstacle};
        if (m_services.runs.current())
            return {};
        InspectorNote note{tr("Not measured yet: press Measure to run it beside the prediction%1.").arg(extentText())};
        if (currentX())
            note.actions.push_back({tr("Measure only this point"), [self] { self->measurePoint(); }});
        if (wantsCalibration())
            note.actions.push_back({tr("Calibrate"), [self] { self->calibrate(); }});
        return note;
    }
    if (now.elsewhere) {
        const int index = now.recordIndex;
        QString difference = differenceText(m_experiment.schema(), now.parameters, parameters(),
                                            sweptKey(m_services.document.records()[std::size_t(index)]), byteStyle());
        if (difference.isEmpty())
            difference = shortDeviceName(now.device);
        return {tr("The hollow dots were measured with: %1.").arg(difference),
                {{tr("Use these settings"), [self, index] { self->useRecord(index); }}}};
    }
    if (const QString stale = staleCalibration(now); !stale.isEmpty())
        return {tr("The calibration is stale: %1.").arg(stale), {{tr("Calibrate"), [self] { self->calibrate(); }}}};
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
    return {tr("Not measured at %1.").arg(toQString(valueLabel(*spec, *x, bytes))),
            {{tr("Go to %1").arg(toQString(valueLabel(*spec, nearest, bytes))),
              [self, key, nearest] { self->editText(toQString(key), toQString(numberText(nearest))); }}}};
}

} // namespace memscape
