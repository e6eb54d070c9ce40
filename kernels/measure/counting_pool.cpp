// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/counting_pool.h"

#include "core/base/number.h"
#include "core/checkpoint/mlp_chain.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace memscape {

Result<std::int64_t> CountingPool::take(std::int64_t bytes)
{
    const std::int64_t rounded = pooledBytes(bytes);
    std::int64_t at = 0;
    for (const auto& [offset, size] : m_taken) {
        if (offset - at >= rounded)
            break;
        at = offset + size;
    }
    if (rounded > m_capacity - at)
        return fail("run.memory",
                    fmt::format("the pool of {} has no {} in one piece, {} are taken",
                                quantityText(double(m_capacity), Unit::Byte), quantityText(double(rounded), Unit::Byte),
                                quantityText(double(m_used), Unit::Byte)),
                    "the run needs more than was predicted; please report this");
    m_taken.emplace(at, rounded);
    m_used += rounded;
    m_highWater = std::max(m_highWater, m_used);
    return at;
}

void CountingPool::give(std::int64_t offset)
{
    const auto block = m_taken.find(offset);
    assert(block != m_taken.end());
    m_used -= block->second;
    m_taken.erase(block);
}

} // namespace memscape
