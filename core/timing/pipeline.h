// SPDX-License-Identifier: Apache-2.0
// Chunks that pass through lanes one after the other: copied in, worked on, copied out. A lane takes one chunk at a
// time, in order; chunk i waits for the buffer that chunk i − d has left, where d buffers are in flight.
//
// All chunks are alike but the last, which may be shorter. The time is the longest path through that graph. A path
// goes through the lanes from first to last m + 1 times, each time back to the first lane by a freed buffer (d chunks
// on), and takes its other steps from chunk to chunk in its slowest lane. With S the sum over the lanes, M the slowest
// and N chunks alike:
//     T = max over m of (m + 1) S + (N − 1 − m d) M,    m = 0 or as many as fit (it is linear in m)
// so one buffer gives N S, and enough of them S + (N − 1) M: the pipeline fills once, then the slowest lane rules.
//
// Left out: lanes that slow each other down, chunks out of order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memscape {

/// Seconds that one lane needs.
struct LaneTime
{
    double chunk = 0; ///< s of a chunk
    double last = 0;  ///< s of the last chunk, at most `chunk`
};

/// Seconds from the first start to the last end. `chunks` and `depth` are at least 1.
double pipelineSeconds(const std::vector<LaneTime>& lanes, std::uint64_t chunks, int depth);

/// What a lane does from `begin` to `end` (s): chunks `first` to `last`, one where they are few.
struct LanePiece
{
    std::size_t lane = 0;
    std::uint64_t first = 0, last = 0;
    double begin = 0, end = 0;
};

/// The same chunk by chunk, for a drawing: neighbours are joined so that there are at most `most` pieces.
std::vector<LanePiece> pipelinePieces(const std::vector<LaneTime>& lanes, std::uint64_t chunks, int depth,
                                      std::size_t most);

} // namespace memscape
