// SPDX-License-Identifier: Apache-2.0
// The package memscape_probe at work: a child process of the chosen Python, which makes one run after the other.
#pragma once

#include "kernels/measure/backend.h"
#include "kernels/pytorch/python_torch.h"
#include "kernels/worker/worker_process.h"

namespace memscape {

class PytorchProbe
{
public:
    /// All must outlive it.
    PytorchProbe(const PythonTorch& torch, const BackendDevice& device, RunSink& sink);

    /// Errors: those of WorkerProcess::start(), run.skipped when it is of another version.
    Result<void> start();
    /// The done of a run of `experiment`, whatever its status. Errors: those of WorkerProcess::run(), after which the
    /// process is of no use.
    Result<protocol::Done> run(const std::string& experiment, Json words);

    const BackendDevice& device() const { return m_device; }
    RunSink& sink() { return m_sink; }

private:
    const PythonTorch& m_torch;
    const BackendDevice& m_device;
    RunSink& m_sink;
    WorkerProcess m_worker;
    std::int64_t m_runs = 0;
};

} // namespace memscape
