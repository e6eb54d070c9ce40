// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/placement/product_pace.h"

#include "kernels/host/checkpoint/gelu.h"
#include "kernels/host/link_prober.h"

#include <algorithm>

#include <fmt/format.h>

namespace memscape::host {

namespace {

constexpr double mostWeights = 64 << 20; ///< B
constexpr double takenAtOnce = 0.05;     ///< s

/// The one with the most operations that has weights of its own; null where there is none.
const GraphNode* largestProduct(const OperatorGraph& graph)
{
    const GraphNode* largest = nullptr;
    for (const GraphNode& node : graph.nodes) {
        if (node.kind == NodeKind::Matmul && node.weightBytes > 0 && (!largest || node.flops() > largest->flops()))
            largest = &node;
    }
    return largest;
}

} // namespace

ProductPace::ProductPace(HostSession& session, const ProductKernel& product)
    : m_session(session)
    , m_operators(product, [&session] { return session.team().stopping(); })
{ }

Result<std::unique_ptr<ProductPace>> ProductPace::prepare(HostSession& session, const ProductKernel& product,
                                                          const PlacementCase& asked, const StepSeconds& predicted)
{
    std::unique_ptr<ProductPace> pace(new ProductPace(session, product));
    const GraphNode* const node = largestProduct(asked.graph);
    if (!node)
        return pace;
    const auto weight = double(node->weightBytes);
    const double all = std::min(double(asked.graph.weightBytes()), std::max(weight, mostWeights));
    pace->m_weights = std::max<std::size_t>(1, std::size_t(all / weight));
    const std::size_t input = std::size_t(node->rows * node->inner) * sizeof(float);
    MEMSCAPE_CHECK(session.checkFits(double(input) + double(node->outputBytes) + weight * double(pace->m_weights)));
    const auto take = [&](std::size_t bytes, Buffer& buffer) -> Result<void> {
        MEMSCAPE_SET(buffer, allocate(bytes, Pages::Huge, session.memory()));
        uniformRow(buffer.as<float>(), bytes, 0, bytes / sizeof(float), 0.01F);
        return {};
    };
    MEMSCAPE_CHECK(take(input, pace->m_input));
    MEMSCAPE_CHECK(take(std::size_t(node->weightBytes) * pace->m_weights, pace->m_weight));
    MEMSCAPE_CHECK(take(std::size_t(node->outputBytes), pace->m_output));
    pace->m_node = *node;
    pace->m_samples = {"products",
                       fmt::format("products of {} × {} × {}", node->rows, node->columns, node->inner),
                       predicted.compute(*node, Way::Resident),
                       {}};
    return pace;
}

Result<void> ProductPace::take()
{
    StoppingRule rule(probeOptions(takenAtOnce), m_session.clock());
    while (m_weights > 0 && !rule.finished()) {
        const auto* const weight = m_weight.as<float>() + m_next++ % m_weights * (m_node.weightBytes / sizeof(float));
        rule.add(m_session.team().run(
            [&](int) { m_operators.forward(m_node, m_input.as<float>(), weight, m_output.as<float>()); }, 1));
        MEMSCAPE_CHECK(m_session.checkStopped());
    }
    m_samples.seconds.insert(m_samples.seconds.end(), rule.samples().begin(), rule.samples().end());
    return {};
}

} // namespace memscape::host
