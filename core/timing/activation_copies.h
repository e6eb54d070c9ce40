// SPDX-License-Identifier: Apache-2.0
// What a step waits for when its activations go to the host and back (core/training/host_activations.h): the copies of
// each pass run beside it, in a stream of their own, and the pass ends with the slower of both:
//
//     exposed = max(0, B / β − forward) + max(0, B / β − backward − recomputation)
//
// B bytes each way in a step, β of the link between GPU and host, one direction. Forward may run ahead of its copies by
// five tensors only, so that it ends with them; backward's copies run ahead of it because Python does.
// Left out: the first copy back, which nothing hides; what pinned memory takes to be allocated, once; contention with
// other traffic over the link.
#pragma once

#include "core/base/result.h"
#include "core/device/device.h"
#include "core/timing/operator_time.h"

namespace memscape {

/// Adds the copies of `bytes` each way to a step's time. Errors: predict.device where the link is not known.
Result<void> addActivationCopies(StepTime& time, const Device& device, double bytes);

} // namespace memscape
