// SPDX-License-Identifier: GPL-3.0-or-later
// The process: start, greet, read, lose, restart. The runs are in worker_runs.cpp.
//
// Reading takes at most a few milliseconds per turn of the event loop, so that a flood cannot
// freeze the window; what is left waits for the next turn, also after the process has ended.
#include "app/workers/worker_client.h"

#include "app/workers/active_run.h"

#include <QCoreApplication>
#include <QThread>

#include <algorithm>
#include <csignal>
#include <utility>

namespace memscape {

namespace {

constexpr qint64 turnMilliseconds = 8;
constexpr qint64 unreadLimit = 512 << 20; // B; more is a flood that we cannot keep up with
constexpr qsizetype stderrKept = 16 << 10;
constexpr qint64 settledMilliseconds = 10000; // a worker that lived so long may fail afresh

QString lastLine(const QByteArray& text)
{
    return QString::fromUtf8(text.trimmed().split('\n').last()).left(300);
}

} // namespace

WorkerClient::WorkerClient(WorkerOptions options, QObject* parent)
    : QObject(parent)
    , m_options(std::move(options))
{
    for (QTimer* timer : {&m_handshakeTimer, &m_silenceTimer, &m_updateTimer, &m_terminateTimer, &m_killTimer,
                          &m_restartTimer, &m_readTimer})
        timer->setSingleShot(true);
    connect(&m_readTimer, &QTimer::timeout, this, &WorkerClient::readOutput);
    connect(&m_restartTimer, &QTimer::timeout, this, &WorkerClient::launch);
    connect(&m_updateTimer, &QTimer::timeout, this, &WorkerClient::flushUpdates);
    connect(&m_terminateTimer, &QTimer::timeout, this, [this] { signalProcess(SIGTERM); });
    connect(&m_killTimer, &QTimer::timeout, this, [this] {
        dropProcess();
        processGone({"worker.stopped", tr("the worker did not stop and was ended").toStdString()});
    });
    connect(&m_handshakeTimer, &QTimer::timeout, this, [this] {
        const Error error{"worker.handshake",
                          tr("the worker sent nothing for %1 s")
                              .arg(static_cast<double>(m_options.handshake.count()) / 1000)
                              .toStdString(),
                          commandText(m_options.command).toStdString(),
                          tr("a queue or a connection may take longer: try again, or run the "
                             "command in a terminal")
                              .toStdString()};
        dropProcess();
        fail(error);
    });
    connect(&m_silenceTimer, &QTimer::timeout, this, [this] {
        if (m_active)
            emit silent(m_active->id, static_cast<double>(m_options.silence.count()) / 1000);
    });
}

WorkerClient::~WorkerClient()
{
    if (!m_process)
        return;
    m_process->disconnect(this);
    if (m_state == State::Ready) { // idle: it goes by itself when its input ends
        m_process->closeWriteChannel();
        m_process->waitForFinished(200);
    }
    if (m_process->state() == QProcess::NotRunning)
        return;
    signalProcess(SIGKILL);
    m_process->kill();
    m_process->waitForFinished(1000); // a killed process takes milliseconds
}

QString WorkerClient::details() const
{
    return commandText(m_options.command) + QLatin1Char('\n') + QString::fromUtf8(m_stderr);
}

void WorkerClient::setState(State state)
{
    if (state == m_state)
        return;
    m_state = state;
    emit stateChanged(state);
}

void WorkerClient::setCommand(const QStringList& command)
{
    if (m_options.command == command)
        return;
    m_options.command = command;
    if (m_state == State::Stopped)
        return;
    stop();
    start();
}

void WorkerClient::start()
{
    m_startAgain = m_process && m_stopping; // when that one is gone
    if (m_process || m_restartTimer.isActive())
        return;
    m_restarts = 0;
    m_everGreeted = false;
    launch();
}

void WorkerClient::launch()
{
    Q_ASSERT(QThread::currentThread() == QCoreApplication::instance()->thread());
    m_error.reset();
    m_ended.reset();
    m_pendingLines.clear();
    m_lines = {};
    m_greeted = false;
    m_stopping = false;
    setState(State::Starting);
    if (m_options.command.isEmpty()) {
        fail(notStarted({}, {}));
        return;
    }
    m_stderr.clear();
    m_process = std::make_unique<QProcess>();
    QProcess& process = *m_process;
    process.setProgram(m_options.command.first());
    process.setArguments(m_options.command.mid(1));
    process.setProcessEnvironment(workerEnvironment(QProcessEnvironment::systemEnvironment()));
    tieToThisProcess(process);
    connect(&process, &QProcess::readyReadStandardOutput, this, &WorkerClient::readOutput);
    connect(&process, &QProcess::readyReadStandardError, this,
            [this] { m_stderr = (m_stderr + m_process->readAllStandardError()).right(stderrKept); });
    connect(&process, &QProcess::started, this, [this] { m_group = m_process->processId(); });
    connect(&process, &QProcess::errorOccurred, this, &WorkerClient::processFailed);
    connect(&process, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
        m_stderr = (m_stderr + m_process->readAllStandardError()).right(stderrKept);
        signalProcess(SIGKILL); // what it started and left behind
        const bool crashed = status == QProcess::CrashExit;
        if (!m_greeted) {
            m_ended = endedBeforeHello(m_options.command, code, crashed, lastLine(m_stderr));
        } else {
            m_ended = endedUnasked(code, crashed);
        }
        readOutput();
    });
    m_upSince.start();
    m_handshakeTimer.start(m_options.handshake);
    process.start();
}

