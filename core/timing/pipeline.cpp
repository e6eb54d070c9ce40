// SPDX-License-Identifier: Apache-2.0
#include "core/timing/pipeline.h"
#include "core/base/rounding.h"

#include <algorithm>

namespace memscape {

namespace {

/// The longest path that ends with chunk `steps` (from 0) in a lane: `whole` is the sum over all lanes, `slowest` the
/// slowest of all; `part` and `partSlowest` are those of the lanes up to the one where the path ends.
struct LongestPath
{
    double whole, slowest;
    std::uint64_t depth;

    double to(std::uint64_t steps, double part, double partSlowest) const
    {
        double longest = part + double(steps) * partSlowest;
        const std::uint64_t most = steps / depth;
        for (const std::uint64_t turns : {std::uint64_t(1), most}) {
            if (turns >= 1 && turns <= most)
                longest = std::max(longest, double(turns) * whole + part + double(steps - turns * depth) * slowest);
        }
        return longest;
    }
};

} // namespace

double pipelineSeconds(const std::vector<LaneTime>& lanes, std::uint64_t chunks, int depth)
{
    double whole = 0, slowest = 0, rest = 0;
    for (const LaneTime& lane : lanes) {
        whole += lane.chunk;
        slowest = std::max(slowest, lane.chunk);
        rest += lane.last;
    }
    if (chunks <= 1)
        return rest;
    const LongestPath path{whole, slowest, std::uint64_t(std::max(1, depth))};
    // The last chunk waits for its buffer, or in some lane for the chunk before it.
    double longest = chunks > path.depth ? path.to(chunks - 1 - path.depth, whole, slowest) + rest : rest;
    double part = 0, partSlowest = 0;
    for (const LaneTime& lane : lanes) {
        part += lane.chunk;
        partSlowest = std::max(partSlowest, lane.chunk);
        longest = std::max(longest, path.to(chunks - 2, part, partSlowest) + rest);
        rest -= lane.last;
    }
    return longest;
}

std::vector<LanePiece> pipelinePieces(const std::vector<LaneTime>& lanes, std::uint64_t chunks, int depth,
                                      std::size_t most)
{
    std::vector<LanePiece> pieces;
    if (lanes.empty() || chunks == 0)
        return pieces;
    const std::uint64_t each = std::max<std::uint64_t>(1, most / lanes.size()); // pieces of a lane
    const std::uint64_t joined = quotientUp(chunks, each);                      // chunks of a piece
    std::vector<double> left(std::size_t(std::max(1, depth)), 0.0);             // when each buffer is free
    std::vector<double> idle(lanes.size(), 0.0);                                // when each lane is
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
        double& buffer = left[std::size_t(chunk % left.size())];
        double at = buffer;
        for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
            const double begin = std::max(at, idle[lane]);
            at = idle[lane] = begin + (chunk + 1 == chunks ? lanes[lane].last : lanes[lane].chunk);
            if (chunk % joined == 0)
                pieces.push_back({lane, chunk, chunk, begin, at});
            else {
                LanePiece& piece = pieces[pieces.size() - lanes.size() + lane];
                piece.last = chunk;
                piece.end = at;
            }
        }
        buffer = at;
    }
    return pieces;
}

} // namespace memscape
