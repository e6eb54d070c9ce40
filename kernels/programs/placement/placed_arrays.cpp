// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/placement/placed_arrays.h"

#include "core/checkpoint/mlp_chain.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace memscape {

namespace {

/// So that products of a long chain stay near 1.
float scaleOf(const GraphNode& node)
{
    return node.kind == NodeKind::Matmul ? float(2 / std::sqrt(double(node.inner))) : 1;
}

/// What of a case is not run.
Result<void> checkRunnable(const PlacementCase& asked, const Placement& placement)
{
    if (asked.isModel())
        return fail("run.skipped", "a model's layers are predicted; a chain or a graph of your own is run",
                    asked.graph.elementBytes == 4 ? "choose graph=mlp:8x1024"
                                                  : "choose graph=mlp:8x1024 and format=fp32",
                    "graph");
    if (asked.graph.elementBytes != 4)
        return fail("run.skipped", "half precision is predicted; FP32 is run",
                    "choose format=fp32, or look at the prediction", "format");
    if (asked.training.stateBytes > 0)
        return fail("run.skipped", "a disk that holds the optimizer's state is predicted; memory is run",
                    "choose disk=0, or look at the prediction", "disk");
    if (placement.peak > asked.limit)
        return fail("run.skipped",
                    fmt::format("this placement needs {} and the limit is {}",
                                quantityText(double(placement.peak), Unit::Byte),
                                quantityText(double(asked.limit), Unit::Byte)),
                    fmt::format("choose limit={} or more, or another strategy", placement.peak), "limit");
    return {};
}

} // namespace

PlacedArrays::PlacedArrays(PlacedMachine& machine, const PlacementCase& asked, const Placement& placement)
    : host(asked.graph.nodes.size())
    , deviceWeights(asked.graph.nodes.size(), nullptr)
    , m_machine(machine)
    , m_asked(asked)
    , m_placement(placement)
    // Twice the peak in addresses, so that holes between blocks are no matter; the limit is on what is taken.
    , m_room(2 * placement.peak + 2 * poolGranularity)
{ }

Result<void> PlacedArrays::openHost()
{
    for (std::uint32_t i = 0; i < host.size(); ++i) {
        const GraphNode& node = m_asked.graph.nodes[i];
        const auto make = [&](PlacedMemory& memory, std::int64_t bytes) -> Result<void> {
            MEMSCAPE_SET(memory, m_machine.take(Place::Host, bytes));
            return {};
        };
        MEMSCAPE_CHECK(make(host[i].tensor, node.outputBytes));
        if (node.kind == NodeKind::Input)
            m_machine.fill(numbers(host[i].tensor), floatsOf(node.outputBytes), placedSeed(i), 1);
        if (node.weightBytes > 0) {
            MEMSCAPE_CHECK(make(host[i].weights, node.weightBytes));
            m_machine.fill(numbers(host[i].weights), floatsOf(node.weightBytes), placedSeed(i), scaleOf(node));
            for (PlacedMemory* state : {&host[i].moments, &host[i].variances, &host[i].gradients}) {
                if (m_asked.trains())
                    MEMSCAPE_CHECK(make(*state, node.weightBytes));
            }
        }
        MEMSCAPE_CHECK(m_machine.checkStopped());
    }
    return {};
}

Result<void> PlacedArrays::open()
{
    MEMSCAPE_CHECK(checkRunnable(m_asked, m_placement));
    double onHost = 0;
    for (const GraphNode& node : m_asked.graph.nodes)
        onHost += double(node.weightBytes) * (m_asked.trains() ? 4 : 1) + double(node.outputBytes);
    MEMSCAPE_CHECK(m_machine.checkFits(onHost, double(m_room)));
    MEMSCAPE_CHECK(openHost());
    MEMSCAPE_SET(m_arena, m_machine.take(Place::Device, m_room));
    m_slotAt.assign(m_placement.program.blocks.size(), 0);
    MEMSCAPE_CHECK(reset());
    for (const std::uint32_t slot : m_placement.program.resident) {
        const DeviceSlot& held = m_placement.program.blocks[slot];
        if (held.holds == DeviceSlot::Holds::Weights)
            MEMSCAPE_CHECK(m_machine.copyNow(
                {at(slot), host[held.node].weights.get(), m_asked.graph.nodes[held.node].weightBytes, Lane::Up}));
    }
    return {};
}

