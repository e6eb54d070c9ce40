// SPDX-License-Identifier: Apache-2.0
// One measuring thread beside the reader. A run at a time: a second one is refused at once, so that a
// window never waits behind a measurement it does not know of. Every run that was accepted or refused
// ends in exactly one done.
#pragma once

#include "kernels/worker/line_writer.h"
#include "kernels/worker/worker.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace memscape {

class RunServer
{
public:
    RunServer(Backends backends, LineWriter& out);
    /// Stops what runs and waits for it; call stop() first when that may take too long.
    ~RunServer();

    void hello();
    /// Run or cancel; returns at once.
    void handle(const protocol::Command& command);
    /// Cancels what runs. False when it has not ended after `patience` seconds.
    bool stop(double patience);

private:
    void start(const protocol::Run& run);
    void measure(const protocol::Run& run);
    protocol::Done perform(const protocol::Run& run);
    protocol::Done experiment(const protocol::Run& run, Backend& backend, const BackendDevice& device, RunSink& sink);
    protocol::Done calibration(Backend& backend, const BackendDevice& device, RunSink& sink);
    protocol::Done selftest(Backend& backend, const BackendDevice& device, RunSink& sink);

    Backends m_backends;
    LineWriter& m_out;

    std::mutex m_mutex;
    std::condition_variable m_idle;
    std::thread m_thread;
    bool m_busy = false;
    std::int64_t m_running = 0; ///< id of the run, while busy
    std::atomic<bool> m_cancelled{false};
};

} // namespace memscape
