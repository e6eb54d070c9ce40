// SPDX-License-Identifier: Apache-2.0
// From what the pickle machine left to a Snapshot: segments with their blocks, the devices' traces, settings,
// annotations, and the labels of a run file.
#pragma once

#include "core/snapshot/pickle_objects.h"

namespace memscape {

/// Takes the tables out of `objects`. Errors: snapshot.format, snapshot.type, snapshot.value with the place.
Result<Snapshot> assembleSnapshot(PickleObjects& objects, PickleValue top);

} // namespace memscape
