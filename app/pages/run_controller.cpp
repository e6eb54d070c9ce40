// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/pages/run_controller.h"

#include "app/pages/records/record_text.h"
#include "app/settings/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace memscape {

namespace {

constexpr int lookEvery = 2000; ///< ms between looks at a busy machine

} // namespace

RunController::RunController(StudyDocument& document, DeviceDirectory& devices, QObject* parent)
    : QObject(parent)
    , m_document(document)
    , m_devices(devices)
{
    m_nextLook.setInterval(lookEvery);
    connect(&m_nextLook, &QTimer::timeout, this, &RunController::lookAgain);
    const auto isOurs = [this](qint64 id) { return m_current && m_current->id == id; };
    connect(&devices, &DeviceDirectory::progress, this,
            [this, isOurs](qint64 id, int done, int total, const QString& label) {
                if (!isOurs(id))
                    return;
                m_current->done = done;
                m_current->total = total;
                m_current->label = label;
                m_current->silent = false;
                emit changed();
            });
    connect(&devices, &DeviceDirectory::pointsArrived, this,
            [this, isOurs](qint64 id, const std::vector<Point>& points) {
                if (isOurs(id))
                    take(points);
            });
    connect(&devices, &DeviceDirectory::note, this,
            [this, isOurs](qint64 id, const QString& level, const QString&, const QString& text) {
                if (isOurs(id) && level == QStringLiteral("warning"))
                    emit warning(capitalized(text));
            });
    connect(&devices, &DeviceDirectory::silent, this, [this, isOurs](qint64 id, double) {
        if (!isOurs(id))
            return;
        m_current->silent = true;
        emit changed();
    });
    connect(&devices, &DeviceDirectory::finished, this, [this, isOurs](const FinishedRun& run) {
        if (isOurs(run.id))
            end(run);
    });
}

QString RunController::where() const
{
    const DeviceEntry* entry = m_current ? m_devices.find(m_current->device) : nullptr;
    return entry ? entry->label : m_current ? toQString(m_current->device) : QString();
}

QString RunController::obstacle(const std::string& deviceId) const
{
    const DeviceEntry* entry = m_devices.find(deviceId);
    if (entry == nullptr)
        return tr("The device “%1” is not available. Pick another in the device menu.")
            .arg(QString::fromStdString(deviceId));
    if (entry->source != DeviceSource::Live)
        return tr("%1 is known from its %2: it can be predicted, not measured. Pick a live device "
                  "to measure.")
            .arg(entry->label,
                 entry->source == DeviceSource::File         ? tr("file")
                     : entry->source == DeviceSource::Record ? tr("machine of a record")
                                                             : tr("data sheet"));
    return entry->missing;
}

QString RunController::obstacle(const std::string& experiment, const std::string& deviceId) const
{
    const auto known = findExperiment(experiment);
    const DeviceEntry* entry = m_devices.find(deviceId);
    if (known) {
        const std::string reason = entry ? (*known)->notMeasuredOn(entry->device) : (*known)->notMeasured();
        if (!reason.empty())
            return QString::fromStdString(reason);
    }
    return obstacle(deviceId);
}

void RunController::measure(const std::string& experiment, const std::string& deviceId, const Parameters& parameters,
                            bool isForced)
{
    begin(experiment, deviceId, parameters, isForced);
}

void RunController::calibrate(const std::string& deviceId)
{
    begin("calibrate", deviceId, {});
}

bool RunController::measuresThisCpu(const std::string& deviceId) const
{
    const DeviceEntry* entry = m_devices.find(deviceId);
    return entry != nullptr && entry->measurable() && entry->worker.isEmpty() && !entry->device.isGpu();
}

void RunController::begin(const std::string& experiment, const std::string& deviceId, const Parameters& parameters,
                          bool isForced)
{
    RunningMeasurement run;
    run.experiment = experiment;
    run.device = deviceId;
    run.parameters = parameters;
    run.isForced = isForced;
    stopWaiting();
    if (!m_current && m_load && measuresThisCpu(deviceId) && !m_anyway.contains(experiment)) {
        if (const HostLoad load = m_load(); load.isBusy()) {
            emit busy(capitalized(toQString(busyText(load))), run);
            return;
        }
    }
    start(std::move(run));
}

