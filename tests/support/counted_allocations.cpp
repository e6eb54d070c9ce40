// SPDX-License-Identifier: Apache-2.0
#include "tests/support/counted_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

/// Allocations of this thread until one is refused; negative: none is.
thread_local long allowed = -1;
std::atomic<std::size_t> count = 0, asked = 0;

void* allocated(std::size_t bytes)
{
    count.fetch_add(1, std::memory_order_relaxed);
    asked.fetch_add(bytes, std::memory_order_relaxed);
    if (allowed == 0) {
        allowed = -1; // one alone: what cleans up behind it may have memory again
        if (const std::new_handler refuses = std::get_new_handler())
            refuses(); // throws
        throw std::bad_alloc();
    }
    if (allowed > 0)
        --allowed;
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes))
        return memory;
    throw std::bad_alloc();
}

} // namespace

namespace memscape::test {

Allocations allocationsSoFar()
{
    return {count.load(std::memory_order_relaxed), asked.load(std::memory_order_relaxed)};
}

void refuseAllocationAfter(long more)
{
    allowed = more;
}

} // namespace memscape::test

void* operator new(std::size_t bytes)
{
    return allocated(bytes);
}
void* operator new[](std::size_t bytes)
{
    return allocated(bytes);
}
// The library's own, for its temporary buffers, would be the sanitizer's.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept
{
    try {
        return allocated(bytes);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* memory, const std::nothrow_t&) noexcept
{
    std::free(memory);
}
void operator delete(void* memory) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory) noexcept
{
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept
{
    std::free(memory);
}
