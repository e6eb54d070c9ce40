// SPDX-License-Identifier: Apache-2.0
// Whether a calibrated device can be a machine at all. A minute on a busy one can give probes that fit
// to what no machine does, and predictions would then be worse than those of the description. Held
// against each other is only what was measured:
//   - a level farther away does not answer sooner than a nearer one, and gives no more bytes a second
//     than the nearest cache;
//   - translating huge pages is not slower than translating pages of 4 KiB.
// Each with a margin for noise. Left out: values that are merely unlikely; the grade shows those.
#pragma once

#include "core/device/device.h"

namespace memscape {

/// Errors: run.impossible, which names the two values that contradict each other.
Result<void> checkPossible(const Device& calibrated);

} // namespace memscape
