// SPDX-License-Identifier: Apache-2.0
// Hopper's kernel on the GPU of the tests' own making: a driver that refuses what the real one would
// refuse of a tensor map, and version 8 of flash attention on the emulated machine, fed from the maps.
#pragma once

#include "kernels/cuda/attention/attention.h"
#include "tests/support/warp_emulator.h"

namespace memscape::cuda {

/// As launchFlashHopper() of the module, its kernel thread by thread: an error of the launch; a fault of
/// the machine is an illegal address.
cudaError_t emulateFlashHopper(const FlashLaunch& launch, emulated::GlobalMemory& memory);

} // namespace memscape::cuda
