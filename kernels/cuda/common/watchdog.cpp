// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/watchdog.h"

#include "core/base/number.h"
#include "kernels/measure/clock.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <unistd.h>

namespace memscape::cuda {

namespace {

constexpr double defaultDeadline = 20; // s
constexpr double awake = 1e-3;         // s
constexpr std::chrono::microseconds nap{100};

std::atomic<bool> hung{false};
std::string doingWhat;

/// Runs before the CUDA runtime's own end, which would wait for the kernel: what is registered last
/// runs first.
void leave(int status, void*)
{
    if (!hung)
        return;
    std::fflush(nullptr);
    ::_exit(status);
}

cudaError_t giveUp()
{
    hung = true;
    ::on_exit(leave, nullptr);
    return cudaErrorLaunchTimeout;
}

template <typename Query> cudaError_t waitUntilReady(const Query& query)
{
    if (hung)
        return cudaErrorLaunchTimeout;
    const SteadyClock clock;
    const double begin = clock.now(), deadline = waitingDeadline();
    for (;;) {
        const cudaError_t error = query();
        if (error != cudaErrorNotReady)
            return error;
        cudaGetLastError(); // CUDA keeps "not ready" as it keeps errors
        const double waited = clock.now() - begin;
        if (waited > deadline)
            return giveUp();
        if (waited > awake)
            std::this_thread::sleep_for(nap);
    }
}

} // namespace

cudaError_t waitFor(cudaStream_t stream)
{
    const cudaError_t error = waitUntilReady([stream] { return cudaStreamQuery(stream); });
    // It is idle now. A pool gives back what was freed when a call synchronises, not when one asks.
    return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

cudaError_t waitFor(cudaEvent_t event)
{
    return waitUntilReady([event] { return cudaEventQuery(event); });
}

bool isHung()
{
    return hung;
}

std::string hungWhile(const std::string& doing)
{
    if (doingWhat.empty())
        doingWhat = doing;
    return doingWhat;
}

double waitingDeadline()
{
    const char* const text = std::getenv("MEMSCAPE_GPU_DEADLINE");
    if (text == nullptr)
        return defaultDeadline;
    const auto seconds = parseNumber(text);
    return seconds && *seconds > 0 ? *seconds : defaultDeadline;
}

void forgetHang()
{
    hung = false;
    doingWhat.clear();
}

} // namespace memscape::cuda
