// SPDX-License-Identifier: Apache-2.0
// PyTorch's operators on this processor, measured one by one by the probe (memscape_probe/calibration.py), and fitted
// (core/timing/pytorch_operations.h). The machine's own calibration stays what it is; large products are PyTorch's.
#pragma once

#include "kernels/pytorch/probe.h"

namespace memscape {

/// The probe's device with `calibration.raw.pytorch`. Errors: those of the probe, calibration.probes.
Result<Device> calibratePytorch(PytorchProbe& probe);

} // namespace memscape
