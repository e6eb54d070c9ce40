// SPDX-License-Identifier: Apache-2.0
// The process that measures. It sends hello, takes one command a line, answers in events a line, and
// goes when its input ends. See core/protocol/message.h for what the lines hold.
#pragma once

#include "kernels/measure/backend.h"

#include <memory>
#include <string>
#include <vector>

namespace memscape {

struct WorkerOptions
{
    /// Records or study files to play as devices ("replay:…").
    std::vector<std::string> replays;
    /// How long a run may take to stop after the input has ended, before the process ends without it.
    double patience = 1.0;

    /// Replays from MEMSCAPE_REPLAY, paths joined by ':'.
    static WorkerOptions fromEnvironment();
};

using Backends = std::vector<std::unique_ptr<Backend>>;

/// Host, CUDA and PyTorch, and a replay for every file of the options; what could not be opened is said on
/// stderr.
Backends makeBackends(const WorkerOptions& options);

/// Runs the protocol on two file descriptors until the input ends or quit comes. Writes nothing to
/// `out` but protocol lines. A run that does not stop in time takes the process with it: the caller
/// wanted it gone. One that loses its GPU is the last: after its done the process ends with status 1. SIGPIPE
/// is ignored from here on. Returns the exit code, 0.
int runWorker(int in, int out, const WorkerOptions& options = WorkerOptions::fromEnvironment());
int runWorker(int in, int out, Backends backends, const WorkerOptions& options);

} // namespace memscape
