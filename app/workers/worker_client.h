// SPDX-License-Identifier: GPL-3.0-or-later
// One worker process and the runs it is given. Whatever the worker does (missing, silent, crashing,
// flooding, printing garbage, using another version, killed), the window goes on, every run ends
// in exactly one finished(), the points that had arrived are in it, and no process is left over:
// the worker ends with this process (PR_SET_PDEATHSIG, hence: use from the main thread only) and has a
// session of its own so that its children can be ended with it.
#pragma once

#include "app/workers/run.h"
#include "app/workers/worker_command.h"
#include "core/protocol/message.h"

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace memscape {

struct WorkerOptions
{
    QString name; ///< "" for this machine, else as in the device list: "lab-gpu"
    QStringList command;
    std::chrono::milliseconds handshake{15000};
    std::chrono::milliseconds silence{30000};      ///< without a word during a run: silent() asks
    std::chrono::milliseconds terminateAfter{700}; ///< after Stop
    std::chrono::milliseconds killAfter{1000};     ///< after Stop
    std::chrono::milliseconds firstBackoff{250};   ///< doubles with each restart
    int restarts = 5;                              ///< in a row, then Failed
    int updatesPerSecond = 30;
};

class WorkerClient : public QObject
{
    Q_OBJECT
public:
    enum class State { Stopped, Starting, Ready, Running, Failed };
    Q_ENUM(State)

    explicit WorkerClient(WorkerOptions options, QObject* parent = nullptr);
    /// Ends the worker; an unfinished run gets no signal any more.
    ~WorkerClient() override;

    const QString& name() const { return m_options.name; }
    const QStringList& command() const { return m_options.command; }
    /// Another command from now on: a worker that is up is ended (an unfinished run ends as Interrupted) and started
    /// with it.
    void setCommand(const QStringList& command);
    State state() const { return m_state; }
    /// Why it Failed, with the remedy: worker.missing, worker.start, worker.handshake,
    /// worker.version, worker.protocol, worker.gave-up.
    const std::optional<Error>& error() const { return m_error; }
    const std::vector<protocol::WorkerDevice>& devices() const { return m_devices; }
    qint64 processId() const { return m_process ? m_process->processId() : 0; }
    /// The last lines of stderr and the command, for Copy details.
    QString details() const;

    /// Also "try again" after Failed. run() starts it when needed.
    void start();
    /// Quit; unfinished runs end as Interrupted.
    void stop();
    /// Queued behind a run that is going on. Returns its id, unique in this program.
    qint64 run(RunRequest request);
    /// Stops within a second, whatever the worker does.
    void cancel(qint64 id);
    /// Answer to silent(): ask again only after another silence.
    void keepWaiting();
    /// The points of the run that goes on, newest of each, in the order of the first arrival.
    std::vector<Point> points() const;

signals:
    void stateChanged(memscape::WorkerClient::State state);
    void devicesChanged();
    void started(qint64 id);
    /// At most updatesPerSecond, the last one always.
    void progress(qint64 id, int done, int total, const QString& label);
    /// Points that are new or refined since the last signal; at most updatesPerSecond.
    void pointsArrived(qint64 id, const std::vector<memscape::Point>& points);
    void note(qint64 id, const QString& level, const QString& code, const QString& text);
    /// Nothing was received for so long: offer to go on waiting or to stop.
    void silent(qint64 id, double seconds);
    void finished(const memscape::FinishedRun& run);

private:
    struct ActiveRun;
    // The process (worker_client.cpp).
    void setState(State state);
    void launch();
    void readOutput();
    void takeLine(const std::string& line);
    void finishReading();
    void processFailed(QProcess::ProcessError problem);
    void protocolBroken(Error error);
    void processGone(const Error& why);
    void fail(const Error& error);
    void dropProcess();
    void signalProcess(int number);
    // The runs (worker_runs.cpp).
    void sendNext();
    void send(const protocol::Command& command);
    void handle(const protocol::Event& event);
    void handleHello(const protocol::Hello& hello);
    void handleSample(const protocol::Sample& sample);
    void handleDone(const protocol::Done& done);
    void updateSoon();
    void flushUpdates();
    void endRun(RunStatus status, std::optional<Error> error, const protocol::Done& done = {});
    bool isCurrent(std::int64_t id) const;

    WorkerOptions m_options;
    State m_state = State::Stopped;
    std::optional<Error> m_error;
    std::vector<protocol::WorkerDevice> m_devices;
    QByteArray m_stderr;

    std::unique_ptr<QProcess> m_process;
    qint64 m_group = 0; // its id, which is also that of its process group
    protocol::LineReader m_lines;
    std::deque<std::string> m_pendingLines; // read, not yet handled in this turn of the event loop
    std::optional<Error> m_ended;           // the process is over; its last output is still read
    bool m_greeted = false;                 // this process said hello
    bool m_everGreeted = false;             // the command works: restarting makes sense
    bool m_stopping = false;
    bool m_startAgain = false; // as soon as the one that stops is gone
    int m_restarts = 0;        // since a run was answered or the worker lived for a while
    QElapsedTimer m_upSince;

    std::unique_ptr<ActiveRun> m_active;
    std::deque<std::pair<qint64, RunRequest>> m_queue;
    QTimer m_handshakeTimer, m_silenceTimer, m_updateTimer, m_terminateTimer, m_killTimer, m_restartTimer, m_readTimer;
};

} // namespace memscape
