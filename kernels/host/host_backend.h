// SPDX-License-Identifier: Apache-2.0
// The pieces of the host backend that have a file of their own.
#pragma once

#include "core/timing/calibration.h"
#include "kernels/host/session.h"
#include "kernels/measure/backend.h"

namespace memscape::host {

/// About a minute of probes over this machine; see calibrate.cpp. Errors: run.memory, run.cancelled.
Result<HostProbes> probeHost(HostSession& session);

/// As makeHostBackend() (backend.h), by these instruments.
std::unique_ptr<Backend> makeHostBackend(Instruments instruments);

/// Every kernel of the host in every version against its reference.
std::vector<SelftestLine> selftestHost(RunSink& sink);

} // namespace memscape::host
