// SPDX-License-Identifier: Apache-2.0
// What the operations of a training step cost on this machine where arrays are small: calls, rearranging, and
// what is left for the arithmetic. Each is the trainer's own (batch_program.h), repeated within one dispatch, on
// sizes that no sweep by doubling compares on.
#pragma once

#include "core/timing/host_operations.h"
#include "kernels/host/product.h"
#include "kernels/host/session.h"

namespace memscape::host {

/// Seconds of one operation each, on all threads. Errors: run.memory, run.cancelled.
Result<std::vector<OperationProbe>> probeOperations(HostSession& session, const ProductKernel& product);

} // namespace memscape::host
