// SPDX-License-Identifier: Apache-2.0
// How losses that take the last hidden states (N, H) and the head's matrix (V, H) cut them
// (core/network/operators_loss.cpp says what they are).
#pragma once

#include "core/network/graph.h"

#include <cstdint>

namespace memscape {

/// Liger Kernel's chunks of rows: no more logits at once than fit into the memory of the hidden states.
struct LigerChunks
{
    std::int64_t rows = 0; ///< of one, a power of two or all of them
    std::int64_t count = 0;
};
LigerChunks ligerChunks(std::int64_t rows, std::int64_t hidden, std::int64_t vocabulary);

/// The sizes of such an operator.
struct HeadShape
{
    std::int64_t rows = 0, hidden = 0, vocabulary = 0;
};
HeadShape headShape(const Graph& graph, const Operator& op);

} // namespace memscape
