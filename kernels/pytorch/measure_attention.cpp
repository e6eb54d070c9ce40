// SPDX-License-Identifier: Apache-2.0
// `attention` in PyTorch: the figures are made of the probe's samples and bytes by the functions that our own programs
// use. An implementation that this PyTorch lacks (1.13 has no scaled_dot_product_attention) is left out of them.
#include "kernels/programs/attention/attention_measurement.h"
#include "kernels/pytorch/sampled_run.h"

#include <map>

#include <nlohmann/json.hpp>

namespace memscape {

namespace {

/// Everything that tells one point of a sweep from another.
std::string keyOfPoint(const Parameters& point)
{
    return parametersToJson(point).dump();
}

class AttentionInPytorch final : public ProbedMeasurement
{
public:
    using ProbedMeasurement::ProbedMeasurement;

    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        Parameters there = point;
        there.setSweep({});
        MEMSCAPE_TRY(tasks, attentionTasks(device(), there));
        return attentionPointFigures(tasks, samples, m_bytes[keyOfPoint(there)], m_speedups);
    }

protected:
    Result<void> add(Json&, const Parameters& point) const override
    {
        MEMSCAPE_CHECK(attentionTasks(device(), point)); // shapes that the prediction refuses
        return {};
    }
    Result<void> take(const Parameters& point, const JsonReader& detail) override
    {
        MEMSCAPE_TRY(kinds, detail.at("bytes"));
        MEMSCAPE_TRY(members, kinds.members());
        for (const auto& [kind, bytes] : members) {
            MEMSCAPE_TRY(peak, bytes.integer("peak", 0));
            MEMSCAPE_TRY(saved, bytes.integer("saved", 0));
            m_bytes[keyOfPoint(point)][kind + "_time"] = {peak, saved};
        }
        return {};
    }

private:
    std::map<std::string, std::map<std::string, AttentionBytes>> m_bytes; ///< by point and by attentionTimeKey()
    std::map<std::int64_t, double> m_speedups;                            ///< by sequence
};

} // namespace

Result<MeasuredRun> measureAttentionInPytorch(PytorchProbe& probe, const Experiment& experiment,
                                              const Parameters& parameters)
{
    return runSampled<AttentionInPytorch>(probe, experiment, parameters);
}

} // namespace memscape
