// SPDX-License-Identifier: GPL-3.0-or-later
// What a page does with its records: the strip under the plot, predictions that are kept, the
// baseline that the others are compared with.
#include "app/pages/experiment_page.h"

#include "app/pages/records/record_text.h"

namespace memscape {

void ExperimentPage::buildStrip()
{
    RecordsList* list = m_inspector->records();
    m_strip = new RecordsStrip(m_services.document, list->model(), m_plot);
    m_plot->addBelow(m_strip);
    connect(m_strip, &RecordsStrip::chosen, this, &ExperimentPage::showRecord);
    connect(m_strip, &RecordsStrip::menuWanted, list, &RecordsList::menuFor);
    connect(m_strip, &RecordsStrip::predictionWanted, this, &ExperimentPage::pinPrediction);
    connect(list, &RecordsList::chosen, this, &ExperimentPage::showRecord);
}

/// A measurement stands beside the page's prediction; a record that only predicts is put on the page.
void ExperimentPage::showRecord(int index)
{
    const std::vector<Record>& records = m_services.document.records();
    if (index < 0 || index >= int(records.size()))
        return;
    if (records[std::size_t(index)].measured)
        chooseRecord(index);
    else
        useRecord(index);
}

void ExperimentPage::pinPrediction()
{
    if (!m_prediction)
        return;
    Record record = *m_prediction;
    record.measured.reset();
    record.provenance = programProvenance(); // kept now, whenever it was asked
    record.pinned = true;
    std::vector<Record> one;
    one.push_back(std::move(record));
    m_services.document.addRecords(std::move(one), tr("Pin this prediction"));
}

std::optional<std::size_t> ExperimentPage::baseline() const
{
    return baselineOf(m_services.document.records(), m_id);
}

/// The figures with the baseline's beside them.
std::vector<FigureRow> ExperimentPage::figuresBeside(std::vector<FigureRow> rows) const
{
    const auto index = baseline();
    if (!index)
        return rows;
    const Record& record = m_services.document.records()[*index];
    const std::optional<double> x = currentX();
    bool isAtX = !x;
    if (x) {
        const std::string& key = currentAxis()->key;
        isAtX = differenceText(m_experiment.schema(), record.parameters, parameters(), {}).isEmpty();
        const Parameters now = parameters();
        for (const auto& [known, value] : record.parameters.values()) {
            for (const auto& [other, shown] : now.values())
                isAtX |= known == key && other == key && value == shown;
        }
    }
    addBaseline(rows, record.predicted ? &*record.predicted : nullptr, record.measured ? &*record.measured : nullptr, x,
                isAtX);
    return rows;
}

std::vector<PinnedOutcome> ExperimentPage::pinnedOutcomes(const ShownMeasurement& now) const
{
    std::vector<PinnedOutcome> pinned;
    const std::vector<Record>& records = m_services.document.records();
    const RecordsModel& model = *m_inspector->records()->model();
    for (std::size_t i = 0; i < records.size(); ++i) {
        const Record& record = records[i];
        const bool isBaseline = baseline() == i;
        if ((!record.pinned && !isBaseline) || record.experiment != m_id || int(i) == now.recordIndex)
            continue;
        QString name = model.index(model.rowOf(i)).data(RecordsModel::LegendRole).toString();
        const QString difference =
            differenceText(m_experiment.schema(), record.parameters, parameters(), sweptKey(record), byteStyle());
        if (name == tr("predicted") && !difference.isEmpty()) // of the page's own it is told by what was chosen
            name = tr("predicted: %1").arg(difference);
        PinnedOutcome outcome{isBaseline ? tr("%1 (baseline)").arg(name) : name, model.paletteOf(i),
                              record.predicted ? &*record.predicted : nullptr,
                              record.measured ? &*record.measured : nullptr};
        outcome.isBaseline = isBaseline;
        pinned.push_back(std::move(outcome));
    }
    return pinned;
}

/// Where a record of another device is drawn beside, the prediction says of which it is.
QString ExperimentPage::predictionName() const
{
    QStringList words;
    for (const Record& record : m_services.document.records()) {
        const bool isBeside = record.experiment == m_id && (record.pinned || record.baseline);
        if (isBeside && m_prediction && record.device.id != m_prediction->device.id && words.isEmpty())
            words << shortDeviceName(m_prediction->device);
    }
    if (m_prediction && m_services.settings.showBases())
        words << basisName(m_prediction->device);
    return words.join(QStringLiteral(", "));
}

} // namespace memscape
