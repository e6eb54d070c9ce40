// SPDX-License-Identifier: GPL-3.0-or-later
// What an experiment's page shows: from parameters to a prediction, the measurement beside it, and
// the records that leave it.
#include "app/pages/experiment_page.h"

#include "app/pages/point_text.h"
#include "app/pages/record_text.h"

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
    if (const DeviceEntry* target = m_services.devices.find(deviceId())) {
        if (bases && !m_memory) // bytes do not depend on what rates stand on
            m_bases.request(m_id, *target, now);
        else
            m_bases.clear();
        if (m_memory)
            m_memory->request(m_predictor, target->device, now);
        else
            m_predictor.request(m_id, target->device, now);
        return;
    }
    m_bases.clear();
    m_prediction.reset();
    m_predictionError = Error{"device.unknown",
                              "the device \"" + deviceId() + "\" is not there",
                              {},
                              "pick another in the device menu"};
    refreshOutputs();
}

void ExperimentPage::refreshOutputs()
{
    const ShownMeasurement now = shown();
    if (m_memory) {
        m_memory->setPrediction(m_prediction ? m_predictor.prepared() : nullptr, byteStyle());
        m_header->setCaution(m_prediction ? m_memory->caution() : QString());
    }
    if (m_checkpoint) {
        m_checkpoint->setPrediction(m_prediction.get(), parameters(), byteStyle());
        m_checkpoint->setMeasured(measuredSchedules(m_services.document.records(), parameters()),
                                  tr("measured on %1").arg(shortDeviceName(now.device)));
    }
    if (m_picture) {
        m_picture->setByteStyle(byteStyle());
        m_picture->setProblem(m_predictionError
                                  ? QString::fromStdString(withBriefHint(*m_predictionError).text())
                                  : QString());
        // A schedule stays what it was solved for until the next is there.
        const Parameters drawn =
            m_checkpoint && m_prediction ? m_prediction->parameters : parameters();
        if (const Device* target = device())
            m_picture->setState(m_experiment, *target, drawn,
                                m_prediction ? &*m_prediction->predicted : nullptr,
                                now.outcome && !now.elsewhere ? &*now.outcome : nullptr);
        if (m_memory)
            m_memory->showMeasured(now.outcome && !now.elsewhere ? &*now.outcome : nullptr);
    }
    refreshAnswer(now);
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

CurveInput ExperimentPage::curveInput(const ShownMeasurement& now) const
{
    CurveInput input;
    input.predicted = m_prediction ? &*m_prediction->predicted : nullptr;
    if (m_prediction && m_services.settings.showBases())
        input.others = m_bases.answers();
    input.basis = predictionName();
    input.measured = now.outcome ? &*now.outcome : nullptr;
    input.measuredOn = tr("measured on %1").arg(shortDeviceName(now.device));
    if (const QString grade = now.outcome ? gradeText(*now.outcome) : QString(); !grade.isEmpty())
        input.measuredOn += tr(", grade %1").arg(grade);
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
