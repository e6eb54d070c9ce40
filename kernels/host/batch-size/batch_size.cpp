// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/batch-size/batch_size.h"

#include "kernels/host/batch-size/batch_device.h"
#include "kernels/host/checkpoint/checkpoint.h"
#include "kernels/host/measurement.h"
#include "kernels/programs/batch-size/batch_measurement.h"

#include <nlohmann/json.hpp>

namespace memscape::host {

namespace {

class HostBatchMeasurement final : public HostMeasurement
{
public:
    HostBatchMeasurement(HostSession& session, const Parameters& parameters)
        : m_session(session)
        , m_product(fastestProduct(session))
        , m_measurement({batchDevices(session, m_product.kernel), session.device(), session.clock(), session.sink()},
                        parameters)
    { }

    Result<void> check() override { return m_measurement.check(m_product.kernel.name); }
    Result<SampleSets> visit(const Parameters& point, int pass) override
    {
        MEMSCAPE_TRY(rule, m_measurement.visit(point, pass, sweepPasses));
        return SampleSets{{"step_time", m_session.samplesOf(rule, 1)}};
    }
    Result<Figures> figures(const Parameters& point, const MergedSamples& samples) override
    {
        return m_measurement.figures(point, summarize(samples.at("step_time").merged()));
    }
    Json method() const override
    {
        return {{"products", m_product.kernel.name},        {"products_tried", m_product.tried},
                {"threads", m_session.team().size()},       {"check", m_measurement.checked()},
                {"caches", "warm, as training finds them"}, {"data", batchDataText}};
    }
    const BatchMeasurement& shared() const { return m_measurement; }

private:
    HostSession& m_session;
    ProductChoice m_product;
    BatchMeasurement m_measurement;
};

} // namespace

Result<MeasuredRun> measureBatchSize(HostSession& session, const Experiment& experiment, const Parameters& parameters)
{
    MEMSCAPE_CHECK(batchTask(session.device(), parameters)); // before anything is tried
    HostBatchMeasurement measurement(session, parameters);
    MEMSCAPE_TRY(run, runSweep(experiment, parameters, measurement, session));
    return measurement.shared().finished(std::move(run), parameters);
}

} // namespace memscape::host
