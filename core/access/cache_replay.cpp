// SPDX-License-Identifier: Apache-2.0
// Many accesses at once: the same lookups as so many steps, level by level instead of access by
// access.
//
// What a level is asked for depends on the nearer levels alone (nothing an outer level does reaches
// an inner one), so each level may answer a batch of requests before the next one sees what it
// passes on: its dirty victims and its misses, in the order in which they came up. Every level then
// sees the requests of so many steps, in their order, and ends in the same state. What is won: one
// level's data at a time in the caches of the real machine, its counters in registers, and sets
// that can be fetched ahead, because it is known which ones come next.
#include "core/access/cache_simulator.h"

namespace memscape {

/// What a batch of requests came to in one level.
struct CacheSimulator::Passed
{
    std::uint64_t misses = 0;      ///< requests
    std::uint64_t writeMisses = 0; ///< of them
    std::uint64_t linesMissed = 0;
    std::uint64_t fills = 0;                ///< of them, into an empty way
    std::uint64_t writeBacks = 0;           ///< dirty lines that went
    std::uint64_t writeBacksFromNearer = 0; ///< of lines that are not here
};

/// Makes sure that as many requests fit into what `level` is asked.
void CacheSimulator::makeRoom(std::size_t level, std::size_t requests)
{
    if (m_asked[level].used + requests > batchLimit)
        answerAll(level);
}

/// Answers requests up to the end or the first Span, and says how many. Each passes on two at most:
/// a victim and itself.
template <bool Nearest, bool Far, typename Sets>
std::size_t CacheSimulator::answer(std::size_t level, Sets sets, std::span<const Request> piece)
{
    Batch& next = m_asked[level + 1];
    Request* out = next.requests.data() + next.used;
    std::uint64_t writeMisses = 0, fills = 0, writeBacks = 0, notHere = 0;
    const Request* request = piece.data();
    for (const Request* const end = request + piece.size(); request != end; ++request) {
        if (Far) // beyond the end stands an older batch
            sets.prefetch(request[fetchedAhead] >> 2);
        const Request asked = *request;
        const CachePlace place = sets.placeOf(asked >> 2);
        if (asked & 2) [[unlikely]] {
            if ((asked & 3) == Span)
                break;
            const bool isHere = sets.writeBack(place);
            *out = asked;
            out += !isHere;
            notHere += !isHere;
            continue;
        }
        if (sets.hit(place, Nearest && (asked & 1)) >= 0)
            continue;
        if (!sets.isPlain(place)) {
            const CacheEntry victim = sets.victim(place);
            *out = victim.line << 2 | WriteBack;
            out += victim.isDirty;
            writeBacks += victim.isDirty;
            fills += victim.isEmpty;
        }
        sets.replace(place, Nearest && (asked & 1));
        writeMisses += asked & 1;
        *out++ = asked;
    }
    const std::size_t passed = std::size_t(out - next.requests.data()) - next.used;
    next.used += passed;
    const std::uint64_t misses = passed - writeBacks - notHere;
    count(level, {misses, writeMisses, misses, fills, writeBacks, notHere});
    return std::size_t(request - piece.data());
}

/// An access to several lines that is one reference: the next level sees the whole of it.
void CacheSimulator::answerSpan(std::size_t level, std::uint64_t first, Request rest)
{
    const bool isWrite = rest & 1;
    Passed passed;
    for (std::uint64_t line = first; line <= first + (rest >> 1); ++line) {
        const CacheLevel::Touch touch = m_levels[level].touch(line, isWrite && level == 0);
        passed.linesMissed += !touch.hit;
        passed.fills += !touch.hit && !touch.evicted;
        if (touch.evictedDirty) {
            ++passed.writeBacks;
            makeRoom(level + 1, 1);
            m_asked[level + 1].add(touch.evictedLine << 2 | WriteBack);
        }
    }
    if (passed.linesMissed > 0) {
        passed.misses = 1;
        passed.writeMisses = isWrite;
        makeRoom(level + 1, 2);
        m_asked[level + 1].add(first << 2 | Span);
        m_asked[level + 1].add(rest);
    }
    count(level, passed);
}

/// What a level misses is what the next one looks up; what the last one misses, memory reads.
void CacheSimulator::count(std::size_t level, const Passed& passed)
{
    CacheCounters& counters = m_counters[level];
    const std::uint64_t readMisses = passed.misses - passed.writeMisses;
    counters.readMisses += readMisses;
    counters.writeMisses += passed.writeMisses;
    counters.evictions += passed.linesMissed - passed.fills;
    counters.writeBacks += passed.writeBacks;
    if (level + 1 < m_levels.size()) {
        m_counters[level + 1].reads += readMisses;
        m_counters[level + 1].writes += passed.writeMisses;
    } else {
        m_memory.linesRead += passed.linesMissed;
        m_memory.linesWritten += passed.writeBacks + passed.writeBacksFromNearer;
    }
}

void CacheSimulator::answerAll(std::size_t level)
{
    const std::span<const Request> batch(m_asked[level].requests.data(), m_asked[level].used);
    m_asked[level].used = 0;
    if (level == m_levels.size())
        return;
    for (std::size_t at = 0; at < batch.size();) {
        const auto piece = batch.subspan(at, std::min(pieceLimit, batch.size() - at));
        makeRoom(level + 1, 2 * piece.size());
        m_levels[level].withSets([&](auto&& sets) {
            if (m_levels[level].isLarge())
                at += level == 0 ? answer<true, true>(level, sets, piece) : answer<false, true>(level, sets, piece);
            else
                at += level == 0 ? answer<true, false>(level, sets, piece) : answer<false, false>(level, sets, piece);
        });
        if (at < batch.size() && (batch[at] & 3) == Span) {
            answerSpan(level, batch[at] >> 2, batch[at + 1]);
            at += 2;
        }
    }
}

/// Requests of accesses up to the end or the first one that is wrong or in several lines, and says
/// how many. The line just used is the most recent of its set: asking for it again changes nothing,
/// unless it was read and is written now.
std::size_t CacheSimulator::ask(std::span<const MemoryAccess> piece)
{
    Batch& batch = m_asked[0];
    Request* const begin = batch.requests.data() + batch.used;
    Request* out = begin;
    Request before = ~Request(0);
    std::uint64_t writes = 0;
    const int shift = m_lineShift;
    const std::uint64_t lastByte = (std::uint64_t(1) << shift) - 1; // of a line
    const MemoryAccess* access = piece.data();
    for (const MemoryAccess* const end = access + piece.size(); access != end; ++access) {
        const std::uint64_t address = access->address;
        // A size of 0 becomes the largest.
        if ((address & lastByte) + (access->size - 1) > lastByte || address >= cacheAddressLimit)
            break;
        const Request request = address >> shift << 2 | Request(access->isWrite);
        writes += access->isWrite;
        if (before - request > 1) // neither the same nor a read after a write
            *out++ = before = request;
    }
    const std::size_t asked = std::size_t(access - piece.data());
    batch.used += std::size_t(out - begin);
    m_counters[0].reads += asked - writes;
    m_counters[0].writes += writes;
    return asked;
}

/// One access, in as many lines as it likes.
void CacheSimulator::askAcross(const MemoryAccess& access)
{
    const std::uint64_t first = access.address >> m_lineShift;
    const std::uint64_t last = (access.address + access.size - 1) >> m_lineShift;
    const Request isWrite = access.isWrite;
    std::uint64_t& counter = isWrite ? m_counters[0].writes : m_counters[0].reads;
    if (m_counting == CacheCounting::Accesses && first != last) {
        makeRoom(0, 2);
        m_asked[0].add(first << 2 | Span);
        m_asked[0].add((last - first) << 1 | isWrite);
        ++counter;
        return;
    }
    for (std::uint64_t line = first; line <= last; ++line) {
        makeRoom(0, 1);
        m_asked[0].add(line << 2 | isWrite);
    }
    counter += last - first + 1;
}

Result<void> CacheSimulator::run(std::span<const MemoryAccess> accesses)
{
    Result<void> result;
    while (!accesses.empty() && result) {
        makeRoom(0, pieceLimit);
        accesses = accesses.subspan(ask(accesses.first(std::min(pieceLimit, accesses.size()))));
        if (accesses.empty())
            break;
        result = validate(accesses.front());
        if (result) {
            askAcross(accesses.front());
            accesses = accesses.subspan(1);
        }
    }
    for (std::size_t level = 0; level < m_levels.size(); ++level)
        answerAll(level);
    return result;
}

} // namespace memscape
