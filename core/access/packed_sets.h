// SPDX-License-Identifier: Apache-2.0
// The lines of a cache of at most 16 ways, laid out so that a simulated miss costs few real ones.
//
// Each set has a head of 32 bytes: the order of its ways from most to least recent, four bits a way
// in one word, so that a touch moves bits instead of lines; the dirty ways as bits; and an 8-bit
// fingerprint of each way's line. A lookup compares all fingerprints at once inside 64-bit words and
// reads a line only where one agrees (one way in 256 agrees by chance). So a miss reads the head,
// and replaces one line. The heads of a 32 MiB cache are 1 MiB.
//
// Finding the equal bytes of a word, and the first equal nibble, is the carry trick of "Determine if
// a word has a byte equal to n" (S. E. Anderson, Bit Twiddling Hacks). A byte above an equal one may
// be reported wrongly; the comparison of lines that follows does not believe it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace memscape {

/// The line that another one replaced.
struct CacheVictim
{
    std::uint64_t line = 0; ///< line number; noCacheLine when the way was empty
    std::uint32_t way = 0;
    bool dirty = false;
};

inline constexpr std::uint64_t noCacheLine = ~std::uint64_t(0);

/// Where the sets lie, as a value: a loop over many lines keeps it in registers. `Words` hold the
/// fingerprints of a set: 1 up to 8 ways, 2 up to 16.
template <int Words> class PackedSetsView
{
public:
    /// The way of a line that is here, now the most recent, dirty after a write; else -1.
    /// `Repeats` says that most lines come several times in a row, and looks at the last one first.
    template <bool Repeats> int hit(std::uint64_t set, std::uint64_t line, bool isWrite) const
    {
        Head& head = m_heads[set];
        int way = int(head.order & 15);
        if (!Repeats || m_lines[set * m_ways + way] != line) {
            way = find(set, line);
            if (way < 0)
                return -1;
            makeRecent(head, std::uint64_t(way));
        }
        if (isWrite)
            head.dirty |= std::uint16_t(1u << way);
        return way;
    }

    /// Puts a line that is not here in the place of the least recent.
    CacheVictim replace(std::uint64_t set, std::uint64_t line, bool isWrite) const
    {
        Head& head = m_heads[set];
        const std::uint64_t way = head.order >> m_lastShift;
        head.order = (head.order << 4 | way) & m_orderMask;
        // A whole word at a time: a lookup soon after would wait for a single byte to arrive.
        std::uint64_t& prints = head.prints[Words > 1 ? way >> 3 : 0];
        const std::uint64_t shift = (way & 7) * 8;
        prints = (prints & ~(std::uint64_t(0xff) << shift)) | fingerprint(line) << shift;
        const bool wasDirty = head.dirty >> way & 1;
        if (wasDirty != isWrite)
            head.dirty ^= std::uint16_t(1u << way);
        std::uint64_t& place = m_lines[set * m_ways + way];
        const std::uint64_t old = place;
        place = line;
        return {old, std::uint32_t(way), wasDirty};
    }

    /// Marks `line` dirty without making it recent; false when it is not here.
    bool writeBack(std::uint64_t set, std::uint64_t line) const
    {
        const int way = find(set, line);
        if (way >= 0)
            m_heads[set].dirty |= std::uint16_t(1u << way);
        return way >= 0;
    }

    /// Asks the real machine for a set that will be touched soon.
    void prefetch(std::uint64_t set) const
    {
        __builtin_prefetch(&m_heads[set], 1);
        __builtin_prefetch(&m_lines[set * m_ways], 1);
        if (Words > 1)
            __builtin_prefetch(&m_lines[set * m_ways + 8], 1);
    }

private:
    template <int> friend class PackedSets;
    struct alignas(32) Head
    {
        std::uint64_t order = 0;
        std::array<std::uint64_t, Words> prints = {}; ///< a byte a way, way 0 in the lowest
        std::uint16_t dirty = 0;
    };
    static constexpr std::uint64_t everyByte = 0x0101010101010101, everyNibble = 0x1111111111111111;

    static std::uint64_t fingerprint(std::uint64_t line)
    {
        return line * 0x9e3779b97f4a7c15 >> 56; // Knuth's multiplicative hash
    }

    int find(std::uint64_t set, std::uint64_t line) const
    {
        const std::uint64_t print = everyByte * fingerprint(line);
        // Bytes beyond the last way agree by chance too; the next set's line there is another one.
        const std::uint64_t* const lines = m_lines + set * m_ways;
        for (int word = 0; word < Words; ++word) {
            const std::uint64_t difference = m_heads[set].prints[word] ^ print;
            std::uint64_t equal = (difference - everyByte) & ~difference & everyByte << 7;
            for (; equal; equal &= equal - 1) {
                const int way = word * 8 + std::countr_zero(equal) / 8;
                if (lines[way] == line)
                    return way;
            }
        }
        return -1;
    }

    /// Moves `way` to the front of the order; the ways before it move back by one.
    static void makeRecent(Head& head, std::uint64_t way)
    {
        const std::uint64_t difference = head.order ^ everyNibble * way;
        const std::uint64_t zeros = (difference - everyNibble) & ~difference & everyNibble << 3;
        const std::uint64_t upTo = zeros ^ (zeros - 1); // the first equal nibble and all below
        head.order = (head.order & ~upTo) | ((head.order << 4) & upTo) | way;
    }

    Head* m_heads;
    std::uint64_t* m_lines; ///< by set and way
    std::uint64_t m_ways;
    std::uint64_t m_lastShift; ///< of the least recent way in the order
    std::uint64_t m_orderMask;
};

template <int Words> class PackedSets
{
    using View = PackedSetsView<Words>;

public:
    /// All ways empty; `ways` is 1 … 8 × Words.
    PackedSets(std::uint64_t sets, std::uint64_t ways)
        : m_ways(ways)
        , m_heads(sets)
        , m_lines(sets * ways + 8 * Words) // lookups may look past the last set
    {
        clear();
    }

    void clear()
    {
        // The least recent place has way 0, so a set fills from way 0 up.
        typename View::Head empty;
        for (std::uint64_t way = 0; way < m_ways; ++way)
            empty.order = empty.order << 4 | way;
        std::fill(m_heads.begin(), m_heads.end(), empty);
        std::fill(m_lines.begin(), m_lines.end(), noCacheLine);
    }

    View view()
    {
        View view;
        view.m_heads = m_heads.data();
        view.m_lines = m_lines.data();
        view.m_ways = m_ways;
        view.m_lastShift = 4 * (m_ways - 1);
        view.m_orderMask = ~std::uint64_t(0) >> (64 - 4 * m_ways);
        return view;
    }

    /// The way that is `recency`-th; 0 is the most recent.
    std::uint64_t wayAt(std::uint64_t set, std::uint64_t recency) const
    {
        return m_heads[set].order >> 4 * recency & 15;
    }
    /// noCacheLine where there is none.
    std::uint64_t lineAt(std::uint64_t set, std::uint64_t recency) const
    {
        return m_lines[set * m_ways + wayAt(set, recency)];
    }
    bool dirtyAt(std::uint64_t set, std::uint64_t recency) const
    {
        return m_heads[set].dirty >> wayAt(set, recency) & 1;
    }

private:
    std::uint64_t m_ways;
    std::vector<typename View::Head> m_heads;
    std::vector<std::uint64_t> m_lines;
};

} // namespace memscape
