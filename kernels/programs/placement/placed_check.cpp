// SPDX-License-Identifier: Apache-2.0
// The reference of a placed run: every array is its own, the operators run in the order of the graph where the
// placement runs them, and nothing is given back, comes up in time or runs beside. Same kernels, so the same bits are
// expected.
#include "kernels/programs/placement/placed_run.h"

#include <array>
#include <cstring>

#include <fmt/format.h>

namespace memscape {

namespace {

constexpr Lane laneTo(Place place)
{
    return place == Place::Device ? Lane::Up : Lane::Down;
}

class UnlimitedRun
{
public:
    UnlimitedRun(PlacedMachine& machine, const OperatorGraph& graph, const Placement& placement)
        : m_machine(machine)
        , m_graph(graph)
        , m_placement(placement)
        , m_tensors(graph.nodes.size())
        , m_weights(graph.nodes.size())
    { }

    /// `weights`: on the host, as they are before the run.
    Result<void> forward(const std::vector<std::vector<float>>& weights)
    {
        for (std::uint32_t i = 0; i < m_graph.nodes.size(); ++i) {
            const GraphNode& node = m_graph.nodes[i];
            MEMSCAPE_CHECK(m_machine.checkStopped());
            const Place place = placeOf(i);
            MEMSCAPE_TRY(output, own(i, place, node.outputBytes));
            if (node.kind == NodeKind::Input) {
                std::vector<float> numbers(floatsOf(node.outputBytes));
                m_machine.fill(numbers.data(), numbers.size(), placedSeed(i), 1);
                MEMSCAPE_CHECK(put(place, output, numbers));
                continue;
            }
            MEMSCAPE_TRY(a, tensor(node.inputs[0], place));
            if (node.isCopy()) {
                MEMSCAPE_TRY(value, fetched(place, a, floatsOf(node.outputBytes)));
                MEMSCAPE_CHECK(put(place, output, value));
                continue;
            }
            const float* b = nullptr;
            if (node.inputs.size() > 1) {
                MEMSCAPE_SET(b, tensor(node.inputs[1], place));
            } else if (!weights[i].empty()) {
                MEMSCAPE_SET(m_weights[i], m_machine.take(place, node.weightBytes));
                MEMSCAPE_CHECK(put(place, m_weights[i].get(), weights[i]));
                b = PlacedArrays::numbers(m_weights[i]);
            }
            MEMSCAPE_CHECK(m_machine.forward(place, node, a, b, output));
        }
        return {};
    }

    /// Of a chain that ran forward on the device; by node.
    Result<std::vector<std::vector<float>>> gradients()
    {
        const auto last = std::uint32_t(m_graph.nodes.size()) - 1;
        std::vector<std::vector<float>> all(m_graph.nodes.size());
        MEMSCAPE_TRY(dy, tensor(last, Place::Device));
        MEMSCAPE_CHECK(m_machine.lossGradient(dy, floatsOf(m_graph.nodes[last].outputBytes)));
        PlacedMemory held; // what dy lies in
        for (std::uint32_t i = last; i > 0; --i) {
            MEMSCAPE_CHECK(m_machine.checkStopped());
            const GraphNode& node = m_graph.nodes[i];
            MEMSCAPE_TRY(x, tensor(i - 1, Place::Device));
            MEMSCAPE_TRY(dx, m_machine.take(Place::Device, m_graph.nodes[i - 1].outputBytes));
            PlacedMemory dw;
            if (node.weightBytes > 0)
                MEMSCAPE_SET(dw, m_machine.take(Place::Device, node.weightBytes));
            MEMSCAPE_CHECK(
                m_machine.backward(node,
                                   {x, PlacedArrays::numbers(m_weights[i]), dy,
                                    i > 1 ? PlacedArrays::numbers(dx) : nullptr, PlacedArrays::numbers(dw)}));
            if (dw)
                MEMSCAPE_SET(all[i], fetched(Place::Device, PlacedArrays::numbers(dw), floatsOf(node.weightBytes)));
            held = std::move(dx);
            dy = PlacedArrays::numbers(held);
        }
        return all;
    }

