// SPDX-License-Identifier: Apache-2.0
#include "kernels/pytorch/probe.h"

#include "core/experiment/record.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace memscape {

namespace {

constexpr double cancelPatience = 0.8; ///< s; the probe itself gives up after 0.6

} // namespace

PytorchProbe::PytorchProbe(const PythonTorch& torch, const BackendDevice& device, RunSink& sink)
    : m_torch(torch)
    , m_device(device)
    , m_sink(sink)
    , m_worker(cancelPatience)
{ }

Result<void> PytorchProbe::start()
{
    MEMSCAPE_TRY(hello, m_worker.start(probeCommand(m_torch.python, "worker"), m_sink));
    if (hello.protocol == protocol::version && hello.worker == programVersion())
        return {};
    return fail("run.skipped",
                fmt::format("{} runs memscape_probe {}, and this is Memscape {}", m_torch.python, hello.worker,
                            programVersion()),
                "remove the other one: python3 -m pip uninstall memscape-probe");
}

Result<protocol::Done> PytorchProbe::run(const std::string& experiment, Json words)
{
    return m_worker.run({++m_runs, experiment, m_device.id, std::move(words), m_sink.isForced()}, m_sink);
}

} // namespace memscape
