// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/allocator/real_pool.h"

#include "core/base/rounding.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace memscape::host {

namespace {

/// Writes who owns a block at its two ends, and finds whether somebody else wrote there.
class Owners
{
public:
    Owners(const RequestTrace& trace, bool checks)
        : m_trace(trace)
        , m_checks(checks)
    { }
    void made(BlockId block, std::byte* at) const
    {
        if (m_checks)
            for (std::byte* end : endsOf(block, at))
                std::memcpy(end, &block, tagBytes(block));
    }
    void freed(BlockId block, std::byte* at)
    {
        if (!m_checks)
            return;
        for (std::byte* end : endsOf(block, at))
            if (std::memcmp(end, &block, tagBytes(block)) != 0)
                m_wrong = fmt::format("{} was written by another block", m_trace.nameOf(block));
    }
    const std::string& wrong() const { return m_wrong; }

private:
    std::size_t tagBytes(BlockId block) const
    {
        return std::min(sizeof block, std::size_t(m_trace.blocks[block].bytes));
    }
    std::array<std::byte*, 2> endsOf(BlockId block, std::byte* at) const
    {
        return {at, at + m_trace.blocks[block].bytes - std::ptrdiff_t(tagBytes(block))};
    }

    const RequestTrace& m_trace;
    bool m_checks;
    std::string m_wrong;
};

class RealPool final : public HostAllocator
{
public:
    RealPool(const AllocatorCase& asked, std::unique_ptr<MemoryPolicy> policy, AddressRange range, std::uint64_t base,
             bool checks)
        : m_asked(asked)
        , m_policy(std::move(policy))
        , m_range(std::move(range))
        , m_base(base)
        , m_places(asked.trace->blocks.size())
        , m_owners(*asked.trace, checks)
    { }

    bool play(const Request& request, const RequestedBlock& block) override
    {
        if (request.kind == RequestKind::Free)
            m_owners.freed(request.block, place(request.block));
        const std::uint64_t end = m_end;
        const PolicyAct act = m_policy->play(request, block);
        if (act.kind == ActKind::Refused)
            return false;
        if (act.returned > 0)
            closeOutside();
        if (act.taken > 0 && !open(act, end))
            return false;
        if (request.kind == RequestKind::Allocate) {
            m_places[request.block] = act.address - m_base;
            m_owners.made(request.block, place(request.block));
        }
        return true;
    }
    PolicyCounts counts() override { return m_policy->counts(); }
    double driverCalls() const override
    {
        const PolicyTotals totals = m_policy->totals();
        return double(totals.takes + totals.returns);
    }
    double retries() const override { return double(m_policy->totals().retries); }
    std::string wrong() const override { return m_owners.wrong(); }
    std::byte* place(BlockId block) const override { return m_range.data() + m_places[block]; }

private:
    /// What was taken is around the block, or at the end of the one range that only grows.
    bool open(const PolicyAct& act, std::uint64_t end)
    {
        const std::uint64_t first = act.address - m_base;
        const auto size = std::uint64_t(std::max(act.taken, act.given + act.rest));
        const bool grows = m_asked.setting.kind == PolicyKind::FirstFit || m_asked.setting.kind == PolicyKind::BestFit;
        m_end = grows ? end + std::uint64_t(act.taken) : end;
        if (grows)
            return m_range.open(end, std::size_t(act.taken), m_asked.touch);
        return m_range.open(m_asked.setting.isPlanned() ? 0 : first, size, m_asked.touch);
    }
    void closeOutside()
    {
        std::uint64_t at = 0;
        for (const PolicySegment& segment : m_policy->segments()) {
            const std::uint64_t begin = segment.address - m_base;
            if (begin > at)
                m_range.close(at, begin - at);
            at = begin + std::uint64_t(segment.size);
        }
        m_range.close(at, SIZE_MAX);
        m_end = std::min(m_end, at);
    }

    const AllocatorCase& m_asked;
    std::unique_ptr<MemoryPolicy> m_policy;
    AddressRange m_range;
    std::uint64_t m_base;
    std::uint64_t m_end = 0;
    std::vector<std::uint64_t> m_places; ///< by BlockId, from m_base
    Owners m_owners;
};

/// glibc's malloc and free. A free that waits for a stream is made when the streams are synchronized.
class RealMalloc final : public HostAllocator
{
public:
    RealMalloc(const AllocatorCase& asked, bool checks)
        : m_trace(*asked.trace)
        , m_places(m_trace.blocks.size())
        , m_isRecorded(m_trace.blocks.size())
        , m_owners(m_trace, checks)
    {
        m_before = bytesNow();
    }
    ~RealMalloc() override
    {
        for (std::byte* place : m_places)
            std::free(place);
        malloc_trim(0);
    }

