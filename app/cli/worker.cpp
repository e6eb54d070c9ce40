// SPDX-License-Identifier: Apache-2.0
#include "app/cli/commands.h"
#include "kernels/worker/worker.h"

#include <unistd.h>

namespace memscape::cli {

int runWorkerCommand(const Arguments&)
{
    return runWorker(STDIN_FILENO, STDOUT_FILENO);
}

} // namespace memscape::cli