void RunController::start(RunningMeasurement run)
{
    if (m_current) {
        emit notice(tr("A measurement is running. Stop it first, or wait for it."));
        return;
    }
    const auto id = m_devices.run(run.experiment, run.device, run.parameters, run.isForced);
    if (!id) {
        emit problem(id.error(), {});
        return;
    }
    m_current = std::move(run);
    m_current->id = *id;
    m_current->label = tr("starting");
    m_current->elapsed.start();
    emit changed();
}

void RunController::startAnyway(const RunningMeasurement& run)
{
    if (run.experiment != "calibrate") // which later predictions stand on: asked each time
        m_anyway.insert(run.experiment);
    stopWaiting();
    start(run);
}

void RunController::startWhenQuiet(const RunningMeasurement& run)
{
    m_waiting = run;
    m_nextLook.start();
}

void RunController::stopWaiting()
{
    m_waiting.reset();
    m_nextLook.stop();
}

void RunController::lookAgain()
{
    if (!m_waiting || m_current || (m_load && m_load().isBusy()))
        return;
    const RunningMeasurement run = *m_waiting;
    stopWaiting();
    start(run);
}

void RunController::stop()
{
    if (!m_current || m_current->stopping)
        return;
    m_current->stopping = true;
    for (WorkerClient* worker : m_devices.workers())
        worker->cancel(m_current->id);
    emit changed();
}

void RunController::keepWaiting()
{
    if (!m_current)
        return;
    m_current->silent = false;
    if (WorkerClient* worker = m_devices.workerFor(m_current->device))
        worker->keepWaiting();
    emit changed();
}

void RunController::take(const std::vector<Point>& points)
{
    for (const Point& point : points) {
        auto& known = m_current->points;
        const auto same = std::ranges::find_if(
            known, [&](const Point& other) { return other.x == point.x && other.name == point.name; });
        if (same == known.end())
            known.push_back(point);
        else
            *same = point;
    }
    std::ranges::sort(m_current->points, [](const Point& a, const Point& b) { return a.x < b.x; });
    emit pointsChanged();
}

void RunController::end(const FinishedRun& run)
{
    const QString experiment = QString::fromStdString(run.request.experiment);
    const bool calibration = run.request.experiment == "calibrate";
    const RunningMeasurement ended = *m_current;
    m_current.reset();
    int index = -1;
    if (calibration && run.status == RunStatus::Done)
        saveCalibration(run);
    else if (!calibration && run.measurement)
        index = addRecord(run);
    if (run.error && run.error->code == "run.memory" && !calibration && !ended.isForced)
        emit refused(*run.error, ended);
    else if (calibration && run.error && run.error->code == "run.impossible")
        emit calibrationDoubtful(*run.error, run.request.device.id, std::nullopt);
    else if (run.error && run.status != RunStatus::Cancelled)
        emit problem(*run.error, run.details);
    emit finished(experiment, index);
    emit changed();
}

int RunController::addRecord(const FinishedRun& run)
{
    auto record = recordFromRun(run);
    if (!record) {
        if (run.status == RunStatus::Done)
            emit problem(record.error(), run.details);
        return -1;
    }
    return int(m_document.addRecord(std::move(*record)));
}

void RunController::saveCalibration(const FinishedRun& run)
{
    const auto device = deviceFromJson(run.result);
    if (!device) {
        emit problem(device.error(), run.details);
        return;
    }
    // Not under the worker's id: "cpu" is this machine.
    keepCalibration(run.request.device.id, *device, Keep::WhenGood);
}

void RunController::keepCalibration(const std::string& deviceId, const Device& calibrated, Keep keep)
{
    const auto kept = memscape::keepCalibration(deviceId, calibrated, keep);
    if (!kept && kept.error().code == "run.grade") {
        emit calibrationDoubtful(kept.error(), deviceId, calibrated);
    } else if (!kept && kept.error().code == "run.impossible") {
        emit calibrationDoubtful(kept.error(), deviceId, std::nullopt);
    } else if (!kept) {
        emit problem(kept.error(), {});
    } else {
        m_devices.refresh();
        emit notice(tr("%1 is calibrated (grade %2): predictions use it from now on.")
                        .arg(shortDeviceName(calibrated),
                             QString::fromStdString(calibrated.calibration ? calibrated.calibration->grade
                                                                           : std::string("?"))));
    }
}

void RunController::forgetCalibration(const std::string& deviceId)
{
    const auto forgotten = memscape::forgetCalibration(deviceId);
    if (!forgotten) {
        emit problem(forgotten.error(), {});
        return;
    }
    m_devices.refresh();
    emit notice(tr("The calibration was removed: predictions use the device's description again."));
}

} // namespace memscape
