// SPDX-License-Identifier: Apache-2.0
// Where to place operators so that a run is short and its peak stays within a limit.
//
//     layers    as accelerate's device map: layers stay on the device from the first on, as long as the largest part of
//               the rest, which comes up when it is due, has room beside them
//     cheapest  of a chain without prefetching the shortest of all 3^n placements, by dynamic programming over
//               (operator, where its result is): labels (time, resident bytes, largest working set) of which none is
//               better than another in all three. With prefetching, and of other graphs, the best of the placements
//               that have names, changed an operator or a run of neighbours at a time as long as that helps: a
//               heuristic, which says so
//
// Left out: placements that change during a run, weights that leave again while they are still of use.
#pragma once

#include "core/placement/placed_program.h"

#include <cstdint>
#include <vector>

namespace memscape {

struct Placement
{
    std::vector<Way> ways;
    int prefetch = 0;
    PlacedProgram program;
    double seconds = 0;
    std::int64_t peak = 0;
    bool isExact = true;      ///< no placement that was looked for is better
    std::size_t examined = 1; ///< placements or labels that were looked at
};

/// A machine on which placements are compared.
struct PlacementMachine
{
    const StepSeconds& seconds;
    LaneSharing sharing = LaneSharing::Apart;
};

/// The program of these ways, its time and peak.
Placement placementOf(const OperatorGraph& graph, std::vector<Way> ways, int prefetch, const PlacementMachine& machine);

/// An operator runs where its first input is, unless it is pinned; its weights are there.
std::vector<Way> implicitWays(const OperatorGraph& graph);
/// Everything that is not pinned there.
std::vector<Way> uniformWays(const OperatorGraph& graph, Place place);

/// Errors: placement.limit, naming the node that needs most and what, where even one layer at a time is too much.
Result<Placement> layersPlacement(const OperatorGraph& graph, std::int64_t limit, int prefetch,
                                  const PlacementMachine& machine);
/// The least limit that layersPlacement() takes, B.
std::int64_t leastLayersLimit(const OperatorGraph& graph, int prefetch, const PlacementMachine& machine);
/// Errors: placement.limit where pinned operators alone need more.
Result<Placement> cheapestPlacement(const OperatorGraph& graph, std::int64_t limit, int prefetch,
                                    const PlacementMachine& machine);

} // namespace memscape
