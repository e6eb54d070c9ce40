// SPDX-License-Identifier: Apache-2.0
// What the files of the fake runtime need of each other: fake_runtime.cpp (queue, clock, devices, streams and events),
// fake_memory.cpp (memory and copies), fake_order.cpp (what streams have seen of each other).
#pragma once

#include "tests/kernels/cuda/fake_gpu.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

namespace fake {

// ---- queue, clock and errors
void pass(double seconds, double clock);
/// Keeps an error until it is asked for.
cudaError_t noted(cudaError_t error);
/// `what` needs what is queued before it to have run.
void waitFor(std::string_view what);
/// One place in the stream's queue.
void queued(std::string_view what);
int chosenDevice();
/// So much of L2 is to be written back when its lines are needed.
void setDirty(double bytes);

// ---- memory
void trimPool(); ///< the pool gives back what was freed
void forgetMemory();

// ---- order: who touches memory must have seen all that touched it before
void streamBegins(cudaStream_t stream);
void streamEnds(cudaStream_t stream);
bool isParallel(); ///< more streams than the session's
void touch(cudaStream_t stream, const void* at, std::uint64_t bytes, bool isWrite);
void streamWaits(cudaStream_t stream, cudaEvent_t event);
void eventIsRecorded(cudaEvent_t event, cudaStream_t stream);
void hostWaits(cudaEvent_t event);
void hostWaits(cudaStream_t stream);
/// A copy to pinned memory: until the host has waited for it, it sees what was there before.
void arrivesLater(cudaStream_t stream, void* to, std::vector<char> bytes);
/// Such copies are the source of another one.
void arriveFor(const void* from, std::uint64_t bytes);
/// Of memory that is given back.
void forgetAccesses(const void* at, std::uint64_t bytes);
void forgetOrder();

} // namespace fake
