// SPDX-License-Identifier: Apache-2.0
// `placement` as timed samples (sampled_points.h), whatever machine runs the program that the prediction made:
//
//     time           all of it, side by side
//     compute_time,  the steps one by one
//     transfer_time
//     peak           the pool's high water, over all runs
// Before the first sample the result is compared, bit for bit, with the same operators under no limit.
//
// Left out: models, whose layers are predicted only; half precision; a disk.
#pragma once

#include "core/experiments/placement/placement.h"
#include "kernels/measure/clock.h"
#include "kernels/measure/sampled_points.h"
#include "kernels/measure/stopping.h"
#include "kernels/programs/placement/placed_run.h"

#include <map>
#include <memory>
#include <string>

namespace memscape {

class PlacementMeasurement : public SampledMeasurement
{
public:
    /// Both must outlive it.
    PlacementMeasurement(const Device& device, const Clock& clock)
        : m_device(device)
        , m_clock(clock)
    { }

    Result<SampleSets> visit(const Parameters& point, int pass) override;
    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override;

protected:
    virtual Result<std::unique_ptr<PlacedMachine>> machineFor(const PlacementCase& asked, const Parameters& point) = 0;
    /// Of one of the two loops at a point.
    virtual StoppingOptions loopOptions() const = 0;
    /// What a rule accepted, each divided by `per`.
    virtual std::vector<double> samplesOf(const StoppingRule& rule, double per);
    const std::string& checked() const { return m_checked; } ///< what the last check said

private:
    struct Ran
    {
        double peak = 0; ///< B
        StepSums last;
    };

    const Device& m_device;
    const Clock& m_clock;
    std::string m_checked;
    std::map<std::string, Ran> m_ran; ///< by the point's parameters
};

} // namespace memscape
