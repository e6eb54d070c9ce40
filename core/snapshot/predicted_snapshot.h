// SPDX-License-Identifier: Apache-2.0
// A predicted step in the shape of a recorded one: what torch.cuda.memory._record_memory_history() and _dump_snapshot()
// would leave of it, so that pytorch.org/memory_viz and this program's own page of snapshots show a plan that never
// ran.
//
//   addresses  those of the caching allocator that the trace is replayed through, segments and holes included
//   a stack    the operator (or what the block is for), its module, the phase as a function of the user
//   time       the number of the event in microseconds: the trace counts events, not seconds
//
// Left out: memory that does not come from PyTorch's allocator (context, NCCL), and the lines of a real program.
#pragma once

#include "core/snapshot/snapshot.h"
#include "core/trace/allocator_options.h"
#include "core/trace/trace.h"

namespace memscape {

/// Without a limit of the device a step that does not fit is there in full; with one it ends where memory runs out.
/// Errors: trace.length (more events than `most`, repetitions counted), predict.cancelled.
Result<Snapshot> predictedSnapshot(const Trace& trace, const AllocatorOptions& options, std::size_t most = 2'000'000);

/// Nothing ran: the snapshot is a predicted step, read from a file or not. Its frames name no file but "prediction".
bool isPredicted(const Snapshot& snapshot);

} // namespace memscape
