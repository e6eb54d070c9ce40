// SPDX-License-Identifier: Apache-2.0
// Addresses to numbers, open addressing: a trace asks for one at each of some millions of events.
#pragma once

#include "core/snapshot/large_array.h"

#include <cstdint>

namespace memscape {

class AddressMap
{
public:
    static constexpr std::uint32_t none = ~std::uint32_t(0);

    AddressMap() { m_slots.resize(1024, {0, none}); }

    /// The number of an address, `none` of a new one; may be assigned until the next call.
    std::uint32_t& operator[](std::uint64_t address)
    {
        if (m_used * 2 >= m_slots.size())
            grow();
        Slot& slot = m_slots[slotOf(address)];
        if (!slot.isUsed) {
            slot = {address, none, true};
            ++m_used;
        }
        return slot.number;
    }

private:
    struct Slot
    {
        std::uint64_t address = 0;
        std::uint32_t number = none;
        bool isUsed = false;
    };

    std::size_t slotOf(std::uint64_t address) const
    {
        const std::size_t mask = m_slots.size() - 1;
        const std::uint64_t hash = address * 0x9e3779b97f4a7c15ull;
        for (std::size_t slot = (hash ^ hash >> 32) & mask;; slot = (slot + 1) & mask) {
            if (!m_slots[slot].isUsed || m_slots[slot].address == address)
                return slot;
        }
    }
    void grow()
    {
        LargeArray<Slot> old = std::move(m_slots);
        m_slots.resize(old.size() * 2, {});
        for (const Slot& slot : old) {
            if (slot.isUsed)
                m_slots[slotOf(slot.address)] = slot;
        }
    }

    LargeArray<Slot> m_slots;
    std::size_t m_used = 0;
};

} // namespace memscape
