// SPDX-License-Identifier: Apache-2.0
// Which bytes of a training step the caches of a processor, or the L2 of a GPU, still hold. The distance of a use is
// what all operators have touched since the tensor was last touched (reuse distance: Mattson et al. 1970); a tensor
// whose distance and size are within the last cache is near, any other comes from memory. A cache that other programs
// share keeps nothing longer than its `retention`, however little this one touches:
//
//     forward    operands by their distance; results are new memory, which leaves the cache again
//     backward   saved tensors and operands by their distance, the gradient of the result by that of its own; gradients
//                of parameters are kept for the update, and go to memory
//
// A step that the caches hold as a whole, and for good, has nothing far. Left out: sets, prefetching, memory that is
// freed and given out again while it is near.
#pragma once

#include "core/network/graph.h"

#include <functional>
#include <limits>
#include <vector>

namespace memscape {

/// B of one operator.
struct FarBytes
{
    double forward = 0, backward = 0;
    double forwardAll = 0, backwardAll = 0; ///< near ones, too, each once
};

/// A cache that forgets.
struct ReuseCache
{
    double bytes = 0;                                           ///< of the last one
    double retention = std::numeric_limits<double>::infinity(); ///< s
    /// What an operator takes, forward or backward, s; asked where the retention is finite.
    std::function<double(std::size_t op, bool isBackward)> seconds = {};
    double perResult = 2; ///< times that new memory crosses: a processor reads it before it writes it, a GPU does not
};

/// Whether layers that are copies of others (Graph::copies) are walked, too; else what they touch is left out.
enum class Copies { Walked, Skipped };
/// Of every operator, in program order. `held`: B of the whole step. The backward pass only where the step trains.
std::vector<FarBytes> farBytes(const Graph& graph, double held, const ReuseCache& cache, bool isTraining,
                               Copies copies = Copies::Walked);

} // namespace memscape
