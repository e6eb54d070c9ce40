// SPDX-License-Identifier: Apache-2.0
#include "kernels/worker/worker.h"
#include "app/cli/commands.h"

#include <fstream>

#include <unistd.h>

namespace memscape::cli {

int runWorkerCommand(const Arguments&)
{
    // Should the memory run out, the system had better end a measurement than what else is open: it
    // can be made again. Where this is not allowed, the system chooses by itself.
    std::ofstream("/proc/self/oom_score_adj") << "1000";
    return runWorker(STDIN_FILENO, STDOUT_FILENO);
}

} // namespace memscape::cli
