// SPDX-License-Identifier: Apache-2.0
// The peak of a trace: how many bytes, when, and the tensors alive at it. And the other question about
// size: which event is the first that does not fit a capacity.
//
// These are tensor bytes as the program asked for them (PyTorch's "requested"). What the caching
// allocator adds, and what is outside it (context, NCCL), is in allocator.h.
#pragma once

#include "core/trace/trace.h"

#include <optional>

namespace memscape {

using CategoryBytes = std::array<std::int64_t, categoryCount>;

/// The state of memory after one event.
struct Moment
{
    std::size_t event = 0; ///< index of the event that made it
    std::int64_t bytes = 0;
    CategoryBytes categories{};
    Phase phase = Phase::Setup;
    std::uint16_t microBatch = 0;
};

/// The first moment with the most live bytes; nothing for an empty trace.
std::optional<Moment> peakOf(const Trace& trace);
/// The same within one phase; nothing when no event belongs to it.
std::optional<Moment> peakOf(const Trace& trace, Phase phase);

/// Blocks that are alive after event `moment`, in order of allocation; within a repetition those of its stored time.
std::vector<BlockId> liveAt(const Trace& trace, std::size_t moment);

enum class Grouping {
    Category,
    Name,      ///< "softmax", over all modules
    Module,    ///< "transformer.h.3.mlp"
    ModuleKind ///< modules whose paths differ in numbers only: "transformer.h.*.mlp"
};

/// "transformer.h.3.mlp" -> "transformer.h.*.mlp": components that are numbers become a star.
std::string moduleKind(std::string_view path);

struct LiveGroup
{
    std::string label;
    std::int64_t bytes = 0;
    std::size_t blocks = 0;
};

/// Blocks summed by what they have in common, largest first (then by label).
std::vector<LiveGroup> groupBlocks(const Trace& trace, const std::vector<BlockId>& blocks, Grouping grouping);

/// The allocation that a device of `capacity` bytes can't give, and what it held before.
struct Misfit
{
    std::size_t event = 0;
    std::int64_t wanted = 0; ///< bytes of the allocation
    std::int64_t held = 0;   ///< live bytes before it
};
std::optional<Misfit> firstMisfit(const Trace& trace, std::int64_t capacity);

} // namespace memscape
