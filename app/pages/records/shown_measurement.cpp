// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/records/shown_measurement.h"

#include "app/pages/records/record_text.h"

namespace memscape {

namespace {

ShownMeasurement fromRecord(const Record& record, int index, bool elsewhere)
{
    ShownMeasurement shown;
    shown.outcome = record.measured;
    if (shown.outcome && !elsewhere)
        shown.probed = probedRun(*shown.outcome);
    shown.recordIndex = index;
    shown.incomplete = incompleteText(record);
    shown.elsewhere = elsewhere;
    shown.device = record.device;
    shown.parameters = record.parameters;
    return shown;
}

ShownMeasurement fromRun(const RunningMeasurement& run, const Experiment& experiment, const Device& device,
                         const Parameters& parameters)
{
    ShownMeasurement shown;
    shown.outcome = outcomeFromPoints(experiment, device, run.parameters, run.points);
    shown.live = true;
    Parameters comparable = parameters;
    const std::string swept = sweepOf(experiment, device, run.parameters).key;
    for (const auto& [key, value] : run.parameters.values()) {
        if (key == swept)
            comparable.set(key, value);
    }
    comparable.setSweep(run.parameters.sweep());
    shown.elsewhere = !(comparable == run.parameters);
    shown.device = device;
    shown.parameters = run.parameters;
    return shown;
}

} // namespace

ShownMeasurement shownMeasurement(const StudyDocument& document, const RunController& runs,
                                  const Experiment& experiment, const Device& device, const Parameters& parameters,
                                  int chosen)
{
    const std::string id = experiment.id();
    const auto& run = runs.current();
    if (run && run->experiment == id && run->device == device.id && !run->points.empty())
        return fromRun(*run, experiment, device, parameters);

    const std::vector<Record>& records = document.records();
    if (chosen >= 0 && chosen < int(records.size())) {
        const Record& record = records[std::size_t(chosen)];
        if (record.experiment == id && record.measured)
            return fromRecord(record, chosen, !answers(record, id, device.id, parameters));
    }
    int nearby = -1;
    for (int i = int(records.size()) - 1; i >= 0; --i) {
        const Record& record = records[std::size_t(i)];
        if (answers(record, id, device.id, parameters))
            return fromRecord(record, i, false);
        const bool near = record.experiment == id && record.device.id == device.id && record.measured;
        if (nearby < 0 && near)
            nearby = i;
    }
    if (nearby >= 0)
        return fromRecord(records[std::size_t(nearby)], nearby, true);
    return {};
}

} // namespace memscape
