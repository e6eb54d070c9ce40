// SPDX-License-Identifier: Apache-2.0
// What the measurements of all experiments have in common on a GPU: where they run, and the samples and the grade of a
// point. What else is kept of a point is the experiment's.
#pragma once

#include "kernels/cuda/common/sampler.h"
#include "kernels/cuda/sweep_run.h"

#include <map>
#include <string>
#include <vector>

namespace memscape::cuda {

/// One of the things that were timed at a point.
struct SampledThing
{
    const char* key;
    const PointSamples& samples;
    bool isGraded = true; ///< the worst of the graded ones is the point's
};

/// `PerPoint` has sampled(): what was timed, as std::vector<SampledThing>.
template <typename PerPoint> class GpuMeasurer : public PointMeasurer
{
public:
    /// All must outlive it.
    GpuMeasurer(GpuSession& session, const SweepPlan& plan, const RunStart& runStart)
        : m_session(session)
        , m_plan(plan)
        , m_runStart(runStart)
        , m_points(plan.sweep.values.size())
    { }

    MergedSamples samples(std::size_t index) const override
    {
        MergedSamples all;
        for (const SampledThing& one : m_points[index].sampled())
            all[one.key] = one.samples.seconds;
        return all;
    }
    Quality quality(std::size_t index) const override
    {
        Quality worst;
        bool isFirst = true;
        for (const SampledThing& one : m_points[index].sampled()) {
            if (!one.isGraded)
                continue;
            const Quality quality = one.samples.quality(m_runStart.referenceClock);
            worst = isFirst ? quality : worse(worst, quality);
            isFirst = false;
        }
        return worst;
    }

protected:
    GpuSession& m_session;
    const SweepPlan& m_plan;
    const RunStart& m_runStart;
    std::vector<PerPoint> m_points;
};

/// A point where several things are timed, by their keys; "time" is graded.
struct NamedSamples
{
    std::map<std::string, PointSamples> samples;

    std::vector<SampledThing> sampled() const
    {
        std::vector<SampledThing> all;
        for (const auto& [key, one] : samples)
            all.push_back({key.c_str(), one, key == "time"});
        return all;
    }
    Summary summary(const char* key) const
    {
        const auto found = samples.find(key);
        return found == samples.end() ? Summary() : found->second.summary();
    }
};

} // namespace memscape::cuda
