// SPDX-License-Identifier: Apache-2.0
// The operations of one training step (kernels/programs/batch-size/batch_device.h) run by all threads of the team
// together: each takes its part of every operation, and they wait for each other in between. A step is one dispatch, so
// that small steps are not all waking up.
#pragma once

#include "kernels/host/common/product.h"
#include "kernels/host/session.h"
#include "kernels/programs/batch-size/batch_device.h"

namespace memscape::host {

class BatchTeam
{
public:
    /// `session` must outlive it.
    BatchTeam(HostSession& session, ProductKernel product);

    /// Seconds inside the threads. `rate` is that of Update; `countsNorms` costs a pass over x and δ.
    double run(const BatchOperations& step, float rate, bool countsNorms, BatchSums& sums);
    /// The same on the calling thread, not timed: where waking the others takes longer than the step.
    void runAlone(const BatchOperations& step, float rate);
    const ProductKernel& product() const { return m_product; }

private:
    HostSession& m_session;
    ProductKernel m_product;
    std::vector<ProductScratch> m_scratch; ///< by thread, kept: taking it anew costs more than a small step
};

} // namespace memscape::host