Result<void> PlacedArrays::takeSlot(std::uint32_t slot)
{
    const DeviceSlot& wanted = m_placement.program.blocks[slot];
    const auto offset = m_pool.take(wanted.bytes);
    if (!offset || m_pool.used() > m_asked.limit)
        return fail("run.memory",
                    "the device is full: "
                        + (offset ? fmt::format("{} are taken, and the limit is {}",
                                                quantityText(double(m_pool.used()), Unit::Byte),
                                                quantityText(double(m_asked.limit), Unit::Byte))
                                  : offset.error().message),
                    "this is a fault of the program; please report it");
    m_slotAt[slot] = *offset;
    if (wanted.holds == DeviceSlot::Holds::Weights)
        deviceWeights[wanted.node] = at(slot);
    else if (wanted.holds == DeviceSlot::Holds::Tensor)
        deviceTensor[wanted.node] = at(slot);
    return {};
}

Result<void> PlacedArrays::take(const ProgramStep& step)
{
    for (const std::uint32_t slot : step.takes) {
        MEMSCAPE_CHECK(takeSlot(slot));
        const DeviceSlot& taken = m_placement.program.blocks[slot];
        if (step.kind == StepKind::Backward && taken.holds == DeviceSlot::Holds::Gradient)
            (taken.node == step.node ? weightGradient : deviceGradient)[taken.node] = at(slot);
    }
    return {};
}

void PlacedArrays::give(const ProgramStep& step)
{
    for (const std::uint32_t slot : step.gives)
        m_pool.give(m_slotAt[slot]);
}

Result<void> PlacedArrays::reset()
{
    m_highWater = std::max(m_highWater, m_pool.highWater());
    m_pool = CountingPool(m_room);
    for (auto* all : {&deviceTensor, &deviceGradient, &weightGradient})
        all->assign(host.size(), nullptr);
    for (const std::uint32_t slot : m_placement.program.resident) {
        MEMSCAPE_CHECK(takeSlot(slot));
        const DeviceSlot& held = m_placement.program.blocks[slot];
        if (held.holds == DeviceSlot::Holds::Tensor)
            MEMSCAPE_CHECK(m_machine.copyNow(
                {at(slot), host[held.node].tensor.get(), m_asked.graph.nodes[held.node].outputBytes, Lane::Up}));
    }
    return {};
}

PlacedCopy PlacedArrays::copyOf(const ProgramStep& step) const
{
    const OnHost& mine = host[step.node];
    PlacedCopy copy{nullptr, nullptr, step.bytes, step.lane};
    switch (step.kind) {
    case StepKind::CopyWeights:
        copy.from = mine.weights.get();
        copy.to = at(step.takes.front());
        break;
    case StepKind::CopyGradient:
        copy.from = weightGradient[step.node];
        copy.to = mine.gradients.get();
        break;
    case StepKind::CopyUpdated:
        copy.from = mine.weights.get();
        copy.to = deviceWeights[step.node];
        break;
    default: {
        const GraphNode& node = m_asked.graph.nodes[step.node];
        // `.cpu()` itself, not what a later operator needs of its result elsewhere.
        const bool isNode = node.isCopy() && (node.kind == NodeKind::ToDevice) == (step.lane == Lane::Up);
        const std::uint32_t source = isNode ? m_placement.program.sameAs[node.inputs.front()] : step.node;
        copy.from = input(step.lane == Lane::Up ? Place::Host : Place::Device, source);
        copy.to = step.lane == Lane::Up ? static_cast<void*>(at(step.takes.front())) : mine.tensor.get();
    }
    }
    return copy;
}

const float* PlacedArrays::input(Place place, std::uint32_t node) const
{
    const std::uint32_t same = m_placement.program.sameAs[node];
    return place == Place::Device ? deviceTensor[same] : numbers(host[same].tensor);
}

double PlacedArrays::highWater() const
{
    return double(std::max(m_highWater, m_pool.highWater()));
}

} // namespace memscape
