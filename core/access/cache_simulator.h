// SPDX-License-Identifier: Apache-2.0
// A hierarchy of set-associative caches: which accesses hit where, what is evicted, and what memory
// must move. True LRU, write-allocate, write-back.
//
// A line that misses a level is looked for in the next one and brought into every level it missed
// (neither inclusive nor exclusive: an eviction from an outer level leaves the inner ones alone). A
// write makes the line dirty in the first level; a dirty victim is marked dirty in the next level
// that holds it, without becoming recent there, and goes to memory when none does.
//
// Two ways to count an access that crosses a border between lines:
//   Lines       each line is a lookup of its own; only lines that miss go on to the next level.
//   Accesses    as Valgrind's cachegrind does: the access is one reference and at most one miss per
//               level, and after a miss the whole access goes on (Cachegrind manual, "Cache
//               Simulation Specifics"). Cachegrind does not count write-backs; ours are counted
//               beside it.
//
// Left out: time, prefetching, coherence, virtual-to-physical mapping (addresses are taken as they
// are), instruction fetches, write-combining and streaming stores.
#pragma once

#include "core/access/cache_level.h"

#include <array>
#include <span>

namespace memscape {

struct MemoryAccess
{
    std::uint64_t address = 0;
    std::uint32_t size = 4; ///< B, at least 1
    bool isWrite = false;
};

inline constexpr std::uint32_t accessSizeLimit = 1 << 20;

/// Errors: access.size (0 or over 1 MiB), access.address (2^57 or beyond).
Result<void> validate(const MemoryAccess& access);

enum class CacheCounting { Lines, Accesses };

/// Of one level: references are lines or accesses, see CacheCounting; evictions and write-backs are
/// lines.
struct CacheCounters
{
    std::uint64_t reads = 0;
    std::uint64_t readMisses = 0;
    std::uint64_t writes = 0;
    std::uint64_t writeMisses = 0;
    std::uint64_t evictions = 0;  ///< lines pushed out
    std::uint64_t writeBacks = 0; ///< of them dirty

    std::uint64_t references() const { return reads + writes; }
    std::uint64_t misses() const { return readMisses + writeMisses; }
    bool operator==(const CacheCounters&) const = default;
};

/// Lines that crossed the border to memory.
struct MemoryTraffic
{
    std::uint64_t linesRead = 0;
    std::uint64_t linesWritten = 0;
    bool operator==(const MemoryTraffic&) const = default;
};

/// One lookup of one line in one level.
struct CacheLookup
{
    std::size_t level = 0;
    std::uint64_t line = 0; ///< address of the line's first byte
    std::uint64_t set = 0;
    std::uint32_t way = 0; ///< where the line is now
    bool hit = false;
    bool evicted = false;
    std::uint64_t evictedLine = 0; ///< address, when evicted
    bool writeBack = false;        ///< the evicted line was dirty
};

/// What one access did, for pictures: its lookups in order, nearest level first.
struct AccessEvent
{
    MemoryAccess access;
    std::vector<CacheLookup> lookups;
    std::size_t servedBy = 0; ///< the farthest level needed; the number of levels means memory
};

class CacheSimulator
{
public:
    /// Nearest level first, all with the same line size. Errors: cache.levels (none, or more than
    /// 8), those of validate(CacheGeometry), cache.line (lines differ).
    static Result<CacheSimulator> create(std::vector<CacheGeometry> levels,
                                         CacheCounting counting = CacheCounting::Lines);

    /// One access, with everything that it did. Errors: access.size (0 or over 1 MiB),
    /// access.address (2^57 or beyond); nothing has changed then.
    Result<AccessEvent> step(const MemoryAccess& access);

    /// Many accesses; the counters and contents are those of as many steps. On an error the
    /// accesses before the wrong one have been made.
    Result<void> run(std::span<const MemoryAccess> accesses);

    /// `count` accesses, each of them `next()`.
    template <typename Next> Result<void> run(std::uint64_t count, Next&& next)
    {
        std::array<MemoryAccess, 512> batch; // stays in the first-level cache of the real machine
        while (count > 0) {
            const std::size_t filled = std::size_t(count < batch.size() ? count : batch.size());
            for (std::size_t i = 0; i < filled; ++i)
                batch[i] = next();
            MEMSCAPE_CHECK(run(std::span(batch).first(filled)));
            count -= filled;
        }
        return {};
    }

    /// By level, nearest first.
    const std::vector<CacheCounters>& counters() const { return m_counters; }
    const MemoryTraffic& memory() const { return m_memory; }
    const std::vector<CacheLevel>& levels() const { return m_levels; }

    /// Counters to 0, contents stay: what follows a warm-up.
    void resetCounters();
    /// Everything as after create().
    void clear();

private:
    CacheSimulator(std::vector<CacheGeometry> levels, CacheCounting counting);

    // step()
    bool lookup(std::size_t level, std::uint64_t line, AccessEvent& event);
    void stepLines(std::uint64_t first, std::uint64_t last, AccessEvent& event);
    void stepWhole(std::uint64_t first, std::uint64_t last, AccessEvent& event);
    void count(std::size_t level, bool isWrite, bool hit);
    void writeBack(std::size_t from, std::uint64_t line);

    // run(), in cache_replay.cpp
    /// What one level asks of the next: line << 2 | kind. After a Span comes a word more:
    /// (lines after the first) << 1 | isWrite.
    using Request = std::uint64_t;
    enum Kind : Request { Read, Write, WriteBack, Span };
    static constexpr std::size_t batchLimit = 1024; ///< 8 KiB a level stay in the real caches
    static constexpr std::size_t pieceLimit = 256;  ///< of a batch, answered without looking for room
    static constexpr std::size_t fetchedAhead = 32; ///< requests between fetching a set and using it
    struct Batch
    {
        std::vector<Request> requests;
        std::size_t used = 0;

        void add(Request request) { requests[used++] = request; }
    };
    struct Passed;
    std::size_t ask(std::span<const MemoryAccess> piece);
    void askAcross(const MemoryAccess& access);
    void answerAll(std::size_t level);
    template <bool Nearest, bool Far, typename Sets>
    std::size_t answer(std::size_t level, Sets sets, std::span<const Request> piece);
    void answerSpan(std::size_t level, std::uint64_t first, Request rest);
    void makeRoom(std::size_t level, std::size_t requests);
    void count(std::size_t level, const Passed& passed);

    std::vector<CacheLevel> m_levels;
    std::vector<CacheCounters> m_counters;
    std::vector<Batch> m_asked; ///< by level, and memory; empty between calls
    MemoryTraffic m_memory;
    CacheCounting m_counting = CacheCounting::Lines;
    int m_lineShift = 6;
};

} // namespace memscape
