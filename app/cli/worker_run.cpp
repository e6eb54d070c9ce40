// SPDX-License-Identifier: Apache-2.0
#include "app/cli/worker_run.h"

#include "core/protocol/message.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ; // NOLINT: POSIX wants it declared here

namespace memscape::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int pollMilliseconds = 100;
constexpr std::chrono::seconds patience{5}; ///< after Ctrl+C
constexpr std::int64_t onlyRun = 1;

/// One worker; ended and waited for when it goes.
class Worker
{
public:
    Worker() = default;
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    ~Worker()
    {
        closeAll();
        if (m_process > 0) {
            ::kill(m_process, SIGKILL);
            static_cast<void>(waitStatus());
        }
    }

    Result<void> start();
    void send(const protocol::Command& command) const;
    int output() const { return m_output; }
    void kill() const { ::kill(m_process, SIGKILL); }
    /// How it ended, as waitpid() reports it.
    int waitStatus()
    {
        int status = 0;
        while (::waitpid(m_process, &status, 0) < 0 && errno == EINTR) { }
        m_process = 0;
        return status;
    }

private:
    void closeAll()
    {
        for (int* end : {&m_input, &m_output}) {
            if (*end >= 0)
                ::close(*end);
            *end = -1;
        }
    }

    pid_t m_process = 0;
    int m_input = -1, m_output = -1; ///< our ends
};

Result<void> Worker::start()
{
    std::array<int, 2> in{-1, -1}, out{-1, -1};
    int problem = ::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0 ? errno : 0;
    m_input = in[1];
    m_output = out[0];
    if (problem == 0) {
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP); // Ctrl+C is ours to pass on
        std::array<char, 13> name{"memscape-cli"};
        std::array<char, 7> word{"worker"};
        const std::array<char*, 3> arguments{name.data(), word.data(), nullptr};
        problem = ::posix_spawn(&m_process, "/proc/self/exe", &files, &attributes, arguments.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&files);
    }
    for (const int end : {in[0], out[1]}) {
        if (end >= 0)
            ::close(end);
    }
    if (problem != 0)
        return fail("run.failed",
                    "a process for the measurement could not be started: " + std::generic_category().message(problem));
    return {};
}

void Worker::send(const protocol::Command& command) const
{
    const std::string line = protocol::encode(command);
    for (std::size_t at = 0; at < line.size();) {
        const ssize_t count = ::write(m_input, line.data() + at, line.size() - at);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return; // it has gone: its end is read
        at += static_cast<std::size_t>(count);
    }
}

Error endOf(int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return {"run.memory",
                "the measurement was killed, as the system does when the memory runs out",
                {},
                "choose smaller sizes, or close other programs"};
    if (WIFSIGNALED(status))
        return {"run.failed", fmt::format("the measurement crashed (signal {})", WTERMSIG(status))};
    return {"run.failed", fmt::format("the measurement process ended unexpectedly (code {})", WEXITSTATUS(status))};
}

Result<MeasuredRun> resultOf(const protocol::Done& done)
{
    if (done.error && !done.result.is_object())
        return fail(*done.error);
    MEMSCAPE_TRY(measurement, outcomeFromJson(JsonReader(done.result, "result")));
    MeasuredRun run{std::move(measurement), {}, done.status == "ok"};
    if (done.provenance.is_object())
        run.provenance.machine = done.provenance; // it is JSON already, and goes into the record as it is
    return run;
}

/// Tells the sink what the worker says; the result with its done.
class Listener
{
public:
    Listener(const Worker& worker, protocol::Run run, RunSink& sink)
        : m_worker(worker)
        , m_run(std::move(run))
        , m_sink(sink)
    { }

    Result<void> take(const std::string& line)
    {
        MEMSCAPE_TRY(event, protocol::decodeEvent(line));
        if (std::holds_alternative<protocol::Hello>(event))
            m_worker.send(m_run);
        else if (const auto* step = std::get_if<protocol::Progress>(&event))
            m_sink.progress(step->done, step->total, step->label);
        else if (const auto* sample = std::get_if<protocol::Sample>(&event))
            m_sink.point(sample->key, sample->point);
        else if (const auto* note = std::get_if<protocol::Note>(&event))
            m_sink.note(note->level, note->code, note->text);
        else if (const auto* done = std::get_if<protocol::Done>(&event))
            m_result = resultOf(*done);
        return {};
    }
    const std::optional<Result<MeasuredRun>>& result() const { return m_result; }

private:
    const Worker& m_worker;
    protocol::Run m_run;
    RunSink& m_sink;
    std::optional<Result<MeasuredRun>> m_result;
};

/// Sends the cancel when it is time, and kills a worker that does not react.
class Canceller
{
public:
    Canceller(Worker& worker, const RunSink& sink)
        : m_worker(worker)
        , m_sink(sink)
    { }
    bool cancelled() const { return m_cancelled; }
    void look()
    {
        if (!m_cancelled && m_sink.cancelled()) {
            m_cancelled = true;
            m_since = Clock::now();
            m_worker.send(protocol::Cancel{onlyRun});
        } else if (m_cancelled && Clock::now() - m_since > patience) {
            m_worker.kill();
        }
    }

private:
    Worker& m_worker;
    const RunSink& m_sink;
    bool m_cancelled = false;
    Clock::time_point m_since; ///< of the cancel
};

} // namespace

Result<MeasuredRun> measureInWorker(const Experiment& experiment, const std::string& device,
                                    const Parameters& parameters, RunSink& sink)
{
    Worker worker;
    MEMSCAPE_CHECK(worker.start());
    Listener listener(worker, {onlyRun, experiment.id(), device, parametersToJson(parameters), true}, sink);
    Canceller canceller(worker, sink);
    protocol::LineReader reader;
    std::array<char, 65536> chunk{};
    while (!listener.result()) {
        canceller.look();
        pollfd watched{worker.output(), POLLIN, 0};
        if (::poll(&watched, 1, pollMilliseconds) <= 0)
            continue;
        const ssize_t count = ::read(worker.output(), chunk.data(), chunk.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            const Error end = endOf(worker.waitStatus());
            if (canceller.cancelled())
                return fail("run.cancelled", "the measurement was stopped");
            return fail(end);
        }
        MEMSCAPE_TRY(lines, reader.feed({chunk.data(), static_cast<std::size_t>(count)}));
        for (const std::string& line : lines)
            MEMSCAPE_CHECK(listener.take(line));
    }
    return *listener.result();
}

} // namespace memscape::cli
