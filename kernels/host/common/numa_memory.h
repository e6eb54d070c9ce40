// SPDX-License-Identifier: Apache-2.0
// Pages on a chosen node of memory: mbind() before they are touched, move_pages() to see where they lie afterwards.
// Both are system calls of Linux, so libnuma is not needed.
//
// Left out: pages that the kernel moves by itself later (numa_balancing leaves bound pages where they are).
#pragma once

#include "core/device/numa.h"
#include "kernels/host/common/arena.h"

#include <vector>

namespace memscape::host {

/// The node whose memory is farthest from that processor. Errors: run.skipped where there is one node of memory.
Result<int> farNodeOf(const std::vector<NumaNode>& nodes, int processor);

/// The buffer's pages, none of which was touched yet, will come from that node. Errors: run.skipped where the system
/// refuses.
Result<void> bindToNode(const Buffer& buffer, int node);

/// Share of the buffer's pages that lie on that node; NaN where the system does not tell.
double shareOnNode(const Buffer& buffer, int node);

} // namespace memscape::host
