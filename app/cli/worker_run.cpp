// SPDX-License-Identifier: Apache-2.0
#include "app/cli/worker_run.h"

#include "kernels/worker/worker_process.h"

namespace memscape::cli {

Result<MeasuredRun> measureInWorker(const Experiment& experiment, const std::string& device,
                                    const Parameters& parameters, RunSink& sink)
{
    constexpr double patience = 5; // s, after Ctrl+C
    WorkerProcess worker(patience);
    MEMSCAPE_CHECK(worker.start({{"/proc/self/exe", "worker"}}, sink));
    MEMSCAPE_TRY(done, worker.run({1, experiment.id(), device, parametersToJson(parameters), true}, sink));
    return resultOf(done);
}

} // namespace memscape::cli
