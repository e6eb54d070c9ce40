// SPDX-License-Identifier: Apache-2.0
// The requests of `allocator` as the probe plays them, and its numbers as the figures and curves of a host's
// measurement (kernels/programs/allocator): made by the same functions.
#pragma once

#include "core/experiments/allocator/allocator.h"
#include "kernels/pytorch/measured_memory.h"

namespace memscape {

/// What the probe is given: requests, bytes, streams and calls of the trace (memscape_probe/allocator.py), the text of
/// PYTORCH_CUDA_ALLOC_CONF and the share of the GPU's memory that the process may take (0: all).
/// Errors: run.skipped where PyTorch has no such allocator on the device.
Result<Json> playedByProbe(const Device& device, const AllocatorCase& asked);

/// `result`: what a run ended with. Errors: json.*, probe.trace.
Result<MeasuredMemory> measuredAllocator(const Device& device, const AllocatorCase& asked, const Json& result);

} // namespace memscape
