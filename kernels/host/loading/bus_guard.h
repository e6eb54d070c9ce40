// SPDX-License-Identifier: Apache-2.0
// A mapped file that shrinks while it is read raises SIGBUS at the first page behind its new end, which would end the
// process without a word. Here the thread that touched it goes on where it began to read, and is told.
//
// Left out: SIGBUS of other causes outside a guard, which ends the process as before.
#pragma once

#include <csetjmp>
#include <csignal>
#include <mutex>

namespace memscape::host {

/// Where this thread goes on; null outside a guard.
inline thread_local sigjmp_buf* busReturn = nullptr;

inline void answerBusError(int)
{
    if (busReturn)
        siglongjmp(*busReturn, 1);
    std::signal(SIGBUS, SIG_DFL); // not ours: the same access ends the process
}

/// Runs `body`, which must not own anything; false where it touched a page that its file no longer has.
template <typename Body> bool survivesShrinking(Body&& body)
{
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_handler = answerBusError;
        sigemptyset(&action.sa_mask);
        ::sigaction(SIGBUS, &action, nullptr);
    });
    sigjmp_buf here;
    if (sigsetjmp(here, 1) != 0) {
        busReturn = nullptr;
        return false;
    }
    busReturn = &here;
    body();
    busReturn = nullptr;
    return true;
}

} // namespace memscape::host
