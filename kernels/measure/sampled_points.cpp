// SPDX-License-Identifier: Apache-2.0
#include "kernels/measure/sampled_points.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// fmin and fmax take the known one when the other is not a number.
RunConditions worseOf(const RunConditions& a, const RunConditions& b)
{
    RunConditions worst = a;
    worst.clockShare = std::fmin(a.clockShare, b.clockShare);
    worst.stealShare = std::fmax(a.stealShare, b.stealShare);
    worst.preemptions = std::max(a.preemptions, b.preemptions);
    return worst;
}

class SampledPoints final : public PointMeasurer
{
public:
    SampledPoints(SampledMeasurement& measurement, VisitWatch& watch)
        : m_measurement(measurement)
        , m_watch(watch)
    { }

    Result<void> visit(std::size_t index, const Parameters& at, int pass) override
    {
        m_watch.begin();
        MEMSCAPE_TRY(sets, m_measurement.visit(at, pass));
        Sampled& point = m_points[index];
        std::size_t count = 0;
        for (const auto& [key, samples] : sets) {
            point.samples[key].add(pass, samples);
            count += samples.size();
        }
        // A disturbance of any pass stays with the point.
        point.seen = worseOf(point.seen, m_watch.end(count));
        MEMSCAPE_SET(point.figures, m_measurement.figures(at, point.samples));
        return {};
    }

    Point point(std::size_t index) const override { return {0, {}, sampled(index).figures, {}}; }
    MergedSamples samples(std::size_t index) const override { return sampled(index).samples; }

    /// The worst grade among the point's sample sets.
    Quality quality(std::size_t index) const override
    {
        const Sampled& point = sampled(index);
        Quality worst{'D', "no samples"};
        bool first = true;
        for (const auto& [key, samples] : point.samples) {
            RunConditions conditions = point.seen;
            conditions.drift = samples.drift();
            Quality quality = gradeOf(summarize(samples.merged()), conditions);
            quality.reason = sampledName(point.figures, key) + ": " + quality.reason;
            worst = first ? quality : worse(worst, quality);
            first = false;
        }
        return worst;
    }

    Json method() const override { return m_measurement.method(); }

private:
    struct Sampled
    {
        MergedSamples samples;
        RunConditions seen; ///< the worst of all visits
        Figures figures;
    };
    const Sampled& sampled(std::size_t index) const
    {
        static const Sampled none;
        const auto at = m_points.find(index);
        return at == m_points.end() ? none : at->second;
    }

    SampledMeasurement& m_measurement;
    VisitWatch& m_watch;
    std::map<std::size_t, Sampled> m_points;
};

} // namespace

std::unique_ptr<PointMeasurer> makeSampledPoints(SampledMeasurement& measurement, VisitWatch& watch)
{
    return std::make_unique<SampledPoints>(measurement, watch);
}

} // namespace memscape
