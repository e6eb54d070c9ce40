// SPDX-License-Identifier: Apache-2.0
// Where everything is while a placed program runs: weights, the optimizer's state and tensors on the host, and on the
// device an arena that a counting pool (counting_pool.h) hands out and that refuses what passes the limit.
#pragma once

#include "core/experiments/placement/placement.h"
#include "kernels/measure/counting_pool.h"
#include "kernels/programs/placement/placed_machine.h"

#include <vector>

namespace memscape {

constexpr std::size_t floatsOf(std::int64_t bytes)
{
    return std::size_t(bytes) / sizeof(float);
}
/// Of a node's weights, or of what an input holds.
constexpr std::uint64_t placedSeed(std::uint32_t node)
{
    return 2 * std::uint64_t(node) + 3;
}

class PlacedArrays
{
public:
    /// All three must outlive it.
    PlacedArrays(PlacedMachine& machine, const PlacementCase& asked, const Placement& placement);

    /// Errors: run.memory, run.skipped, run.cancelled.
    Result<void> open();
    /// Nothing but what stays is on the device; inputs are as they were.
    Result<void> reset();
    /// Errors: run.memory where the limit is passed, which is a fault of the program.
    Result<void> take(const ProgramStep& step);
    void give(const ProgramStep& step);
    /// From where to where a step copies.
    PlacedCopy copyOf(const ProgramStep& step) const;

    float* at(std::uint32_t slot) const { return reinterpret_cast<float*>(m_arena.get() + m_slotAt[slot]); }
    const float* input(Place place, std::uint32_t node) const;
    double highWater() const; ///< B of the pool, over all runs

    /// On the host, by node; empty where there are none.
    struct OnHost
    {
        PlacedMemory weights, moments, variances, gradients, tensor;
    };
    static float* numbers(const PlacedMemory& memory) { return reinterpret_cast<float*>(memory.get()); }

    std::vector<OnHost> host;
    /// On the device, by node; null: not there.
    std::vector<float*> deviceWeights, deviceTensor, deviceGradient, weightGradient;

private:
    Result<void> takeSlot(std::uint32_t slot);
    Result<void> openHost();

    PlacedMachine& m_machine;
    const PlacementCase& m_asked;
    const Placement& m_placement;
    PlacedMemory m_arena; ///< the device
    CountingPool m_pool{0};
    std::int64_t m_room = 0, m_highWater = 0;
    std::vector<std::int64_t> m_slotAt; ///< offsets, by slot
};

} // namespace memscape
