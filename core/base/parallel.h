// SPDX-License-Identifier: Apache-2.0
// Independent parts of one computation on the cores of this machine. The answer is that of a loop: each part writes
// what is its own, and the order of the parts is not seen.
// Left out: dividing a part further, and a pool of threads kept for the next call (a part takes milliseconds, a
// thread some microseconds).
#pragma once

#include <cstddef>
#include <functional>

namespace memscape {

/// Calls work(0) … work(count − 1), each once and in about that order, on at most `threads` threads; the caller's is
/// one of them. Returns when all have ended. The caller's cancellation flag counts in every part. Where the system
/// gives no further thread, fewer do the work. Of the exceptions of the parts one is thrown again here; the parts
/// that have not begun by then are left out.
void inParallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work);

/// Cores of this machine, at least one.
std::size_t coreCount();

} // namespace memscape
