// SPDX-License-Identifier: Apache-2.0
// The peak of a trace: how many bytes, when, and the tensors alive at it.
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

/// "transformer.h.3.mlp" -> "transformer.h.*.mlp": components that are numbers become a star.
std::string moduleKind(std::string_view path);

} // namespace memscape
