// SPDX-License-Identifier: GPL-3.0-or-later
// The measurement of a window: one at a time, started on a page, stopped from anywhere. What a
// worker answers becomes a record in the study (one step of the history); what goes wrong becomes a
// message in place, with what had been measured until then kept.
#pragma once

#include "app/document/study_document.h"
#include "app/workers/devices.h"

#include <QElapsedTimer>
#include <QObject>

#include <optional>

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
    bool insists = false; ///< on sizes that are predicted not to fit
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
    /// Null, or why a measurement cannot be started on that device now.
    QString obstacle(const std::string& deviceId) const;
    /// The same, or why nothing measures that experiment.
    QString obstacle(const std::string& experiment, const std::string& deviceId) const;

    /// `insists`: also when it is predicted not to fit.
    void measure(const std::string& experiment, const std::string& deviceId,
                 const Parameters& parameters, bool insists = false);
    /// About a minute; the result is saved for this device and used from then on.
    void calibrate(const std::string& deviceId);
    void stop();
    /// The answer to "it has been silent": go on.
    void keepWaiting();

signals:
    /// It was predicted not to fit and not tried: measure() may insist on it.
    void refused(const memscape::Error& error, const memscape::RunningMeasurement& run);
    void changed(); ///< started, progressed, stopped
    void pointsChanged();
    void finished(const QString& experiment, int recordIndex); ///< −1: no record came of it
    void problem(const memscape::Error& error, const QString& details);
    void notice(const QString& text); ///< good news
    void warning(const QString& text); ///< what the worker noticed about the machine

private:
    void begin(const std::string& experiment, const std::string& deviceId,
               const Parameters& parameters, bool insists = false);
    void take(const std::vector<Point>& points);
    void end(const FinishedRun& run);
    void saveCalibration(const FinishedRun& run);
    int addRecord(const FinishedRun& run);

    StudyDocument& m_document;
    DeviceDirectory& m_devices;
    std::optional<RunningMeasurement> m_current;
};

} // namespace memscape
