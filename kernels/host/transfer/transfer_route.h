// SPDX-License-Identifier: Apache-2.0
// The ways of bytes within this machine, one behind the other: chunk by chunk into a buffer, or out of one. See
// copy_route.cpp and transfer_route.cpp.
#pragma once

#include "core/experiments/transfer/transfer.h"
#include "kernels/host/session.h"

#include <atomic>
#include <memory>

namespace memscape::host {

/// Moves chunks in one direction. Calls come from one thread at a time.
class TransferRoute
{
public:
    virtual ~TransferRoute() = default;
    /// The source's bytes [offset, offset + bytes) arrive in `buffer`. False when the run is stopped or the other end
    /// is lost.
    virtual bool bring(std::byte* buffer, std::size_t offset, std::size_t bytes) = 0;
    /// The bytes of `buffer`, chunk `index`, leave it. The same.
    virtual bool send(const std::byte* buffer, std::size_t index, std::size_t bytes) = 0;
    /// After send(): whether what arrived is what `buffer` holds.
    virtual bool hasArrived(const std::byte* buffer, std::size_t index, std::size_t bytes) = 0;
    /// What another thread has to run while chunks move; returns once `done` is set. Nothing where nothing has to.
    virtual void serve(const std::atomic<bool>& done) { static_cast<void>(done); }
};

/// Errors: run.memory, run.skipped where this machine has not got it, run.failed where no process can be started.
Result<std::unique_ptr<TransferRoute>> openTransferRoute(HostSession& session, const TransferCase& asked);

/// Bytes from one buffer to the next: whole pages, of 2 MiB for `huge`.
std::size_t bufferStride(const TransferCase& asked);

/// Turns of busy waiting before a thread yields: about 10 ms where both threads have a core of their own, as a yield on
/// a busy machine costs a slice of 4 ms; 40 µs where they share one.
inline constexpr unsigned ownCorePatience = 1u << 19, sharedCorePatience = 2000;
/// Waits a moment, and after `patience` turns lets others run; `turns` counts from 0.
void waitTurn(unsigned& turns, unsigned patience = ownCorePatience);

} // namespace memscape::host
