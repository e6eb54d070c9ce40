// SPDX-License-Identifier: Apache-2.0
#include "kernels/programs/placement/placed_run.h"

namespace memscape {

PlacedRun::PlacedRun(PlacedMachine& machine, const PlacementCase& asked, const Placement& placement)
    : m_machine(machine)
    , m_asked(asked)
    , m_placement(placement)
    , m_graph(asked.graph)
    , m_program(placement.program)
    , m_arrays(machine, asked, placement)
{ }

Result<void> PlacedRun::backward(const ProgramStep& step)
{
    const std::uint32_t i = step.node;
    float*& dy = m_arrays.deviceGradient[i];
    if (!dy) { // the last node: the loss comes first
        dy = m_arrays.deviceTensor[i];
        MEMSCAPE_CHECK(m_machine.lossGradient(dy, floatsOf(m_graph.nodes[i].outputBytes)));
    }
    return m_machine.backward(m_graph.nodes[i],
                              {m_arrays.deviceTensor[i - 1], m_arrays.deviceWeights[i], dy,
                               i > 1 ? m_arrays.deviceGradient[i - 1] : nullptr, m_arrays.weightGradient[i]});
}

Result<void> PlacedRun::compute(const ProgramStep& step)
{
    const GraphNode& node = m_graph.nodes[step.node];
    const PlacedArrays::OnHost& host = m_arrays.host[step.node];
    switch (step.kind) {
    case StepKind::Compute: {
        const Place place = step.lane == Lane::Device ? Place::Device : Place::Host;
        const bool isOnDevice = place == Place::Device;
        const float* const weights =
            isOnDevice ? m_arrays.deviceWeights[step.node] : PlacedArrays::numbers(host.weights);
        return m_machine.forward(place, node, m_arrays.input(place, node.inputs[0]),
                                 node.inputs.size() > 1 ? m_arrays.input(place, node.inputs[1]) : weights,
                                 isOnDevice ? m_arrays.deviceTensor[step.node] : PlacedArrays::numbers(host.tensor));
    }
    case StepKind::Backward: return backward(step);
    case StepKind::Update:
        return m_machine.update({PlacedArrays::numbers(host.weights), PlacedArrays::numbers(host.moments),
                                 PlacedArrays::numbers(host.variances), PlacedArrays::numbers(host.gradients),
                                 floatsOf(node.weightBytes), m_updates + 1});
    default: return {};
    }
}

Result<void> PlacedRun::work(std::uint32_t index)
{
    const ProgramStep& step = m_program.steps[index];
    if (step.isCopy())
        return m_machine.copy(index, m_arrays.copyOf(step));
    MEMSCAPE_CHECK(m_machine.begin(index));
    MEMSCAPE_CHECK(compute(step));
    return m_machine.end(index);
}

Result<void> PlacedRun::issue(StepSums* sums)
{
    for (std::uint32_t i = 0; i < m_program.steps.size(); ++i) {
        const ProgramStep& step = m_program.steps[i];
        MEMSCAPE_CHECK(m_machine.checkStopped());
        MEMSCAPE_CHECK(m_arrays.take(step));
        if (!sums) {
            MEMSCAPE_CHECK(work(i));
        } else {
            MEMSCAPE_TRY(seconds, m_machine.timed(step.lane, [&] { return work(i); }));
            if (step.isCopy()) {
                (step.lane == Lane::Up ? sums->up : sums->down) += seconds;
                sums->copied += double(step.bytes);
            } else {
                sums->compute += seconds;
                sums->host += step.lane == Lane::Host ? seconds : 0;
                sums->update += step.kind == StepKind::Update ? seconds : 0;
            }
        }
        m_arrays.give(step);
    }
    return {};
}

Result<double> PlacedRun::sideBySide()
{
    MEMSCAPE_CHECK(m_arrays.reset());
    MEMSCAPE_TRY(seconds, m_machine.run(m_program, false, [&] { return issue(nullptr); }));
    ++m_updates;
    return seconds;
}

Result<StepSums> PlacedRun::inTurn()
{
    MEMSCAPE_CHECK(m_arrays.reset());
    StepSums sums;
    MEMSCAPE_CHECK(m_machine.run(m_program, true, [&] { return issue(&sums); }));
    ++m_updates;
    return sums;
}

} // namespace memscape
