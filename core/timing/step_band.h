// SPDX-License-Identifier: Apache-2.0
// How far a step's predicted time may be off: each part between a low and a high multiple, which depend on where its
// rate comes from, and added up as they are, since what makes one part slow (clocks, an old library) makes the others
// slow, too.
//
//     products        calibrated 0.97 … 1.05, published for this device 0.93 … 1.2, of a like device 0.9 … 1.3,
//                     a common share 0.85 … 1.4: libraries of several years, clocks in a long run, other shapes
//     attention       0.55 … 1.2: kernels of Hopper's own are up to twice as fast; elsewhere 0.9 … 1.2
//     passes          measured here 0.97 … 1.05, else 0.9 … 1.15: what a copy reaches, what L2 keeps
//     dispatch        0.5 … 2.5 of the host's part: its processor, hooks of the training program
//     collectives     0 … 0.3 of what is hidden: they take bandwidth and multiprocessors from the rest
//
// The multiples are judgements, not statistics: published measurements of one product on one device differ by that
// (756 and 792 TFLOP/s on an H100 in BF16: product_rates.h, stas00/ml-engineering), and the processors of servers by
// that in dispatch. Left out: another input's length, stragglers, data loading.
#pragma once

#include "core/timing/operator_time.h"

namespace memscape {

/// A part of the step's time and what it may be, s.
struct BandPart
{
    std::string what; ///< "matrix products"
    double low = 0, expected = 0, high = 0;
    std::string why; ///< what makes it wide
};

struct StepBand
{
    double low = 0, high = 0;    ///< s, around StepTime::total
    std::vector<BandPart> parts; ///< the widest first
};

StepBand stepBand(const StepTime& time, const Device& device, const Plan& plan);

} // namespace memscape
