// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancellation.h"

#include <utility>

namespace memscape {

namespace {

thread_local const std::atomic<bool>* innermost = nullptr;

} // namespace

CancelScope::CancelScope(const std::atomic<bool>& flag)
    : m_outer(std::exchange(innermost, &flag))
{ }

CancelScope::~CancelScope()
{
    innermost = m_outer;
}

const std::atomic<bool>* CancelScope::current()
{
    return innermost;
}

bool isCancelled()
{
    return innermost != nullptr && innermost->load(std::memory_order_relaxed);
}

Result<void> checkWanted()
{
    if (isCancelled())
        return fail("predict.cancelled", "the calculation was stopped");
    return {};
}

} // namespace memscape
