// SPDX-License-Identifier: Apache-2.0
// How fast products run during a run, beside what is predicted: the largest product of its graph, alone on one core,
// again and again with other weights, so that they come from as far as in the run. Probed in turn with the points
// (core/experiment/probed_links.h). Left out: a core beside it that copies.
#pragma once

#include "core/experiment/probed_links.h"
#include "core/experiments/placement/placement.h"
#include "kernels/host/placement/host_operators.h"
#include "kernels/host/session.h"

#include <memory>

namespace memscape::host {

class ProductPace
{
public:
    /// `asked` and `predicted` of the run's first point. Takes the memory of one product, and of as many weights as the
    /// graph has, at most 64 MiB of them. Errors: run.memory.
    static Result<std::unique_ptr<ProductPace>> prepare(HostSession& session, const ProductKernel& product,
                                                        const PlacementCase& asked, const StepSeconds& predicted);
    /// The next few products. Errors: run.cancelled.
    Result<void> take();
    const WorkSamples& samples() const { return m_samples; }

private:
    ProductPace(HostSession& session, const ProductKernel& product);

    HostSession& m_session;
    HostOperators m_operators;
    GraphNode m_node;
    std::size_t m_weights = 0, m_next = 0; ///< matrices, the one whose turn it is
    Buffer m_input, m_weight, m_output;
    WorkSamples m_samples;
};

} // namespace memscape::host
