// SPDX-License-Identifier: Apache-2.0
#include "core/trace/trace.h"

#include "core/trace/allocator.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <utility>

namespace memscape {

std::string_view categoryText(Category category)
{
    static constexpr std::array<std::string_view, categoryCount> texts{
        "weights",       "master weights",  "gradients", "optimizer state", "activations", "temporary",
        "communication", "key-value cache", "workspace", "input",           "unknown"};
    return texts[std::size_t(category)];
}

std::string_view phaseText(Phase phase)
{
    static constexpr std::array<std::string_view, phaseCount> texts{"setup", "forward", "backward", "optimizer",
                                                                    "zero_grad"};
    return texts[std::size_t(phase)];
}

std::uint32_t NameTable::id(std::string_view text)
{
    if (2 * m_texts.size() >= m_slots.size())
        grow();
    std::uint32_t& slot = m_slots[slotOf(text)];
    if (slot == 0) {
        m_texts.emplace_back(text);
        slot = std::uint32_t(m_texts.size());
    }
    return slot - 1;
}

/// Where the text is, or would be.
std::size_t NameTable::slotOf(std::string_view text) const
{
    const std::size_t mask = m_slots.size() - 1;
    std::size_t slot = std::hash<std::string_view>()(text) & mask;
    while (m_slots[slot] != 0 && m_texts[m_slots[slot] - 1] != text)
        slot = (slot + 1) & mask;
    return slot;
}

void NameTable::grow()
{
    m_slots.assign(std::max<std::size_t>(64, 2 * m_slots.size()), 0);
    for (std::uint32_t id = 0; id < m_texts.size(); ++id)
        m_slots[slotOf(m_texts[id])] = id + 1;
}

Trace::Trace(std::shared_ptr<NameTable> modules, TraceKeeps keeps)
    : m_allocations(1, 0) // noBlock
    , m_live(1, false)
    , m_sizes(1, 0)
    , m_keeps(keeps)
    , m_modules(std::move(modules))
{ }

Trace::Trace(std::shared_ptr<NameTable> modules, CachingAllocator& allocator, StepMemory* memory)
    : Trace(std::move(modules), TraceKeeps::Counts)
{
    m_allocator = &allocator;
    m_memory = memory;
}

void Trace::enter(Phase phase, std::uint16_t microBatch)
{
    m_phase = phase;
    m_microBatch = microBatch;
    if (m_memory && phase == Phase::Backward)
        for (const BlockId block : std::exchange(m_memory->left, {}))
            m_allocator->free(block);
    auto& peak = m_phasePeaks[std::size_t(phase)];
    peak = std::max(peak, m_liveBytes);
}

NameId Trace::name(std::string_view text)
{
    return m_keeps == TraceKeeps::Events ? m_names.id(text) : 0;
}
ModuleId Trace::module(std::string_view path)
{
    if (m_modules.use_count() > 1)
        m_modules = std::make_shared<NameTable>(*m_modules);
    return m_modules->id(path);
}

void Trace::reserve(std::size_t events)
{
    m_events.reserve(events);
    m_allocations.reserve(events / 2 + 1);
    m_live.reserve(events / 2 + 1);
}

void Trace::repeat(std::size_t first, std::size_t times, BlockId blocks)
{
    assert(m_repetition.times == 1 && times > 0 && first <= m_events.size());
    m_repetition = {first, m_events.size(), times, blocks};
}

std::size_t Trace::storedAt(std::size_t moment) const
{
    const auto& [first, last, times, blocks] = m_repetition;
    if (times == 1 || moment < last)
        return moment;
    const std::size_t end = first + times * (last - first);
    return moment < end ? first + (moment - first) % (last - first) : moment - (end - last);
}

BlockId Trace::blockBefore(std::size_t stored) const
{
    const auto behind = std::lower_bound(m_allocations.begin() + 1, m_allocations.end(), stored);
    return BlockId(behind - m_allocations.begin() - 1);
}

std::size_t Trace::momentOf(std::size_t stored) const
{
    return stored < m_repetition.last ? stored : stored + (m_repetition.times - 1) * m_repetition.length();
}

void Trace::add(const Event& event)
{
    if (m_phase == Phase::Setup && m_setupEvents == m_events.size())
        ++m_setupEvents;
    m_events.push_back(event);
    m_events.back().waiting = std::exchange(m_waiting, UINT32_MAX);
    count(event.change());
}

void Trace::count(std::int64_t change)
{
    if (__builtin_add_overflow(m_liveBytes, change, &m_liveBytes))
        m_overflow = true;
    m_peakBytes = std::max(m_peakBytes, m_liveBytes);
    auto& peak = m_phasePeaks[std::size_t(m_phase)];
    peak = std::max(peak, m_liveBytes);
}

BlockId Trace::allocate(std::int64_t bytes, Category category, NameId name, ModuleId module, std::uint16_t stream)
{
    assert(bytes >= 0);
    if (bytes == 0)
        return noBlock;
    if (m_keeps == TraceKeeps::Counts)
        return allocateCounted(bytes, stream);
    const BlockId block = BlockId(m_allocations.size());
    m_allocations.push_back(std::uint32_t(m_events.size()));
    m_live.push_back(true);
    add({bytes, block, name, module, m_microBatch, stream, EventKind::Allocate, category, m_phase});
    return block;
}

void Trace::free(BlockId block)
{
    free(block, false);
}

void Trace::freeBehind(BlockId block)
{
    free(block, true);
}

void Trace::passBehind(std::size_t waiting)
{
    if (m_allocator)
        m_allocator->passBehind(waiting);
    else
        m_waiting = std::uint32_t(std::min<std::size_t>(m_waiting, waiting));
}

void Trace::free(BlockId block, bool isBehind)
{
    if (block == noBlock)
        return;
    if (m_keeps == TraceKeeps::Counts)
        return freeCounted(block, isBehind);
    assert(m_live[block]);
    m_live[block] = false;
    Event event = allocation(block);
    event.kind = EventKind::Free;
    event.isBehind = isBehind;
    event.phase = m_phase;
    event.microBatch = m_microBatch;
    add(event);
}

/// Blocks of a trace with an allocator are those of the allocator.
BlockId Trace::allocateCounted(std::int64_t bytes, std::uint16_t stream)
{
    if (m_isRefused)
        return noBlock;
    ++m_counted;
    if (!m_allocator) {
        m_sizes.push_back(bytes);
        count(bytes);
        return BlockId(m_sizes.size() - 1);
    }
    const bool isSetup = m_memory && m_phase == Phase::Setup;
    const BlockId block = isSetup ? takeSetup(bytes, stream) : takeBlock(bytes, stream);
    if (!m_isRefused)
        count(bytes);
    return block;
}

BlockId Trace::takeBlock(std::int64_t bytes, std::uint16_t stream)
{
    const BlockIndex block = m_allocator->allocate(bytes, stream);
    m_isRefused = block == 0;
    if (m_memory && m_phase != Phase::Setup) {
        m_isOfStep.resize(std::max<std::size_t>(m_isOfStep.size(), block + 1));
        m_isOfStep[block] = true;
    }
    return block;
}

/// Where an earlier step has it; inputs of another length are made anew.
BlockId Trace::takeSetup(std::int64_t bytes, std::uint16_t stream)
{
    if (m_nextSetup == m_memory->setup.size())
        m_memory->setup.push_back(noBlock);
    BlockId& block = m_memory->setup[m_nextSetup++];
    if (block != noBlock && m_allocator->block(block).requested == bytes)
        return block;
    if (block != noBlock)
        m_allocator->free(block);
    return block = takeBlock(bytes, stream);
}

void Trace::endStep()
{
    for (std::size_t block = 1; block < m_isOfStep.size(); ++block)
        if (m_isOfStep[block])
            m_memory->left.push_back(BlockId(block));
    m_memory->isMade = true;
}

void Trace::handOn(std::size_t count, const std::vector<BlockId>& blocks)
{
    m_memory->setup.resize(count);
    for (const BlockId block : blocks) {
        m_memory->setup.push_back(block);
        if (block < m_isOfStep.size())
            m_isOfStep[block] = false;
    }
}

void Trace::freeCounted(BlockId block, bool isBehind)
{
    if (m_isRefused)
        return;
    ++m_counted;
    if (!m_allocator)
        return count(-std::exchange(m_sizes[block], 0));
    count(-m_allocator->block(block).requested);
    if (block < m_isOfStep.size() && m_isOfStep[block])
        m_isOfStep[block] = false;
    else if (m_memory)
        std::replace(m_memory->setup.begin(), m_memory->setup.end(), block, noBlock);
    if (isBehind)
        m_allocator->freeBehind(block);
    else
        m_allocator->free(block);
}

void Trace::beginPassing(std::vector<std::int64_t> bytes)
{
    assert(eventCount() == 0);
    m_passing.bytes = std::move(bytes);
    if (m_allocator && !(m_memory && m_memory->isMade))
        m_passingBlocks = m_allocator->allocateAll(m_passing.bytes);
}

void Trace::endPassing()
{
    m_passing.last = m_events.size();
    for (const BlockId block : std::exchange(m_passingBlocks, {}))
        m_allocator->free(block);
}

NameId Trace::nameOf(BlockId block) const
{
    return m_keeps == TraceKeeps::Events ? allocation(block).name : 0;
}

Result<void> Trace::check() const
{
    if (m_overflow)
        return fail("trace.overflow", "the step holds more than 8 EiB at once", "make the model or the batch smaller");
    return {};
}

} // namespace memscape
