// SPDX-License-Identifier: Apache-2.0
// Many accesses at once: the same lookups as so many steps, level by level instead of access by
// access.
//
// What a level is asked for depends on the nearer levels alone (nothing an outer level does reaches
// an inner one), so each level may answer a batch of requests before the next one sees what it
// passes on: its dirty victims and its misses, in the order in which they came up. Every level then
// sees the requests of so many steps, in their order, and ends in the same state. What is won: one
// level's data at a time in the caches of the real machine, its counters in registers, and sets that
// can be fetched ahead, because it is known which ones come next.
#include "core/access/cache_simulator.h"

namespace memscape {

template <bool Nearest, typename Sets, typename SetOf>
void CacheSimulator::answer(std::size_t level, Sets& content, SetOf setOf)
{
    auto&& sets = content.view();
    const bool last = level + 1 == m_levels.size();
    Batch& next = m_asked[level + 1];
    Request* const out = next.requests.data();
    std::size_t passed = next.used;
    std::uint64_t fills = 0, missedLines = 0, writeBacks = 0;
    const auto passOn = [&](const Request& request) {
        if (passed == batchLimit) [[unlikely]] {
            next.used = passed;
            answerAll(level + 1);
            passed = 0;
        }
        out[passed++] = request;
    };
    const auto bring = [&](std::uint64_t line, bool dirties) -> bool {
        const std::uint64_t set = setOf(line);
        if (sets.template hit<Nearest>(set, line, dirties) >= 0)
            return false;
        const CacheVictim victim = sets.replace(set, line, dirties);
        if (victim.line == noCacheLine) [[unlikely]]
            ++fills;
        if (victim.dirty) {
            ++writeBacks;
            passOn({victim.line, 0, RequestKind::WriteBack});
        }
        ++missedLines;
        return true;
    };
    const Request* const end = m_asked[level].requests.data() + m_asked[level].used;
    for (const Request* request = end - m_asked[level].used; request != end; ++request) {
        if (!Nearest)
            sets.prefetch(setOf(request[prefetchAhead].first)); // past the end: of an older batch
        const std::uint64_t first = request->first;
        const RequestKind kind = request->kind;
        const bool dirties = Nearest && kind == RequestKind::Write;
        if (request->more == 0 && kind != RequestKind::WriteBack) [[likely]] {
            if (bring(first, dirties))
                passOn({first, 0, kind});
        } else if (kind == RequestKind::WriteBack) {
            if (!sets.writeBack(setOf(first), first))
                passOn(*request);
        } else {
            std::uint32_t missing = 0;
            for (std::uint64_t line = first; line <= first + request->more; ++line)
                missing += bring(line, dirties);
            // The next level sees the whole access; memory only what is missing.
            if (missing > 0)
                passOn({first, last ? missing - 1 : request->more, kind});
        }
    }
    next.used = passed;
    m_counters[level].evictions += missedLines - fills;
    m_counters[level].writeBacks += writeBacks;
}

/// What a level is asked for is what it looks up, and what the level before it missed.
void CacheSimulator::count(std::size_t level)
{
    const bool isMemory = level == m_levels.size();
    const Batch& batch = m_asked[level];
    std::uint64_t writes = 0, writeBacks = 0, lines = 0;
    for (std::size_t i = 0; i < batch.used; ++i) {
        writes += batch.requests[i].kind == RequestKind::Write;
        writeBacks += batch.requests[i].kind == RequestKind::WriteBack;
        lines += batch.requests[i].more + 1;
    }
    const std::uint64_t reads = batch.used - writes - writeBacks;
    if (isMemory) {
        m_memory.linesRead += lines - writeBacks;
        m_memory.linesWritten += writeBacks;
    } else {
        m_counters[level].reads += reads;
        m_counters[level].writes += writes;
    }
    if (level > 0) {
        m_counters[level - 1].readMisses += reads;
        m_counters[level - 1].writeMisses += writes;
    }
}

void CacheSimulator::answerAll(std::size_t level)
{
    count(level);
    if (level < m_levels.size()) {
        m_levels[level].withSets([&](auto& content, auto setOf) {
            if (level == 0)
                answer<true>(level, content, setOf);
            else
                answer<false>(level, content, setOf);
        });
    }
    m_asked[level].used = 0;
}

Result<void> CacheSimulator::run(std::span<const MemoryAccess> accesses)
{
    Result<void> result;
    Batch& batch = m_asked[0];
    const int shift = m_lineShift;
    Request* const requests = batch.requests.data();
    std::size_t used = 0;
    const auto ask = [&](const Request& request) {
        if (used == batchLimit) [[unlikely]] {
            batch.used = used;
            answerAll(0);
            used = 0;
        }
        requests[used++] = request;
    };
    for (const MemoryAccess& access : accesses) {
        // The common case in one comparison each; the message is made only when it is needed.
        if (access.size - 1 >= accessSizeLimit || access.address > cacheAddressLimit - access.size) {
            result = validate(access);
            break;
        }
        const std::uint64_t first = access.address >> shift;
        const std::uint64_t last = (access.address + access.size - 1) >> shift;
        const RequestKind kind = access.isWrite ? RequestKind::Write : RequestKind::Read;
        if (first == last) [[likely]]
            ask({first, 0, kind});
        else if (m_counting == CacheCounting::Accesses)
            ask({first, std::uint32_t(last - first), kind});
        else
            for (std::uint64_t line = first; line <= last; ++line)
                ask({line, 0, kind});
    }
    batch.used = used;
    for (std::size_t level = 0; level <= m_levels.size(); ++level)
        answerAll(level);
    return result;
}

} // namespace memscape
