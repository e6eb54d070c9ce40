// SPDX-License-Identifier: Apache-2.0
// A placed program on a processor: the "device" is memory like any other, one core issues and computes, a second copies
// what is not waited for, in the order in which it was issued.
#pragma once

#include "kernels/host/common/product.h"
#include "kernels/host/session.h"
#include "kernels/programs/placement/placed_machine.h"

#include <memory>

namespace memscape::host {

/// `session` must outlive it.
std::unique_ptr<PlacedMachine> makePlacedMachine(HostSession& session, LaneSharing sharing, ProductKernel product);

} // namespace memscape::host
