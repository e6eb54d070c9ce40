// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/run_server.h"

#include "core/base/text.h"
#include "core/experiment/record.h"
#include "kernels/measure/clock.h"
#include "kernels/worker/stream_sink.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace memscape {

using namespace protocol;

namespace {

Done failed(const Error& error)
{
    Done done;
    done.status = "failed";
    if (error.code == "run.skipped" || error.code == "device.missing")
        done.status = "skipped";
    else if (error.code == "run.cancelled")
        done.status = "cancelled";
    done.error = error;
    return done;
}

/// A result that no reader would take in one line goes without its raw samples, which are most of it.
/// What is still too large is an error: the reader keeps the points that have arrived.
Done fitted(Done done)
{
    if (encode(protocol::Event{done}).size() <= lineLimit)
        return done;
    if (done.provenance.is_object() && done.provenance.contains("samples")) {
        done.provenance["samples"] = Json::array();
        done.provenance["samples_left_out"] = "the result was too large to be sent with them";
    }
    if (encode(protocol::Event{done}).size() <= lineLimit)
        return done;
    Done rest = failed(Error{"protocol.limit",
                             fmt::format("the result is larger than {} MiB", lineLimit >> 20),
                             {},
                             "measure fewer points at a time; those that arrived are kept"});
    rest.id = done.id;
    rest.elapsed = done.elapsed;
    return rest;
}

/// The backend and device of an id, or an error that names what there is.
Result<std::pair<Backend*, BackendDevice>> find(const Backends& backends, const std::string& id)
{
    std::vector<std::string> ids;
    for (const auto& backend : backends) {
        for (BackendDevice& device : backend->devices()) {
            if (device.id == id && device.missing.empty())
                return std::pair(backend.get(), std::move(device));
            if (device.id == id)
                return fail("device.missing", device.missing, {}, id);
            ids.push_back(device.id);
        }
    }
    return fail("device.unknown", fmt::format("this worker has no device \"{}\"", quotedForMessage(id)),
                didYouMean(id, ids), "device");
}

} // namespace

RunServer::RunServer(Backends backends, LineWriter& out)
    : m_backends(std::move(backends))
    , m_out(out)
{ }

RunServer::~RunServer()
{
    m_cancelled = true;
    if (m_thread.joinable())
        m_thread.join();
}

void RunServer::hello()
{
    Hello hello;
    hello.worker = programVersion();
    hello.pid = ::getpid();
    for (const auto& backend : m_backends) {
        for (const BackendDevice& device : backend->devices())
            hello.devices.push_back({device.id, device.name, device.missing,
                                     device.missing.empty() ? deviceToJson(device.device) : Json()});
    }
    m_out.write(protocol::Event{std::move(hello)});
}

void RunServer::handle(const Command& command)
{
    if (const auto* const run = std::get_if<Run>(&command)) {
        start(*run);
    } else if (const auto* const cancel = std::get_if<Cancel>(&command)) {
        const std::lock_guard lock(m_mutex);
        if (m_busy && m_running == cancel->id)
            m_cancelled = true;
    }
}

void RunServer::start(const Run& run)
{
    std::unique_lock lock(m_mutex);
    if (m_busy) {
        Done done = failed(Error{"run.busy",
                                 "this worker is measuring already",
                                 {},
                                 "wait for that run, cancel it, or start another worker"});
        done.id = run.id;
        lock.unlock();
        m_out.write(protocol::Event{std::move(done)});
        return;
    }
    if (m_thread.joinable())
        m_thread.join(); // it has said that it is done
    m_busy = true;
    m_running = run.id;
    m_cancelled = false;
    try {
        m_thread = std::thread([this, run] { measure(run); });
    } catch (const std::system_error&) { // no more threads are allowed
        m_busy = false;
        Done done = failed(Error{"run.failed",
                                 "the system allows no thread for the measurement",
                                 {},
                                 "allow more threads (ulimit -u), or close other programs"});
        done.id = run.id;
        lock.unlock();
        m_out.write(protocol::Event{std::move(done)});
    }
}

