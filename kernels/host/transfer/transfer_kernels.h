// SPDX-License-Identifier: Apache-2.0
// The bytes that `transfer` moves and what is done with them. Float i of a source is in [0.5, 1), its low bits mixed
// from i, so that a byte in the wrong place is noticed; the work on a chunk is a chain of fused multiply-adds for each
// float, x ← x/2 + 1/4, which keeps numbers there and ends near 0.5.
#pragma once

#include "kernels/measure/check.h"

#include <cstddef>
#include <cstdint>

namespace memscape::host {

/// Two operations a round on four bytes: rounds of `work` FLOP per byte.
inline unsigned roundsOfWork(double work)
{
    return unsigned(2 * work);
}

/// Fills memory with bytes [offset, offset + bytes) of the source.
void fillSource(std::byte* to, std::size_t offset, std::size_t bytes);
/// Whether memory holds these bytes of the source.
bool holdsSource(const std::byte* at, std::size_t offset, std::size_t bytes);
/// Of bytes as they lie there, the last ones up to a word included; wraps around.
std::uint64_t byteSum(const std::byte* at, std::size_t bytes);

/// The sum of what the floats become; bytes behind the last whole float are not looked at.
using WorkFunction = float (*)(const std::byte* chunk, std::size_t bytes, unsigned rounds);
/// The widest that this processor runs.
WorkFunction workKernel();

/// Every width against a reference in double; the source against itself with one byte changed.
Check checkTransferKernels();

} // namespace memscape::host
