// SPDX-License-Identifier: Apache-2.0
// The parts of an emulated Hopper SM that work beside the threads of a block: barriers in shared
// memory, the copy engine, the tensor cores of a warpgroup; and what each thread knows of them.
#pragma once

#include "tests/support/hopper_emulator.h"
#include "tests/support/warp_emulator_block.h"

#include <deque>
#include <map>

namespace memscape::emulated {

/// What is visible to a thread, directly or over barriers: of every warp, how many of its products are
/// complete; of every barrier (in order of making), how many of its phases.
struct Knowledge
{
    std::vector<int> products, phases;
    void learn(const Knowledge& other);
};

class HopperUnit
{
public:
    explicit HopperUnit(Block& block);

    void makeBarrier(int thread, std::uint32_t at, int arrivals);
    void publish(int thread);
    void arrive(int thread, std::uint32_t at, std::uint32_t bytes);
    /// Sets what the thread waits for; passes() says whether it may go on, pass() lets it.
    void waitFor(int thread, std::uint32_t at, std::uint32_t parity);
    bool passes(int thread) const;
    void pass(int thread);
    void copyBox(int thread, std::uint32_t to, const cuda::TileMap& map, const int (&from)[3], std::uint32_t there);

    /// A meeting of a warp's lanes at a GroupStep.
    void step(int warp);
    /// One box, if any is under way.
    bool land();
    /// The whole block met: all know what any knew.
    void shareAll();
    [[noreturn]] void nameDeadlock() const;
    /// Faults of a block that has ended: boxes and products under way.
    void checkEnd() const;

private:
    struct PhaseBarrier
    {
        std::uint32_t at = 0;
        int index = 0, arrivals = 0, waitedFor = 0;
        std::int64_t bytes = 0; ///< expected and not yet landed
        int phase = 0;          ///< how many are complete
        int maker = 0, madeAt = 0;
        bool isPublished = false;
        Knowledge arriving, complete;
    };
    struct Waiting
    {
        PhaseBarrier* barrier = nullptr;
        std::uint32_t parity = 0;
    };
    struct Box
    {
        std::uint32_t to;
        std::vector<char> data;
        PhaseBarrier* there;
    };
    /// 16 bytes of shared memory.
    struct Chunk
    {
        enum State { Empty, Arriving, Landed } state = Empty;
        int barrier = 0, phase = 0; ///< that signals its landing
        std::vector<int> readBy;    ///< by warp: the last of its products that reads it
    };
    /// A lane's sums while products on them run: what they will be.
    struct Running
    {
        int product = 0, group = 0; ///< the last one on them
        std::vector<double> sums;
    };
    struct LeftSide
    {
        int product;
        const std::uint32_t* words;
        std::uint32_t were[4];
    };
    struct Lane
    {
        std::map<float*, Running> running;
        std::vector<LeftSide> leftSides;
    };
    struct Warp
    {
        int products = 0, group = 0;  ///< started; groups committed
        std::vector<int> lastOfGroup; ///< product
        bool isFenced = false;
        int registers = 0;
        Lane lane[lanes];
    };
    struct Product
    {
        std::uint64_t left, right;
        int columns;
        bool leftIsShared, adds;
        bool operator==(const Product&) const = default;
    };
    struct Named
    {
        int arrived = 0, threads = 0;
        std::vector<int> waiting; ///< warps
        Knowledge brought;
    };

    PhaseBarrier& barrierAt(int thread, std::uint32_t at);
    void completeIfDone(PhaseBarrier& barrier);
    const GroupStep& stepOf(int warp, int lane) const { return *m_block.brought(warp * lanes + lane).group; }
    void named(int warp, bool waits);
    void multiply(int warp);
    void checkProduct(int warp);
    std::vector<double> leftOf(int warp);
    std::vector<double> rightOf(int warp);
    double element(int warp, std::uint32_t at, bool isBfloat);
    void noteRead(int warp, std::uint32_t at);
    void start(int warp, int lane, const std::vector<double>& left, const std::vector<double>& right);
    void waitForProducts(int warp, int pending);
    void deliver(int warp, int lane, int upTo);
    [[noreturn]] void fault(int warp, const std::string& what) const { m_block.fault(warp * lanes, what); }

    Block& m_block;
    std::vector<Knowledge> m_known; ///< by thread
    std::vector<Waiting> m_waiting; ///< by thread
    std::vector<Warp> m_warps;
    std::deque<PhaseBarrier> m_barriers;
    std::vector<Chunk> m_chunks;
    std::vector<Box> m_boxes;
    std::map<int, Named> m_named;
    std::map<int, std::vector<Product>> m_started; ///< by warpgroup
    std::uint32_t m_lottery = 1;
};

} // namespace memscape::emulated
