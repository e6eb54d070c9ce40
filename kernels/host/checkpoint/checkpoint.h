// SPDX-License-Identifier: Apache-2.0
// `checkpoint` on the host: see kernels/programs/checkpoint/chain_run.h for what is done.
#pragma once

#include "kernels/host/common/product.h"
#include "kernels/host/session.h"
#include "kernels/programs/checkpoint/chain_run.h"

namespace memscape::host {

/// The product that is fastest here: our widest or the library's, each tried for some milliseconds
/// (a library that is older than the processor runs its kernels for an older one).
struct ProductChoice
{
    ProductKernel kernel;
    Json tried; ///< FLOP/s of one thread by name
};
ProductChoice fastestProduct(HostSession& session);

/// A schedule of the MLP chain, checked, profiled and timed. Errors: those of runChain().
Result<ChainRun> runChainOnHost(HostSession& session, const ChainTask& task);

/// The experiment at its parameters, or over their sweep.
Result<MeasuredRun> measureCheckpoint(HostSession& session, const Experiment& experiment, const Parameters& parameters);

} // namespace memscape::host
