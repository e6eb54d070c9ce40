// SPDX-License-Identifier: Apache-2.0
// The blocks of the caching allocator and its ordered sets of free ones. Blocks live in one array
// and name each other by index (0 is none); a set is a flat array of keys in the order in which the
// allocator looks for a fit. A training step has few free blocks at a time, so moving the tail of
// an array is cheaper than a node of a tree.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace memscape {

using BlockIndex = std::uint32_t;

enum class BlockState : std::uint8_t {
    Unused, ///< this slot of the array is free
    Free, ///< cached: mapped, in a pool
    Active, ///< given to the program
    Pending, ///< freed by the program, another stream still uses it
    Unmapped, ///< address space of an expandable segment
};

struct AllocatorBlock
{
    std::uint64_t address = 0;
    std::int64_t size = 0;
    std::int64_t requested = 0;
    std::uint64_t idleSince = 0; ///< the pool's count of searches when it became free
    BlockIndex previous = 0; ///< neighbours in the same segment
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
        std::uint16_t stream = 0;
        std::int64_t size = 0;
        std::uint64_t address = 0;
        BlockIndex block = 0;

        bool operator<(const Key& other) const
        {
            return std::tie(stream, size, address)
                < std::tie(other.stream, other.size, other.address);
        }
    };
    using Position = std::size_t;

    Position lowerBound(std::uint16_t stream, std::int64_t size, std::uint64_t address = 0) const
    {
        const Key key{stream, size, address, 0};
        return Position(std::lower_bound(m_keys.begin(), m_keys.end(), key) - m_keys.begin());
    }
    void insert(const Key& key)
    {
        m_keys.insert(std::lower_bound(m_keys.begin(), m_keys.end(), key), key);
    }
    void erase(const Key& key) { eraseAt(lowerBound(key.stream, key.size, key.address)); }
    void eraseAt(Position position) { m_keys.erase(m_keys.begin() + std::ptrdiff_t(position)); }

    const Key& operator[](Position position) const { return m_keys[position]; }
    std::size_t size() const { return m_keys.size(); }
    const std::vector<Key>& keys() const { return m_keys; }

private:
    std::vector<Key> m_keys;
};

} // namespace memscape
