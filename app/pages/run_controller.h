// SPDX-License-Identifier: GPL-3.0-or-later
// The measurement of a window: one at a time, started on a page, stopped from anywhere. What a
// worker answers becomes a record in the study (one step of the history); what goes wrong becomes a
// message in place, with what had been measured until then kept.
#pragma once

#include "app/document/study_document.h"
#include "app/workers/devices.h"
#include "core/device/host_load.h"
#include "core/timing/calibration_store.h"

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include <functional>
#include <optional>
#include <set>

namespace memscape {

/// A run that goes on. `points` are those that have arrived, newest of each x.
struct RunningMeasurement
{
    qint64 id = 0;
    std::string experiment; ///< or "calibrate"
    std::string device;
    Parameters parameters;
    int done = 0, total = 0;
    QString label;
    bool isForced = false; ///< tries sizes that are predicted not to fit
    bool stopping = false;
    bool silent = false; ///< the worker has not said anything for long
    QElapsedTimer elapsed;
    std::vector<Point> points;
};

class RunController : public QObject
{
    Q_OBJECT

public:
    RunController(StudyDocument& document, DeviceDirectory& devices, QObject* parent = nullptr);

    const std::optional<RunningMeasurement>& current() const { return m_current; }
    /// "This CPU": where the current one runs; empty while none does.
    QString where() const;
    /// Null, or why a measurement cannot be started on that device now.
    QString obstacle(const std::string& deviceId) const;
    /// The same, or why nothing measures that experiment.
    QString obstacle(const std::string& experiment, const std::string& deviceId) const;

    /// `isForced`: also when it is predicted not to fit.
    void measure(const std::string& experiment, const std::string& deviceId, const Parameters& parameters,
                 bool isForced = false);
    /// About a minute; the result is saved for this device and used from then on.
    void calibrate(const std::string& deviceId);
    /// Keeps a calibration that calibrationDoubtful() reported, or says why not.
    void keepCalibration(const std::string& deviceId, const Device& calibrated, Keep keep);
    void forgetCalibration(const std::string& deviceId);
    /// How busy this machine is, asked before something is measured on its CPU; none: not asked.
    void setLoadReader(std::function<HostLoad()> load) { m_load = std::move(load); }
    const std::function<HostLoad()>& loadReader() const { return m_load; }
    /// The answers to busy(): start it all the same, and further ones of that experiment without asking, or once the
    /// machine has become quiet.
    void startAnyway(const RunningMeasurement& run);
    void startWhenQuiet(const RunningMeasurement& run);
    void stopWaiting();
    bool isWaiting() const { return m_waiting.has_value(); }
    void stop();
    /// The answer to "it has been silent": go on.
    void keepWaiting();

signals:
    /// It was predicted not to fit and not tried: measure() may force it.
    void refused(const memscape::Error& error, const memscape::RunningMeasurement& run);
    /// Others use the machine: not started, see startAnyway() and startWhenQuiet().
    void busy(const QString& text, const memscape::RunningMeasurement& run);
    /// A calibration that is not used, with the reason; without `calibrated` it never can be.
    void calibrationDoubtful(const memscape::Error& error, const std::string& deviceId,
                             const std::optional<memscape::Device>& calibrated);
    void changed(); ///< started, progressed, stopped
    void pointsChanged();
    void finished(const QString& experiment, int recordIndex); ///< −1: no record came of it
    void problem(const memscape::Error& error, const QString& details);
    void notice(const QString& text);  ///< good news
    void warning(const QString& text); ///< what the worker noticed about the machine

private:
    void begin(const std::string& experiment, const std::string& deviceId, const Parameters& parameters,
               bool isForced = false);
    void start(RunningMeasurement run);
    bool measuresThisCpu(const std::string& deviceId) const;
    void lookAgain();
    void take(const std::vector<Point>& points);
    void end(const FinishedRun& run);
    void saveCalibration(const FinishedRun& run);
    int addRecord(const FinishedRun& run);

    StudyDocument& m_document;
    DeviceDirectory& m_devices;
    std::optional<RunningMeasurement> m_current;
    std::function<HostLoad()> m_load;
    std::optional<RunningMeasurement> m_waiting; ///< for a quiet machine
    std::set<std::string> m_anyway;              ///< experiments that are measured on a busy machine, too
    QTimer m_nextLook;
};

} // namespace memscape
