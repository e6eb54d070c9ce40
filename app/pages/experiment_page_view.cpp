// SPDX-License-Identifier: GPL-3.0-or-later
// What an experiment's page shows: from parameters to a prediction, the measurement beside it, and
// the records that leave it.
#include "app/pages/experiment_page.h"

#include "app/pages/measurement_text.h"
#include "app/pages/records/record_text.h"

namespace memscape {

void ExperimentPage::refreshInputs()
{
    const Parameters now = parameters();
    m_inspector->form()->display(now, byteStyle());
    m_header->setDevice(deviceId());
    m_inspector->records()->model()->setNaming(deviceId(), byteStyle());
    if (const Device* target = device()) {
        m_inspector->form()->setStandard(standard());
        m_inspector->form()->setIdle(m_experiment.idleParameters(*target, now));
    }
    const bool bases = m_services.settings.showBases();
    m_plot->setBases(bases);
    m_improvements.forgetQuestion();
    const DeviceEntry* const target = m_services.devices.find(deviceId());
    if (target && !target->isNameOnly()) {
        if (bases && m_extension->dependsOnRates())
            m_bases.request(m_id, *target, now);
        else
            m_bases.clear();
        m_extension->request(target->device, now);
        m_tableClaims.request(target->device, now);
        return;
    }
    m_bases.clear();
    m_prediction.reset();
    m_predictionError = target ? Error{"device.missing", target->missing.toStdString()}
                               : Error{"device.unknown",
                                       "the device \"" + deviceId() + "\" is not available",
                                       {},
                                       "pick another in the device menu"};
    refreshOutputs();
}

void ExperimentPage::refreshOutputs()
{
    const ShownMeasurement now = shown();
    const Parameters asked = parameters();
    const Outcome* measured = now.outcome && !now.elsewhere ? &*now.outcome : nullptr;
    m_extension->setState({m_prediction.get(), m_predictor.prepared(), asked, byteStyle(),
                           m_services.document.records(), measured,
                           tr("measured on %1").arg(shortDeviceName(now.device))});
    const QString caution = m_prediction ? m_extension->caution() : QString();
    const bool isGuess = measured && !now.live && caution.isEmpty() && wantsCalibration();
    m_header->setCaution(
        isGuess ? tr("Predicted for a processor of this kind, not by rates of this machine.") : caution, isGuess);
    if (m_picture) {
        m_picture->setByteStyle(byteStyle());
        m_picture->setProblem(m_predictionError ? QString::fromStdString(withBriefHint(*m_predictionError).text())
                                                : QString());
        const bool drawsPredicted = m_prediction && m_extension->drawsPredictedParameters();
        if (const Device* target = device())
            m_picture->setState({m_experiment, *target, drawsPredicted ? m_prediction->parameters : asked,
                                 m_prediction ? &*m_prediction->predicted : nullptr, measured});
    }
    refreshAnswer(now);
    refreshPlot(now);
    refreshInspector(now);
    emit updated();
}

/// What can be measured here is predicted from what the system says of it alone.
bool ExperimentPage::wantsCalibration() const
{
    const DeviceEntry* const target = m_services.devices.find(deviceId());
    return target && target->measurable() && !target->calibrated() && target->device.basis == "described"
        && m_extension->dependsOnRates();
}

ShownMeasurement ExperimentPage::shown() const
{
    static const Device none;
    const Device* target = device();
    return shownMeasurement(m_services.document, m_services.runs, m_experiment, target ? *target : none, parameters(),
                            m_chosen);
}

CurveInput ExperimentPage::curveInput(const ShownMeasurement& now) const
{
    CurveInput input;
    input.predicted = m_prediction ? &*m_prediction->predicted : nullptr;
    if (m_prediction && m_services.settings.showBases())
        input.others = m_bases.answers();
    if (now.probed)
        input.others.push_back({probedName(*now.probed), CurveRole::Probed, &now.probed->predicted});
    input.basis = predictionName();
    input.measured = now.outcome ? &*now.outcome : nullptr;
    input.measuredOn = tr("measured on %1").arg(shortDeviceName(now.device));
    if (const QString grade = now.outcome ? gradeText(*now.outcome) : QString(); !grade.isEmpty())
        input.measuredOn += tr(", grade %1").arg(grade);
    if (!now.incomplete.isEmpty())
        input.measuredOn += QStringLiteral(", ") + now.incomplete;
    input.measuredElsewhere = now.elsewhere;
    if (now.elsewhere)
        input.measuredOn += tr(" (other settings)");
    input.pinned = pinnedOutcomes(now);
    return input;
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

std::vector<Snippet> ExperimentPage::snippets() const
{
    const Device* target = device();
    return target ? m_experiment.snippets(*target, parameters()) : std::vector<Snippet>();
}

std::vector<Record> ExperimentPage::exportRecords() const
{
    std::vector<Record> records;
    const ShownMeasurement now = shown();
    if (auto record = shownRecord())
        records.push_back(std::move(*record));
    const std::vector<Record>& all = m_services.document.records();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if ((all[i].pinned || all[i].baseline) && all[i].experiment == m_id && int(i) != now.recordIndex)
            records.push_back(all[i]);
    }
    return records;
}

} // namespace memscape
