// SPDX-License-Identifier: Apache-2.0
// How long the ranks of a pipeline run and wait: every pass, in the order of its rank
// (core/training/pipeline_schedule.h), begins when the rank is free and what it needs has arrived: from the stage
// before, in backward from the stage behind. With p ranks alike, m micro-batches and v chunks that is m (f + b) + (p −
// 1) (f + b) / v, f and b those of a rank's whole part: the bubble is (p − 1) / (m v) of the work (Narayanan et al.
// 2021, section 2.2).
//
// A step of many micro-batches repeats itself: the first are run pass by pass, the others take what one of them takes.
// Left out: that sending slows a rank down; a link that several stages share.
#pragma once

#include "core/training/pipeline_schedule.h"

namespace memscape {

/// What a rank runs of one micro-batch, by chunk, s.
struct RankPasses
{
    std::vector<double> forward, backward;
};

/// From the first forward to the last backward of any rank, s. `transfer`: s from a stage to the next.
double scheduleSeconds(const Plan& plan, const std::vector<RankPasses>& ranks, double transfer);

/// (p − 1) / (m v): the share of its work that a rank waits when all are alike. 0 without a pipeline.
double idealBubble(const Plan& plan);

} // namespace memscape
