// SPDX-License-Identifier: Apache-2.0
// `allocator` on the host: the requests played for real, by glibc's malloc or by our own pools over mmap.
#pragma once

#include "kernels/host/session.h"
#include "kernels/programs/allocator/allocator_run.h"

namespace memscape::host {

/// The machine that replays on this host. The session must outlive it.
AllocatorMachine allocatorMachine(HostSession& session, ContentionWatch& watch);

/// The experiment at its parameters, or over their sweep.
Result<MeasuredRun> measureAllocator(HostSession& session, const Experiment& experiment, const Parameters& parameters);

} // namespace memscape::host
