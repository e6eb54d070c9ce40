// SPDX-License-Identifier: Apache-2.0
// Blocks summed by what they have in common: the flame tree (by stack) and the table (by module, operator, line,
// category, step). Which blocks: those alive at a moment, or those allocated in a range.
#pragma once

#include "core/snapshot/categories.h"

namespace memscape {

enum class SnapshotGrouping : std::uint8_t { Module, Operator, Line, Category, Stack, Phase, Step };
std::string_view groupingText(SnapshotGrouping grouping); ///< "module", "operator", …

struct SnapshotGroup
{
    std::string label; ///< "transformer.h.*.mlp", "aten::mm", "train.py:44 forward"; "(unknown)" where nothing says
    std::int64_t bytes = 0; ///< of the blocks
    std::size_t blocks = 0;
    std::int64_t largest = 0;
    LifetimeId example = noLifetime; ///< the largest
};

/// A node of the flame tree: the sum of all stacks that go through it, outermost frame at the root.
struct FlameNode
{
    FrameId frame = ~0u; ///< ~0: the root, or "no stack"
    std::uint32_t parent = 0;
    std::int64_t bytes = 0; ///< of all below, its own included
    std::int64_t own = 0;   ///< of stacks that end here
    std::size_t blocks = 0;
    std::vector<std::uint32_t> children; ///< largest first
};

/// Blocks allocated by the events [first, last).
std::vector<LifetimeId> allocatedIn(const Lifetimes& lifetimes, std::size_t first, std::size_t last);

/// Largest first, then by label.
std::vector<SnapshotGroup> groupLifetimes(const Snapshot& snapshot, const Lifetimes& lifetimes,
                                          const SnapshotSteps& steps, const SnapshotCategories& categories,
                                          std::span<const LifetimeId> blocks, SnapshotGrouping grouping);

/// [0] is the root. `keepInternals` false leaves out frames of the interpreter and of PyTorch's C++ (no file, names of
/// CPython and c10/at/torch functions but for the operators), which are most of a recorded stack.
std::vector<FlameNode> flameTree(const Snapshot& snapshot, const Lifetimes& lifetimes,
                                 std::span<const LifetimeId> blocks, bool keepInternals = false);

} // namespace memscape
