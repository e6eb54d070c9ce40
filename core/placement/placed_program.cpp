// SPDX-License-Identifier: Apache-2.0
#include "core/placement/program_writer.h"

#include <algorithm>
#include <array>
#include <optional>

namespace memscape {

namespace {

/// Where a tensor is, and which step made it so.
struct Copies
{
    std::array<std::uint32_t, 2> madeBy{noStep, noStep}; ///< by place
    std::array<bool, 2> isThere{false, false};
    std::optional<std::uint32_t> slot; ///< of the one on the device
};

class ForwardWriter
{
public:
    ForwardWriter(const OperatorGraph& graph, const std::vector<Way>& ways, int prefetch, const StepSeconds& seconds)
        : m_graph(graph)
        , m_ways(ways)
        , m_prefetch(std::size_t(std::max(0, prefetch)))
        , m_seconds(seconds)
        , m_copies(graph.nodes.size())
        , m_weights(graph.nodes.size())
        , m_weightsUp(graph.nodes.size(), noStep)
        , m_lastUse(graph.nodes.size(), 0)
    { }

    PlacedProgram write()
    {
        const auto count = std::uint32_t(m_graph.nodes.size());
        for (std::uint32_t i = 0; i < count; ++i) {
            const GraphNode& node = m_graph.nodes[i];
            const std::uint32_t from = node.inputs.empty() ? i : m_same[node.inputs.front()];
            const bool moves = node.isCopy() && placeOf(m_graph.nodes[from], m_ways[from]) != placeOf(node, m_ways[i]);
            m_same.push_back(node.isCopy() && !moves ? from : i);
            for (const std::uint32_t input : node.inputs)
                m_lastUse[m_same[input]] = i;
            if (m_ways[i] == Way::Streamed && m_graph.nodes[i].weightBytes > 0)
                m_streamed.push_back(i);
            else if (m_ways[i] == Way::Resident && m_graph.nodes[i].weightBytes > 0)
                m_writer.program.resident.push_back(
                    m_writer.slot(i, m_graph.nodes[i].weightBytes, DeviceSlot::Holds::Weights));
        }
        for (std::uint32_t i = 0; i < count; ++i) {
            if (m_graph.nodes[i].kind != NodeKind::Input)
                continue;
            const Place place = placeOf(m_graph.nodes[i], m_ways[i]);
            m_copies[i].isThere[std::size_t(place)] = true;
            if (place == Place::Device) {
                m_copies[i].slot = m_writer.slot(i, m_graph.nodes[i].outputBytes, DeviceSlot::Holds::Tensor);
                m_writer.program.resident.push_back(*m_copies[i].slot);
            }
        }
        issueWeights(m_prefetch);
        for (std::uint32_t i = 0; i < count; ++i) {
            if (m_graph.nodes[i].isCopy() && m_same[i] == i)
                copyNode(i);
            else if (m_graph.nodes[i].computes())
                computeNode(i);
        }
        m_writer.program.sameAs = m_same;
        return std::move(m_writer.program);
    }

private:
    /// Those of the first `end` streamed operators, as far as they are not on their way.
    void issueWeights(std::size_t end)
    {
        for (; m_issued < std::min(end, m_streamed.size()); ++m_issued) {
            const std::uint32_t of = m_streamed[m_issued];
            const std::int64_t bytes = m_graph.nodes[of].weightBytes;
            m_weights[of] = m_writer.slot(of, bytes, DeviceSlot::Holds::Weights);
            ProgramStep step{StepKind::CopyWeights, Lane::Up, of, bytes};
            step.seconds = m_seconds.copy(double(bytes), Lane::Up);
            step.waits = m_prefetch == 0;
            step.takes = {*m_weights[of]};
            m_weightsUp[of] = m_writer.add(std::move(step));
        }
    }

    /// Slots whose last reader on the device has run with operator `at`.
    std::vector<std::uint32_t> released(std::uint32_t at)
    {
        std::vector<std::uint32_t> slots;
        for (const std::uint32_t input : m_graph.nodes[at].inputs) {
            std::optional<std::uint32_t>& slot = m_copies[m_same[input]].slot;
            if (slot && m_lastUse[m_same[input]] == at) {
                slots.push_back(*slot);
                slot.reset();
            }
        }
        return slots;
    }

    /// The step behind which a tensor is at a place, copied there when it is not.
    std::uint32_t bring(std::uint32_t of, Place to)
    {
        const std::int64_t bytes = m_graph.nodes[of].outputBytes;
        Copies& copies = m_copies[of];
        if (copies.isThere[std::size_t(to)])
            return copies.madeBy[std::size_t(to)];
        const bool isUp = to == Place::Device;
        const Lane lane = isUp ? Lane::Up : Lane::Down;
        ProgramStep step{StepKind::CopyTensor, lane, of, bytes};
        step.seconds = m_seconds.copy(double(bytes), lane);
        step.waits = !isUp || m_prefetch == 0;
        step.after = {copies.madeBy[std::size_t(isUp ? Place::Host : Place::Device)]};
        if (isUp) {
            copies.slot = m_writer.slot(of, bytes, DeviceSlot::Holds::Tensor);
            step.takes = {*copies.slot};
        }
        const std::uint32_t index = m_writer.add(std::move(step));
        copies.isThere[std::size_t(to)] = true;
        copies.madeBy[std::size_t(to)] = index;
        return index;
    }

