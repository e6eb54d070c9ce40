// SPDX-License-Identifier: Apache-2.0
// What is done with memory: the operations of STREAM (McCalpin 1995), and reads alone. A copy is b = a, a triad
// a = b + s c.
#pragma once

#include <string_view>

namespace memscape {

enum class Operation { Read, Write, Copy, Triad };

/// Arrays that take part.
constexpr int arraysOf(Operation operation)
{
    return operation == Operation::Triad ? 3 : operation == Operation::Copy ? 2 : 1;
}

std::string_view operationText(Operation operation); ///< "read", "write", "copy", "triad"
Operation operationOf(std::string_view text);        ///< the same backwards; Read for anything else

} // namespace memscape
