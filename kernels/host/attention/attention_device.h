// SPDX-License-Identifier: Apache-2.0
// Attention on the session's pinned threads: tensors in pages of their own, everything else from a
// counting pool over an arena that is as large as the prediction says.
#pragma once

#include "kernels/host/attention/attention_work.h"
#include "kernels/programs/attention/attention_device.h"

namespace memscape::host {

/// `product` is for standard attention. `session` must outlive the device. Errors: run.memory with
/// what is needed and what there is, before anything is taken; attention.unsupported.
Result<std::unique_ptr<AttentionDevice>> makeAttentionDevice(HostSession& session, const AttentionTask& task,
                                                             const ProductKernel& product, Isa isa = widestIsa());

} // namespace memscape::host