bool RunServer::stop(double patience)
{
    std::unique_lock lock(m_mutex);
    m_cancelled = true;
    return m_idle.wait_for(lock, std::chrono::duration<double>(patience), [this] { return !m_busy; });
}

void RunServer::measure(const Run& run)
{
    const SteadyClock clock;
    const double begin = clock.now();
    m_out.write(protocol::Event{Started{run.id}});
    Done done;
    try {
        done = perform(run);
    } catch (const std::bad_alloc&) {
        done = failed(Error{"run.memory",
                            "the memory ran out while it was measured",
                            {},
                            "choose smaller sizes, or close other programs"});
    } catch (const std::system_error& problem) {
        done = failed(
            Error{"run.failed",
                  "the system could not start a thread or open a file for the measurement: " + problem.code().message(),
                  {},
                  "allow more threads (ulimit -u), or close other programs"});
    } catch (const std::exception&) {
        // A library that throws where it should not.
        done = failed(Error{
            "run.failed", "the measurement stopped at an internal error", {}, "try again with smaller parameters"});
    }
    done.id = run.id;
    done.elapsed = clock.now() - begin;
    done = fitted(std::move(done));
    {
        // Idle before the done is out: a reader of it may start the next run.
        const std::lock_guard lock(m_mutex);
        m_busy = false;
    }
    // A GPU that is lost stays lost for this process: only a new worker can measure there. Without
    // goodbyes, which may wait for a kernel that never ends.
    const bool spent = std::ranges::any_of(m_backends, [](const auto& backend) { return backend->isSpent(); });
    m_out.write(protocol::Event{std::move(done)});
    if (spent)
        std::_Exit(1);
    m_idle.notify_all();
}

Done RunServer::perform(const Run& run)
{
    auto found = find(m_backends, run.device);
    if (!found)
        return failed(found.error());
    auto& [backend, device] = *found;
    StreamSink sink(run.id, m_out, m_cancelled, nullptr, run.isForced);
    Done done;
    if (run.experiment == "calibrate")
        done = calibration(*backend, device, sink);
    else if (run.experiment == "selftest")
        done = selftest(*backend, device, sink);
    else
        done = experiment(run, *backend, device, sink);
    sink.flush();
    return done;
}

Done RunServer::experiment(const Run& run, Backend& backend, const BackendDevice& device, RunSink& sink)
{
    const auto experiment = findExperiment(run.experiment);
    if (!experiment)
        return failed(experiment.error());
    const auto parameters = parametersFromJson((*experiment)->schema(), JsonReader(run.parameters, "parameters"));
    if (!parameters)
        return failed(parameters.error());
    auto measured = backend.measure(**experiment, device, *parameters, sink);
    if (!measured)
        return failed(measured.error());
    Done done;
    done.status = measured->complete ? "ok" : "cancelled";
    done.result = outcomeToJson(measured->measurement);
    done.provenance = provenanceToJson(measured->provenance, measured->complete);
    return done;
}

Done RunServer::calibration(Backend& backend, const BackendDevice& device, RunSink& sink)
{
    const auto calibrated = backend.calibrate(device, sink);
    if (!calibrated)
        return failed(calibrated.error());
    Done done;
    done.status = "ok";
    done.result = deviceToJson(*calibrated);
    return done;
}

Done RunServer::selftest(Backend& backend, const BackendDevice& device, RunSink& sink)
{
    Json lines = Json::array();
    int failures = 0, skipped = 0;
    for (const SelftestLine& line : backend.selftest(device, sink)) {
        failures += !line.passed && !line.skipped;
        skipped += line.skipped;
        lines.push_back(
            {{"kernel", line.kernel}, {"passed", line.passed}, {"skipped", line.skipped}, {"detail", line.detail}});
    }
    Done done;
    done.status = failures > 0 ? "failed" : sink.cancelled() ? "cancelled" : "ok";
    if (failures > 0)
        done.error = Error{"check.failed",
                           fmt::format("{} kernels gave a wrong answer", failures),
                           {},
                           "see the lines that did not pass; these kernels are not timed"};
    done.result = {{"lines", std::move(lines)}, {"failed", failures}, {"skipped", skipped}};
    return done;
}

} // namespace memscape
