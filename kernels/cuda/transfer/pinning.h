// SPDX-License-Identifier: Apache-2.0
// What pinned memory costs before it moves anything: cudaHostAlloc of new pages, and cudaHostRegister of pages that are
// there, on the host's clock. What a copy saves over pageable memory (the model's rates) says after how many it has
// paid.
#pragma once

#include "kernels/cuda/session.h"

#include "core/base/json.h"
#include "core/experiments/transfer/transfer.h"

#include <string>

namespace memscape::cuda {

struct PinningCost
{
    std::uint64_t bytes = 0;
    double allocated = nan, registered = nan; ///< s, medians
};

/// At most 256 MiB are pinned. Errors: run.memory, those of CUDA.
Result<PinningCost> measurePinning(GpuSession& session, std::uint64_t bytes);
/// {"bytes", "allocated", "registered"}, s.
Json pinningToJson(const PinningCost& cost);
/// "pinning 16 MiB takes …: paid after 7 copies" in one sentence; `asked` is of pinned memory.
std::string pinningText(const PinningCost& cost, const Device& device, const TransferCase& asked);

} // namespace memscape::cuda
