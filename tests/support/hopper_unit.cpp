// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hopper_unit.h"

#include <algorithm>
#include <cstring>

namespace memscape::emulated {

namespace {

constexpr std::uint32_t chunkBytes = 16, barrierBytes = 8, boxAlignment = 1024;
constexpr int mostBarriers = 32, registersOfSm = 65536;

void raise(std::vector<int>& known, const std::vector<int>& other)
{
    for (std::size_t i = 0; i < known.size(); ++i)
        known[i] = std::max(known[i], other[i]);
}

std::string placeText(std::uint32_t at)
{
    return "shared address " + std::to_string(at);
}

} // namespace

void Knowledge::learn(const Knowledge& other)
{
    raise(products, other.products);
    raise(phases, other.phases);
}

// ---- a thread's view --------------------------------------------------------------------------

void HopperMachine::makeBarrier(std::uint32_t at, int arrivals)
{
    m_block.hopper().makeBarrier(m_thread, at, arrivals);
}
void HopperMachine::publishBarriers()
{
    m_block.hopper().publish(m_thread);
}
void HopperMachine::arrive(std::uint32_t at)
{
    m_block.hopper().arrive(m_thread, at, 0);
}
void HopperMachine::arriveExpecting(std::uint32_t at, std::uint32_t bytes)
{
    m_block.hopper().arrive(m_thread, at, bytes);
}
void HopperMachine::waitBarrier(std::uint32_t at, std::uint32_t parity)
{
    HopperUnit& unit = m_block.hopper();
    unit.waitFor(m_thread, at, parity);
    if (!unit.passes(m_thread))
        m_block.wait(m_thread, Standing::AtPhase);
    unit.pass(m_thread);
}
void HopperMachine::copyBox(std::uint32_t to, const cuda::TileMap& map, int column, int row, int plane,
                            std::uint32_t there)
{
    m_block.hopper().copyBox(m_thread, to, map, {column, row, plane}, there);
}
void HopperMachine::step(GroupStep::Kind kind, int number, int threads)
{
    GroupStep step;
    step.kind = kind;
    step.number = number;
    step.threads = threads;
    meet(step);
}
void HopperMachine::meet(const GroupStep& step)
{
    Brought brought;
    brought.meeting = Meeting::Group;
    brought.group = &step;
    m_block.meet(m_thread, brought);
}

// ---- barriers ---------------------------------------------------------------------------------

HopperUnit::HopperUnit(Block& block)
    : m_block(block)
    , m_waiting(std::size_t(block.launch.threads))
    , m_warps(std::size_t(block.launch.threads / lanes))
    , m_chunks(std::size_t(block.launch.sharedBytes) / chunkBytes)
{
    const Knowledge nothing{std::vector<int>(m_warps.size()), std::vector<int>(mostBarriers)};
    m_known.assign(std::size_t(block.launch.threads), nothing);
    for (Chunk& chunk : m_chunks)
        chunk.readBy.assign(m_warps.size(), 0);
}

void HopperUnit::makeBarrier(int thread, std::uint32_t at, int arrivals)
{
    m_block.shared(thread, at, barrierBytes);
    PhaseBarrier barrier;
    barrier.at = at;
    barrier.index = int(m_barriers.size());
    barrier.arrivals = barrier.waitedFor = arrivals;
    barrier.maker = thread;
    barrier.madeAt = m_block.blockTime();
    barrier.arriving = barrier.complete = Knowledge{std::vector<int>(m_warps.size()), std::vector<int>(mostBarriers)};
    m_barriers.push_back(barrier);
}

void HopperUnit::publish(int thread)
{
    for (PhaseBarrier& barrier : m_barriers)
        barrier.isPublished = barrier.isPublished || barrier.maker == thread;
}

HopperUnit::PhaseBarrier& HopperUnit::barrierAt(int thread, std::uint32_t at)
{
    for (PhaseBarrier& barrier : m_barriers) {
        if (barrier.at != at)
            continue;
        if (!barrier.isPublished)
            m_block.fault(thread, "the barrier at " + std::to_string(at) + " was not published");
        if (barrier.maker != thread && barrier.madeAt == m_block.blockTime())
            m_block.fault(thread,
                          "the barrier at " + std::to_string(at)
                              + " is used with no barrier of the block since it was made");
        return barrier;
    }
    m_block.fault(thread, "no barrier was made at " + placeText(at));
}

void HopperUnit::arrive(int thread, std::uint32_t at, std::uint32_t bytes)
{
    PhaseBarrier& barrier = barrierAt(thread, at);
    if (barrier.waitedFor == 0)
        m_block.fault(thread, "one arrival more than the barrier at " + std::to_string(at) + " counts");
    --barrier.waitedFor;
    barrier.bytes += bytes;
    barrier.arriving.learn(m_known[std::size_t(thread)]);
    completeIfDone(barrier);
}

void HopperUnit::completeIfDone(PhaseBarrier& barrier)
{
    if (barrier.waitedFor > 0 || barrier.bytes != 0)
        return;
    ++barrier.phase;
    barrier.waitedFor = barrier.arrivals;
    barrier.complete.learn(barrier.arriving);
    barrier.complete.phases[std::size_t(barrier.index)] = barrier.phase;
}

void HopperUnit::waitFor(int thread, std::uint32_t at, std::uint32_t parity)
{
    m_waiting[std::size_t(thread)] = {&barrierAt(thread, at), parity};
}
/// The phase that runs now has another parity than the one that is waited for, so that one is over.
bool HopperUnit::passes(int thread) const
{
    const Waiting& waiting = m_waiting[std::size_t(thread)];
    return std::uint32_t(waiting.barrier->phase % 2) != waiting.parity;
}
void HopperUnit::pass(int thread)
{
    m_known[std::size_t(thread)].learn(m_waiting[std::size_t(thread)].barrier->complete);
}

void HopperUnit::shareAll()
{
    Knowledge all = m_known.front();
    for (const Knowledge& known : m_known)
        all.learn(known);
    m_known.assign(m_known.size(), all);
}

// ---- the copy engine --------------------------------------------------------------------------

/// A box of rows of 128 bytes, swizzled; zeros beyond the last row. Its chunks must be free.
void HopperUnit::copyBox(int thread, std::uint32_t to, const cuda::TileMap& map, const int (&from)[3],
                         std::uint32_t there)
{
    PhaseBarrier& barrier = barrierAt(thread, there);
    const std::uint32_t bytes = map.boxRows * cuda::pieceRowBytes;
    if (to % boxAlignment != 0)
        m_block.fault(thread, "a box at " + placeText(to) + ", not a multiple of 1024");
    if (bytes > 0)
        m_block.shared(thread, to + bytes - chunkBytes, chunkBytes);
    Box box{to, std::vector<char>(bytes), &barrier};
    const Knowledge& known = m_known[std::size_t(thread)];
    for (std::uint32_t at = 0; at < bytes; at += chunkBytes) {
        Chunk& chunk = m_chunks[(to + at) / chunkBytes];
        if (chunk.state == Chunk::Arriving)
            m_block.fault(thread, placeText(to + at) + " is fetched while a box is on its way there");
        for (std::size_t warp = 0; warp < m_warps.size(); ++warp) {
            if (chunk.readBy[warp] > known.products[warp])
                m_block.fault(thread,
                              placeText(to + at) + " is fetched anew while products of warp " + std::to_string(warp)
                                  + " may still read it");
        }
        chunk.state = Chunk::Arriving;
        chunk.barrier = barrier.index;
        chunk.phase = barrier.phase + 1;
    }
    const auto* data = static_cast<const char*>(map.data);
    for (std::uint32_t row = 0; row < map.boxRows; ++row) {
        const std::uint64_t line = std::uint64_t(from[1]) + row;
        if (line >= map.rows || std::uint64_t(from[2]) >= map.planes)
            continue;
        const char* source =
            data + ((std::uint64_t(from[2]) * map.rows + line) * map.columns + std::uint64_t(from[0])) * 2;
        try {
            m_block.memory.read(source, cuda::pieceRowBytes);
        } catch (const Fault& fault) {
            m_block.fault(thread, fault.what());
        }
        for (std::uint32_t chunk = 0; chunk < 8; ++chunk)
            std::memcpy(&box.data[row * cuda::pieceRowBytes + ((chunk ^ (row % 8)) * chunkBytes)],
                        source + chunk * chunkBytes, chunkBytes);
    }
    m_boxes.push_back(std::move(box));
}

bool HopperUnit::land()
{
    if (m_boxes.empty())
        return false;
    m_lottery = m_lottery * 1664525U + 1013904223U;
    const auto drawn = m_boxes.begin() + std::ptrdiff_t((m_lottery >> 16) % m_boxes.size());
    const Box box = std::move(*drawn);
    m_boxes.erase(drawn);
    std::memcpy(m_block.shared(0, box.to, chunkBytes), box.data.data(), box.data.size());
    for (std::size_t at = box.to; at < box.to + box.data.size(); at += chunkBytes)
        m_chunks[at / chunkBytes].state = Chunk::Landed;
    box.there->bytes -= std::int64_t(box.data.size());
    completeIfDone(*box.there);
    return true;
}

// ---- a part of the block ----------------------------------------------------------------------

void HopperUnit::step(int warp)
{
    const GroupStep& step = stepOf(warp, 0);
    for (int lane = 1; lane < lanes; ++lane) {
        if (stepOf(warp, lane).kind != step.kind || stepOf(warp, lane).number != step.number)
            m_block.fault(warp * lanes + lane, "another instruction than the warp's first lane");
    }
    Warp& own = m_warps[std::size_t(warp)];
    switch (step.kind) {
    case GroupStep::Fence: own.isFenced = true; return;
    case GroupStep::Multiply: return multiply(warp);
    case GroupStep::Commit: own.lastOfGroup.push_back(own.products); return;
    case GroupStep::Wait: return waitForProducts(warp, step.number);
    case GroupStep::ArriveNamed:
    case GroupStep::WaitNamed: return named(warp, step.kind == GroupStep::WaitNamed);
    case GroupStep::Registers: own.registers = step.number;
    }
}

void HopperUnit::named(int warp, bool waits)
{
    const GroupStep& step = stepOf(warp, 0);
    Named& barrier = m_named[step.number];
    if (barrier.arrived > 0 && barrier.threads != step.threads)
        fault(warp, "named barrier " + std::to_string(step.number) + " counts differently here");
    if (barrier.arrived == 0)
        barrier.brought = m_known[std::size_t(warp * lanes)];
    barrier.threads = step.threads;
    barrier.arrived += lanes;
    for (int lane = 0; lane < lanes; ++lane)
        barrier.brought.learn(m_known[std::size_t(warp * lanes + lane)]);
    if (waits)
        barrier.waiting.push_back(warp);
    for (int lane = 0; waits && lane < lanes; ++lane)
        m_block.hold(warp * lanes + lane, Standing::AtNamed);
    if (barrier.arrived < barrier.threads)
        return;
    for (const int waiting : barrier.waiting) {
        for (int lane = 0; lane < lanes; ++lane) {
            m_known[std::size_t(waiting * lanes + lane)].learn(barrier.brought);
            m_block.hold(waiting * lanes + lane, Standing::Running);
        }
    }
    barrier = Named();
}

void HopperUnit::nameDeadlock() const
{
    std::string text = "no warp can go on:";
    for (int warp = 0; warp < int(m_warps.size()); ++warp) {
        for (int lane = 0; lane < lanes; ++lane) {
            const int thread = warp * lanes + lane;
            const Standing standing = m_block.standing(thread);
            const Waiting& waiting = m_waiting[std::size_t(thread)];
            if (standing == Standing::Done)
                continue;
            text += " warp " + std::to_string(warp);
            if (standing == Standing::AtPhase)
                text += " waits for parity " + std::to_string(waiting.parity) + " of the barrier at "
                    + std::to_string(waiting.barrier->at) + " (phase " + std::to_string(waiting.barrier->phase) + ", "
                    + std::to_string(waiting.barrier->waitedFor) + " arrivals and "
                    + std::to_string(waiting.barrier->bytes) + " bytes missing);";
            else
                text += standing == Standing::AtNamed ? " waits at a named barrier;"
                    : standing == Standing::AtBlock   ? " waits for the whole block;"
                                                      : " waits for its other lanes;";
            break; // one lane acts for its warp
        }
    }
    m_block.fault(0, text);
}

void HopperUnit::checkEnd() const
{
    if (!m_boxes.empty())
        m_block.fault(0, "the block ends while boxes are on their way");
    int registers = 0;
    for (int warp = 0; warp < int(m_warps.size()); ++warp) {
        registers += m_warps[std::size_t(warp)].registers * lanes;
        for (const Lane& lane : m_warps[std::size_t(warp)].lane) {
            if (!lane.running.empty())
                fault(warp, "ends before its products have been waited for");
        }
    }
    if (registers > registersOfSm)
        m_block.fault(0, std::to_string(registers) + " registers are more than an SM has");
    for (const PhaseBarrier& barrier : m_barriers) {
        if (barrier.bytes != 0)
            m_block.fault(0,
                          "the barrier at " + std::to_string(barrier.at) + " ends with " + std::to_string(barrier.bytes)
                              + " bytes missing");
    }
    for (const auto& [number, barrier] : m_named) {
        if (barrier.arrived != 0)
            m_block.fault(0, "named barrier " + std::to_string(number) + " ends with arrivals");
    }
}

} // namespace memscape::emulated
