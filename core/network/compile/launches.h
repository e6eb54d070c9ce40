// SPDX-License-Identifier: Apache-2.0
// What of a compiled network runs as one, and in which order: operators as they are and, within a region, fused ones
// with the views between them. A fused kernel runs when something that is not fused needs it, or its region ends.
#pragma once

#include "core/network/compile/compiled_regions.h"

namespace memscape {

struct Launch
{
    std::vector<std::uint32_t> members; ///< operators of the recorded network, in program order
    std::uint32_t region = CompiledRegions::none;
    bool isFused = false;
};

/// Releases of names that live outside of regions are among them, those within a region behind its end.
std::vector<Launch> launches(const Graph& graph, const CompiledRegions& regions);

} // namespace memscape
