// SPDX-License-Identifier: Apache-2.0
#include "core/timing/offload_time.h"

#include "core/timing/pipeline.h"

#include <algorithm>
#include <cmath>

namespace memscape {

namespace {

/// Seconds of lanes that take so long in all, in `pieces`, with `depth` buffers.
double piecewise(std::initializer_list<double> lanes, double pieces, int depth)
{
    std::vector<LaneTime> times;
    for (const double seconds : lanes)
        times.push_back({seconds / pieces, seconds / pieces});
    return pipelineSeconds(times, std::uint64_t(pieces), depth);
}

} // namespace

OffloadTime offloadTime(const OffloadWork& work, double link, double hostBandwidth)
{
    OffloadTime time;
    if (work.offload == Offload::None)
        return time;
    const double pieces = std::clamp(std::round(work.layers), 1.0, 1e6);
    const double micro = std::max(1.0, work.micro), forward = work.forward / micro, backward = work.backward / micro;
    const int all = int(pieces);
    time.update = work.updateBytes / hostBandwidth;
    const double down = work.down / link, up = work.up / link;
    switch (work.offload) {
    case Offload::None: break;
    case Offload::Optimizer: time.exposed = down + piecewise({time.update, up}, pieces, all) - time.update; break;
    case Offload::Gradients: // the same in every micro-batch
        time.exposed = micro * (piecewise({backward, down / micro}, pieces, 2) - backward)
            + piecewise({time.update, up}, pieces, all) - time.update;
        break;
    case Offload::Parameters: {
        const double pass = up / (2 * micro);
        time.exposed = micro
            * (piecewise({pass, forward}, pieces, 2) - forward + piecewise({pass, backward, down / micro}, pieces, 3)
               - backward);
        break;
    }
    }
    return time;
}

} // namespace memscape
