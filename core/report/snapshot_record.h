// SPDX-License-Identifier: Apache-2.0
// A snapshot as a record: experiment "snapshot", measured by the program that wrote the file, or predicted where the
// file is a step that never ran; one side of the two. So
// `check`, reports, exports and the window treat it as any other record. "snapshot" is no registered experiment: it
// has no parameters of a form and no prediction of its own; readers treat it as they treat the records of experiments
// that they do not know, and this file says all that is special to it.
//
//   figures   those of snapshotFigures()
//   series    allocated, reserved over the events: at most 2,000 points each, the peaks among them
//   detail    {"file", "device", "range", "events", "segments", "torch", "steps", "categories", "findings", "modules",
//             "lines", "notes"}
#pragma once

#include "core/experiment/record.h"
#include "core/snapshot/snapshot_device.h"

namespace memscape {

/// `name`: the file's name without its folder, for people.
/// Reports of it are those of any record (report.h).
Record snapshotRecord(const SnapshotDevice& device, const EventRange& range, const std::string& name);
/// The same with findings that were made before, fixes among them.
Record snapshotRecord(const SnapshotDevice& device, const EventRange& range, const std::string& name,
                      const std::vector<SnapshotFinding>& findings);
/// Its one side; null of a record that is no snapshot's.
const Outcome* snapshotOutcome(const Record& record);

} // namespace memscape
