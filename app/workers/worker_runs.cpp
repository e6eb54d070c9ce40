// SPDX-License-Identifier: GPL-3.0-or-later
// The runs of a worker: one at a time, the others wait; each ends in exactly one finished().
#include "app/workers/active_run.h"
#include "app/workers/worker_client.h"

#include <algorithm>

namespace memscape {

namespace {

qint64 nextRunId()
{
    static qint64 last = 0; // main thread only, like everything here
    return ++last;
}

RunStatus statusOf(const std::string& word)
{
    if (word == "ok")
        return RunStatus::Done;
    if (word == "cancelled")
        return RunStatus::Cancelled;
    return word == "skipped" ? RunStatus::Skipped : RunStatus::Failed;
}

std::string_view wordOf(RunStatus status)
{
    switch (status) {
    case RunStatus::Done: return "ok";
    case RunStatus::Cancelled: return "cancelled";
    case RunStatus::Skipped: return "skipped";
    case RunStatus::Failed: return "failed";
    case RunStatus::Interrupted: return "interrupted";
    }
    return "failed";
}

/// What the points that arrived amount to; nothing without points or for a calibration.
std::optional<Measurement> partialMeasurement(const RunRequest& request, const std::vector<Point>& points)
{
    const auto experiment = findExperiment(request.experiment);
    if (!experiment || points.empty())
        return {};
    return outcomeFromPoints(**experiment, request.device, request.parameters, points);
}

} // namespace

std::vector<Point> WorkerClient::points() const
{
    return m_active ? m_active->points : std::vector<Point>();
}

bool WorkerClient::isCurrent(std::int64_t id) const
{
    return m_active && m_active->id == id;
}

qint64 WorkerClient::run(RunRequest request)
{
    const qint64 id = nextRunId();
    m_queue.emplace_back(id, std::move(request));
    // Later, so that the caller has the id before any signal about it.
    QMetaObject::invokeMethod(
        this,
        [this] {
            if (m_state == State::Stopped || m_state == State::Failed)
                start();
            else
                sendNext();
        },
        Qt::QueuedConnection);
    return id;
}

void WorkerClient::cancel(qint64 id)
{
    if (isCurrent(id)) {
        if (std::exchange(m_active->cancelled, true))
            return;
        send(protocol::Cancel{id});
        m_terminateTimer.start(m_options.terminateAfter);
        m_killTimer.start(m_options.killAfter);
        return;
    }
    const auto queued = std::ranges::find_if(m_queue, [id](const auto& entry) { return entry.first == id; });
    if (queued == m_queue.end())
        return;
    FinishedRun run;
    run.id = id;
    run.request = std::move(queued->second);
    run.status = RunStatus::Cancelled;
    run.provenance = Json::object();
    m_queue.erase(queued);
    emit finished(run);
}

void WorkerClient::keepWaiting()
{
    if (m_active)
        m_silenceTimer.start(m_options.silence);
}

void WorkerClient::send(const protocol::Command& command)
{
    if (m_process)
        m_process->write(QByteArray::fromStdString(protocol::encode(command)));
}

void WorkerClient::sendNext()
{
    if (m_state != State::Ready || m_stopping || m_active || m_queue.empty())
        return;
    m_active = std::make_unique<ActiveRun>();
    m_active->id = m_queue.front().first;
    m_active->request = std::move(m_queue.front().second);
    m_active->clock.start();
    m_queue.pop_front();
    const RunRequest& request = m_active->request;
    send(protocol::Run{m_active->id, request.experiment, request.workerDevice, parametersToJson(request.parameters),
                       request.isForced});
    m_silenceTimer.start(m_options.silence);
    setState(State::Running);
}

void WorkerClient::handle(const protocol::Event& event)
{
    if (const auto* hello = std::get_if<protocol::Hello>(&event)) {
        handleHello(*hello);
    } else if (!m_greeted) {
        protocolBroken({"worker.protocol", tr("it did not begin with hello").toStdString()});
    } else if (const auto* begun = std::get_if<protocol::Started>(&event)) {
        if (isCurrent(begun->id))
            emit started(begun->id);
    } else if (const auto* step = std::get_if<protocol::Progress>(&event)) {
        if (isCurrent(step->id)) {
            m_active->freshProgress = *step;
            updateSoon();
        }
    } else if (const auto* sample = std::get_if<protocol::Sample>(&event)) {
        handleSample(*sample);
    } else if (const auto* words = std::get_if<protocol::Note>(&event)) {
        emit note(words->id, QString::fromStdString(words->level), QString::fromStdString(words->code),
                  QString::fromStdString(words->text));
    } else if (const auto* done = std::get_if<protocol::Done>(&event)) {
        handleDone(*done);
    } // unknown types are for newer programs
}

void WorkerClient::handleHello(const protocol::Hello& hello)
{
    m_handshakeTimer.stop();
    if (hello.protocol != protocol::version) {
        dropProcess();
        fail({"worker.version",
              tr("the worker uses version %1 of the protocol, this window version %2")
                  .arg(hello.protocol)
                  .arg(protocol::version)
                  .toStdString(),
              commandText(m_options.command).toStdString(),
              tr("install the same version of Memscape on both sides").toStdString()});
        return;
    }
    m_greeted = true;
    m_everGreeted = true;
    m_devices = hello.devices;
    setState(State::Ready);
    emit devicesChanged();
    sendNext();
}

void WorkerClient::handleSample(const protocol::Sample& sample)
{
    if (!isCurrent(sample.id))
        return;
    m_active->take(sample.point);
    updateSoon();
}

void WorkerClient::handleDone(const protocol::Done& done)
{
    if (!isCurrent(done.id))
        return;
    m_terminateTimer.stop();
    m_killTimer.stop();
    m_silenceTimer.stop();
    m_restarts = 0;
    setState(State::Ready);
    endRun(statusOf(done.status), done.error, done);
    sendNext();
}

/// The first news at once, then at most so many a second.
void WorkerClient::updateSoon()
{
    if (!m_updateTimer.isActive())
        flushUpdates();
}

void WorkerClient::flushUpdates()
{
    if (!m_active || (m_active->fresh.empty() && !m_active->freshProgress))
        return;
    m_updateTimer.start(1000 / std::max(1, m_options.updatesPerSecond));
    const qint64 id = m_active->id;
    std::vector<Point> points;
    for (const std::size_t index : std::exchange(m_active->fresh, {}))
        points.push_back(m_active->points[index]);
    const auto step = std::exchange(m_active->freshProgress, {});
    if (!points.empty())
        emit pointsArrived(id, points);
    if (step)
        emit progress(id, step->done, step->total, QString::fromStdString(step->label));
}

void WorkerClient::endRun(RunStatus status, std::optional<Error> error, const protocol::Done& done)
{
    flushUpdates();
    m_updateTimer.stop();
    const std::unique_ptr<ActiveRun> active = std::move(m_active);
    if (!active)
        return;
    FinishedRun run;
    run.id = active->id;
    run.status = status;
    run.error = std::move(error);
    run.result = done.result;
    run.elapsed = done.elapsed > 0 ? done.elapsed : static_cast<double>(active->clock.elapsed()) / 1000;
    run.provenance = done.provenance.is_object() ? done.provenance : Json::object();
    if (done.result.is_object() && findExperiment(active->request.experiment)) {
        if (auto outcome = outcomeFromJson(JsonReader(done.result, "result"))) {
            run.measurement = std::move(*outcome);
        } else {
            run.status = RunStatus::Failed;
            run.error = outcome.error();
        }
    }
    if (!run.measurement)
        run.measurement = partialMeasurement(active->request, active->points);
    if (run.status != RunStatus::Done) {
        run.provenance["status"] = wordOf(run.status);
        run.provenance["points"] = active->points.size();
        if (run.error)
            run.provenance["error"] = {{"code", run.error->code}, {"message", run.error->message}};
    }
    run.details = details();
    run.request = std::move(active->request);
    emit finished(run);
}

} // namespace memscape
