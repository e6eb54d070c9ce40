// SPDX-License-Identifier: Apache-2.0
// A chain of linear layers that the session's threads train: see kernels/programs/batch-size/batch_device.h. Steps too
// small to wake the other threads for run on one, unless they are timed.
#pragma once

#include "kernels/host/common/product.h"
#include "kernels/host/session.h"
#include "kernels/programs/batch-size/batch_device.h"

namespace memscape::host {

/// Makes devices that multiply with `product`; `session` must outlive them.
BatchDeviceFactory batchDevices(HostSession& session, const ProductKernel& product);

} // namespace memscape::host
