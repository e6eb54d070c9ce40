// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/common/host_memory.h"

#include "kernels/cuda/common/errors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace memscape::cuda {

namespace {

constexpr std::uint64_t pageOfHost = 4096; // what direct I/O asks for, too

void freePinnedMemory(char* memory)
{
    if (!isHung())
        cudaFreeHost(memory);
}

void freePageableMemory(char* memory)
{
    std::free(memory);
}

} // namespace

Result<HostMemory> takeHostMemory(GpuSession& session, bool isPinned, std::uint64_t bytes)
{
    MEMSCAPE_CHECK(session.synchronize("waiting before memory of the host is taken"));
    const std::uint64_t whole = (std::max<std::uint64_t>(bytes, 1) + pageOfHost - 1) / pageOfHost * pageOfHost;
    void* taken = nullptr;
    if (isPinned) {
        const cudaError_t error = cudaHostAlloc(&taken, whole, cudaHostAllocMapped);
        if (error == cudaErrorMemoryAllocation) {
            forgetCudaError();
            return fail("run.memory", fmt::format("{} of host memory cannot be pinned", bytesText(double(whole))),
                        "choose fewer bytes or pageable memory, or end what else pins the host's memory");
        }
        MEMSCAPE_CHECK(cudaResult(error, "pinning memory of the host"));
    } else {
        taken = std::aligned_alloc(pageOfHost, std::size_t(whole));
        if (!taken)
            return fail("run.memory", fmt::format("{} of host memory cannot be had", bytesText(double(whole))),
                        "choose fewer bytes, or end what else uses the host's memory");
    }
    std::memset(taken, 0, std::size_t(whole));
    return HostMemory(static_cast<char*>(taken), isPinned ? freePinnedMemory : freePageableMemory);
}

} // namespace memscape::cuda
