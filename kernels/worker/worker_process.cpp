// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/worker_process.h"

#include "kernels/measure/clock.h"

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

namespace memscape {

namespace {

constexpr int pollMilliseconds = 50;
constexpr double helloSeconds = 60; ///< an interpreter on a slow disk
constexpr std::size_t mostForeignLines = 10000;

/// What is no message of a run that has no done yet.
void tell(const protocol::Event& event, RunSink& sink)
{
    if (const auto* step = std::get_if<protocol::Progress>(&event))
        sink.progress(step->done, step->total, step->label);
    else if (const auto* sample = std::get_if<protocol::Sample>(&event))
        sink.point(sample->key, sample->point);
    else if (const auto* note = std::get_if<protocol::Note>(&event))
        sink.note(note->level, note->code, note->text);
}

} // namespace

void WorkerProcess::cancelWhenAsked(const RunSink& sink)
{
    if (!m_cancelled && sink.cancelled()) {
        m_cancelled = SteadyClock().now();
        m_child.send(protocol::encode(protocol::Command{protocol::Cancel{m_running}}));
    } else if (m_cancelled && SteadyClock().now() - *m_cancelled > m_patience) {
        m_child.kill();
    }
}

/// At least one, or none when nothing came for a moment.
Result<std::vector<std::string>> WorkerProcess::lines(const RunSink& sink)
{
    if (!m_waiting.empty())
        return std::exchange(m_waiting, {});
    std::array<char, 65536> chunk{};
    cancelWhenAsked(sink);
    pollfd watched{m_child.output(), POLLIN, 0};
    if (::poll(&watched, 1, pollMilliseconds) <= 0)
        return std::vector<std::string>();
    const ssize_t count = ::read(m_child.output(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR)
        return std::vector<std::string>();
    if (count <= 0) {
        const Error end = endOf(m_child.waitStatus(), "the measurement");
        if (m_cancelled)
            return fail("run.cancelled", "the measurement was stopped");
        return fail(end);
    }
    return m_reader.feed({chunk.data(), static_cast<std::size_t>(count)});
}

Result<protocol::Hello> WorkerProcess::start(const ChildCommand& command, const RunSink& sink)
{
    MEMSCAPE_CHECK(m_child.start(command));
    const SteadyClock clock;
    const double end = clock.now() + helloSeconds;
    for (std::size_t foreign = 0; clock.now() < end && foreign < mostForeignLines;) {
        MEMSCAPE_TRY(arrived, lines(sink));
        for (std::size_t i = 0; i < arrived.size(); ++i) {
            const auto event = protocol::decodeEvent(arrived[i]);
            if (event && std::holds_alternative<protocol::Hello>(*event)) {
                m_waiting.assign(arrived.begin() + std::ptrdiff_t(i) + 1, arrived.end());
                return std::get<protocol::Hello>(*event);
            }
            ++foreign;
        }
    }
    m_child.kill();
    return fail("run.hung", fmt::format("{} did not say hello", command.words.front()));
}

Result<protocol::Done> WorkerProcess::run(const protocol::Run& run, RunSink& sink)
{
    m_running = run.id;
    m_child.send(protocol::encode(protocol::Command{run}));
    for (;;) {
        MEMSCAPE_TRY(arrived, lines(sink));
        for (const std::string& line : arrived) {
            MEMSCAPE_TRY(event, protocol::decodeEvent(line));
            const auto* done = std::get_if<protocol::Done>(&event);
            if (done && done->id == run.id)
                return *done;
            tell(event, sink);
        }
    }
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

} // namespace memscape
