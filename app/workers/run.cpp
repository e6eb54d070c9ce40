// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workers/run.h"

#include <QCoreApplication>

namespace memscape {

Result<Record> recordFromRun(const FinishedRun& run)
{
    if (!run.measurement) {
        if (run.error)
            return fail(*run.error);
        return fail("run.nothing", QCoreApplication::translate("memscape::Run", "nothing was measured").toStdString());
    }
    Record record;
    record.experiment = run.request.experiment;
    record.parameters = run.request.parameters;
    record.device = run.request.device;
    record.measured = run.measurement;
    judgeMeasured(record);
    record.provenance = programProvenance();
    if (run.provenance.is_object())
        record.provenance.update(run.provenance);
    if (const auto experiment = findExperiment(run.request.experiment)) {
        if (auto predicted = (*experiment)->predict(record.device, record.parameters))
            record.predicted = std::move(*predicted);
    }
    return record;
}

} // namespace memscape