    Place placeOf(std::uint32_t node) const { return memscape::placeOf(m_graph.nodes[node], m_placement.ways[node]); }
    /// On the host.
    Result<std::vector<float>> result(std::uint32_t node)
    {
        MEMSCAPE_TRY(at, tensor(node, placeOf(node)));
        return fetched(placeOf(node), at, floatsOf(m_graph.nodes[node].outputBytes));
    }
    Result<std::vector<float>> fetched(Place place, const float* from, std::size_t count)
    {
        std::vector<float> numbers(count);
        const auto bytes = std::int64_t(count * sizeof(float));
        if (place == Place::Host)
            std::memcpy(numbers.data(), from, std::size_t(bytes));
        else
            MEMSCAPE_CHECK(m_machine.copyNow({numbers.data(), from, bytes, Lane::Down}));
        return numbers;
    }

private:
    Result<float*> own(std::uint32_t node, Place place, std::int64_t bytes)
    {
        MEMSCAPE_TRY(memory, m_machine.take(place, bytes));
        m_tensors[node][std::size_t(place)] = memory;
        return PlacedArrays::numbers(memory);
    }
    /// At a place; brought there when it is not.
    Result<float*> tensor(std::uint32_t node, Place place)
    {
        if (const PlacedMemory& there = m_tensors[node][std::size_t(place)])
            return PlacedArrays::numbers(there);
        const Place from = place == Place::Device ? Place::Host : Place::Device;
        const std::int64_t bytes = m_graph.nodes[node].outputBytes;
        MEMSCAPE_TRY(copy, own(node, place, bytes));
        MEMSCAPE_CHECK(m_machine.copyNow({copy, m_tensors[node][std::size_t(from)].get(), bytes, laneTo(place)}));
        return copy;
    }
    Result<void> put(Place place, void* to, const std::vector<float>& numbers)
    {
        const auto bytes = std::int64_t(numbers.size() * sizeof(float));
        if (place == Place::Device)
            return m_machine.copyNow({to, numbers.data(), bytes, Lane::Up});
        std::memcpy(to, numbers.data(), std::size_t(bytes));
        return {};
    }

    PlacedMachine& m_machine;
    const OperatorGraph& m_graph;
    const Placement& m_placement;
    std::vector<std::array<PlacedMemory, 2>> m_tensors; ///< by place
    std::vector<PlacedMemory> m_weights;
};

std::vector<float> numbersOf(const PlacedMemory& memory, std::int64_t bytes)
{
    if (!memory)
        return {};
    const float* const first = PlacedArrays::numbers(memory);
    return {first, first + floatsOf(bytes)};
}

} // namespace

Result<std::string> PlacedRun::check()
{
    const std::size_t count = m_graph.nodes.size();
    std::vector<std::vector<float>> weights(count), moments(count), variances(count);
    for (std::size_t i = 0; i < count; ++i) {
        const PlacedArrays::OnHost& mine = m_arrays.host[i];
        weights[i] = numbersOf(mine.weights, m_graph.nodes[i].weightBytes);
        moments[i] = numbersOf(mine.moments, m_graph.nodes[i].weightBytes);
        variances[i] = numbersOf(mine.variances, m_graph.nodes[i].weightBytes);
    }
    MEMSCAPE_CHECK(sideBySide());
    double bytes = 0;
    for (const GraphNode& node : m_graph.nodes)
        bytes += double(node.weightBytes + node.outputBytes) * (m_asked.trains() ? 2 : 1);
    MEMSCAPE_CHECK(m_machine.checkFits(bytes, bytes)); // on either side, as the placement says
    UnlimitedRun expected(m_machine, m_graph, m_placement);
    std::size_t compared = 0;
    std::string wrong;
    const auto compare = [&](const std::vector<float>& found, const std::vector<float>& other, std::size_t node) {
        compared += found.size();
        if (wrong.empty() && std::memcmp(found.data(), other.data(), other.size() * sizeof(float)) != 0)
            wrong = m_graph.nodes[node].name;
    };
    const auto everything = [&]() -> Result<void> {
        MEMSCAPE_CHECK(expected.forward(weights));
        if (!m_asked.trains())
            return {};
        MEMSCAPE_TRY(gradients, expected.gradients());
        for (std::size_t i = 0; i < count; ++i) {
            if (!weights[i].empty())
                MEMSCAPE_CHECK(m_machine.update({weights[i].data(), moments[i].data(), variances[i].data(),
                                                 gradients[i].data(), weights[i].size(), m_updates}));
        }
        return {};
    };
    MEMSCAPE_CHECK(m_machine.run({}, true, everything));
    if (!m_asked.trains()) { // the last result is still there
        const auto last = std::uint32_t(count - 1);
        const std::uint32_t same = m_program.sameAs[last];
        const Place place = expected.placeOf(same);
        MEMSCAPE_TRY(other, expected.result(last));
        MEMSCAPE_TRY(found, expected.fetched(place, m_arrays.input(place, same), other.size()));
        compare(found, other, last);
    }
    for (std::size_t i = 0; i < count && m_asked.trains(); ++i) {
        if (weights[i].empty())
            continue;
        compare(numbersOf(m_arrays.host[i].weights, m_graph.nodes[i].weightBytes), weights[i], i);
        if (!m_asked.training.streamsWeights) {
            MEMSCAPE_TRY(found, expected.fetched(Place::Device, m_arrays.deviceWeights[i], weights[i].size()));
            compare(found, weights[i], i);
        }
    }
    if (!wrong.empty())
        return fail("check.failed", fmt::format("{} is not what it is without a limit", wrong),
                    "this is a fault of the program; please report it");
    return fmt::format("{} numbers, the same bits as without a limit", compared);
}

} // namespace memscape
