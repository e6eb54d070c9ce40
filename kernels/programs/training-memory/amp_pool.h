// SPDX-License-Identifier: Apache-2.0
// Arrays of a training step in a counting pool over a device's arena.
#pragma once

#include "kernels/measure/counting_pool.h"
#include "kernels/programs/training-memory/amp_device.h"

#include <utility>

namespace memscape {

struct ArrayPool
{
    CountingPool pool;
    std::byte* base = nullptr;
};

/// A piece of the pool; given back when it goes. Move only.
class PooledArray
{
public:
    PooledArray() = default;
    ~PooledArray() { give(); }
    PooledArray(PooledArray&& other) noexcept { *this = std::move(other); }
    PooledArray& operator=(PooledArray&& other) noexcept
    {
        if (this == &other)
            return *this;
        give();
        m_pool = std::exchange(other.m_pool, nullptr);
        m_offset = other.m_offset;
        m_view = std::exchange(other.m_view, {});
        return *this;
    }

    /// Whatever was there before is in it. `pool` must outlive the array. Errors: run.memory.
    static Result<PooledArray> take(ArrayPool& pool, std::int64_t elements, Format format)
    {
        PooledArray made;
        MEMSCAPE_TRY(offset, pool.pool.take(elements * numberFormat(format).bytes));
        made.m_pool = &pool;
        made.m_offset = offset;
        made.m_view = {pool.base + offset, elements, format};
        return made;
    }
    void give()
    {
        if (m_pool != nullptr)
            m_pool->pool.give(m_offset);
        m_pool = nullptr;
        m_view = {};
    }

    const AmpArray& view() const { return m_view; }
    operator const AmpArray&() const { return m_view; }
    std::int64_t elements() const { return m_view.elements; }
    Format format() const { return m_view.format; }

private:
    ArrayPool* m_pool = nullptr;
    std::int64_t m_offset = 0;
    AmpArray m_view;
};

} // namespace memscape
