// SPDX-License-Identifier: GPL-3.0-or-later
// The workers of this window and the devices one can pick: live ones of every worker (this
// machine's and those started by a command, such as `ssh lab-gpu memscape-cli worker`), the
// catalogue (prediction only), and calibrated device files.
#pragma once

#include "app/workers/worker_client.h"
#include "core/device/catalogue.h"

#include <QObject>

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace memscape {

/// A worker that is started by a command of the user's. `command` is one line as typed; it is split
/// into words (QProcess::splitCommand), never given to a shell.
struct WorkerCommand
{
    QString name;
    QString command;

    bool operator==(const WorkerCommand&) const = default;
};

/// Errors: worker.name (empty, with a slash, taken), worker.command (empty, not balanced quotes).
Result<QStringList> checkWorkerCommand(const WorkerCommand& worker, const std::vector<WorkerCommand>& others);

enum class DeviceSource { Live, Catalogue, File, Record };

struct DeviceEntry
{
    std::string id; ///< "cpu", "cuda:0", "lab-gpu/cuda:0", "nvidia-h200", "/path/h200.json"
    QString label;  ///< "NVIDIA H200", "NVIDIA H200 on lab-gpu"
    DeviceSource source = DeviceSource::Catalogue;
    QString worker;                          ///< name of the worker of a Live one; "" is this machine
    std::string workerDevice;                ///< its id there
    QString missing;                         ///< why it cannot be measured now, with the remedy; empty when it can
    Device device;                           ///< for predictions; without levels while a remote worker is silent
    std::optional<Device> uncalibrated = {}; ///< a calibrated one as catalogue or system has it

    bool measurable() const { return source == DeviceSource::Live && missing.isEmpty(); }
    /// It is listed with the reason why it cannot be used, and nothing is known of it: no prediction either.
    bool isNameOnly() const { return source == DeviceSource::Live && !missing.isEmpty() && device.levels.empty(); }
    bool calibrated() const { return device.calibration.has_value(); }
};

/// Errors: those of reading the file, and the place of its first fault.
Result<Device> readDeviceFile(const QString& path);

class DeviceDirectory : public QObject
{
    Q_OBJECT
public:
    /// The local worker is `local`; others come from setWorkers(). Nothing is started yet.
    explicit DeviceDirectory(WorkerOptions local, QObject* parent = nullptr);
    ~DeviceDirectory() override;

    /// How this machine's worker is started from now on.
    void setLocalCommand(const QStringList& command) { m_clients.front()->setCommand(command); }
    /// Start every worker that is not running.
    void startAll();
    /// Workers by command, from the settings: keeps those that did not change, ends those that
    /// went.
    void setWorkers(const std::vector<WorkerCommand>& workers);
    /// Device files to list (calibrations). Unreadable ones are in problems().
    void setDeviceFiles(const QStringList& paths);
    /// Devices named in records; those that are not known otherwise are listed, for predictions. `whose`: the records
    /// of the study, or of something beside it ("lab").
    void setRecorded(const std::vector<Device>& devices, const QString& whose = {});
    /// Read the files and the saved calibration again (after a calibration).
    void refresh();

    /// Live first (this machine, then by worker), calibrated files, devices of records, catalogue. Entries and pointers
    /// to them hold until changed().
    const std::vector<DeviceEntry>& entries() const { return m_entries; }
    /// Null when unknown.
    const DeviceEntry* find(const std::string& id) const;
    /// The first measurable one that is a GPU, else "cpu".
    const DeviceEntry* preferred() const;
    /// The id of a page's device: the one `chosen` on it, else the study's last one where that is only predicted (a
    /// machine that one plans for is meant on every page), else the preferred one.
    std::string idFor(const std::string& chosen, const std::string& last) const;
    const std::vector<Error>& problems() const { return m_problems; }

    /// "" is this machine; null when unknown.
    WorkerClient* worker(const QString& name) const;
    std::vector<WorkerClient*> workers() const;
    /// The worker that measures on this device; null when it cannot be measured.
    WorkerClient* workerFor(const std::string& deviceId) const;
    /// Start a measurement. Errors: device.unknown, device.missing with the reason.
    Result<qint64> run(const std::string& experiment, const std::string& deviceId, const Parameters& parameters,
                       bool isForced = false);

signals:
    void changed();
    // Of all workers, so that one connection is enough.
    void started(qint64 id);
    void progress(qint64 id, int done, int total, const QString& label);
    void pointsArrived(qint64 id, const std::vector<memscape::Point>& points);
    void note(qint64 id, const QString& level, const QString& code, const QString& text);
    void silent(qint64 id, double seconds);
    /// A worker is not started again by itself; its devices cannot be measured until startAll().
    void workerFailed(const memscape::Error& error, const QString& details);
    void finished(const memscape::FinishedRun& run);

private:
    WorkerClient* add(WorkerOptions options);
    void rebuild();
    void addLive(const WorkerClient& client);
    bool isElsewhere(const std::string& id) const;

    std::vector<std::unique_ptr<WorkerClient>> m_clients; // the first is this machine's
    std::map<QString, WorkerCommand> m_commands;
    QStringList m_files;
    Device m_host, m_described; // this machine with its calibration, and without
    std::vector<Device> m_catalogue;
    std::vector<DeviceEntry> m_fileEntries;
    std::map<QString, std::vector<Device>> m_recorded; ///< by whose they are
    std::vector<DeviceEntry> m_entries;
    std::vector<Error> m_problems;
};

} // namespace memscape
