// SPDX-License-Identifier: Apache-2.0
// A GPU for tests: the calls of the CUDA runtime and the launchers that the backend uses, answered
// from host memory and a clock that only launches move. Kernels do not run; their time follows a
// simple model, so that a test knows what must be measured. Every fault that a real GPU can show is
// a field.
//
// Like a real one it loads a kernel at its first launch, keeps the last error until a call reads
// it, holds a thousand launches in its queue, and makes a call wait that needs the stream to be empty.
// While the stream is blocked, what would wait makes the blocking kernel give up.
#pragma once

#include "kernels/measure/clock.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

struct FakeGpu
{
    // What it is.
    int devices = 1;
    int multiprocessors = 132;
    std::uint64_t memoryBytes = 8ULL << 30;
    double clockHz = 1.98e9;
    bool hasPools = true;

    // How fast it is.
    double launchSeconds = 2.5e-6;
    double sectorBytesPerSecond = 4e12; ///< DRAM, any pattern
    double streamBytesPerSecond = 4.2e12;
    double flopsPerSecond = 40e12;                        ///< products of float matrices
    double tensorFlopsPerSecond = 400e12;                 ///< products of halves, attention
    double linkBytesPerSecond = 50e9, linkLatency = 9e-6; ///< copies of pinned memory
    double pageableBytesPerSecond = 0;                    ///< of other memory of the host; 0: they take no time
    double insideBytesPerSecond = 0;                      ///< of copies within its memory; the same
    bool reachesPeers = true;                             ///< each of its devices the memory of the others
    cudaError_t peerError = cudaSuccess;                  ///< of opening the way to one
    double peerBytesPerSecond = 200e9, peerLatency = 5e-6;
    int wrongCopyAt = 0;                      ///< the copy of pinned memory that loses a bit; 0 none
    std::uint64_t pinnableBytes = UINT64_MAX; ///< of the host's memory, in one piece
    double l1BytesPerSecond = 25e12, l2BytesPerSecond = 8e12;
    double l1Latency = 16e-9, l2Latency = 140e-9, dramLatency = 350e-9;
    double sharedLatencyCycles = 23;
    std::uint64_t l1Bytes = 200 << 10, l2Bytes = 50 << 20;

    // What is wrong with it.
    cudaError_t countError = cudaSuccess;
    cudaError_t openError = cudaSuccess;
    int driverVersion = 13000;
    int fillsUntilFault = -1; ///< arrays filled before the context is lost; -1 never
    cudaError_t fault = cudaErrorIllegalAddress;
    bool blockTimesOut = false;
    std::string hangs;              ///< the kernel that never ends
    int hangsAt = 1;                ///< which of its launches
    double clockSag = 1;            ///< of the clock during kernels that are timed
    int sagsAfter = 0;              ///< so many timed kernels
    int luckyEvery = 0;             ///< of so many timed kernels one is a tenth faster; 0 none
    bool wrongKernel = false;       ///< checks fail
    int wrongFlash = 0;             ///< the version of flash attention whose checks fail; 0 none
    int productsUntilWrong = -1;    ///< products until one is off by a bit; -1 never
    int computeCapability = 90;     ///< ten times
    bool emulatesAttention = false; ///< small problems thread by thread; else plainly, in double
    bool hasLibrary = false;        ///< cuBLASLt, of the test's own
    bool libraryPassedOver = false; ///< MEMSCAPE_CUBLASLT names another that cannot be used
    bool libraryLacksOdd = false;   ///< it has no products of odd sizes
    bool hasTensorMaps = true;      ///< a driver that knows Hopper
    bool forgetsBarriers = false;   ///< attention kernels that are emulated miss their barriers

    // What it saw.
    int launches = 0;                         ///< of timed kernels
    int behindBlock = 0, mostBehindBlock = 0; ///< what was queued while the stream was held
    std::string heldUp;                       ///< what waited for the blocking kernel until that gave up
    std::string blockedBy;                    ///< the call that waited for a kernel that never ends
    std::string race;                         ///< what streams did to one place that had not waited for each other
    std::uint64_t usedBytes = 0;
    std::uint64_t largestWorkspace = 0; ///< that the library was given, B

    bool isNew = true; ///< nothing has asked it anything yet
};

/// Queues a kernel and moves the clock by a launch and `seconds`; the last error. The variant tells
/// programs of one name apart.
cudaError_t fakeLaunch(std::string_view kernel, std::uint64_t variant, double seconds);
/// A kernel that is not timed: no clock is moved.
cudaError_t fakeQueue(std::string_view kernel, std::uint64_t variant = 0);
/// Loads a kernel that is launched under another name, as a library's.
void fakeLoad(std::string_view kernel, std::uint64_t variant);
/// What a kernel or a copy touches, for `race`.
void fakeReads(cudaStream_t stream, const void* at, std::uint64_t bytes);
void fakeWrites(cudaStream_t stream, const void* at, std::uint64_t bytes);
cudaError_t fakeError();                    ///< the sticky one
cudaError_t fakeFailure(cudaError_t error); ///< what a call fails with: kept until it is asked for
double fakeNow();                           ///< s on the GPU
double fakeClocks();                        ///< of its multiprocessors
/// The host's clock, which waits while the GPU works: a measurement that fills 25 ms is done when the GPU has.
class FakeHostClock : public memscape::SteadyClock
{
public:
    double now() const override { return SteadyClock::now() + fakeNow(); }
};
/// One number of several: a variant.
template <typename... Number> std::uint64_t fakeVariant(Number... numbers)
{
    std::uint64_t variant = 0;
    ((variant = variant * 1'000'003 + static_cast<std::uint64_t>(numbers)), ...);
    return variant;
}

/// The one that the calls answer for; tests assign a fresh one.
FakeGpu& fakeGpu();
