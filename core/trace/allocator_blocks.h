// SPDX-License-Identifier: Apache-2.0
// The blocks of the caching allocator and its ordered sets of free ones. Blocks are in one array and refer to each
// other by index (0 is none); a set is an array of keys in the order in which the allocator looks for a fit, in chunks
// of some tens. A training step has few free blocks at a time, so moving the tail of a chunk is cheaper than a node of
// a tree; a mixture of experts has 100,000.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace memscape {

using BlockIndex = std::uint32_t;

enum class BlockState : std::uint8_t {
    Unused,   ///< this slot of the array is free
    Free,     ///< cached: mapped, in a pool
    Active,   ///< given to the program
    Pending,  ///< freed by the program, another stream still uses it
    Unmapped, ///< address space of an expandable segment
};

struct AllocatorBlock
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::int64_t requested = 0;
    std::uint64_t idleSince = 0; ///< the pool's count of searches when it became free
    BlockIndex previous = 0;     ///< neighbours in the same segment
    BlockIndex next = 0;
    std::uint16_t stream = 0;
    bool isSmall = false; ///< which pool
    bool isExpandable = false;
    BlockState state = BlockState::Unused;

    bool isMapped() const { return state != BlockState::Unmapped; }
    bool isSplit() const { return previous != 0 || next != 0; }
    /// Neither given out nor waiting for a stream: may be merged.
    bool isIdle() const { return state == BlockState::Free || state == BlockState::Unmapped; }
};

/// Free blocks by (stream, size, address): the first at or after (stream, wanted size, 0) is the
/// best fit. The set of unmapped blocks uses size 0: lowest address first.
class SortedBlocks
{
public:
    struct Key
    {
        std::int64_t size = 0;
        std::uint64_t address = 0;
        BlockIndex block = 0;
        std::uint16_t stream = 0;

        bool operator<(const Key& other) const
        {
            if (size != other.size || stream != other.stream)
                return stream != other.stream ? stream < other.stream : size < other.size;
            return address < other.address;
        }
    };
    /// Of a key; valid until the set changes.
    struct Position
    {
        std::size_t chunk = 0;
        std::size_t offset = 0;
    };

    Position lowerBound(std::uint16_t stream, std::int64_t size, std::uint64_t address = 0) const
    {
        const Key key{size, address, 0, stream};
        const std::size_t chunk = chunkOf(key);
        if (chunk == m_chunks.size())
            return {chunk, 0};
        const auto& keys = m_chunks[chunk];
        return {chunk, std::size_t(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin())};
    }
    void insert(const Key& key)
    {
        if (m_chunks.empty()) {
            m_chunks.push_back({key});
            m_last.push_back(key);
            return;
        }
        const std::size_t chunk = std::min(chunkOf(key), m_chunks.size() - 1);
        auto& keys = m_chunks[chunk];
        keys.insert(std::lower_bound(keys.begin(), keys.end(), key), key);
        m_last[chunk] = keys.back();
        if (keys.size() > chunkLimit)
            split(chunk);
    }
    void erase(const Key& key) { eraseAt(lowerBound(key.stream, key.size, key.address)); }
    void eraseAt(Position position)
    {
        auto& keys = m_chunks[position.chunk];
        keys.erase(keys.begin() + std::ptrdiff_t(position.offset));
        if (keys.empty()) {
            m_chunks.erase(m_chunks.begin() + std::ptrdiff_t(position.chunk));
            m_last.erase(m_last.begin() + std::ptrdiff_t(position.chunk));
        } else {
            m_last[position.chunk] = keys.back();
        }
    }

    bool isEnd(Position position) const { return position.chunk == m_chunks.size(); }
    bool isFirst(Position position) const { return position.chunk == 0 && position.offset == 0; }
    Position next(Position position) const
    {
        const bool isLast = position.offset + 1 == m_chunks[position.chunk].size();
        return isLast ? Position{position.chunk + 1, 0} : Position{position.chunk, position.offset + 1};
    }
    Position previous(Position position) const
    {
        return position.offset > 0 ? Position{position.chunk, position.offset - 1}
                                   : Position{position.chunk - 1, m_chunks[position.chunk - 1].size() - 1};
    }
    const Key& operator[](Position position) const { return m_chunks[position.chunk][position.offset]; }
    /// All of them, in order.
    std::vector<Key> keys() const
    {
        std::vector<Key> all;
        for (const auto& keys : m_chunks)
            all.insert(all.end(), keys.begin(), keys.end());
        return all;
    }

private:
    static constexpr std::size_t chunkLimit = 64;

    /// The first chunk that does not end before the key.
    std::size_t chunkOf(const Key& key) const
    {
        return std::size_t(std::lower_bound(m_last.begin(), m_last.end(), key) - m_last.begin());
    }
    void split(std::size_t chunk)
    {
        const auto middle = m_chunks[chunk].begin() + chunkLimit / 2;
        std::vector<Key> upper(middle, m_chunks[chunk].end());
        upper.reserve(chunkLimit + 1);
        m_chunks[chunk].erase(middle, m_chunks[chunk].end());
        m_last[chunk] = m_chunks[chunk].back();
        m_last.insert(m_last.begin() + std::ptrdiff_t(chunk) + 1, upper.back());
        m_chunks.insert(m_chunks.begin() + std::ptrdiff_t(chunk) + 1, std::move(upper));
    }

    std::vector<std::vector<Key>> m_chunks; ///< none is empty
    std::vector<Key> m_last;                ///< of each chunk, side by side: most of a search is among them
};

} // namespace memscape
