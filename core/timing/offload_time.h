// SPDX-License-Identifier: Apache-2.0
// What a step waits for when its optimizer runs on the host, in closed form over L layers alike
// (core/timing/pipeline.h; core/placement/placed_program.h has the same step by step over layers that differ):
//
//     optimizer    gradients down behind backward, then update and new weights up as a pipeline of L pieces
//     gradients    each layer's gradient goes down while the next one's backward runs, two buffers; then the same
//                  (ZeRO-Offload: Ren et al. 2021)
//     parameters   each layer's weights come up one ahead, for forward and for backward, too; the update's stay there
//                  (ZeRO-Infinity: Rajbhandari et al. 2021)
//
// The update is one pass over the host's memory at typicalHostBandwidth, which the ranks of a machine share. Left out:
// updates that begin before all gradients are there (delayed by a step), a disk, the norm of all gradients.
#pragma once

#include "core/training/plan.h"

namespace memscape {

/// B/s that the host of a GPU streams from and to memory, reads and writes together: two sockets of a server. A setting
/// of `placement`, whose default this is.
inline constexpr double typicalHostBandwidth = 100e9;

struct OffloadWork
{
    Offload offload = Offload::None;
    double layers = 1;
    double forward = 0, backward = 0; ///< s of a step, recomputation within backward
    double micro = 1;                 ///< micro-batches of the step
    double down = 0, up = 0;          ///< B of a step over the link
    double updateBytes = 0;           ///< that the update reads and writes on the host
};

struct OffloadTime
{
    double update = 0;  ///< s on the host
    double exposed = 0; ///< s of copies that neither passes nor the update hide
};
/// `link`: B/s, one direction.
OffloadTime offloadTime(const OffloadWork& work, double link, double hostBandwidth = typicalHostBandwidth);

} // namespace memscape
