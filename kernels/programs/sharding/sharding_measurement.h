// SPDX-License-Identifier: Apache-2.0
// `sharding` as timed samples (sampled_points.h), whatever machine the ranks are on: N ranks do the collectives of one
// training step with the model's own sizes, one after the other, in a ring.
//
//     communication_time  all of them; nothing is computed beside, so all of it is exposed
//     latency             of one step: all-reduces of one element a rank, several in a row, divided by their steps
//     sent, gathered      counted where pieces are taken, and where whole weights are put together
// Before the first sample every collective runs once and every element is compared; a wrong one fails the run.
//
// Left out: computing, offload, data and tensor parallelism at once, trees. Numbers grow from sample to sample: they
// are not filled again.
#pragma once

#include "kernels/measure/sampled_points.h"
#include "kernels/measure/stopping.h"
#include "kernels/programs/sharding/ring_plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace memscape {

/// N ranks that do a list of collectives.
class RankRing
{
public:
    virtual ~RankRing() = default;
    /// Every collective once, of numbers whose results are compared. Errors: check.failed, and those of run().
    virtual Result<void> check() = 0;
    /// Seconds of all collectives, `repeats` times, one after the other. Errors: run.cancelled, run.failed.
    virtual Result<double> run(std::size_t repeats) = 0;
    virtual std::uint64_t sentBytes() const = 0; ///< by one rank in check(), the most
    virtual std::uint64_t comparedElements() const = 0;
};

/// Into `rule`, runs of so many repeats (the answer) that none is shorter than a clock can tell. `bytes`: that one rank
/// sends.
Result<double> sampleRing(RankRing& ring, double bytes, StoppingRule& rule);

class ShardingMeasurement : public SampledMeasurement
{
public:
    /// `device` must outlive it.
    explicit ShardingMeasurement(const Device& device)
        : m_device(device)
    { }

    Result<SampleSets> visit(const Parameters& point, int pass) override;
    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override;

protected:
    virtual double mostSent() const = 0;             ///< B of one rank and step that are measured here
    virtual StoppingOptions loopOptions() const = 0; ///< of one of the two loops at a point
    virtual const Clock& clock() const = 0;
    /// What a rule accepted, each divided by `per`.
    virtual std::vector<double> samplesOf(const StoppingRule& rule, double per);
    /// `memory`: B of each rank. Errors: run.memory, run.skipped, run.failed.
    virtual Result<std::unique_ptr<RankRing>> ringOf(ShardingWay way, int ranks, std::size_t memory,
                                                     std::vector<RingOperation> operations) = 0;
    Json checksOfRings() const;

private:
    struct Counted
    {
        std::uint64_t sent = 0, gathered = 0; ///< B
    };
    Result<void> checkMeasured(const ShardingAnswer& answer) const;
    Result<std::vector<double>> sampled(RankRing& ring, double bytes);

    const Device& m_device;
    PredictionContext m_context;
    std::map<std::string, Counted> m_counted; ///< by the point's parameters
    std::map<std::string, std::string> m_checked;
};

} // namespace memscape
