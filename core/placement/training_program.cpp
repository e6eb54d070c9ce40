// SPDX-License-Identifier: Apache-2.0
// A step of training a chain whose optimizer, and with `streamsWeights` its weights, live on the host.
#include "core/placement/program_writer.h"

#include <algorithm>
#include <cassert>

namespace memscape {

namespace {

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

PlacedProgram trainingProgram(const OperatorGraph& graph, const OffloadedTraining& how, const StepSeconds& seconds)
{
    assert(graph.isChain());
    return TrainingWriter(graph, how, seconds).write();
}

} // namespace memscape
