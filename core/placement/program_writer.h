// SPDX-License-Identifier: Apache-2.0
// Steps and slots of a placed program as they are added, in the order in which they are issued.
#pragma once

#include "core/checkpoint/mlp_chain.h"
#include "core/placement/placed_program.h"

#include <array>
#include <cstdint>
#include <utility>

namespace memscape {

inline constexpr std::uint32_t noStep = UINT32_MAX;

class ProgramWriter
{
public:
    PlacedProgram program;

    std::uint32_t slot(std::uint32_t of, std::int64_t bytes, DeviceSlot::Holds holds)
    {
        program.blocks.push_back({pooledBytes(bytes), of, holds});
        return std::uint32_t(program.blocks.size() - 1);
    }
    std::uint32_t add(ProgramStep step)
    {
        const auto index = std::uint32_t(program.steps.size());
        if (m_waited != noStep)
            step.after.push_back(m_waited);
        // The memory that a copy takes was given back by what ran before.
        if (step.isCopy() && !step.takes.empty())
            step.after.insert(step.after.end(), m_lastRun.begin(), m_lastRun.end());
        std::erase(step.after, noStep);
        if (step.waits)
            m_waited = index;
        if (!step.isCopy())
            m_lastRun[step.lane == Lane::Host] = index;
        program.steps.push_back(std::move(step));
        return index;
    }

private:
    std::uint32_t m_waited = noStep;
    std::array<std::uint32_t, 2> m_lastRun{noStep, noStep}; ///< on the device, on the host
};

} // namespace memscape
