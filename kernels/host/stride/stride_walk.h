// SPDX-License-Identifier: Apache-2.0
// Samples of one access pattern over arrays on the host.
#pragma once

#include "core/access/stride_case.h"
#include "kernels/host/session.h"
#include "kernels/host/stride/stride_kernels.h"

#include <optional>
#include <vector>

namespace memscape::host {

/// The arrays of a walk, kept between walks over arrays of the same size.
class StrideArrays
{
public:
    /// Allocated and touched by the threads that will use them. Errors: run.memory, run.cancelled.
    Result<void> prepare(HostSession& session, std::size_t bytes, int arrays, int threads);

    std::byte* source() const { return m_buffers[0].data(); }
    /// The second array of a copy, the only one of a write.
    std::byte* target() const { return m_buffers[m_arrays - 1].data(); }
    /// Of the first array.
    double hugeShare() const { return m_buffers[0].hugeShare(); }

private:
    Buffer m_buffers[2];
    std::size_t m_bytes = 0;
    int m_arrays = 0, m_threads = 0;
};

/// The kernel that a walk is measured with: the best contiguous one when neighbours touch, else the
/// best strided or random one.
StrideKernel kernelFor(const StrideCase& walk);

/// Seconds of one pass, as many samples as `options` ask for, on walk.threadsOn(device) cores. Cold: the caches are
/// flushed before every sample; a pass of few accesses is then repeated from other starts (see .cpp). Warm: passes
/// follow each other. Errors: run.memory, run.cancelled.
Result<std::vector<double>> measureStride(HostSession& session, StrideArrays& arrays, const StrideCase& walk,
                                          const StoppingOptions& options);

/// Lines that one pass of a walk that reads brings into the L1 caches, the caches flushed before where it is cold;
/// nothing for other walks and where they are not counted. The arrays are those of the measurement before. Errors:
/// run.memory, run.cancelled.
Result<std::optional<double>> countStrideLines(HostSession& session, const StrideArrays& arrays,
                                               const StrideCase& walk);

} // namespace memscape::host
