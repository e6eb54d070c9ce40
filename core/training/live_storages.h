// SPDX-License-Identifier: Apache-2.0
// Reference-counted storages that write their birth and death into a trace: what c10::StorageImpl is
// to the allocator.
#pragma once

#include "core/trace/trace.h"

#include <cassert>
#include <vector>

namespace memscape {

using LiveId = std::uint32_t; ///< 0 is no storage

class LiveStorages
{
public:
    explicit LiveStorages(Trace& trace)
        : m_trace(trace)
        , m_storages(1)
    { }

    /// A new storage with one reference.
    LiveId allocate(std::int64_t bytes, Category category, NameId name, ModuleId module, std::uint16_t stream = 0)
    {
        LiveId id = LiveId(m_storages.size());
        if (m_unused.empty()) {
            m_storages.emplace_back();
        } else {
            id = m_unused.back();
            m_unused.pop_back();
        }
        m_storages[id] = {m_trace.allocate(bytes, category, name, module, stream), 1};
        return id;
    }

    void retain(LiveId id) { ++m_storages[id].references; }

    void release(LiveId id)
    {
        assert(m_storages[id].references > 0);
        if (--m_storages[id].references > 0)
            return;
        m_trace.free(m_storages[id].block);
        m_unused.push_back(id);
    }

    /// Another owner has freed the block.
    void forget(LiveId id)
    {
        if (id)
            m_unused.push_back(id);
    }

    std::uint32_t references(LiveId id) const { return m_storages[id].references; }
    BlockId block(LiveId id) const { return m_storages[id].block; }

private:
    struct Storage
    {
        BlockId block = noBlock;
        std::uint32_t references = 0;
    };
    Trace& m_trace;
    std::vector<Storage> m_storages;
    std::vector<LiveId> m_unused;
};

} // namespace memscape