    void computeNode(std::uint32_t i)
    {
        const GraphNode& node = m_graph.nodes[i];
        const Place place = placeOf(node, m_ways[i]);
        const bool isOnDevice = place == Place::Device;
        ProgramStep step{StepKind::Compute, isOnDevice ? Lane::Device : Lane::Host, i};
        step.seconds = m_seconds.compute(node, m_ways[i]);
        for (const std::uint32_t input : node.inputs)
            step.after.push_back(bring(m_same[input], place));
        if (m_nextStreamed < m_streamed.size() && m_streamed[m_nextStreamed] == i) {
            issueWeights(++m_nextStreamed + m_prefetch);
            step.after.push_back(m_weightsUp[i]);
        }
        if (isOnDevice) {
            m_copies[i].slot = m_writer.slot(i, node.outputBytes, DeviceSlot::Holds::Tensor);
            step.takes.push_back(*m_copies[i].slot);
            if (node.workBytes > 0) {
                step.takes.push_back(m_writer.slot(i, node.workBytes, DeviceSlot::Holds::Work));
                step.gives.push_back(step.takes.back());
            }
        }
        for (const std::uint32_t slot : released(i))
            step.gives.push_back(slot);
        if (m_weights[i])
            step.gives.push_back(*m_weights[i]);
        m_copies[i].isThere[std::size_t(place)] = true;
        m_copies[i].madeBy[std::size_t(place)] = m_writer.add(std::move(step));
    }

    /// `.cpu()`, `.item()`, `.to(device)` of what is elsewhere: a tensor of its own.
    void copyNode(std::uint32_t i)
    {
        const GraphNode& node = m_graph.nodes[i];
        const Place to = placeOf(node, m_ways[i]), from = to == Place::Host ? Place::Device : Place::Host;
        ProgramStep step{StepKind::CopyTensor, to == Place::Host ? Lane::Down : Lane::Up, i, node.outputBytes, true};
        step.seconds = m_seconds.copy(double(node.outputBytes), step.lane);
        step.after = {m_copies[m_same[node.inputs.front()]].madeBy[std::size_t(from)]};
        if (to == Place::Device) {
            m_copies[i].slot = m_writer.slot(i, node.outputBytes, DeviceSlot::Holds::Tensor);
            step.takes = {*m_copies[i].slot};
        }
        step.gives = released(i);
        m_copies[i].isThere[std::size_t(to)] = true;
        m_copies[i].madeBy[std::size_t(to)] = m_writer.add(std::move(step));
    }

    const OperatorGraph& m_graph;
    const std::vector<Way>& m_ways;
    std::size_t m_prefetch;
    const StepSeconds& m_seconds;
    ProgramWriter m_writer;
    std::vector<Copies> m_copies;
    std::vector<std::optional<std::uint32_t>> m_weights; ///< slots of streamed ones
    std::vector<std::uint32_t> m_weightsUp;              ///< steps
    std::vector<std::uint32_t> m_lastUse, m_same;
    std::vector<std::uint32_t> m_streamed; ///< nodes
    std::size_t m_issued = 0, m_nextStreamed = 0;
};

} // namespace

Place placeOf(const GraphNode& node, Way way)
{
    if (node.kind == NodeKind::ToHost || node.kind == NodeKind::Item)
        return Place::Host;
    if (node.kind == NodeKind::ToDevice)
        return Place::Device;
    return way == Way::OnHost ? Place::Host : Place::Device;
}

std::vector<LaneSpan> PlacedProgram::spans(LaneSharing sharing) const
{
    std::vector<PlacedTask> tasks;
    tasks.reserve(steps.size());
    for (const ProgramStep& step : steps)
        tasks.push_back({step.lane, step.seconds, step.after});
    return laneSpans(tasks, sharing);
}

double PlacedProgram::copied() const
{
    double sum = 0;
    for (const ProgramStep& step : steps)
        sum += step.isCopy() && step.lane != Lane::Disk ? double(step.bytes) : 0;
    return sum;
}

ProgramPeak peakOf(const PlacedProgram& program)
{
    ProgramPeak peak;
    std::int64_t held = 0;
    for (const std::uint32_t slot : program.resident)
        held += program.blocks[slot].bytes;
    peak.bytes = held;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        for (const std::uint32_t slot : program.steps[i].takes)
            held += program.blocks[slot].bytes;
        if (held > peak.bytes)
            peak = {held, i};
        for (const std::uint32_t slot : program.steps[i].gives)
            held -= program.blocks[slot].bytes;
    }
    return peak;
}

PlacedProgram placedProgram(const OperatorGraph& graph, const std::vector<Way>& ways, int prefetch,
                            const StepSeconds& seconds)
{
    return ForwardWriter(graph, ways, prefetch, seconds).write();
}

} // namespace memscape
