// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workers/devices.h"

#include "core/base/file.h"

#include <QFileInfo>
#include <QProcess>

#include <algorithm>

namespace memscape {

namespace {

Error workerError(const char* code, const QString& message, const QString& hint = {})
{
    return {code, message.toStdString(), {}, hint.toStdString()};
}

struct Catalogue
{
    std::vector<Device> devices;
    std::vector<Error> problems;
};

/// Read once: its files come and go with the program.
const Catalogue& shippedCatalogue()
{
    static std::map<std::filesystem::path, Catalogue> known; // tests name other folders
    const auto [found, isNew] = known.try_emplace(resourcesFolder());
    if (isNew)
        found->second.devices = catalogue(&found->second.problems);
    return found->second;
}

/// Quotes that are opened must be closed: splitCommand takes the rest of the line otherwise.
bool quotesBalanced(const QString& command)
{
    return QString(command).remove(QStringLiteral("\"\"\"")).count(QLatin1Char('"')) % 2 == 0;
}

QString reasonOf(const WorkerClient& client)
{
    switch (client.state()) {
    case WorkerClient::State::Stopped: return DeviceDirectory::tr("its worker is not running");
    case WorkerClient::State::Starting: return DeviceDirectory::tr("its worker is starting");
    case WorkerClient::State::Failed: return QString::fromStdString(client.error()->text());
    case WorkerClient::State::Ready:
    case WorkerClient::State::Running: break;
    }
    return {};
}

} // namespace

Result<Device> readDeviceFile(const QString& path)
{
    MEMSCAPE_TRY(text, readFile(std::filesystem::path(path.toStdString())));
    MEMSCAPE_TRY(json, parseJson(text));
    return deviceFromJson(json, path.toStdString());
}

Result<QStringList> checkWorkerCommand(const WorkerCommand& worker, const std::vector<WorkerCommand>& others)
{
    const QString name = worker.name.trimmed();
    if (name.isEmpty() || name.contains(QLatin1Char('/'))) {
        return fail(workerError("worker.name", DeviceDirectory::tr("a name without \"/\" is needed"),
                                DeviceDirectory::tr("it is the prefix of its devices: lab-gpu/cuda:0")));
    }
    for (const WorkerCommand& other : others) {
        if (other.name == name)
            return fail(workerError("worker.name", DeviceDirectory::tr("%1 is taken").arg(name)));
    }
    if (!quotesBalanced(worker.command)) {
        return fail(workerError("worker.command", DeviceDirectory::tr("a quote is not closed")));
    }
    const QStringList words = QProcess::splitCommand(worker.command);
    if (words.isEmpty()) {
        return fail(workerError("worker.command", DeviceDirectory::tr("a command is needed"),
                                QStringLiteral("ssh lab-gpu memscape-cli worker")));
    }
    return words;
}

DeviceDirectory::DeviceDirectory(WorkerOptions local, QObject* parent)
    : QObject(parent)
{
    local.name.clear();
    add(std::move(local));
    refresh();
}

DeviceDirectory::~DeviceDirectory()
{
    for (const auto& client : m_clients)
        client->disconnect(this);
}

WorkerClient* DeviceDirectory::add(WorkerOptions options)
{
    m_clients.push_back(std::make_unique<WorkerClient>(std::move(options)));
    WorkerClient* client = m_clients.back().get();
    connect(client, &WorkerClient::devicesChanged, this, &DeviceDirectory::rebuild);
    connect(client, &WorkerClient::stateChanged, this, [this, client](WorkerClient::State state) {
        if (state != WorkerClient::State::Running) // measuring changes no list
            rebuild();
        if (state == WorkerClient::State::Failed && client->error()->code == "worker.gave-up")
            emit workerFailed(*client->error(), client->details());
    });
    connect(client, &WorkerClient::started, this, &DeviceDirectory::started);
    connect(client, &WorkerClient::progress, this, &DeviceDirectory::progress);
    connect(client, &WorkerClient::pointsArrived, this, &DeviceDirectory::pointsArrived);
    connect(client, &WorkerClient::note, this, &DeviceDirectory::note);
    connect(client, &WorkerClient::silent, this, &DeviceDirectory::silent);
    connect(client, &WorkerClient::finished, this, &DeviceDirectory::finished);
    return client;
}

void DeviceDirectory::startAll()
{
    for (const auto& client : m_clients)
        client->start();
}

void DeviceDirectory::setWorkers(const std::vector<WorkerCommand>& workers)
{
    std::map<QString, WorkerCommand> wanted;
    for (const WorkerCommand& worker : workers) {
        if (checkWorkerCommand(worker, {}))
            wanted[worker.name] = worker;
    }
    std::erase_if(m_clients, [&](const auto& client) {
        const auto now = wanted.find(client->name());
        return !client->name().isEmpty() && (now == wanted.end() || !(now->second == m_commands[client->name()]));
    });
    for (const auto& [name, worker] : wanted) {
        if (this->worker(name))
            continue;
        WorkerOptions options;
        options.name = name;
        options.command = QProcess::splitCommand(worker.command);
        options.handshake = std::chrono::seconds(60); // a connection, a queue
        add(std::move(options))->start();
    }
    m_commands = std::move(wanted);
    rebuild();
}

void DeviceDirectory::setDeviceFiles(const QStringList& paths)
{
    m_files = paths;
    refresh();
}

void DeviceDirectory::setRecorded(const std::vector<Device>& devices, const QString& whose)
{
    std::vector<Device> recorded;
    for (const Device& device : devices) {
        const auto same = [&](const Device& one) { return one.id == device.id; };
        if (!device.id.empty() && std::ranges::none_of(recorded, same))
            recorded.push_back(device);
    }
    const auto sameId = [](const Device& a, const Device& b) { return a.id == b.id; };
    std::vector<Device>& known = m_recorded[whose];
    const bool same = std::equal(recorded.begin(), recorded.end(), known.begin(), known.end(), sameId);
    known = std::move(recorded);
    if (!same)
        rebuild();
}

void DeviceDirectory::refresh()
{
    const Catalogue& known = shippedCatalogue();
    m_problems = known.problems;
    m_catalogue = known.devices;
    m_host = findDevice("cpu").value_or(Device{});
    m_described = describeHost();
    m_fileEntries.clear();
    for (const QString& path : m_files) {
        auto device = readDeviceFile(path);
        if (!device) {
            m_problems.push_back(device.error());
            continue;
        }
        DeviceEntry entry;
        entry.id = path.toStdString();
        entry.label = tr("%1 (%2)").arg(QString::fromStdString(device->name), QFileInfo(path).fileName());
        entry.source = DeviceSource::File;
        entry.missing = tr("a device file: for predictions only");
        entry.device = std::move(*device);
        m_fileEntries.push_back(std::move(entry));
    }
    rebuild();
}

void DeviceDirectory::addLive(const WorkerClient& client)
{
    const QString name = client.name();
    const QString reason = reasonOf(client);
    const auto entryOf = [&](const std::string& id, const QString& label, Device device) {
        DeviceEntry entry;
        entry.workerDevice = id;
        entry.id = name.isEmpty() ? id : name.toStdString() + "/" + id;
        entry.label = name.isEmpty() ? label : tr("%1 on %2").arg(label, name);
        entry.source = DeviceSource::Live;
        entry.worker = name;
        entry.missing = reason;
        entry.device = std::move(device);
        entry.device.id = entry.id;
        if (entry.id == "cpu" && !m_host.calibration && entry.device.calibration)
            entry.device = m_host; // removed since the worker reported it
        const Device told = entry.device;
        entry.device = withCalibration(told); // made here, also for remote ones
        if (entry.calibrated() && !told.calibration)
            entry.uncalibrated = told;
        else if (entry.calibrated() && entry.id == "cpu") // its worker reports the calibrated one
            entry.uncalibrated = m_described;
        return entry;
    };
    for (const protocol::WorkerDevice& live : client.devices()) {
        auto device = deviceFromJson(live.description, "description");
        if (!device && name.isEmpty() && live.id == "cpu")
            device = m_host;
        DeviceEntry entry = entryOf(live.id, QString::fromStdString(live.name), device.value_or(Device{}));
        if (!live.missing.empty())
            entry.missing = QString::fromStdString(live.missing);
        else if (!device)
            entry.missing = QString::fromStdString(device.error().text());
        m_entries.push_back(std::move(entry));
    }
    if (!client.devices().empty())
        return;
    // Not heard of yet: this machine can be predicted all the same, another one is a name.
    if (name.isEmpty())
        m_entries.push_back(entryOf("cpu", QString::fromStdString(m_host.name), m_host));
    else
        m_entries.push_back(entryOf("?", tr("devices"), {}));
}

void DeviceDirectory::rebuild()
{
    m_entries.clear();
    for (const auto& client : m_clients)
        addLive(*client);
    m_entries.insert(m_entries.end(), m_fileEntries.begin(), m_fileEntries.end());
    for (const auto& [whose, devices] : m_recorded)
        for (const Device& device : devices) {
            if (find(device.id) || isElsewhere(device.id))
                continue;
            DeviceEntry entry;
            entry.id = device.id;
            entry.label = QString::fromStdString(device.name);
            entry.source = DeviceSource::Record;
            entry.missing = tr("the machine of a record: for predictions only");
            entry.device = device;
            m_entries.push_back(std::move(entry));
        }
    for (const Device& device : m_catalogue) {
        DeviceEntry entry;
        entry.id = device.id;
        entry.label = QString::fromStdString(device.name);
        entry.missing = tr("from the catalogue: for predictions only");
        entry.device = device;
        m_entries.push_back(std::move(entry));
    }
    emit changed();
}

/// In the catalogue, a GPU of a machine whose driver is not here now, or the PyTorch of some Python.
bool DeviceDirectory::isElsewhere(const std::string& id) const
{
    const bool inCatalogue = std::ranges::any_of(m_catalogue, [&](const Device& device) { return device.id == id; });
    return inCatalogue || id == "cpu" || id.starts_with("cuda:") || id.starts_with("pytorch:")
        || id.find('/') != std::string::npos;
}

const DeviceEntry* DeviceDirectory::find(const std::string& id) const
{
    const auto found = std::ranges::find(m_entries, id, &DeviceEntry::id);
    return found == m_entries.end() ? nullptr : &*found;
}

const DeviceEntry* DeviceDirectory::preferred() const
{
    const auto gpu =
        std::ranges::find_if(m_entries, [](const auto& entry) { return entry.measurable() && entry.device.isGpu(); });
    return gpu == m_entries.end() ? find("cpu") : &*gpu;
}

std::string DeviceDirectory::idFor(const std::string& chosen, const std::string& last) const
{
    if (!chosen.empty())
        return chosen;
    if (const DeviceEntry* const entry = find(last); entry && entry->source != DeviceSource::Live)
        return last;
    const DeviceEntry* const entry = preferred();
    return entry ? entry->id : "cpu";
}

WorkerClient* DeviceDirectory::worker(const QString& name) const
{
    for (const auto& client : m_clients) {
        if (client->name() == name)
            return client.get();
    }
    return nullptr;
}

std::vector<WorkerClient*> DeviceDirectory::workers() const
{
    std::vector<WorkerClient*> clients;
    for (const auto& client : m_clients)
        clients.push_back(client.get());
    return clients;
}

WorkerClient* DeviceDirectory::workerFor(const std::string& deviceId) const
{
    const DeviceEntry* entry = find(deviceId);
    return entry && entry->source == DeviceSource::Live ? worker(entry->worker) : nullptr;
}

Result<qint64> DeviceDirectory::run(const std::string& experiment, const std::string& deviceId,
                                    const Parameters& parameters, bool isForced)
{
    const DeviceEntry* entry = find(deviceId);
    if (!entry) {
        return fail(workerError("device.unknown", tr("no device %1").arg(QString::fromStdString(deviceId)),
                                tr("choose one from the list")));
    }
    WorkerClient* client = workerFor(deviceId);
    if (!client)
        return fail(workerError("device.missing", entry->missing, tr("choose a live device")));
    // A worker that is not up (yet) may be asked: starting it is part of the run.
    const bool isUp = client->state() == WorkerClient::State::Ready || client->state() == WorkerClient::State::Running;
    if (isUp && !entry->missing.isEmpty())
        return fail(workerError("device.missing", entry->missing));
    return client->run({experiment, entry->device, entry->workerDevice, parameters, isForced});
}

} // namespace memscape
