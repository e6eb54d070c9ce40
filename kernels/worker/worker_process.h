// SPDX-License-Identifier: Apache-2.0
// A worker as its parent sees it: a process that speaks the protocol, one run after the other. What it says of a run
// goes to a sink; a cancel of the sink is passed on, and a worker that does not react is killed.
#pragma once

#include "core/protocol/message.h"
#include "kernels/measure/backend.h"
#include "kernels/worker/child_process.h"

#include <optional>

namespace memscape {

class WorkerProcess
{
public:
    /// Killed when it has not stopped `patience` seconds after a cancel.
    explicit WorkerProcess(double patience)
        : m_patience(patience)
    { }

    /// Starts it and waits for its hello; lines before that, which are not of the protocol, are passed over. Errors:
    /// run.failed, run.memory (it ended), run.hung (no hello), run.cancelled.
    Result<protocol::Hello> start(const ChildCommand& command, const RunSink& sink);
    /// The done of a run, whatever its status. Errors: run.failed, run.memory, run.cancelled, protocol.*; after one of
    /// them the process has ended or is of no use.
    Result<protocol::Done> run(const protocol::Run& run, RunSink& sink);

private:
    Result<std::vector<std::string>> lines(const RunSink& sink);
    void cancelWhenAsked(const RunSink& sink);

    ChildProcess m_child;
    protocol::LineReader m_reader;
    std::vector<std::string> m_waiting; ///< lines that came with the hello
    double m_patience;
    std::int64_t m_running = 0;
    std::optional<double> m_cancelled; ///< s of the steady clock
};

/// The measurement of a done: its result with its provenance, or its error.
Result<MeasuredRun> resultOf(const protocol::Done& done);

} // namespace memscape
