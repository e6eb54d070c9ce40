// SPDX-License-Identifier: Apache-2.0
// `transfer` for its calibration; see transfer.cpp.
#pragma once

#include "core/experiments/transfer/transfer.h"
#include "kernels/host/link_prober.h"

#include <optional>
#include <vector>

namespace memscape::host {

/// The kinds whose α and β a calibration fits.
std::vector<TransferKind> calibratedTransfers();

/// Seconds of moving so many bytes in, in one piece. Errors: check.failed for a wrong byte, run.memory, run.cancelled,
/// run.skipped, run.failed.
Result<std::vector<double>> measureTransfer(HostSession& session, TransferKind kind, std::size_t bytes,
                                            const StoppingOptions& options);

/// How the link of a kind is probed; none where the machine has no such link.
std::optional<LinkPlan> transferPlan(HostSession& session, TransferKind kind);
/// How copies are probed that another core works on (besideLink); none with one core.
std::optional<LinkPlan> besidePlan(HostSession& session);

} // namespace memscape::host
