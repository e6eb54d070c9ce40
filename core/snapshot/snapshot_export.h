// SPDX-License-Identifier: Apache-2.0
// A snapshot written for other programs: a pickle that torch.cuda.memory and pytorch.org/memory_viz open, and a table
// of its blocks. (The record with figures and findings is core/report/snapshot_record.h.)
#pragma once

#include "core/snapshot/snapshot_device.h"

#include <functional>

namespace memscape {

/// Takes the next piece; false stops.
using SnapshotWrite = std::function<bool(std::string_view)>;

/// A pickle of protocol 4 (memory_viz refuses 5) with the same segments, events, stacks and settings; a range leaves
/// out earlier and later events (of a range that ends early the segments are those of its end, rebuilt). Keys that the
/// reader passed over are not in it. Labels of a run file and events of unknown
/// actions are left out. Errors: file.write when `write` stops.
Result<void> writeMemoryViz(const SnapshotDevice& device, const EventRange& range, const SnapshotWrite& write);

/// A line per block that lives in the range: address, size, requested, first and last moment, times, category and how,
/// module, operator, line. RFC 4180.
Result<void> writeBlocksCsv(const SnapshotDevice& device, const EventRange& range, const SnapshotWrite& write);

} // namespace memscape
