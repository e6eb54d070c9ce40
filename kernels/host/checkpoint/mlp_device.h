// SPDX-License-Identifier: Apache-2.0
// The MLP chain on the session's pinned threads. Every thread owns a slab of columns: bias, product
// and gelu of a slab follow each other in one thread without a barrier, and the slab's bounds
// depend on the sizes and the number of threads alone, so the same inputs give the same bits. Slabs
// are cut into pieces of a tenth of a second or so, between which Stop is heard.
#pragma once

#include "kernels/host/common/product.h"
#include "kernels/host/session.h"
#include "kernels/programs/checkpoint/mlp_device.h"

namespace memscape::host {

/// Weights are filled from their seeds. `session` must outlive the device. Errors: run.memory with
/// what is needed and what there is, before anything is taken; run.cancelled.
Result<std::unique_ptr<MlpDevice>> makeMlpDevice(HostSession& session, const MlpShape& shape, std::int64_t arenaBytes,
                                                 const ProductKernel& product);

} // namespace memscape::host
