// SPDX-License-Identifier: Apache-2.0
// Whether what a thread computes is still wanted. The starter of a long computation on a thread puts a
// flag over it; loops that take long ask now and then, and end early when it is set. What they return
// then is of no use and the starter throws it away, so asking changes no answer.
//
// The flag belongs to the thread, not to the arguments: a prediction is a pure function of its
// parameters, and stays one.
#pragma once

#include "core/base/result.h"

#include <atomic>

namespace memscape {

/// The flag counts for this thread while the scope lives; scopes may stand inside each other.
class CancelScope
{
public:
    explicit CancelScope(const std::atomic<bool>& flag);
    ~CancelScope();
    CancelScope(const CancelScope&) = delete;
    CancelScope& operator=(const CancelScope&) = delete;

    /// The flag that counts for this thread, for a scope on another one; null without one.
    static const std::atomic<bool>* current();

private:
    const std::atomic<bool>* m_outer;
};

/// Whether the flag of this thread's innermost scope is set; false without one. A few nanoseconds.
bool isCancelled();

/// Error predict.cancelled when it is: for functions that answer with a Result.
Result<void> checkWanted();

} // namespace memscape
