// SPDX-License-Identifier: Apache-2.0
// Within one thread: ordinary stores, stores past the caches, both kinds of fresh pages, which are given back before
// each chunk so that touching them faults again, and ordinary stores from and to pages of another node.
#include "kernels/host/transfer/route_parts.h"

#include "kernels/host/common/numa_memory.h"
#include "kernels/host/transfer/transfer_kernels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace memscape::host {

namespace {

class CopyRoute final : public TransferRoute
{
public:
    CopyRoute(TransferKind kind, StreamFunction copy, Buffer source, Buffer sink, std::size_t sinkStride)
        : m_kind(kind)
        , m_copy(copy)
        , m_source(std::move(source))
        , m_sink(std::move(sink))
        , m_sinkStride(sinkStride)
    { }

    bool bring(std::byte* buffer, std::size_t offset, std::size_t bytes) override
    {
        refresh(buffer, bytes);
        m_copy(buffer, m_source.data() + offset, bytes);
        return true;
    }
    bool send(const std::byte* buffer, std::size_t index, std::size_t bytes) override
    {
        refresh(sink(index), bytes);
        m_copy(sink(index), buffer, bytes);
        return true;
    }
    bool hasArrived(const std::byte* buffer, std::size_t index, std::size_t bytes) override
    {
        return std::memcmp(sink(index), buffer, bytes) == 0;
    }

private:
    std::byte* sink(std::size_t index) const
    {
        return m_sink.data() + index * m_sinkStride % std::max<std::size_t>(1, m_sink.bytes());
    }
    /// Gives the pages of a buffer back: the next touch of each is a fault.
    void refresh(std::byte* buffer, std::size_t bytes) const
    {
        if (m_kind == TransferKind::Fresh)
            ::madvise(buffer, roundedUp(bytes, pageBytes), MADV_DONTNEED);
        else if (m_kind == TransferKind::Huge)
            ::madvise(buffer, roundedUp(bytes, hugeBytes), MADV_DONTNEED);
    }

    TransferKind m_kind;
    StreamCopy m_copy;
    Buffer m_source, m_sink;
    std::size_t m_sinkStride;
};

Result<StreamFunction> copyFunction(TransferKind kind)
{
    if (kind != TransferKind::Stream)
        return bestStream(Operation::Copy).run;
    StreamFunction past = nullptr;
    for (const StreamKernel& kernel : streamKernels(Operation::Copy)) {
        if (kernel.version == 4)
            past = kernel.run;
    }
    if (!past)
        return fail("run.skipped", "this processor has no stores past the caches that are known here",
                    "choose another kind");
    return past;
}

/// The node that bytes come from and go to; none where every node is right.
Result<std::optional<int>> nodeOf(HostSession& session, const TransferCase& asked)
{
    if (asked.kind != TransferKind::Numa)
        return std::nullopt;
    MEMSCAPE_TRY(node, farNodeOf(session.nodes(), session.team().processors().front()));
    return node;
}

/// Once they are touched.
Result<void> checkNode(const Buffer& buffer, const std::optional<int>& node)
{
    constexpr double almostAll = 0.99;
    if (!node || !(shareOnNode(buffer, *node) < almostAll))
        return {};
    return fail("run.skipped",
                fmt::format("{} of the pages lie on node {}, which was asked for all of them",
                            percentText(shareOnNode(buffer, *node)), *node),
                "choose fewer bytes, or make room on that node", "bytes");
}

} // namespace

Result<Buffer> sourceOf(HostSession& session, const TransferCase& asked)
{
    const auto bytes = std::size_t(asked.bytes);
    MEMSCAPE_TRY(buffer, allocate(bytes, Pages::Huge, session.memory()));
    MEMSCAPE_TRY(node, nodeOf(session, asked));
    if (node)
        MEMSCAPE_CHECK(bindToNode(buffer, *node));
    constexpr std::size_t block = std::size_t(1) << 24; // between two looks whether to stop
    for (std::size_t at = 0; at < bytes; at += block) {
        MEMSCAPE_CHECK(session.checkStopped());
        fillSource(buffer.data() + at, at, std::min(block, bytes - at));
    }
    MEMSCAPE_CHECK(checkNode(buffer, node));
    return buffer;
}

std::size_t bufferStride(const TransferCase& asked)
{
    return roundedUp(std::size_t(asked.chunk), asked.kind == TransferKind::Huge ? hugeBytes : pageBytes);
}

Result<std::unique_ptr<TransferRoute>> openCopyRoute(HostSession& session, const TransferCase& asked)
{
    MEMSCAPE_TRY(copy, copyFunction(asked.kind));
    MEMSCAPE_TRY(source, sourceOf(session, asked));
    const bool isFresh = asked.kind == TransferKind::Fresh || asked.kind == TransferKind::Huge;
    const std::size_t stride = isFresh ? bufferStride(asked) : roundedUp(std::size_t(asked.chunk), cacheLine);
    Buffer sink;
    if (asked.goesOut()) {
        // Fresh pages are given back each time: as many buffers as are in flight do.
        const std::size_t count = isFresh ? std::size_t(asked.depth) : std::size_t(asked.chunks());
        const Pages pages = asked.kind == TransferKind::Fresh ? Pages::Small : Pages::Huge;
        MEMSCAPE_SET(sink, allocate(stride * count, pages, session.memory()));
        MEMSCAPE_TRY(node, nodeOf(session, asked));
        if (node)
            MEMSCAPE_CHECK(bindToNode(sink, *node));
        std::memset(sink.data(), 0, sink.bytes());
        MEMSCAPE_CHECK(checkNode(sink, node));
    }
    return std::make_unique<CopyRoute>(asked.kind, copy, std::move(source), std::move(sink), stride);
}

} // namespace memscape::host
