// SPDX-License-Identifier: Apache-2.0
#include "tests/support/warp_emulator_block.h"

#include "tests/support/hopper_unit.h"

#include <algorithm>
#include <cstring>

namespace memscape::emulated {

namespace {

constexpr std::uint32_t cellBytes = 2;

const char* nameOf(Meeting meeting)
{
    switch (meeting) {
    case Meeting::Matrices: return "ldmatrix";
    case Meeting::MatricesTransposed: return "ldmatrix.trans";
    case Meeting::MultiplyHalf:
    case Meeting::MultiplyBfloat:
    case Meeting::MultiplyFormat:
    case Meeting::MultiplyDoubles: return "mma";
    case Meeting::Shuffle: return "shuffle";
    case Meeting::Vote: return "vote";
    case Meeting::SyncWarp: return "syncwarp";
    case Meeting::Group: return "a warpgroup's instruction";
    }
    return "";
}

} // namespace

Block::Block(const Launch& theLaunch, GlobalMemory& theMemory, const Kernel& kernel, int theX, int theY,
             LaunchCount& count)
    : launch(theLaunch)
    , memory(theMemory)
    , x(theX)
    , y(theY)
    , m_kernel(kernel)
    , m_count(count)
    , m_threads(std::size_t(theLaunch.threads))
    , m_shared(std::size_t(theLaunch.sharedBytes), char(0xff))
    , m_cells(std::size_t(theLaunch.sharedBytes) / cellBytes)
    , m_warpTime(std::size_t(theLaunch.threads / lanes))
{ }

Block::~Block() = default;

void Block::fault(int thread, const std::string& what) const
{
    throw Fault("block (" + std::to_string(x) + ", " + std::to_string(y) + "), thread " + std::to_string(thread) + ": "
                + what);
}

// ---- threads ----------------------------------------------------------------------------------

void Block::runThread(int thread)
{
    Thread& t = m_threads[std::size_t(thread)];
    try {
        Machine machine(*this, thread);
        m_kernel(machine);
        if (!t.copies.empty())
            fault(thread, "ends before its copies have arrived");
    } catch (...) {
        m_fault = std::current_exception();
    }
    t.standing = Standing::Done;
    yield(thread);
}

void Block::resume(int thread)
{
    Thread& t = m_threads[std::size_t(thread)];
    t.standing = Standing::Running;
    t.fiber->enter();
    if (m_fault)
        std::rethrow_exception(m_fault);
}

void Block::yield(int thread)
{
    m_threads[std::size_t(thread)].fiber->leave();
}

void Block::meet(int thread, const Brought& brought)
{
    Thread& t = m_threads[std::size_t(thread)];
    t.brought = brought;
    t.standing = Standing::AtWarp;
    yield(thread);
}

void Block::barrier(int thread)
{
    m_threads[std::size_t(thread)].standing = Standing::AtBlock;
    yield(thread);
}

bool Block::meetingIsFull(int warp) const
{
    const auto first = m_threads.begin() + warp * lanes;
    return std::all_of(first, first + lanes, [](const Thread& t) { return t.standing == Standing::AtWarp; });
}

/// Every lane that may: whether there was one.
bool Block::resumeLanes(int warp)
{
    bool resumed = false;
    for (int thread = warp * lanes; thread < (warp + 1) * lanes; ++thread) {
        const Standing standing = m_threads[std::size_t(thread)].standing;
        if (standing != Standing::Running && !(standing == Standing::AtPhase && m_hopper->passes(thread)))
            continue;
        resume(thread);
        resumed = true;
    }
    return resumed;
}

/// Until no lane can go on by itself; whether any did.
bool Block::runWarp(int warp)
{
    bool moved = false;
    while (resumeLanes(warp)) {
        moved = true;
        if (meetingIsFull(warp))
            hold(warp);
    }
    countAccesses(warp);
    checkWarp(warp);
    return moved;
}

/// A warp that waits for nothing else stands at one place.
void Block::checkWarp(int warp) const
{
    const auto first = m_threads.begin() + warp * lanes;
    if (std::any_of(first, first + lanes,
                    [](const Thread& t) { return t.standing == Standing::AtPhase || t.standing == Standing::AtNamed; }))
        return;
    for (int lane = 0; lane < lanes; ++lane) {
        const Thread& t = first[lane];
        if (t.standing == Standing::AtWarp)
            fault(warp * lanes + lane, std::string(nameOf(t.brought.meeting)) + " without the whole warp");
        if (t.standing != first->standing)
            fault(warp * lanes + lane, "a barrier that not the whole warp reaches");
    }
}

bool Block::allStand(Standing where) const
{
    return std::ranges::all_of(m_threads, [&](const Thread& t) { return t.standing == where; });
}

void Block::run()
{
    for (int thread = 0; thread < launch.threads; ++thread)
        m_threads[std::size_t(thread)].fiber.emplace([this, thread] { runThread(thread); });
    while (!allStand(Standing::Done)) {
        bool moved = false;
        for (int warp = 0; warp < launch.threads / lanes; ++warp)
            moved = runWarp(warp) || moved;
        if (!moved && !(m_hopper && m_hopper->land()))
            goOnTogether();
    }
    if (m_hopper)
        m_hopper->checkEnd();
}

/// All have reached the barrier, or no thread will ever go on.
void Block::goOnTogether()
{
    if (m_hopper && !allStand(Standing::AtBlock))
        m_hopper->nameDeadlock();
    const bool goesOn = m_threads.front().standing == Standing::AtBlock;
    for (int thread = 0; thread < launch.threads; thread += lanes) {
        if ((m_threads[std::size_t(thread)].standing == Standing::AtBlock) != goesOn)
            fault(thread, "a barrier that some warps have left");
    }
    ++m_blockTime;
    for (Thread& t : m_threads)
        t.standing = Standing::Running;
    if (m_hopper)
        m_hopper->shareAll();
}

// ---- Hopper's part ----------------------------------------------------------------------------

HopperUnit& Block::hopper()
{
    if (!m_hopper)
        m_hopper = std::make_unique<HopperUnit>(*this);
    return *m_hopper;
}

char* Block::shared(int thread, std::uint32_t at, std::uint32_t bytes)
{
    checkAddress(thread, at, bytes);
    return m_shared.data() + at;
}

void Block::wait(int thread, Standing where)
{
    m_threads[std::size_t(thread)].standing = where;
    yield(thread);
}

/// All lanes of the warp are here: what they came for is done.
void Block::hold(int warp)
{
    countAccesses(warp);
    const Meeting meeting = m_threads[std::size_t(warp * lanes)].brought.meeting;
    for (int lane = 1; lane < lanes; ++lane) {
        const Meeting other = m_threads[std::size_t(warp * lanes + lane)].brought.meeting;
        if (other != meeting)
            fault(warp * lanes + lane,
                  std::string(nameOf(other)) + " while the warp's first lane is at " + nameOf(meeting));
    }
    for (int lane = 0; lane < lanes; ++lane)
        m_threads[std::size_t(warp * lanes + lane)].standing = Standing::Running;
    switch (meeting) {
    case Meeting::Matrices:
    case Meeting::MatricesTransposed: return matrices(warp, meeting == Meeting::MatricesTransposed);
    case Meeting::MultiplyHalf:
    case Meeting::MultiplyBfloat: return multiply(warp, meeting == Meeting::MultiplyBfloat);
    case Meeting::MultiplyFormat: return multiplyFormat(warp);
    case Meeting::MultiplyDoubles: return multiplyDoubles(warp);
    case Meeting::Shuffle: return shuffle(warp);
    case Meeting::Vote: return vote(warp);
    case Meeting::Group: return hopper().step(warp);
    case Meeting::SyncWarp: ++m_warpTime[std::size_t(warp)];
    }
}

// ---- instructions of a warp -------------------------------------------------------------------

/// ldmatrix.x4: lane 8 m + i points at row i of matrix m, eight 16-bit elements. Lane 4 i + j gets
/// elements 2 j and 2 j + 1 of row i, or transposed of column i.
void Block::matrices(int warp, bool transposed)
{
    for (int matrix = 0; matrix < 4; ++matrix) {
        std::uint16_t rows[8][8];
        std::vector<std::uint32_t> addresses;
        for (int row = 0; row < 8; ++row) {
            const int thread = warp * lanes + matrix * 8 + row;
            const std::uint32_t at = m_threads[std::size_t(thread)].brought.at;
            checkAddress(thread, at, 16);
            noteRead(thread, at, 16);
            std::memcpy(rows[row], m_shared.data() + at, 16);
            addresses.push_back(at);
        }
        addTurns(m_count.matrixLoads, addresses, 16);
        for (int lane = 0; lane < lanes; ++lane) {
            const int i = lane / 4, j = lane % 4 * 2;
            const std::uint32_t low = transposed ? rows[j][i] : rows[i][j];
            const std::uint32_t high = transposed ? rows[j + 1][i] : rows[i][j + 1];
            m_threads[std::size_t(warp * lanes + lane)].brought.matrix[matrix] = low | high << 16;
        }
    }
}

/// mma.m16n8k16, or twice m16n8k8. The fragments are unpacked as the ISA's pictures show them, block
/// by block of 8 × 8, not by the formulas that the kernels use. Sums in double, rounded once.
void Block::multiply(int warp, bool isBfloat)
{
    double a[16][16], b[16][8];
    const auto unpack = [&](std::uint32_t word, int half) {
        const auto bits = std::uint16_t(word >> (16 * half));
        return double(isBfloat ? toFloat(Bfloat{bits}) : toFloat(Half{bits}));
    };
    for (int lane = 0; lane < lanes; ++lane) {
        const Brought& in = m_threads[std::size_t(warp * lanes + lane)].brought;
        const int group = lane >> 2, pair = (lane & 3) << 1;
        for (int half = 0; half < 2; ++half) {
            a[group][pair + half] = unpack(in.a[0], half);         // upper left
            a[group + 8][pair + half] = unpack(in.a[1], half);     // lower left
            a[group][pair + half + 8] = unpack(in.a[2], half);     // upper right
            a[group + 8][pair + half + 8] = unpack(in.a[3], half); // lower right
            b[pair + half][group] = unpack(in.b[0], half);         // upper
            b[pair + half + 8][group] = unpack(in.b[1], half);     // lower
        }
    }
    const int depth = launch.isTuring ? 8 : 16;
    const auto sumOf = [&](int row, int column) -> float& {
        float* const sums = m_threads[std::size_t(warp * lanes + row % 8 * 4 + column / 2)].brought.sums;
        return sums[row / 8 * 2 + column % 2];
    };
    for (int row = 0; row < 16; ++row) {
        for (int k = 0; k < 16; k += depth) {
            double sums[8];
            for (int column = 0; column < 8; ++column)
                sums[column] = double(sumOf(row, column));
            for (int deep = k; deep < k + depth; ++deep)
                for (int column = 0; column < 8; ++column)
                    sums[column] += a[row][deep] * b[deep][column];
            for (int column = 0; column < 8; ++column)
                sumOf(row, column) = float(sums[column]);
        }
    }
    m_count.products += std::uint64_t(16 / depth);
}

void Block::shuffle(int warp)
{
    for (int lane = 0; lane < lanes; ++lane) {
        const Brought& in = m_threads[std::size_t(warp * lanes + lane)].brought;
        *in.sums = m_threads[std::size_t(warp * lanes + (lane ^ in.distance))].brought.value;
    }
}

void Block::vote(int warp)
{
    bool any = false;
    for (int lane = 0; lane < lanes; ++lane)
        any = any || m_threads[std::size_t(warp * lanes + lane)].brought.vote;
    for (int lane = 0; lane < lanes; ++lane)
        *m_threads[std::size_t(warp * lanes + lane)].brought.voted = any;
    ++m_count.votes;
    m_count.agreements += any ? 1 : 0;
}

// ---- shared memory ----------------------------------------------------------------------------

void Block::checkAddress(int thread, std::uint32_t at, std::uint32_t bytes) const
{
    if (at % bytes != 0)
        fault(thread, "shared address " + std::to_string(at) + " is not a multiple of " + std::to_string(bytes));
    if (std::uint64_t(at) + bytes > m_shared.size())
        fault(thread,
              "shared address " + std::to_string(at) + " lies outside " + std::to_string(m_shared.size()) + " bytes");
}

void Block::noteRead(int thread, std::uint32_t at, std::uint32_t bytes)
{
    const int warp = thread / lanes;
    for (std::uint32_t i = at / cellBytes; i <= (at + bytes - 1) / cellBytes; ++i) {
        Cell& cell = m_cells[i];
        if (cell.state == Cell::Unwritten)
            fault(thread, "shared address " + std::to_string(at) + " is read before it is written");
        if (cell.state == Cell::Arriving)
            fault(thread,
                  "shared address " + std::to_string(at) + " is read before the copy into it has been waited for");
        const bool ordered = cell.writer == thread || cell.writtenBlockTime < m_blockTime
            || (cell.writer / lanes == warp && cell.writtenWarpTime < m_warpTime[std::size_t(warp)]);
        if (!ordered)
            fault(thread,
                  "shared address " + std::to_string(at) + " was written by thread " + std::to_string(cell.writer)
                      + " with no barrier since");
        const bool first = cell.readBlockTime != m_blockTime;
        if (first || cell.reader == thread)
            cell.reader = std::int16_t(thread);
        else
            cell.reader = cell.readerWarp == warp && cell.reader != -3 ? std::int16_t(-2) : std::int16_t(-3);
        cell.readerWarp = std::int16_t(warp);
        cell.readBlockTime = m_blockTime;
        cell.readWarpTime = m_warpTime[std::size_t(warp)];
    }
}

void Block::noteWrite(int thread, std::uint32_t at, std::uint32_t bytes, Cell::State state)
{
    const int warp = thread / lanes;
    const int warpTime = m_warpTime[std::size_t(warp)];
    for (std::uint32_t i = at / cellBytes; i <= (at + bytes - 1) / cellBytes; ++i) {
        Cell& cell = m_cells[i];
        const bool afterReads = cell.readBlockTime < m_blockTime || cell.reader == thread
            || (cell.reader != -3 && cell.readerWarp == warp && cell.readWarpTime < warpTime);
        if (!afterReads)
            fault(thread, "shared address " + std::to_string(at) + " is written while other threads may still read it");
        const bool afterWrites = cell.writer == thread || cell.writtenBlockTime < m_blockTime
            || (cell.writer / lanes == warp && cell.writtenWarpTime < warpTime);
        if (!afterWrites)
            fault(thread, "shared address " + std::to_string(at) + " is written by two threads at once");
        cell.state = state;
        cell.writer = std::int16_t(thread);
        cell.writtenBlockTime = m_blockTime;
        cell.writtenWarpTime = warpTime;
    }
}

void Block::read(int thread, std::uint32_t at, void* value, std::uint32_t bytes)
{
    checkAddress(thread, at, bytes);
    noteRead(thread, at, bytes);
    std::memcpy(value, m_shared.data() + at, bytes);
    m_threads[std::size_t(thread)].accesses.push_back({at, bytes, Access::Load});
}

void Block::write(int thread, std::uint32_t at, const void* value, std::uint32_t bytes)
{
    checkAddress(thread, at, bytes);
    noteWrite(thread, at, bytes, Cell::Written);
    std::memcpy(m_shared.data() + at, value, bytes);
    m_threads[std::size_t(thread)].accesses.push_back({at, bytes, Access::Store});
}

void Block::copy(int thread, std::uint32_t at, const void* from, bool wanted)
{
    checkAddress(thread, at, 16);
    noteWrite(thread, at, 16, Cell::Arriving);
    std::memset(m_shared.data() + at, 0xff, 16);
    Thread& t = m_threads[std::size_t(thread)];
    PendingCopy pending{at, {}, t.group};
    if (wanted)
        std::memcpy(pending.data.data(), from, 16);
    t.accesses.push_back({at, 16, Access::Copy});
    t.copies.push_back(pending);
}

void Block::commit(int thread)
{
    ++m_threads[std::size_t(thread)].group;
}

void Block::waitFor(int thread, int pending)
{
    Thread& t = m_threads[std::size_t(thread)];
    std::vector<PendingCopy> later;
    for (const PendingCopy& copy : t.copies) {
        if (copy.group < t.group - pending)
            arrive(thread, copy);
        else
            later.push_back(copy);
    }
    t.copies = std::move(later);
}

void Block::arrive(int thread, const PendingCopy& copy)
{
    std::memcpy(m_shared.data() + copy.at, copy.data.data(), 16);
    noteWrite(thread, copy.at, 16, Cell::Written);
}

} // namespace memscape::emulated
