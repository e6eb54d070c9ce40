// SPDX-License-Identifier: Apache-2.0
// The MLP chain in double, element by element, everything kept: what live runs of a small chain are held
// against.
#pragma once

#include "kernels/measure/check.h"
#include "kernels/programs/checkpoint/mlp_device.h"

namespace memscape {

struct MlpReference
{
    double loss = 0;
    std::vector<std::vector<double>> gradients; ///< of stage i: dW_i, then db_i
};
MlpReference mlpReference(const MlpShape& shape);

/// tanh-form gelu and its derivative.
double geluReference(double z);
double geluSlopeReference(double z);

/// A small chain of odd sizes on the device, kept, dropped and made again in every way that a schedule
/// has, with poisoned arrays: the gradients of keeping everything against the reference in double, those
/// of every other schedule bit for bit against those. Errors: run.*; a mismatch is in the Check.
Result<Check> checkMlpDevice(const MlpDeviceFactory& makeDevice);

} // namespace memscape
