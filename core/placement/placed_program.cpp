// SPDX-License-Identifier: Apache-2.0
#include "core/placement/placed_program.h"

#include "core/checkpoint/mlp_chain.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>

namespace memscape {

namespace {

constexpr std::uint32_t noStep = UINT32_MAX;

/// Steps and slots as they are added.
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

class TrainingWriter
{
public:
    TrainingWriter(const OperatorGraph& graph, const OffloadedTraining& how, const StepSeconds& seconds)
        : m_graph(graph)
        , m_how(how)
        , m_seconds(seconds)
        , m_made(graph.nodes.size(), 0)
    { }

    PlacedProgram write()
    {
        const auto count = std::uint32_t(m_graph.nodes.size());
        for (std::uint32_t i = 1; i < count; ++i) {
            if (m_graph.nodes[i].weightBytes > 0 && !m_how.streamsWeights)
                m_writer.program.resident.push_back(
                    m_writer.slot(i, m_graph.nodes[i].weightBytes, DeviceSlot::Holds::Weights));
        }
        m_made[0] = m_writer.slot(0, m_graph.nodes[0].outputBytes, DeviceSlot::Holds::Tensor);
        m_writer.program.resident.push_back(m_made[0]);
        std::vector<std::uint32_t> forward, backward;
        for (std::uint32_t i = 1; i < count; ++i)
            forward.push_back(i);
        backward.assign(forward.rbegin(), forward.rend());
        pass(forward, true);
        pass(backward, false);
        update();
        for (std::uint32_t i = 0; i < count; ++i)
            m_writer.program.sameAs.push_back(i);
        return std::move(m_writer.program);
    }

private:
    bool streams(std::uint32_t i) const { return m_how.streamsWeights && m_graph.nodes[i].weightBytes > 0; }
    std::size_t ahead() const { return m_how.overlaps ? std::size_t(std::max(0, m_how.prefetch)) : 0; }

    ProgramStep copyStep(StepKind kind, Lane lane, std::uint32_t of, std::int64_t bytes) const
    {
        ProgramStep step{kind, lane, of, bytes};
        step.seconds = m_seconds.copy(double(bytes), lane);
        step.waits = !m_how.overlaps;
        return step;
    }

    void pass(const std::vector<std::uint32_t>& order, bool isForward)
    {
        std::vector<std::uint32_t> streamed;
        for (const std::uint32_t i : order) {
            if (streams(i))
                streamed.push_back(i);
        }
        std::vector<std::uint32_t> slots(streamed.size()), steps(streamed.size());
        std::size_t issued = 0, next = 0;
        const auto issue = [&](std::size_t end) {
            for (; issued < std::min(end, streamed.size()); ++issued) {
                const std::uint32_t of = streamed[issued];
                const std::int64_t bytes = m_graph.nodes[of].weightBytes;
                slots[issued] = m_writer.slot(of, bytes, DeviceSlot::Holds::Weights);
                ProgramStep step = copyStep(StepKind::CopyWeights, Lane::Up, of, bytes);
                step.waits = step.waits || ahead() == 0;
                step.takes = {slots[issued]};
                steps[issued] = m_writer.add(std::move(step));
            }
        };
        issue(ahead());
        for (const std::uint32_t i : order) {
            ProgramStep step{isForward ? StepKind::Compute : StepKind::Backward, Lane::Device, i};
            if (streams(i)) {
                issue(next + 1 + ahead());
                step.after.push_back(steps[next]);
                step.gives.push_back(slots[next]);
                ++next;
            }
            isForward ? forward(std::move(step)) : backward(std::move(step));
        }
        if (!isForward)
            giveGradients(0);
    }

    void forward(ProgramStep step)
    {
        const GraphNode& node = m_graph.nodes[step.node];
        step.seconds = m_seconds.compute(node, streams(step.node) ? Way::Streamed : Way::Resident);
        m_made[step.node] = m_writer.slot(step.node, node.outputBytes, DeviceSlot::Holds::Tensor);
        step.takes.push_back(m_made[step.node]);
        work(step);
        m_writer.add(std::move(step));
    }