/// Only a process that could not be started: all others also finish.
void WorkerClient::processFailed(QProcess::ProcessError problem)
{
    if (problem != QProcess::FailedToStart)
        return;
    const QString reason = m_process->errorString();
    // Its signal is still on the stack: let go of it later.
    m_process->disconnect(this);
    m_process.release()->deleteLater();
    fail(notStarted(m_options.command, reason));
}

void WorkerClient::readOutput()
{
    QElapsedTimer turn;
    turn.start();
    while (m_process) {
        if (m_pendingLines.empty()) {
            if (m_process->bytesAvailable() > unreadLimit) {
                protocolBroken({"worker.flood", tr("the worker writes too much output").toStdString()});
                return;
            }
            const QByteArray bytes = m_process->read(1 << 16);
            if (bytes.isEmpty())
                break;
            auto lines = m_lines.feed({bytes.constData(), static_cast<std::size_t>(bytes.size())});
            if (!lines) {
                protocolBroken(lines.error());
                return;
            }
            std::move(lines->begin(), lines->end(), std::back_inserter(m_pendingLines));
            continue;
        }
        const std::string line = std::move(m_pendingLines.front());
        m_pendingLines.pop_front();
        takeLine(line);
        if (turn.elapsed() >= turnMilliseconds && m_process) {
            m_readTimer.start(0);
            return;
        }
    }
    if (m_process && m_ended)
        finishReading();
}

/// The process is over and all its lines are handled: what it left without a newline, then goodbye.
void WorkerClient::finishReading()
{
    if (const std::string rest = m_lines.finish(); !rest.empty()) {
        if (const auto event = protocol::decodeEvent(rest)) // else half a message: lost with it
            handle(*event);
    }
    const Error why = *m_ended;
    dropProcess();
    processGone(why);
}

void WorkerClient::takeLine(const std::string& line)
{
    if (m_active)
        m_silenceTimer.start(m_options.silence);
    const auto event = protocol::decodeEvent(line);
    if (event)
        handle(*event);
    else
        protocolBroken(event.error());
}

void WorkerClient::protocolBroken(Error error)
{
    if (!m_greeted) {
        error.hint = tr("only the worker may print there: shell start-up files on the other side "
                        "may not write to standard output")
                         .toStdString();
    }
    error.place = commandText(m_options.command).toStdString();
    error.code = "worker.protocol";
    error.message = tr("the worker broke the protocol: %1").arg(QString::fromStdString(error.message)).toStdString();
    dropProcess();
    processGone(error);
}

/// The process is gone and was not asked to go: end its run, start another.
void WorkerClient::processGone(const Error& why)
{
    const bool asked = m_stopping || (m_active && m_active->cancelled);
    if (m_upSince.elapsed() > settledMilliseconds)
        m_restarts = 0;
    if (!asked && (!m_everGreeted || ++m_restarts > m_options.restarts)) {
        const Error reason = m_everGreeted ? endedTooOften(m_restarts, why) : why;
        m_error = reason; // first: receivers of the end of the run find the worker failed, not starting
        setState(State::Failed);
        if (m_active)
            endRun(RunStatus::Interrupted, reason);
        fail(reason);
        return;
    }
    if (m_stopping) {
        m_stopping = false;
        setState(State::Stopped);
        if (!m_queue.empty() || std::exchange(m_startAgain, false))
            start();
        return;
    }
    // Announced before the run ends, so that a listener sees a worker on its way.
    setState(State::Starting);
    const auto backoff =
        asked ? std::chrono::milliseconds(0) : m_options.firstBackoff * (1 << std::min(m_restarts - 1, 8));
    m_restartTimer.start(backoff);
    if (m_active)
        endRun(asked ? RunStatus::Cancelled : RunStatus::Interrupted, asked ? std::optional<Error>() : why);
}

void WorkerClient::fail(const Error& error)
{
    m_handshakeTimer.stop();
    m_error = error;
    setState(State::Failed);
    auto queue = std::move(m_queue);
    m_queue.clear();
    for (auto& [id, request] : queue) {
        FinishedRun run;
        run.id = id;
        run.request = std::move(request);
        run.status = RunStatus::Failed;
        run.error = error;
        run.provenance = Json::object();
        run.details = details();
        emit finished(run);
    }
}

void WorkerClient::stop()
{
    m_stopping = true;
    m_startAgain = false;
    m_restartTimer.stop();
    if (m_active)
        endRun(RunStatus::Interrupted, Error{"worker.stopped", tr("the worker was stopped").toStdString()});
    if (!m_process) {
        setState(State::Stopped);
        return;
    }
    send(protocol::Quit{});
    m_process->closeWriteChannel();
    m_terminateTimer.start(m_options.terminateAfter);
    m_killTimer.start(m_options.killAfter);
}

/// To the worker and what it has started: it leads a session of its own.
void WorkerClient::signalProcess(int number)
{
    if (m_group > 0)
        ::kill(static_cast<pid_t>(-m_group), number);
}

/// End the process whatever it does, without waiting: QProcess reaps it later.
void WorkerClient::dropProcess()
{
    for (QTimer* timer : {&m_handshakeTimer, &m_terminateTimer, &m_killTimer, &m_silenceTimer, &m_readTimer})
        timer->stop();
    m_pendingLines.clear();
    m_ended.reset();
    if (!m_process)
        return;
    m_process->disconnect(this);
    if (m_process->state() != QProcess::NotRunning)
        signalProcess(SIGKILL);
    m_group = 0;
    QProcess* process = m_process.release();
    if (process->state() == QProcess::NotRunning) {
        process->deleteLater();
        return;
    }
    process->setParent(QCoreApplication::instance());
    connect(process, &QProcess::finished, process, &QObject::deleteLater);
    process->kill();
}

} // namespace memscape
