// SPDX-License-Identifier: Apache-2.0
// What the routes have in common: pages, the filled source, and a copy of any number of bytes.
#pragma once

#include "core/base/rounding.h"
#include "kernels/host/common/streams.h"
#include "kernels/host/transfer/transfer_route.h"

#include <cstring>

namespace memscape::host {

inline constexpr std::size_t pageBytes = 4096, hugeBytes = std::size_t(1) << 21;

/// Filled with what fillSource() says. Errors: run.memory, run.cancelled.
Result<Buffer> sourceOf(HostSession& session, const TransferCase& asked);

/// The copies of one version of the stream kernel, whole words, and what is left over.
class StreamCopy
{
public:
    explicit StreamCopy(StreamFunction run)
        : m_run(run)
    { }
    void operator()(std::byte* to, const std::byte* from, std::size_t bytes) const
    {
        const std::size_t whole = bytes / 8 * 8;
        if (whole > 0)
            m_run({to, from, nullptr, whole}, 1);
        std::memcpy(to + whole, from + whole, bytes - whole);
    }

private:
    StreamFunction m_run;
};

/// Within one thread. Errors: run.memory, run.skipped.
Result<std::unique_ptr<TransferRoute>> openCopyRoute(HostSession& session, const TransferCase& asked);

} // namespace memscape::host
