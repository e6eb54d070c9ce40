// SPDX-License-Identifier: Apache-2.0
// One block of the emulated GPU while it runs: its threads' stacks, what they wait for, its shared
// memory and the thread that last touched each two bytes of it.
#pragma once

#include "tests/support/fiber.h"
#include "tests/support/warp_emulator.h"

#include <array>
#include <exception>
#include <optional>

namespace memscape::emulated {

constexpr int lanes = 32;

class HopperUnit;
struct GroupStep;

/// Where a thread stands. AtPhase and AtNamed are Hopper's waits (hopper_unit.h).
enum class Standing { Running, AtWarp, AtBlock, AtPhase, AtNamed, Done };
enum class Meeting {
    Matrices,
    MatricesTransposed,
    MultiplyHalf,
    MultiplyBfloat,
    MultiplyFormat,
    MultiplyDoubles,
    Shuffle,
    Vote,
    SyncWarp,
    Group
};

/// What a lane brings to a meeting of its warp and takes from it.
struct Brought
{
    Meeting meeting = Meeting::SyncWarp;
    std::uint32_t at = 0;
    std::uint32_t* matrix = nullptr;
    float* sums = nullptr;
    const std::uint32_t* a = nullptr;
    std::uint32_t b[2] = {};
    float value = 0;
    int distance = 0;
    bool vote = false;
    bool* voted = nullptr;
    cuda::TensorFormat format = cuda::TensorFormat::Tf32;
    void* numbers = nullptr; ///< four floats or integers, or two doubles
    double left = 0, right = 0;
    const GroupStep* group = nullptr; ///< what the warp does for its warpgroup
};

struct PendingCopy
{
    std::uint32_t at;
    std::array<char, 16> data;
    int group;
};

/// An access of shared memory by one thread; the n-th of each lane since they last met make one
/// instruction of the warp.
struct Access
{
    std::uint32_t at;
    std::uint32_t bytes;
    enum Kind { Load, Store, Copy } kind;
};

struct Thread
{
    std::optional<Fiber> fiber;
    Standing standing = Standing::Running;
    Brought brought;
    std::vector<PendingCopy> copies;
    std::vector<Access> accesses;
    int group = 0; ///< of copies, that the next one joins
};

/// Of two bytes of shared memory.
struct Cell
{
    enum State : std::uint8_t { Unwritten, Written, Arriving } state = Unwritten;
    std::int16_t writer = -1, reader = -1; ///< threads; reader -2: several of one warp, -3: of several
    std::int16_t readerWarp = -1;
    int writtenBlockTime = -1, writtenWarpTime = -1;
    int readBlockTime = -1, readWarpTime = -1;
};

/// Adds the turns for addresses of `bytes` each that the lanes of a warp ask for at once.
void addTurns(BankCount& count, const std::vector<std::uint32_t>& at, std::uint32_t bytes);

class Block
{
public:
    Block(const Launch& launch, GlobalMemory& memory, const Kernel& kernel, int x, int y, LaunchCount& count);
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    void run();

    const Launch& launch;
    GlobalMemory& memory;
    const int x, y;

    [[noreturn]] void fault(int thread, const std::string& what) const;
    void meet(int thread, const Brought& brought);
    void barrier(int thread);
    void read(int thread, std::uint32_t at, void* value, std::uint32_t bytes);
    void write(int thread, std::uint32_t at, const void* value, std::uint32_t bytes);
    void copy(int thread, std::uint32_t at, const void* from, bool wanted);
    void commit(int thread);
    void waitFor(int thread, int pending);

    // For Hopper's part.
    HopperUnit& hopper();
    char* shared(int thread, std::uint32_t at, std::uint32_t bytes);
    const Brought& brought(int thread) const { return m_threads[std::size_t(thread)].brought; }
    int blockTime() const { return m_blockTime; }
    /// The thread stops until it is released; a thread waiting at a phase is resumed again and again.
    void wait(int thread, Standing where);
    void hold(int thread, Standing where) { m_threads[std::size_t(thread)].standing = where; }
    Standing standing(int thread) const { return m_threads[std::size_t(thread)].standing; }
    void countProducts(std::uint64_t products) { m_count.products += products; }

private:
    void runThread(int thread);
    void resume(int thread);
    void yield(int thread);
    bool runWarp(int warp);
    bool resumeLanes(int warp);
    void checkWarp(int warp) const;
    bool allStand(Standing where) const;
    void goOnTogether();
    bool meetingIsFull(int warp) const;
    void hold(int warp);
    void matrices(int warp, bool transposed);
    void multiply(int warp, bool isBfloat);
    void multiplyFormat(int warp);
    void multiplyDoubles(int warp);
    void shuffle(int warp);
    void vote(int warp);
    void countAccesses(int warp);
    void checkAddress(int thread, std::uint32_t at, std::uint32_t bytes) const;
    void noteRead(int thread, std::uint32_t at, std::uint32_t bytes);
    void noteWrite(int thread, std::uint32_t at, std::uint32_t bytes, Cell::State state);
    void arrive(int thread, const PendingCopy& copy);

    const Kernel& m_kernel;
    LaunchCount& m_count;
    std::vector<Thread> m_threads;
    std::vector<char> m_shared;
    std::vector<Cell> m_cells;
    std::vector<int> m_warpTime;
    int m_blockTime = 0;
    std::exception_ptr m_fault;
    std::unique_ptr<HopperUnit> m_hopper; ///< where a kernel uses it
};

} // namespace memscape::emulated