    void work(ProgramStep& step)
    {
        const std::int64_t bytes = m_graph.nodes[step.node].workBytes;
        if (bytes == 0)
            return;
        step.takes.push_back(m_writer.slot(step.node, bytes, DeviceSlot::Holds::Work));
        step.gives.push_back(step.takes.back());
    }

    /// The gradient of the output is written over the output, that of the input becomes a tensor of its own and then
    /// takes the place of the input.
    void backward(ProgramStep step)
    {
        const std::uint32_t i = step.node;
        const GraphNode& node = m_graph.nodes[i];
        step.seconds = m_seconds.backward(node);
        step.gives.push_back(m_made[i]);
        if (i > 1) {
            step.takes.push_back(m_writer.slot(i - 1, m_graph.nodes[i - 1].outputBytes, DeviceSlot::Holds::Gradient));
            step.gives.push_back(m_made[i - 1]);
            m_made[i - 1] = step.takes.back();
        }
        work(step);
        if (node.updatedBytes == 0) {
            m_writer.add(std::move(step));
            return;
        }
        giveGradients(1);
        const std::uint32_t gradient = m_writer.slot(i, node.updatedBytes, DeviceSlot::Holds::Gradient);
        step.takes.push_back(gradient);
        const std::uint32_t made = m_writer.add(std::move(step));
        ProgramStep down = copyStep(StepKind::CopyGradient, Lane::Down, i, node.updatedBytes);
        down.after = {made};
        if (down.waits)
            down.gives = {gradient};
        const std::uint32_t index = m_writer.add(std::move(down));
        m_arrived.push_back(index);
        if (m_how.overlaps)
            m_onTheirWay.push_back({index, gradient});
    }

    /// Waits until no more than `kept` gradients are on their way, and gives back the memory of the others.
    void giveGradients(std::size_t kept)
    {
        while (m_onTheirWay.size() > kept) {
            const auto [copy, slot] = m_onTheirWay.front();
            m_onTheirWay.erase(m_onTheirWay.begin());
            ProgramStep wait{StepKind::Wait, Lane::Device, m_writer.program.blocks[slot].node};
            wait.after = {copy};
            wait.gives = {slot};
            m_writer.add(std::move(wait));
        }
    }

    void update()
    {
        const std::uint32_t waits =
            m_arrived.empty() ? noStep : m_arrived.back(); // one lane: the others were before it
        for (std::uint32_t i = 1; i < m_graph.nodes.size(); ++i) {
            const GraphNode& node = m_graph.nodes[i];
            if (node.updatedBytes == 0)
                continue;
            ProgramStep step{StepKind::Update, Lane::Host, i};
            step.seconds = m_seconds.update(node);
            step.after = {waits};
            const auto state = std::int64_t(m_how.stateBytes * double(node.updatedBytes));
            if (state > 0) {
                ProgramStep reading = copyStep(StepKind::ReadState, Lane::Disk, i, state);
                reading.after = {waits};
                step.after.push_back(m_writer.add(std::move(reading)));
            }
            const std::uint32_t updated = m_writer.add(std::move(step));
            if (state > 0) {
                ProgramStep writing = copyStep(StepKind::WriteState, Lane::Disk, i, state);
                writing.after = {updated};
                m_writer.add(std::move(writing));
            }
            if (!m_how.streamsWeights) {
                ProgramStep up = copyStep(StepKind::CopyUpdated, Lane::Up, i, node.updatedBytes);
                up.after = {updated};
                m_writer.add(std::move(up));
            }
        }
    }

    const OperatorGraph& m_graph;
    const OffloadedTraining& m_how;
    const StepSeconds& m_seconds;
    ProgramWriter m_writer;
    std::vector<std::uint32_t> m_made; ///< slots of what each node made
    std::vector<std::uint32_t> m_arrived;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> m_onTheirWay; ///< copies of gradients and their slots
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

PlacedProgram trainingProgram(const OperatorGraph& graph, const OffloadedTraining& how, const StepSeconds& seconds)
{
    assert(graph.isChain());
    return TrainingWriter(graph, how, seconds).write();
}

} // namespace memscape
