// SPDX-License-Identifier: Apache-2.0
// A device by the vendor's data sheet alone: the third basis of a prediction, beside the
// catalogue (or the description of this machine) and the calibration. Sizes stay, and so does every
// rate and latency that is specified; what was measured, derived or guessed is unknown, and no
// derating is applied: the sheet does not give the share that streams reach.
#pragma once

#include "core/device/device.h"

namespace memscape {

/// The same device with `basis` "datasheet". An experiment that needs what the sheet does not have
/// answers with unknown figures or predict.device.
Device datasheetOf(Device device);

} // namespace memscape
