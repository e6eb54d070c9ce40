// SPDX-License-Identifier: Apache-2.0
// Which bytes of a training step the caches of a processor, or the L2 of a GPU, still hold. The distance of a use is
// what all operators have touched since the tensor was last touched (reuse distance: Mattson et al. 1970); a tensor
// whose distance and size are within the last cache is near, any other comes from memory:
//
//     forward    operands by their distance; results are new memory, which leaves the cache again
//     backward   saved tensors and operands by their distance, the gradient of the result by that of its own; gradients
//                of parameters are kept for the update, and go to memory
//
// A step that the caches hold as a whole has nothing far. Left out: sets, prefetching, what other programs evict,
// memory that is freed and given out again while it is near.
#pragma once

#include "core/network/graph.h"

#include <vector>

namespace memscape {

/// B of one operator.
struct FarBytes
{
    double forward = 0, backward = 0;
    double forwardAll = 0, backwardAll = 0; ///< near ones, too
};

/// Whether layers that are copies of others (Graph::copies) are walked, too; else what they touch is left out.
enum class Copies { Walked, Skipped };
/// Of every operator, in program order. `held`: B of the whole step; `cache`: B of the last one. The backward pass
/// only where the step trains.
std::vector<FarBytes> farBytes(const Graph& graph, double held, double cache, bool isTraining,
                               Copies copies = Copies::Walked);

} // namespace memscape