    bool play(const Request& request, const RequestedBlock& block) override
    {
        switch (request.kind) {
        case RequestKind::Allocate:
            m_places[request.block] = static_cast<std::byte*>(std::malloc(std::size_t(block.bytes)));
            if (m_places[request.block] == nullptr)
                return false;
            m_requested += block.bytes;
            m_owners.made(request.block, m_places[request.block]);
            return true;
        case RequestKind::Free:
            m_requested -= block.bytes;
            if (m_isRecorded[request.block])
                m_pending.push_back(request.block);
            else
                free(request.block);
            return true;
        case RequestKind::Record: m_isRecorded[request.block] = true; return true;
        case RequestKind::Synchronize:
        case RequestKind::EmptyCache:
            for (const BlockId pending : completedBy(request, m_pending))
                free(pending);
            if (request.kind == RequestKind::EmptyCache)
                malloc_trim(0);
            return true;
        }
        return true;
    }
    PolicyCounts counts() override
    {
        const Bytes now = bytesNow();
        return {m_requested, now.used - m_before.used, now.taken - m_before.taken,
                now.mappings - m_before.mappings + 1};
    }
    double driverCalls() const override { return nan; } // glibc does not count them
    std::string wrong() const override { return m_owners.wrong(); }
    std::byte* place(BlockId block) const override { return m_places[block]; }

private:
    struct Bytes
    {
        std::int64_t used = 0, taken = 0, mappings = 0;
    };
    static Bytes bytesNow()
    {
        const auto info = mallinfo2();
        return {std::int64_t(info.uordblks + info.hblkhd), std::int64_t(info.arena + info.hblkhd),
                std::int64_t(info.hblks)};
    }
    void free(BlockId block)
    {
        m_owners.freed(block, m_places[block]);
        std::free(std::exchange(m_places[block], nullptr));
    }

    const RequestTrace& m_trace;
    std::vector<std::byte*> m_places;
    std::vector<bool> m_isRecorded;
    std::vector<BlockId> m_pending;
    Owners m_owners;
    std::int64_t m_requested = 0;
    Bytes m_before;
};

/// Where the policy's addresses begin and end, found by playing it once.
struct Span
{
    std::uint64_t begin = UINT64_MAX, end = 0;
};
Result<Span> spanOf(const AllocatorCase& asked)
{
    MEMSCAPE_TRY(policy, makePolicy(asked.setting, *asked.trace));
    Span span;
    for (const Request& request : asked.trace->requests) {
        const PolicyAct act = policy->play(request, asked.trace->blocks[request.block]);
        if (act.kind == ActKind::Refused)
            break;
        if (act.taken == 0)
            continue;
        for (const PolicySegment& segment : policy->segments()) {
            span.begin = std::min(span.begin, segment.address);
            span.end = std::max(span.end, segment.address + std::uint64_t(segment.size));
        }
    }
    return span;
}

} // namespace

AddressRange::AddressRange(AddressRange&& other) noexcept
    : m_data(std::exchange(other.m_data, nullptr))
    , m_bytes(std::exchange(other.m_bytes, 0))
{ }

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept
{
    std::swap(m_data, other.m_data);
    std::swap(m_bytes, other.m_bytes);
    return *this;
}

AddressRange::~AddressRange()
{
    if (m_data != nullptr)
        munmap(m_data, m_bytes);
}

Result<AddressRange> AddressRange::reserve(std::size_t bytes)
{
    AddressRange range;
    bytes = roundedUp(bytes, hostPage);
    void* const data = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return fail("run.memory",
                    fmt::format("the system has no room for {} of addresses", quantityText(double(bytes), Unit::Byte)),
                    "choose a smaller trace, or a larger scale");
    madvise(data, bytes, MADV_NOHUGEPAGE);
    range.m_data = static_cast<std::byte*>(data);
    range.m_bytes = bytes;
    return range;
}

bool AddressRange::open(std::size_t offset, std::size_t bytes, FirstTouch touch) const
{
    const std::size_t begin = offset / hostPage * hostPage;
    const std::size_t end = std::min(m_bytes, roundedUp(offset + bytes, hostPage));
    if (mprotect(m_data + begin, end - begin, PROT_READ | PROT_WRITE) != 0)
        return false;
    if (touch != FirstTouch::Eager)
        return true;
#ifdef MADV_POPULATE_WRITE
    if (madvise(m_data + begin, end - begin, MADV_POPULATE_WRITE) == 0)
        return true;
#endif
    for (std::size_t page = begin; page < end; page += hostPage)
        *const_cast<volatile std::byte*>(m_data + page) = std::byte{0};
    return true;
}

void AddressRange::close(std::size_t offset, std::size_t bytes) const
{
    const std::size_t begin = roundedUp(offset, hostPage);
    const std::size_t end =
        bytes > m_bytes - std::min(offset, m_bytes) ? m_bytes : (offset + bytes) / hostPage * hostPage;
    if (begin >= end)
        return;
    madvise(m_data + begin, end - begin, MADV_DONTNEED);
    mprotect(m_data + begin, end - begin, PROT_NONE);
}

Result<std::unique_ptr<HostAllocator>> openHostAllocator(const AllocatorCase& asked, bool checks)
{
    if (asked.setting.kind == PolicyKind::Malloc)
        return std::make_unique<RealMalloc>(asked, checks);
    if (asked.setting.kind == PolicyKind::CudaMalloc || asked.setting.kind == PolicyKind::CudaAsync)
        return fail("run.skipped", fmt::format("{} is a GPU's: a processor has none", asked.setting.key),
                    "choose a GPU, or setting=malloc", "setting");
    MEMSCAPE_TRY(span, spanOf(asked));
    if (span.begin > span.end)
        return fail("run.memory", "the first request is refused already", "choose a larger limit", "limit");
    MEMSCAPE_TRY(range, AddressRange::reserve(span.end - span.begin));
    MEMSCAPE_TRY(policy, makePolicy(asked.setting, *asked.trace));
    return std::make_unique<RealPool>(asked, std::move(policy), std::move(range), span.begin, checks);
}

} // namespace memscape::host
