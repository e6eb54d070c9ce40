// SPDX-License-Identifier: Apache-2.0
#include "core/training/fsdp_units.h"

#include <algorithm>
#include <utility>

namespace memscape {

namespace {

constexpr std::size_t mostUnderWay = 2; // _FreeEventQueue's max_num_inflight_all_gathers

} // namespace

FsdpUnits::FsdpUnits(const Graph& graph, const FsdpRules& rules, std::span<const std::int64_t> gathered, Trace& trace,
                     std::span<const ModuleId> modules)
    : m_rules(rules)
    , m_trace(trace)
    , m_name(trace.name("gathered weights"))
    , m_bufferName(trace.name("all-gather output"))
    , m_copyName(trace.name("half copy of the shard"))
    , m_wrapping(graph, modules, rules.wrap, rules.wrappedElements)
    , m_units(m_wrapping.units.size())
{
    for (std::size_t i = 0; i < gathered.size(); ++i) {
        Unit& unit = m_units[m_wrapping.ownerOf[i]];
        unit.parameters.push_back(gathered[i]);
        unit.bytes += gathered[i];
        unit.copied += rules.shares[i] * rules.copiedBytes;
    }
}

std::vector<std::int64_t> FsdpUnits::wrappingBytes() const
{
    std::vector<std::int64_t> bytes;
    if (!m_rules.isFlat)
        return bytes;
    const std::int64_t scale = m_rules.copiedBytes > 0 ? 4 / m_rules.copiedBytes : 1; // fp32 is sharded
    const auto add = [&](const Unit& unit) {
        for (const std::int64_t parameter : unit.parameters)
            bytes.push_back(parameter * scale);
        bytes.push_back(unit.bytes * scale);
    };
    const auto isSmaller = [](const Unit& a, const Unit& b) { return a.bytes < b.bytes; };
    if (m_units.size() > 1)
        add(*std::max_element(m_units.begin() + 1, m_units.end(), isSmaller));
    add(m_units.front());
    std::erase(bytes, 0);
    return bytes;
}

void FsdpUnits::beginForward()
{
    m_isForward = true;
    m_current = 0;
    makeWhole(0);
}

void FsdpUnits::beginBackward()
{
    m_isForward = m_isReplaying = false;
    m_current = 0;
    for (Unit& unit : m_units)
        unit.hasBegun = false;
    prepareBackward(0); // the root: its output's gradient is the first
}

bool FsdpUnits::runs(std::uint32_t unit, std::uint32_t op) const
{
    const FsdpUnit& one = m_wrapping.units[unit];
    return unit == 0 || (op < one.last && op >= (m_isForward || m_isReplaying ? one.first : one.end));
}

void FsdpUnits::enter(std::uint32_t op, bool isReplay)
{
    m_isReplaying = isReplay;
    enterUnit(m_wrapping.unitOf[op], op);
}

void FsdpUnits::enterUnit(std::uint32_t unit, std::uint32_t op)
{
    if (unit == m_current || unit == 0)
        return;
    enterUnit(m_wrapping.units[unit].parent, op);
    if (!runs(unit, op))
        return;
    m_current = unit;
    if (m_isForward || m_isReplaying || m_units[unit].hasBegun)
        makeWhole(unit);
    else
        prepareBackward(unit);
}

/// The gradient of a unit's output is there.
void FsdpUnits::prepareBackward(std::uint32_t unit)
{
    makeWhole(unit);
    m_units[unit].hasBegun = true;
    const std::uint32_t before = m_wrapping.units[unit].before;
    if (m_units[unit].bytes > 0 && before != 0 && !m_units[before].hasBegun)
        gather(before);
}

void FsdpUnits::gather(std::uint32_t index)
{
    Unit& unit = m_units[index];
    if (unit.isWhole() || unit.buffer != noBlock || unit.bytes == 0)
        return;
    const ModuleId module = m_wrapping.units[index].module;
    const BlockId copy = m_trace.allocate(unit.copied, Category::Communication, m_copyName, module,
                                          m_rules.isFlat ? FsdpStreams::halfCopy : FsdpStreams::gather);
    if (m_rules.isFlat && m_waiting >= mostUnderWay) // the limiter waits for one event a gather
        m_trace.passBehind(--m_waiting);
    unit.buffer = m_trace.allocate(unit.bytes, Category::Communication, m_rules.isFlat ? m_name : m_bufferName, module,
                                   FsdpStreams::gather);
    m_trace.free(copy);
    if (m_rules.isFlat)
        unit.whole = {std::exchange(unit.buffer, noBlock)};
}

void FsdpUnits::makeWhole(std::uint32_t index)
{
    Unit& unit = m_units[index];
    gather(index);
    if (unit.isWhole() || unit.bytes == 0)
        return;
    if (m_isForward)
        m_trace.free(std::exchange(m_held, noBlock));
    for (const std::int64_t bytes : unit.parameters)
        unit.whole.push_back(m_trace.allocate(bytes, Category::Communication, m_name, m_wrapping.units[index].module));
    const BlockId buffer = std::exchange(unit.buffer, noBlock);
    if (m_isForward)
        m_held = buffer;
    else
        m_trace.free(buffer);
}

void FsdpUnits::giveBack(std::uint32_t index)
{
    for (const BlockId block : std::exchange(m_units[index].whole, {})) {
        m_waiting += m_rules.isFlat;
        m_rules.isFlat ? m_trace.freeBehind(block) : m_trace.free(block);
    }
}

void FsdpUnits::leave()
{
    const bool keeps = !m_rules.reshardsAfterForward;
    const bool stays = m_isForward ? keeps : m_isReplaying && (keeps || m_units[m_current].hasBegun);
    if (m_current != 0 && !stays)
        giveBack(m_current);
    m_current = m_wrapping.units[m_current].parent;
}

void FsdpUnits::endForward()
{
    m_trace.free(std::exchange(m_held, noBlock));
}

void FsdpUnits::endBackward()
{
    giveBack(0);
}

} // namespace memscape
