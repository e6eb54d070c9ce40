// SPDX-License-Identifier: Apache-2.0
// The C++ allocations of a test program, counted, and refused when a test sets it. counted_allocations.cpp replaces
// operator new: it belongs to programs of a single test.
#pragma once

#include <cstddef>

namespace memscape::test {

struct Allocations
{
    std::size_t count = 0;
    std::size_t bytes = 0; ///< as they were asked for, those that were freed since included
};

/// Of all threads since the program began.
Allocations allocationsSoFar();

/// Refuses one allocation of this thread: the first after `allowed` more. Negative: none.
void refuseAllocationAfter(long allowed);

} // namespace memscape::test
