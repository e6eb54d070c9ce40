// SPDX-License-Identifier: Apache-2.0
// The workspace that PyTorch gives cuBLAS through its own allocator: one per handle and stream, made by
// the first product (behind the product's result) and kept until the process ends. Handles belong to
// threads, and the engine runs backward on a thread of its own: a step that goes backward has two.
//
//   compute capability 9.0, 10.0, 12.0   4096 KiB × 8 = 32 MiB
//   older NVIDIA GPUs                    4096 KiB × 2 + 16 KiB × 8 = 8,519,680 B
//   AMD CDNA 3 and 4 (gfx94, gfx95)      128 MiB, other AMD GPUs 32 MiB
//   Apple GPUs                           none: there is no cuBLAS
//
// Source: aten/src/ATen/cuda/CublasHandlePool.cpp (parseChosenWorkspaceSize, the thread_local PoolWindow);
// the 32 MiB and their place behind the first result are in the snapshot of a real forward pass on an H100.
// Left out: CUBLAS_WORKSPACE_CONFIG, cuBLASLt's separate workspace before it was shared with this one.
#pragma once

#include "core/device/device.h"

#include <cstdint>

namespace memscape {

/// B of one workspace on this device; 0 on a host and on Apple's GPUs.
std::int64_t blasWorkspaceBytes(const Device& device);

} // namespace memscape
