// SPDX-License-Identifier: Apache-2.0
// When to stop taking samples of one point. A point is done when it has enough samples and enough
// measured time, and then either
//   - its median is known well enough: relative IQR / √n below the target (0.5 %, or 2 % for kernels
//     under 50 µs, which never reach 0.5 % and once cost nvbench users 30-hour runs), or
//   - more samples would not help: the spread (relative IQR) at the last 64 decisions varied by less
//     than 5 % (a plateau): it is the machine's, not the lack of samples, or
//   - the wall clock has run out, or
//   - the clock stands still or runs backwards, so that waiting for it would take for ever.
// The answer always carries its reason; a point is never left without one.
//
// Left out: nothing is discarded here. Samples that a clock drop spoiled are graded, not hidden.
#pragma once

#include "kernels/measure/clock.h"
#include "kernels/measure/statistics.h"

#include <string>
#include <vector>

namespace memscape {

/// The defaults are for a point that is watched while it is measured.
struct StoppingOptions
{
    std::size_t minimumSamples = 10;
    double minimumTime = 0.1;   ///< s of samples, added up
    double wallLimit = 2;       ///< s since the rule was made
    double target = 0.005;      ///< of relative IQR / √n
    double shortTarget = 0.02;  ///< the same for kernels shorter than `shortSample`
    double shortSample = 50e-6; ///< s
    std::size_t plateauWindow = 64;
    double plateauSpread = 0.05;

    /// The budget of one of `passes` visits to the same point.
    StoppingOptions perPass(int passes) const;
};

enum class StopReason { Running, Precise, Plateau, WallLimit, NoClock };
std::string stopText(StopReason reason); ///< "the median is known to the target", …

class StoppingRule
{
public:
    /// The wall limit counts from here; `clock` must outlive the rule.
    StoppingRule(const StoppingOptions& options, const Clock& clock);

    /// One sample in seconds. What is no duration (not finite, zero, negative) counts for the wall
    /// limit only: nothing that ran took no time.
    void add(double seconds);
    /// Decides on the samples so far; once it is not Running it stays what it is.
    StopReason state();
    bool finished() { return state() != StopReason::Running; }

    const std::vector<double>& samples() const { return m_samples; }
    /// Relative IQR / √n at the last decision.
    double noise() const { return m_noise; }

private:
    bool onPlateau() const;
    double targetNoise(const Summary& summary) const;

    StoppingOptions m_options;
    const Clock* m_clock;
    double m_begin;
    double m_accumulated = 0;
    std::size_t m_timeless = 0; ///< samples of no time or less
    std::vector<double> m_samples;
    std::vector<double> m_spreads;
    std::size_t m_nextDecision;
    double m_noise = 0;
    StopReason m_state = StopReason::Running;
};

} // namespace memscape
